// carve: the command line. All its output comes from the agent's API (wire/api/FORMAT.md).
#include <algorithm>
#include <cstdio>

#include "cli/help.h"
#include "cli/unknown_words.h"
#include "cli/verbs.h"
#include "runner/runner.h"
#include "wire/api/problem.h"

namespace carve::cli {
namespace {

using AddVerb = void (*)(CLI::App&, Context&);

// The verbs in the order and the groups of `carve --help`.
struct Group {
  const char* title;
  std::vector<AddVerb> verbs;
};

std::vector<Group> groups() {
  return {
      {"Programs in slices",
       {add_run, add_exec, add_ps, add_top, add_show, add_set, add_stop, add_wait, add_thaw, add_slice,
        add_explain, add_history, add_trace}},
      {"Devices and nodes",
       {add_devices, add_node, add_consolidate, add_limit, add_label, add_cordon, add_drain}},
      {"Services and other objects",
       {add_apply, add_diff, add_get, add_describe, add_edit, add_logs, add_scale, add_autoscale, add_rollout,
        add_delete, add_eas, add_render}},
      {"Jobs and invoices", {add_submit, add_cancel, add_bill, add_usage}},
      {"Operation",
       {add_up, add_down, add_console, add_context, add_whoami, add_auth, add_audit, add_token, add_doctor,
        add_events, add_backup, add_restore, add_completion, add_help, add_version, add_hook}},
  };
}

// Other names of verbs, which users know from docker.
constexpr std::pair<const char*, const char*> aliases[] = {
    {"ls", "ps"}, {"inspect", "show"}, {"stats", "top"}, {"kill", "stop"}, {"update", "set"}};

void add_verbs(CLI::App& app, Context& context) {
  const auto all = [&] { return app.get_subcommands([](const CLI::App*) { return true; }); };
  for (const auto& [title, verbs] : groups()) {
    const size_t known = all().size();
    for (const AddVerb add : verbs) add(app, context);
    const auto present = all();
    for (size_t i = known; i < present.size(); ++i)
      if (!present[i]->get_group().empty()) present[i]->group(title);  // Hidden verbs have no group.
  }
  for (CLI::App* verb : all())
    for (CLI::App* inner : verb->get_subcommands([](const CLI::App* v) { return !v->get_group().empty(); }))
      inner->group("Verbs");
  for (const auto& [alias, verb] : aliases) app.get_subcommand(verb)->alias(alias);
}

}  // namespace

void print_warning(const std::string& warning) {
  fmt::print(stderr, "carve: warning: {}\n", harmless(warning));
}

bool Context::refuse(const std::string& message) {
  fmt::print(stderr, "carve: {}\n", message);
  status = usage_status;
  return false;
}

void complain(const api::Problem& problem) {
  std::string text = fmt::format("carve: {}\n", problem.detail.empty() ? problem.title : problem.detail);
  for (const std::string& reason : problem.reasons)
    // The detail combines equal reasons: "devices 0, 1: ...".
    if (text.find(reason.substr(reason.find(": ") + 1)) == std::string::npos)
      text += fmt::format("  {}\n", reason);
  std::fputs(text.c_str(), stderr);
}

void add_output(CLI::App* verb, Context& context, const std::vector<std::string>& forms) {
  verb->add_option("-o,--output", context.output, "Output format")
      ->check(CLI::IsMember(forms))
      ->capture_default_str();
}

// Adds --socket to the program and to every verb, so that it is accepted before and after the verb.
void add_socket(CLI::App& app, Context& context) {
  app.add_option("--socket", context.socket_flag,
                 "The agent's socket [CARVE_SOCKET; otherwise /run/carve/carved.sock if you may use it, else "
                 "carve/carved.sock in your runtime directory]")
      ->type_name("PATH");
  CLI::Option* controller =
      app.add_option("--controller", context.controller_flag,
                     "The controller's socket, or https://HOST:PORT with CARVE_TOKEN [CARVE_CONTROLLER; "
                     "otherwise the "
                     "context in use; otherwise controller.sock next to the agent's socket]")
          ->type_name("PATH");
  app.add_option("--context", context.context_flag,
                 "The context to use, of carve context list; 'local' is this machine")
      ->type_name("NAME")
      ->excludes(controller);
  for (CLI::App* verb : app.get_subcommands(nullptr))
    if (!verb->get_name().empty()) add_socket(*verb, context);  // A group of options has no name.
}

// Returns the message about unexpected words. CLI11 writes "The following argument was not expected: x" and
// lists several words in reverse order; this message names only the first one.
std::string unexpected_words(std::string_view text, const CLI::App& first) {
  const CLI::App* last = &first;
  while (!last->get_subcommands().empty()) last = last->get_subcommands().front();
  const CLI::App& verb = *last;
  const size_t colon = text.find(": ");
  const std::string_view words = colon == std::string_view::npos ? text : text.substr(colon + 2);
  const std::string_view word = words.substr(words.rfind(' ') + 1);
  const std::string verbs = verb.get_parent() == nullptr ? "" : names_of_verbs(verb);
  const std::string place = verb.get_parent() == nullptr ? "" : verb.get_name() + ": ";
  if (word.starts_with('-')) return unknown_option(verb, word);
  return verbs.empty() ? fmt::format("{}unexpected argument '{}'", place, word)
                       : fmt::format("{}'{}' is not one of {}", place, word, verbs);
}

// Returns the error as a message. For a text that is not a number, CLI11 writes "Could not convert: --tail =
// x".
std::string message_of(const CLI::ParseError& error, const CLI::App& verb) {
  if (verb.get_require_subcommand_min() != 0 &&
      error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError))
    return fmt::format("a verb is required: {}",
                       verb.get_parent() == nullptr ? "'carve --help' lists them" : names_of_verbs(verb));
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError))
    return unexpected_words(error.what(), verb);
  constexpr std::string_view prefix = "Could not convert: ", between = " = ";
  std::string_view text = error.what();
  const size_t at = text.find(between);
  if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::ConversionError) ||
      !text.starts_with(prefix) || at == std::string_view::npos)
    return std::string(text);
  const std::string name(text.substr(prefix.size(), at - prefix.size()));
  const std::string_view value = text.substr(at + between.size());
  const CLI::Option* const option = verb.get_option_no_throw(name);
  if (option != nullptr && option->get_items_expected_max() == 0)
    return fmt::format("{}: '{}': the option takes no value", name, value);
  return fmt::format("{}: '{}' is not a valid number, or is out of range", name, value);
}

// Returns the verb that the words name, such as "rollout status". Fails for unknown words, and for options in
// place of a verb.
Result<const CLI::App*, std::string> verb_of(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* verb = &app;
  for (const std::string& word : words) {
    if (verb->get_require_subcommand_min() == 0) break;
    if (word.starts_with('-')) {
      if (verb->get_option_no_throw(word.substr(0, word.find('='))) != nullptr || !word.starts_with("--"))
        break;
      return tl::unexpected(unknown_option(*verb, word));
    }
    const auto verbs = verb->get_subcommands([&](const CLI::App* one) { return one->check_name(word); });
    if (!verbs.empty()) {
      verb = verbs.front();
      continue;
    }
    if (verb == &app) return tl::unexpected(unknown_verb(app, word));
    return tl::unexpected(
        fmt::format("{}: '{}' is not one of {}", full_name(*verb).substr(6), word, names_of_verbs(*verb)));
  }
  return verb;
}

int main(int argc, char** argv) {
  // Each line is printed immediately, even into a pipe, and before an error that follows it.
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  Context context;
  context.screen = screen();
  CLI::App app("carve: run unmodified programs in slices of a GPU", "carve");
  app.require_subcommand(1);
  app.footer(
      "Try: carve devices, then carve run --memory 2GiB -- PROGRAM, then carve top.\n"
      "carve help VERB explains a verb.");
  const auto formatter = std::make_shared<HelpFormatter>();
  formatter->label("Positionals", "Arguments");
  app.formatter(formatter);  // Before the verbs are added, which inherit it.
  add_verbs(app, context);
  add_socket(app, context);

  // The words after "--" are the user's program and are not parsed.
  std::vector<std::string> words(argv + 1, argv + argc);
  if (const auto dashes = std::ranges::find(words, "--"); dashes != words.end()) {
    context.program.assign(dashes + 1, words.end());
    words.erase(dashes, words.end());
  }
  const auto named = verb_of(app, words);
  if (!named) {
    fmt::print(stderr, "carve: {}\n", named.error());
    return usage_status;
  }
  // A usage error of `carve run` exits with status 125, as in docker and podman, so that callers can
  // distinguish it from the program's own status.
  const bool running = !words.empty() && words[0] == "run";
  try {
    std::ranges::reverse(words);  // CLI11 expects the words in reverse order.
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fmt::print(stderr, "carve: {}\nTry '{} --help'.\n", message_of(error, **named), full_name(**named));
    return running ? runner::failed_status : usage_status;
  }
  return context.status;
}

}  // namespace carve::cli

int main(int argc, char** argv) { return carve::cli::main(argc, argv); }

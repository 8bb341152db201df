// carved's command line. CLI11 divides the words into options and values; option_table.cc has the rules of
// the values. Here are the help, the completion and the rules between options.
#include "node/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "node/option_table.h"

namespace carve::node {
namespace {

using K = FailureKind;

std::string absolute(const std::string& path, const std::string& from) {
  return path.empty() || path[0] == '/' ? path : from + "/" + path;
}

void fill_defaults(Options& o, const Surroundings& s) {
  if (o.state.empty()) {
    if (s.uid == 0)
      o.state = "/var/lib/carve";
    else
      o.state = (s.xdg_state_home.empty() ? s.home + "/.local/state" : s.xdg_state_home) + "/carve";
  }
  if (o.socket.empty()) {
    if (s.uid == 0)
      o.socket = "/run/carve/carved.sock";
    else if (!s.xdg_runtime_dir.empty())
      o.socket = s.xdg_runtime_dir + "/carve/carved.sock";
    else
      o.socket = fmt::format("/tmp/carve-{}/carved.sock", s.uid);
  }
  o.state = absolute(o.state, s.working_directory);
  o.socket = absolute(o.socket, s.working_directory);
  o.cdi_dir = absolute(o.cdi_dir, s.working_directory);
  o.topology = absolute(o.topology, s.working_directory);
}

bool is_loopback(const std::string& host) { return host.starts_with("127.") || host == "::1"; }

// Returns CLI11's form of the table. A repeated option keeps all its values; unknown words are kept too.
std::unique_ptr<CLI::App> app() {
  auto app = std::make_unique<CLI::App>(
      "carved: the Carve node agent. It divides this node's GPUs into slices and enforces their limits.",
      "carved");
  app->set_help_flag();
  app->allow_extras();
  app->get_formatter()->column_width(30);
  app->footer(
      "SIGTERM and SIGINT end the agent; slices run on inside their quotas, and the next agent adopts them.\n"
      "Exit status: 0 ended by a signal, 2 wrong command line, 1 any other failure; stderr has the reason.\n"
      "  carved --sim a10x2 --strategy spread");
  for (const OptionRow& row : option_rows) {
    const std::string names = row.letter[0] == '\0' ? row.name : fmt::format("{},{}", row.letter, row.name);
    if (row.takes_value())
      app->add_option(names, CLI::callback_t{}, row.help)->type_name(row.value)->take_all();
    else
      app->add_flag(names, row.help)->take_all();
  }
  return app;
}

// Stores the values that the command line has for a row.
Outcome<void> store(const OptionRow& row, const std::vector<std::string>& values, Options& o) {
  for (const std::string& value : values) {
    if (!row.takes_value() && value != "true")
      return failure(K::invalid_argument, "{} takes no value; remove '={}'", row.name, shown(value));
    if (row.takes_value() && value.empty())
      return failure(K::invalid_argument, "{} needs a value; carved --help explains it", row.name);
    if (std::ranges::any_of(value, is_control))
      return failure(K::invalid_argument, "{} '{}' has a control character; use printable characters",
                     row.name, shown(value));
    if (!row.repeatable && value != values[0])
      return failure(K::invalid_argument, "{} '{}': an earlier {} has '{}'; give it once", row.name,
                     shown(value), row.name, shown(values[0]));
    if (!row.words.empty())
      if (const auto known = known_word(row.name, value, row.noun, row.words); !known) return known;
    if (const auto good = row.store(o, value); !good) return good;
  }
  return {};
}

// Checks the rules between the options.
Outcome<void> consistent(const Options& o) {
  if (o.metrics_any && o.metrics_host.empty())
    return failure(K::invalid_argument, "--metrics-listen-any needs --metrics-listen HOST:PORT");
  if (!o.metrics_host.empty() && !o.metrics_any && !is_loopback(o.metrics_host))
    return failure(K::invalid_argument,
                   "--metrics-listen {}: metrics name every slice, so only a loopback address is opened; "
                   "add --metrics-listen-any to open this one",
                   o.metrics_host);
  return {};
}

}  // namespace

std::string help_text() { return app()->help(); }

std::string completion_script() {
  std::string names, cases;
  for (const OptionRow& row : option_rows) {
    names += fmt::format("{} ", row.name);
    if (!row.words.empty())
      cases += fmt::format("    {}) words=\"{}\" ;;\n", row.name, fmt::join(row.words, " "));
    else if (row.takes_value())
      cases += fmt::format("    {}) return ;;\n", row.name);  // Bash completes a file name.
  }
  return fmt::format(R"(_carved() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words="{}"
  case "${{COMP_WORDS[COMP_CWORD-1]}}" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _carved carved
)",
                     names, cases);
}

Settings settings_of(const Options& o, const Paths& paths, const std::optional<place::Topology>& topology) {
  return {.socket = o.socket,
          .state = o.state,
          .cdi_dir = o.cdi_dir,
          .strategy = o.strategy,
          .contexts_in_slice = o.contexts_in_slice,
          .audit = o.audit,
          .over_quota = o.over_quota,
          .paths = paths,
          .policy = o.policy,
          .labels = o.labels,
          .policy_per_slice = o.policy_per_slice,
          .admit_best_effort = o.admit_best_effort,
          .overcommit_compute = o.overcommit_compute,
          .memory_unit = o.memory_unit,
          .topology = topology};
}

Outcome<Options> parse_options(int argc, char** argv, const Surroundings& surroundings) {
  Options o;
  // The agent starts its own executable again for two small tasks (slice/fd_store.h,
  // devices/context_charge.h).
  if (argc == 3 && std::string_view(argv[1]) == "--fd-store") {
    o.mode = Options::Mode::fd_store;
    o.fd_store_dir = argv[2];
    return o;
  }
  if (argc == 4 && std::string_view(argv[1]) == "--measure-context") {
    o.mode = Options::Mode::measure;
    o.measure_libcuda = argv[2];
    o.measure_uuid = argv[3];
    return o;
  }
  const auto parser = app();
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  // CLI11 reads the word after "--state=" as the value.
  for (const std::string& word : words)
    for (const OptionRow& row : option_rows)
      if (word == fmt::format("{}=", row.name))
        if (const auto stored = store(row, {""}, o); !stored) return tl::unexpected(stored.error());
  std::ranges::reverse(words);  // CLI11 reads the words from the back.
  const std::string last = words.empty() ? "" : words.front();
  try {
    parser->parse(words);
  } catch (const CLI::ArgumentMismatch&) {
    return failure(K::invalid_argument, "{} needs a value; carved --help explains it", last);
  }
  for (const OptionRow& row : option_rows) {
    const auto stored = store(row, parser->get_option(row.name)->results(), o);
    if (!stored) return tl::unexpected(stored.error());
    if (o.mode != Options::Mode::agent) return o;
  }
  if (const auto unknown = parser->remaining(); !unknown.empty())
    return failure(K::invalid_argument, "there is no option {}; carved --help lists the options",
                   shown(unknown[0]));
  if (const auto good = consistent(o); !good) return tl::unexpected(good.error());
  fill_defaults(o, surroundings);
  return o;
}

}  // namespace carve::node

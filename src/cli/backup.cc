// `carve backup` and `carve restore`: copies the state of the agent and of the controller to a folder, and back.
#include <filesystem>

#include "base/bytes.h"
#include "cli/backup_files.h"
#include "cli/verbs.h"
#include "os/clock.h"
#include "wire/api/controller.h"
#include "wire/api/node.h"

namespace carve::cli {
namespace {

struct BackupOptions {
  std::string folder, only, agent_state, controller_state;
};

void fail_with(Context& context, const Failure& problem) {
  complain(api::Problem{.detail = problem.message});
  context.status = failed_status;
}

void add_options(CLI::App* verb, BackupOptions& options, const char* otherwise) {
  verb->add_option("--only", options.only, "Only the state of this program")
      ->check(CLI::IsMember({"agent", "controller"}));
  verb->add_option("--agent-state", options.agent_state,
                   fmt::format("The agent's state directory [{}]", otherwise))
      ->type_name("DIR");
  verb->add_option("--controller-state", options.controller_state,
                   fmt::format("The controller's state directory [{}]", otherwise))
      ->type_name("DIR");
}

// Returns the state directory of a program: the named one, or the one that the running program uses.
template <class Ask>
std::string state_of(Context& context, const char* program, const std::string& named, Ask ask_version) {
  if (!named.empty()) return named;
  const auto version = ask_version();
  if (version) return version->state;
  api::Problem problem = version.error();
  const bool is_agent = std::string_view(program) == "agent";
  problem.detail += fmt::format("; or name the {0}'s state directory with --{0}-state DIR, or use --only {1}",
                                program, is_agent ? "controller" : "agent");
  complain(problem);
  context.status = failed_status;
  return "";
}

std::string summary(const Backup& backup) {
  std::vector<std::vector<std::string>> rows;
  for (const BackupPart& part : backup.parts) {
    uint64_t bytes = 0;
    for (const BackupFile& file : part.files) bytes += file.bytes;
    rows.push_back(
        {part.program, part.state, std::to_string(part.files.size()), std::string(text(Bytes{bytes}))});
  }
  return table({"PROGRAM", "STATE", "FILES", "SIZE"}, rows);
}

void back_up(Context& context, const BackupOptions& options) {
  std::vector<BackupPart> parts;
  const auto add = [&](const char* program, const std::string& named, auto ask_version) {
    if (!options.only.empty() && options.only != program) return true;
    const std::string state = state_of(context, program, named, ask_version);
    parts.push_back({.program = program, .state = state, .files = {}});
    return !state.empty();
  };
  // The ledger is copied last: it then has every usage record that the controller's copy has.
  if (!add("controller", options.controller_state,
           [&] { return context.controller().get<api::ControllerVersion>("/v1/version"); }) ||
      !add("agent", options.agent_state, [&] { return context.agent().version(); }))
    return;
  const auto backup = write_backup(parts, options.folder, os::utc_ns());
  if (!backup) return fail_with(context, backup.error());
  if (context.json()) return print_json(*backup);
  fmt::print("{}", summary(*backup));
}

void restore(Context& context, const BackupOptions& options) {
  auto backup = read_backup(options.folder);
  if (!backup) return fail_with(context, backup.error());
  bool is_found = false;
  for (BackupPart& part : backup->parts) {
    if (part.program != "agent" && part.program != "controller") continue;
    if (!options.only.empty() && options.only != part.program) continue;
    is_found = true;
    const std::string& named = part.program == "agent" ? options.agent_state : options.controller_state;
    if (!named.empty()) part.state = std::filesystem::absolute(named).string();
    const auto former = restore_part(options.folder, part, os::utc_ns());
    if (!former) return fail_with(context, former.error());
    fmt::print("{}: {} files in {}\n", part.program, part.files.size(), part.state);
    if (!former->empty()) fmt::print("{}: the former files are in {}\n", part.program, *former);
  }
  if (!is_found)
    fail_with(context, Failure{FailureKind::not_found,
                               fmt::format("{} has no backup of the {}", options.folder, options.only)});
}

}  // namespace

void add_backup(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand(
      "backup", "Copy the state of the agent and of the controller to a new folder, also while they run");
  auto options = std::make_shared<BackupOptions>();
  verb->add_option("DIR", options->folder, "The new folder")->required();
  add_options(verb, *options, "that of the running one");
  add_output(verb, context);
  verb->footer(
      "The copy has the ledger with its usage records, the objects, tokens, tariffs and history.\n"
      "It has no logs of programs. carve restore puts the files back.\n\n"
      "  carve backup /backup/carve-$(date +%F)");
  verb->callback([&context, options] { back_up(context, *options); });
}

void add_restore(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand(
      "restore", "Put the files of a backup back; the agent and the controller must be stopped");
  auto options = std::make_shared<BackupOptions>();
  verb->add_option("DIR", options->folder, "A folder that carve backup has written")->required();
  add_options(verb, *options, "the one that was copied");
  verb->footer(
      "The present files are kept in a folder before-restore-TIME in the state directory.\n\n"
      "  carve restore /backup/carve-2026-11-29");
  verb->callback([&context, options] { restore(context, *options); });
}

}  // namespace carve::cli

#include "cli/detached_programs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "core/escaped.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/user.h"
#include "runner/log_files.h"
#include "runner/runner.h"

namespace carve::cli {
namespace {

constexpr std::chrono::milliseconds follow_interval{100};

uint32_t current_umask() {
  const mode_t mask = umask(077);
  umask(mask);
  return mask;
}

// Control characters are escaped on a terminal, because they could change how other output is shown.
void print_line(const runner::LogLine& line, bool has_time) {
  const bool is_output = line.stream == runner::LogStream::standard_output;
  std::FILE* const file = is_output ? stdout : stderr;
  const bool is_terminal = isatty(fileno(file)) == 1;
  const std::string text = has_time ? runner::timed_text(line) : line.text;
  const char* const prefix = line.stream == runner::LogStream::system ? "carve: " : "";
  fmt::print(file, "{}{}\n", prefix, is_terminal ? escaped(text, "\t") : text);
}

// Prints lines until the program has ended and all its output has been printed.
void follow(const runner::DetachedProgram& program, runner::LogSelection selection, bool has_times) {
  runner::LogFollower follower(program.directory, runner::log_folder_name, std::move(selection));
  for (;;) {
    // Before the read, so that lines written in between are not lost.
    const auto seen = runner::read_program(program.directory);
    const bool has_ended = !seen || !seen->is_supervised;
    const auto lines = follower.next();
    for (const runner::LogLine& line : lines) print_line(line, has_times);
    std::fflush(stdout);
    if (lines.empty() && has_ended) return;
    if (lines.empty()) std::this_thread::sleep_for(follow_interval);
  }
}

// Returns why the slice has no kept output or exit status.
std::string missing_program(const client::AgentClient& agent, const std::string& name) {
  const auto slice = agent.slice(name);
  if (!slice) return slice.error().detail.empty() ? slice.error().title : slice.error().detail;
  if (slice->owner_uid != geteuid())
    return fmt::format("the output and exit status of slice {} are kept for its owner {}; run this as {}",
                       name, os::user_name(slice->owner_uid), os::user_name(slice->owner_uid));
  return fmt::format(
      "the program of slice {} was not started with 'carve run -d', so its output and exit status are not "
      "kept",
      name);
}

}  // namespace

int run_detached(const client::AgentClient& agent, const api::Slice& slice,
                 const std::vector<std::string>& program, const Variables& variables, uint32_t max_restarts) {
  const auto fail = [&](const std::string& message, int status) {
    (void)agent.end(slice.name);
    fmt::print(stderr, "carve: {}\n", message);
    return status;
  };
  std::error_code error;
  const auto folder = std::filesystem::current_path(error);
  if (error) return fail("the current folder: " + error.message(), runner::failed_status);
  const std::filesystem::path socket = std::filesystem::absolute(agent.socket(), error);
  runner::SuperviseRequest request{.agent_socket = error ? agent.socket() : socket.string(),
                                   .slice = slice.name,
                                   .workdir = folder,
                                   .command = program,
                                   .env = variables,
                                   .is_detached = true,
                                   .program_umask = current_umask(),
                                   .slice_created_ns = slice.created_ns,
                                   .max_restarts = max_restarts};
  for (const api::SlicePart& part : slice.parts) request.devices.push_back(part.uuid);
  const auto started = runner::start_detached(runner::detached_folder(agent.socket()), slice.name,
                                              os::own_folder() + "/carve-supervise", std::move(request));
  if (!started) return fail(started.error().message, started.error().status);
  fmt::print("{}\n", slice.name);
  return 0;
}

std::string kept_exit_status(const std::string& agent_socket, const api::Slice& slice) {
  const auto found = runner::find_detached(runner::detached_folder(agent_socket), slice.name);
  const bool is_kept = found && *found && (*found)->slice_created_ns == slice.created_ns &&
                       (*found)->seen.phase() == runner::ProgramPhase::ended;
  return is_kept ? fmt::format("{}", (*found)->seen.state.exit_status) : "-";
}

bool has_detached_program(const Context& context, const std::string& slice) {
  const auto found = runner::find_detached(runner::detached_folder(context.agent().socket()), slice);
  return found && found->has_value();
}

std::optional<runner::DetachedProgram> required_program(Context& context, const std::string& slice) {
  const client::AgentClient agent = context.agent();
  auto found = runner::find_detached(runner::detached_folder(agent.socket()), slice);
  if (found && *found) return std::move(**found);
  fmt::print(stderr, "carve: {}\n", found ? missing_program(agent, harmless(slice)) : found.error().message);
  context.status = context.problem_status;
  return std::nullopt;
}

void print_logs(Context& context, const std::string& slice, const LogPrinting& printing) {
  const auto program = required_program(context, slice);
  if (!program) return;
  runner::LogSelection selection{.previous = printing.previous, .tail = printing.tail};
  if (printing.since.count() > 0)
    selection.since = os::rfc3339(os::utc_ns() - std::chrono::nanoseconds(printing.since).count(),
                                  os::Decimals::nanoseconds);
  if (printing.follow) return follow(*program, std::move(selection), printing.has_times);
  for (const runner::LogLine& line : runner::read_log(program->directory, runner::log_folder_name, selection))
    print_line(line, printing.has_times);
}

}  // namespace carve::cli

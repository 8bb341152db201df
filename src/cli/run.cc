// `carve run`: requests a slice and runs a program in it (runner/runner.h).
#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <thread>

#include "cli/detached_programs.h"
#include "cli/services.h"
#include "cli/slice_options.h"
#include "cli/time_span.h"
#include "cli/unknown_words.h"
#include "cli/user_devices.h"
#include "cli/variables.h"
#include "cli/verbs.h"
#include "runner/runner.h"
#include "wire/api/device.h"
#include "wire/api/slice.h"

namespace carve::cli {
namespace {

struct RunOptions {
  SliceOptions slice;
  std::string wait;
  bool is_detached = false;
  std::string time, grace = "30s";  // Empty for no limit.
  std::string restart = "no";
  VariableOptions variables;
};

// Parses "30s", "5m", "1h". A bare "--wait" waits without a limit.
Result<std::chrono::seconds, std::string> parse_wait(const std::string& text) {
  uint64_t count = 0;
  char unit = 0, rest = 0;
  const int read = std::sscanf(text.c_str(), "%9lu%c%c", &count, &unit, &rest);
  if (read == 2 && unit == 's') return std::chrono::seconds(count);
  if (read == 2 && unit == 'm') return std::chrono::minutes(count);
  if (read == 2 && unit == 'h') return std::chrono::hours(count);
  return tl::unexpected(fmt::format("--wait: '{}' is not a duration; try 30s, 5m or 1h", text));
}

// Requests a slice on the first devices of the list on which it fits. If it fits on none, returns the last
// rejection.
client::Answer<api::Slice> ask_on(const client::AgentClient& agent, const api::SliceRequest& request,
                                  const std::vector<std::string>& devices) {
  client::Answer<api::Slice> out = tl::unexpected(api::Problem{});
  for (const std::string& list : preferred_lists(devices, request.amounts.device_count())) {
    api::SliceRequest on_devices = request;
    on_devices.device = list;
    out = agent.grant(on_devices);
    if (out || out.error().type != "carve:insufficient-capacity") return out;
  }
  return out;
}

// Returns the same for parts that differ: the largest part needs the largest device, and so on. `usable` is
// in descending order.
std::string impossible_part(const std::vector<Part>& parts, const std::vector<uint64_t>& usable) {
  std::vector<uint64_t> wanted;
  for (const Part& part : parts) wanted.push_back(part.memory_bytes.value_or(0));
  std::ranges::sort(wanted, std::greater());
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] > usable[i])
      return fmt::format(
          "--parts: the part of {} is number {} by size, but the device that is number {} by size has only "
          "{} usable, even if it is empty; request at most {} for this part",
          text(Bytes{wanted[i]}), i + 1, i + 1, text(Bytes{usable[i]}), text(Bytes{usable[i]}));
  return "";
}

// Returns why the slice would not fit even if the devices were empty; empty if it may fit.
std::string impossible(const api::SliceRequest& request, const std::vector<api::Device>& devices) {
  if (devices.empty()) return "";
  const uint64_t wanted = request.amounts.memory_bytes.value_or(
      request.amounts.total_memory_bytes.value_or(0) / std::max(request.amounts.devices, 1U));
  const uint32_t count = request.amounts.device_count();
  std::vector<uint64_t> usable;
  for (const api::Device& device : devices) usable.push_back(device.usable_bytes);
  std::ranges::sort(usable, std::greater());
  if (count > usable.size())
    return fmt::format("{}: the request is for {} devices, but this node has {}; request at most {}",
                       request.amounts.parts.empty() ? "--devices" : "--parts", count, usable.size(),
                       usable.size());
  if (!request.amounts.parts.empty()) return impossible_part(request.amounts.parts, usable);
  const uint64_t least = usable[std::max(request.amounts.devices, 1U) - 1];
  if (wanted <= least) return "";
  return fmt::format(
      "{} is requested on {}, but {} of this node has only {} usable, even if it is empty; "
      "request at most {}",
      text(Bytes{wanted}),
      request.amounts.devices > 1 ? fmt::format("each of {} devices", request.amounts.devices)
                                  : std::string("one device"),
      request.amounts.devices > 1
          ? fmt::format("the device that is number {} by size", request.amounts.devices)
          : std::string("the largest device"),
      text(Bytes{least}), text(Bytes{least}));
}

// Repeats the request until it is granted or the time limit passes. Retries only while devices are full.
client::Answer<api::Slice> ask(const client::AgentClient& agent, const api::SliceRequest& request,
                               const std::vector<std::string>& devices, std::chrono::seconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  bool told = false;
  for (;;) {
    auto slice = devices.empty() ? agent.grant(request) : ask_on(agent, request, devices);
    if (slice || slice.error().type != "carve:insufficient-capacity" ||
        std::chrono::steady_clock::now() >= deadline)
      return slice;
    if (!told)
      if (const auto list = agent.devices())
        if (std::string why = impossible(request, list->devices); !why.empty())
          return tl::unexpected(api::problem_of(FailureKind::failed_precondition, std::move(why)));
    if (!told) fmt::print(stderr, "carve: waiting for capacity: {}\n", slice.error().detail);
    told = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  }
}

constexpr std::string_view on_failure = "on-failure";

// Returns how often a program that fails is started again: "no", "on-failure", "on-failure:5". No value for
// other texts.
std::optional<uint32_t> parse_restart(std::string_view text) {
  if (text == "no") return 0;
  if (text == on_failure) return std::numeric_limits<uint32_t>::max();
  if (!text.starts_with(on_failure) || text[on_failure.size()] != ':') return std::nullopt;
  text.remove_prefix(on_failure.size() + 1);
  uint32_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count == 0) return std::nullopt;
  return count;
}

// Sets the time limit of the slice, which has no program yet. Returns false after an error, and ends the slice.
bool limit_time(const client::AgentClient& agent, const api::Slice& slice, const RunOptions& options) {
  if (options.time.empty()) return true;
  const auto limited = agent.limit_time(
      slice.name, {.seconds = seconds_of(options.time), .grace_seconds = seconds_of(options.grace)});
  if (limited) return true;
  complain(limited.error());
  (void)agent.end(slice.name);
  return false;
}

int run(Context& context, const RunOptions& options, const std::vector<std::string>& program) {
  const auto fail = [](const std::string& message) {
    fmt::print(stderr, "carve: {}\n", message);
    return runner::failed_status;
  };
  if (program.empty())
    return fail(
        "no program is given; add it after --, as in carve run --memory 2GiB -- PROGRAM [ARGUMENT...]");
  std::chrono::seconds patience{0};
  if (options.wait == "forever" && parse_wait(program.front()))
    return fail(fmt::format("--wait takes its limit after '=': --wait={}", program.front()));
  if (options.wait == "forever") {
    patience = std::chrono::hours(24 * 365);
  } else if (!options.wait.empty()) {
    const auto parsed = parse_wait(options.wait);
    if (!parsed) return fail(parsed.error());
    patience = *parsed;
  }
  if (!options.is_detached && options.restart != "no")
    return fail("--restart needs -d, because a program in the foreground is not supervised");
  auto request = to_request(options.slice);
  if (!request) return fail(request.error());

  const auto variables = to_variables(options.variables);
  if (!variables) return fail(variables.error());

  const client::AgentClient agent = context.agent();
  const auto allowed = user_devices(agent, *request);
  if (!allowed) return fail(allowed.error());
  const auto slice = ask(agent, *request, *allowed, patience);
  if (!slice) {
    complain(slice.error());
    return runner::failed_status;
  }

  if (!limit_time(agent, *slice, options)) return runner::failed_status;
  if (options.is_detached)
    return run_detached(agent, *slice, program, *variables, parse_restart(options.restart).value());
  std::vector<std::string> devices;
  for (const api::SlicePart& part : slice->parts) devices.push_back(part.uuid);
  return runner::run({.agent = agent,
                      .slice = slice->name,
                      .program = program,
                      .say = [](const std::string& message) { fmt::print(stderr, "carve: {}\n", message); },
                      .complain = complain,
                      .prepare = [&] { return set_variables(*variables); },
                      .devices = std::move(devices)});
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand(
      "run", "Run a program in a new slice: carve run --memory SIZE [OPTIONS] -- PROGRAM [ARGUMENT...]");
  auto options = std::make_shared<RunOptions>();
  add_slice_options(verb, options->slice);
  verb->add_option("--name", options->slice.name, "The slice's name [the agent chooses one]");
  verb->add_flag("--wait{forever}", options->wait,
                 "Wait until the slice fits; --wait=30s, 5m or 1h limits the time");
  verb->add_flag("-d,--detach", options->is_detached,
                 "Print the slice's name and return when the program has been started");
  verb->add_option(
          "--restart", options->restart,
          "With -d, start the program again if it fails: no, on-failure, or on-failure:N for at most "
          "N times")
      ->type_name("POLICY")
      ->check([](const std::string& text) {
        return parse_restart(text)
                   ? std::string()
                   : fmt::format("'{}' is not no, on-failure or on-failure:N", harmless(text));
      })
      ->capture_default_str();
  verb->add_option("--time", options->time,
                   "Time limit, such as 90s, 30m or 2h: SIGTERM is sent then, and the slice is ended after "
                   "the grace time [none]")
      ->type_name("TIME")
      ->check(check_time_span);
  verb->add_option("--stop-timeout", options->grace, "Grace time of --time between SIGTERM and SIGKILL")
      ->type_name("TIME")
      ->check(check_time_span)
      ->capture_default_str();
  add_variable_options(verb, options->variables);
  verb->prefix_command();
  verb->footer(
      "Signals and the terminal are passed through to the program. Exit status: the program's own; 126 if\n"
      "it cannot be executed; 127 if it does not exist; 128+N if signal N ended it; 125 if carve fails.\n"
      "The slice ends when the last process in it ends. With -d, it ends with the program: 'carve logs'\n"
      "prints the output, 'carve wait' waits for the end, and 'carve stop' ends the program.\n"
      "  carve run --memory 4GiB -- python3 train.py\n"
      "  carve run --total-memory 8GiB --devices 2 -- ./two-devices\n"
      "  carve run --parts 8GiB:30%,4GiB:10% -- ./two-devices\n"
      "  carve run --memory 50% --wait=5m --name nightly -- ./job\n"
      "  carve run -d --memory 4GiB --name train --time 2h -- python3 train.py");
  verb->callback([&context, verb, options] {
    context.problem_status = runner::failed_status;
    std::vector<std::string> program = verb->remaining();  // "carve run --memory 2GiB ls -l" needs no "--".
    if (!program.empty() && program.front().starts_with('-')) {
      fmt::print(stderr, "carve: {}\n", unknown_option(*verb, program.front()));
      context.status = runner::failed_status;
      return;
    }
    program.insert(program.end(), context.program.begin(), context.program.end());
    context.status = run(context, *options, program);
  });
}

}  // namespace carve::cli

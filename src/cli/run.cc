// `carve run`: requests a slice and runs a program in it (runner/runner.h).
#include <thread>

#include "cli/slice_options.h"
#include "cli/verbs.h"
#include "runner/runner.h"
#include "wire/api/slice.h"

namespace carve::cli {
namespace {

struct RunOptions {
  SliceOptions slice;
  std::string wait;
};

// Parses "30s", "5m", "1h". A bare "--wait" waits without a limit.
Result<std::chrono::seconds, std::string> parse_wait(const std::string& text) {
  uint64_t count = 0;
  char unit = 0, rest = 0;
  const int read = std::sscanf(text.c_str(), "%9lu%c%c", &count, &unit, &rest);
  if (read == 2 && unit == 's') return std::chrono::seconds(count);
  if (read == 2 && unit == 'm') return std::chrono::minutes(count);
  if (read == 2 && unit == 'h') return std::chrono::hours(count);
  return tl::unexpected(fmt::format("--wait: '{}' is not a time; try 30s, 5m or 1h", text));
}

// Repeats the request until it is granted or the time is over. Waiting helps only against a full device.
client::Answer<api::Slice> ask(const client::Client& client, const api::SliceRequest& request,
                               std::chrono::seconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  bool told = false;
  for (;;) {
    auto slice = client.post<api::Slice>("/v1/slices", request);
    if (slice || slice.error().type != "carve:insufficient-capacity" ||
        std::chrono::steady_clock::now() >= deadline)
      return slice;
    if (!told) fmt::print(stderr, "carve: waiting for capacity: {}\n", slice.error().detail);
    told = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  }
}

int run(Context& context, const RunOptions& options, const std::vector<std::string>& program) {
  const auto fail = [](const std::string& sentence) {
    fmt::print(stderr, "carve: {}\n", sentence);
    return runner::failed_status;
  };
  if (program.empty())
    return fail("no program is given; name it after --: carve run --memory 2GiB -- PROGRAM [ARGUMENT...]");
  std::chrono::seconds patience{0};
  if (options.wait == "forever") {
    patience = std::chrono::hours(24 * 365);
  } else if (!options.wait.empty()) {
    const auto parsed = parse_wait(options.wait);
    if (!parsed) return fail(parsed.error());
    patience = *parsed;
  }
  auto request = to_request(options.slice);
  if (!request) return fail(request.error());

  const client::Client client = context.client();
  const auto slice = ask(client, *request, patience);
  if (!slice) {
    complain(slice.error());
    return runner::failed_status;
  }

  return runner::run({.client = client,
                      .slice = slice->name,
                      .program = program,
                      .say = [](const std::string& sentence) { fmt::print(stderr, "carve: {}\n", sentence); },
                      .complain = complain});
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
  verb->prefix_command();
  verb->footer(
      "The program's signals and terminal pass through. Exit status: the program's own; 126 if it cannot be\n"
      "executed; 127 if there is no such program; 128+N if signal N ended it; 125 for an error of carve.\n"
      "The slice ends when the last process in it ends.\n"
      "  carve run --memory 4GiB -- python3 train.py\n"
      "  carve run --total-memory 8GiB --devices 2 -- ./two-devices\n"
      "  carve run --memory 50% --wait=5m --name nightly -- ./job");
  verb->callback([&context, verb, options] {
    context.problem_status = runner::failed_status;
    std::vector<std::string> program = verb->remaining();  // "carve run --memory 2GiB ls -l" needs no "--".
    if (!program.empty() && program.front().starts_with('-')) {
      fmt::print(stderr, "carve: run has no option {}; 'carve run --help' lists them\n", program.front());
      context.status = runner::failed_status;
      return;
    }
    program.insert(program.end(), context.program.begin(), context.program.end());
    context.status = run(context, *options, program);
  });
}

}  // namespace carve::cli

#include "load/load_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

namespace carve::load {
namespace {

// Validators without a description of their own, because the option's help contains it.
template <class Validator>
Validator quiet(Validator validator) {
  validator.description("");
  return validator;
}

template <class Value>
auto one_of(const std::map<std::string, Value>& words) {
  return quiet(CLI::CheckedTransformer(words));
}

void add_options(CLI::App& app, Options& o, std::map<std::string, double>& plain) {
  const auto bytes = quiet(CLI::AsSizeValue(/*kb_is_1000=*/true));
  const auto time = quiet(
      CLI::AsNumberWithUnit(std::map<std::string, double>{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}},
                            CLI::AsNumberWithUnit::Options(CLI::AsNumberWithUnit::CASE_SENSITIVE |
                                                           CLI::AsNumberWithUnit::UNIT_REQUIRED)));
  app.add_option("--allocate", o.allocate, "Bytes to allocate per process and device, such as 3GiB")
      ->transform(bytes)
      ->type_name("SIZE");
  app.add_option("--chunk", o.chunk, "Size of each allocation")->transform(bytes)->type_name("SIZE");
  app.add_option("--smallest", o.smallest, "Smallest allocation that --pattern fill tries [512B]")
      ->transform(bytes)
      ->type_name("SIZE");
  app.add_option("--pattern", o.pattern,
                 "How to allocate: once (the memory is kept), churn (allocate and free for --seconds) or "
                 "fill (smaller and smaller allocations until no memory is free)")
      ->transform(one_of(std::map<std::string, Pattern>{
          {"once", Pattern::once}, {"churn", Pattern::churn}, {"fill", Pattern::fill}}))
      ->type_name("");
  app.add_option("--kind", o.kind, "Kind of memory: device, managed or pitched")
      ->transform(one_of(std::map<std::string, Kind>{
          {"device", Kind::device}, {"managed", Kind::managed}, {"pitched", Kind::pitched}}))
      ->type_name("");
  app.add_flag("--no-touch{false}", o.touch, "Skip writing and verifying the memory");
  app.add_option("--kernels", plain["kernels"], "Launch kernels of this duration, such as 20us or 5ms")
      ->transform(time)
      ->type_name("DURATION");
  app.add_option("--grid", o.grid, "Blocks per kernel [1024]");
  app.add_option("--block", o.block, "Threads per block")->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--launch", o.launch, "Kind of launch: plain, extended (cuLaunchKernelEx) or cooperative")
      ->transform(one_of(std::map<std::string, Launch>{
          {"plain", Launch::plain}, {"extended", Launch::extended}, {"cooperative", Launch::cooperative}}))
      ->type_name("");
  app.add_flag("--graphs", o.graphs, "Launch graphs of ten kernels each");
  app.add_flag("--no-sync{false}", o.sync, "Do not wait for each kernel before the next");
  app.add_option("--streams", o.streams, "Use this many streams in turn")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--request", o.request_rate,
                 "Mean rate of random arrivals per second; p50 and p99 are measured from the arrival")
      ->type_name("RATE");
  app.add_option("--copy", o.copy, "Bytes to copy to the device before each kernel, and back after it")
      ->transform(bytes)
      ->type_name("SIZE");
  app.add_option("--seconds", o.seconds, "Duration of kernels, churn or idle memory [1 with --kernels]")
      ->check(CLI::Range(0.0, 86400.0));
  app.add_option("--processes", o.processes, "Number of processes that do all of this at the same time")
      ->check(CLI::Range(1, 512))
      ->capture_default_str();
  app.add_option("--device", o.device, "Device number, or all for all visible devices [0]")
      ->transform(CLI::Transformer(std::map<std::string, int>{{"all", all_devices}}).description(""))
      ->check(quiet(CLI::Range(all_devices, 1023)))
      ->type_name("N|all");
  app.add_option("--seed", o.seed, "Seed of all random numbers")->capture_default_str();
  app.add_option("--lookup", o.lookup, "Find entry points by dlsym or by getproc (cuGetProcAddress)")
      ->transform(
          one_of(std::map<std::string, Lookup>{{"dlsym", Lookup::dlsym}, {"getproc", Lookup::getproc}}))
      ->type_name("");
}

}  // namespace

std::optional<int> parse_options(int argc, char** argv, Options& options) {
  std::map<std::string, double> plain;
  CLI::App app("Allocate memory, launch kernels and copy data like a user's program, and print the result",
               "carve-load");
  app.set_version_flag("--version", "carve-load " CARVE_VERSION);
  add_options(app, options, plain);
  app.footer(
      "Prints one JSON object. Exit status: 0 success, 1 the driver refused a call, 2 wrong command "
      "line.\n"
      "  carve-load --allocate 3GiB\n"
      "  carve-load --kernels 200us --seconds 5 --no-sync --streams 4");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fmt::print(stderr, "carve-load: {}\nTry 'carve-load --help'.\n", error.what());
    return 2;
  }
  if (options.pattern != Pattern::once && options.allocate == 0) {
    fmt::print(stderr,
               "carve-load: --pattern churn and fill require --allocate SIZE, the maximum that is held at "
               "any time\n");
    return 2;
  }
  if (app.count("--kernels") != 0) options.kernel_ns = static_cast<uint64_t>(plain["kernels"]);
  if (options.kernel_ns && app.count("--seconds") == 0) options.seconds = 1;
  return std::nullopt;
}

}  // namespace carve::load

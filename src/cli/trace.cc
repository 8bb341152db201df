// `carve trace`: writes a trace of when each slice ran, for ui.perfetto.dev or chrome://tracing.
#include <cerrno>
#include <cstring>
#include <fstream>

#include "cli/verbs.h"

namespace carve::cli {

void add_trace(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("trace", "Write which slice ran when: leases, waits, drains and overruns");
  auto seconds = std::make_shared<unsigned>(5);
  auto path = std::make_shared<std::string>("trace.json");
  verb->add_option("--seconds", *seconds, "Length of the trace in seconds before now, 1 to 60")
      ->check(CLI::Range(1, 60))
      ->capture_default_str();
  verb->add_option("-o,--output", *path, "File to write; - or json for standard output")
      ->type_name("FILE")
      ->capture_default_str();
  verb->footer(
      "Open the file in https://ui.perfetto.dev; devices are shown as processes and slices as tracks.\n"
      "  carve trace --seconds 5 -o trace.json");
  verb->callback([&context, seconds, path] {
    answered(context, context.agent().trace(*seconds), [&](const std::string& trace) {
      if (*path == "-" || *path == "json") {
        std::fwrite(trace.data(), 1, trace.size(), stdout);
        return;
      }
      std::ofstream file(*path, std::ios::binary);
      file << trace;
      file.close();
      size_t spans = 0;
      for (size_t at = 0; (at = trace.find("\"ph\":\"X\"", at)) != std::string::npos; ++at) ++spans;
      if (file) {
        fmt::print("{}: {} spans of the last {} s\n", *path, spans, *seconds);
        return;
      }
      complain({.title = "cannot write", .detail = fmt::format("{}: {}", *path, std::strerror(errno))});
      context.status = context.problem_status;
    });
  });
}

}  // namespace carve::cli

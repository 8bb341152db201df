#include "kubectl/verb_tools.h"

#include <chrono>
#include <thread>

namespace carve::kubectl {
namespace {

constexpr std::chrono::seconds watch_interval{2};

}  // namespace

int complain(const std::string& sentence) {
  fmt::print(stderr, "kubectl-carve: {}\n", sentence);
  return failed_status;
}

int print_text(const VerbOptions& options, const std::string& text) {
  const std::string out =
      options.changes != nullptr ? options.changes->since_before(text, options.form) : text;
  return fputs(out.c_str(), stdout) < 0 || fflush(stdout) != 0 ? failed_status : 0;
}

int watch(int (*show)(const VerbOptions&), VerbOptions options) {
  Changes changes;
  options.changes = &changes;
  while (true) {
    const int status = show(options);
    if (!changes.take_has_result()) return status;
    std::this_thread::sleep_for(watch_interval);
  }
}

Result<std::string, std::string> get(const VerbOptions& options, const std::string& path) {
  return run_kubectl(options.kubectl, {"get", "--raw", path});
}

}  // namespace carve::kubectl

// carve-load: a workload like a user's, for testing slices. It calls only the CUDA driver and nothing of
// Carve, so the same binary runs on real and simulated GPUs. It prints one JSON object at the end, and exits
// with status 1 if the driver refused a call.
#include "load/forked_work.h"
#include "load/process_work.h"

int main(int argc, char** argv) {
  using namespace carve::load;

  // Parse the command line. After this, every option is valid.
  Options options;
  if (const auto status = parse_options(argc, argv, options)) return *status;

  // Handle SIGINT and SIGTERM. After this, a signal shortens the work, and the result is still printed.
  end_early_on_signals();

  // Do the work. After this, all processes of the load except this one have ended.
  const WorkResult result = work_in_processes(options);

  // Print the result. The exit status is 1 if the driver refused a call.
  print(result);
  return result.error.empty() ? 0 : 1;
}

// carve-load: a workload like a user's, to test slices. It calls the CUDA driver and nothing of Carve; the
// same binary runs on a real GPU and on a simulated one. It prints one JSON object at its end and exits with
// status 1 if the driver refused a call.
#include "load/forked_work.h"
#include "load/process_work.h"

int main(int argc, char** argv) {
  using namespace carve::load;

  // Parse the command line. Beyond this point every option is within its range.
  Options options;
  if (const auto status = parse_options(argc, argv, options)) return *status;

  // Take SIGINT and SIGTERM. Beyond this point a signal shortens the work, and the result is still printed.
  end_early_on_signals();

  // Do the work. Beyond this point every process of the load except this one has ended.
  const WorkResult result = work_in_processes(options);

  // Print the result. The exit status is 1 if the driver refused a call.
  print(result);
  return result.error.empty() ? 0 : 1;
}

// carve-coordinator: chooses the devices of pods in a Kubernetes cluster. It serves the scheduler's extender
// calls and the API server's webhooks, and runs unprivileged.
#include "kubernetes/coordinator/coordinator_start.h"
#include "os/ending_signals.h"

int main(int argc, char** argv) {
  using namespace carve;
  using namespace carve::kubernetes::coordinator;

  // Parse the command line. Beyond this point the options are valid.
  const auto options = parse_options(argc, argv, host_name());
  if (!options) return complain(options.error());
  if (options->mode != Options::Mode::serve) return print(options->mode);

  // Block the signals. Beyond this point a signal ends the loop, not the process.
  const os::Fd signals = os::take_ending_signals();

  // Find the API server. Beyond this point its address and credentials are known.
  const auto connection = find_api_server(*options);
  if (!connection) return complain(connection.error());

  // Listen. Beyond this point the program holds its ports.
  auto listeners = listen(*options);
  if (!listeners) return complain(listeners.error());

  // Create the API client, which connects with the first call. Beyond this point calls may be made.
  os::Loop loop;
  kubernetes::CurlApiClient client(loop, *connection, {.user_agent = "carve-coordinator/" CARVE_VERSION});

  // Start to watch nodes, pods, the settings and the Lease. Beyond this point the cache is being filled.
  const auto service = Service::begin(loop, client, std::move(*listeners), *options);
  if (!service) return complain(service.error());

  // Serve until a signal. Pods keep running; the other replica takes over.
  return serve(loop, signals);
}

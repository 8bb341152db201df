// carve-kubelet: the node's part of Carve on Kubernetes (docs/decisions/0020-two-node-programs.md). It
// decides nothing about devices: it passes the coordinator's decisions to the agent, and the agent's state to
// the cluster.
#include "client/client.h"
#include "kubernetes/node/kubelet_start.h"
#include "os/ending_signals.h"
#include "os/log.h"

int main(int argc, char** argv) {
  using namespace carve;
  using namespace carve::kubernetes::node;

  // Parse the command line. Beyond this point the options are valid.
  const char* const node_name = getenv("NODE_NAME");
  const auto options = parse_options(argc, argv, node_name != nullptr ? node_name : "");
  if (!options) return complain(options.error());
  if (options->mode != Options::Mode::serve) return print(options->mode);
  os::log::set_level(options->log_level);

  // Find the API server. Beyond this point its address and credentials are known.
  const auto connection = kubernetes::find_connection(options->api);
  if (!connection) return complain(connection.error());

  // Listen. Beyond this point the program holds the port of /metrics.
  auto metrics = listen(*options);
  if (!metrics) return complain(metrics.error());

  // Block the signals. Beyond this point a signal ends the loop, not the process.
  const os::Fd signals = os::take_ending_signals();

  // Set up the agent, the runtime and kubelet. None has to be running yet.
  const auto agent = AgentApi::at(client::find_socket(options->agent_socket));
  const auto runtime = ContainerRuntime::at(options->runtime);
  const auto pod_resources = PodResources::at(options->pod_resources);

  // Maintain the node's object. Beyond this point the cluster sees the agent's state.
  os::Loop loop;
  ApiSide api(loop, *connection, *options, *agent, *runtime, *pod_resources, std::move(*metrics));

  // Keep the device plugin or the DRA driver registered. Beyond this point containers start.
  PluginSide plugin(*options, *agent, *pod_resources, api);

  // Serve until a signal. Slices and containers keep running.
  return serve(loop, signals);
}

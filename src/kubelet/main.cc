// carve-kubelet: the node's part of Carve on Kubernetes (docs/decisions/0020-two-node-programs.md). It
// decides nothing about devices: it carries what the coordinator wrote to the agent, and what the agent has
// to the cluster.
#include "client/client.h"
#include "kubelet/kubelet_start.h"
#include "os/ending_signals.h"
#include "os/log.h"

int main(int argc, char** argv) {
  using namespace carve;
  using namespace carve::kubelet;

  // Parse the command line. Beyond this point the options are valid.
  const char* const node_name = getenv("NODE_NAME");
  const auto options = parse_options(argc, argv, node_name != nullptr ? node_name : "");
  if (!options) return complain(options.error());
  if (options->mode != Options::Mode::serve) return print(options->mode);
  os::log::set_level(options->log_level);

  // Find the API server. Beyond this point it is known how to prove who calls.
  const auto connection = kube::find_connection(options->api);
  if (!connection) return complain(connection.error());

  // Listen. Beyond this point the port of /metrics is this program's.
  auto metrics = listen(*options);
  if (!metrics) return complain(metrics.error());

  // Take the signals. Beyond this point a signal ends the loop, not the process.
  const os::Fd signals = os::take_ending_signals();

  // Name the agent and the runtime. Neither has to be there yet.
  const auto agent = AgentLink::at(client::find_socket(options->agent_socket));
  const auto runtime = ContainerRuntime::at(options->runtime);

  // Keep the node's object. Beyond this point the cluster sees what the agent has.
  os::Loop loop;
  ApiSide api(loop, *connection, *options, *agent, *runtime, std::move(*metrics));

  // Keep the device plugin registered. Beyond this point containers start.
  PluginSide plugin(*options, *agent, api);

  // Serve until a signal. Slices and containers run on.
  return serve(loop, signals);
}

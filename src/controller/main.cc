// carve-controller: manages the nodes, each served by an agent (src/node), through one API. It runs
// unprivileged and needs no access to a device (docs/decisions/0011-two-programs.md).
#include "controller/controller_start.h"
#include "os/ending_signals.h"

int main(int argc, char** argv) {
  using namespace carve;
  using namespace carve::controller;

  // Parse the command line. Beyond this point the options are valid.
  const auto options = parse_options(argc, argv, surroundings());
  if (!options) return complain(options.error());
  if (options->mode != Options::Mode::serve) return print(options->mode);

  // Fork the launcher. Beyond this point only the launcher starts programs.
  auto launcher = begin_launcher(*options);
  if (!launcher) return complain(launcher.error());

  // Take the signals. Beyond this point a signal ends the loop, not the process.
  const os::Fd signals = os::take_ending_signals();

  // Lock the state and the socket. Beyond this point this is the only controller here.
  const auto locks = lock(*options);
  if (!locks) return complain(locks.error());

  // Connect to the cluster, if it keeps the objects. Beyond this point they are known.
  const auto cluster = begin_cluster(*options);
  if (!cluster) return complain(cluster.error());

  // Open the database. Beyond this point every object of earlier runs is known.
  auto records = Records::open(*options, cluster->get());
  if (!records) return complain(records.error());

  // Register the nodes of the command line and poll their agents. Beyond this point the set of nodes is
  // fixed.
  os::Loop loop;
  NodeSync node_sync = keep_nodes(**records, *options);
  HistoryThread history(loop, options->state + "/history.db");
  KnownNodes nodes(
      loop, (*records)->store, options->nodes, (*records)->nodes, node_sync,
      [&](const std::string& node, const api::AgentReport& report) { history.take(node, report); });
  nodes.begin();

  // Reconcile the services. Beyond this point programs are adopted, started and stopped.
  const auto services = Services::begin(**records, std::move(*launcher), *options);
  if (!services) return complain(services.error());

  // Open the sockets. Beyond this point the API accepts callers.
  const auto api =
      Api::open(loop, nodes, node_sync, **records, **services, history, cluster->get(), *options);
  if (!api) return complain(api.error());

  // Drop every privilege. Beyond this point only the launcher has any.
  if (const auto given_up = give_up_privileges(); !given_up) return complain(given_up.error());

  // Serve until a signal. Agents, slices and programs keep running.
  return serve(loop, signals, nodes, *options);
}

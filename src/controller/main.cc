// carve-controller: knows the nodes, each served by an agent (src/node), and answers for all of them. It
// needs no right on a device and no other privilege (docs/decisions/0011-two-programs.md).
#include "controller/controller_start.h"

int main(int argc, char** argv) {
  using namespace carve;
  using namespace carve::controller;

  // Parse the command line. Beyond this point the options are valid.
  const auto options = parse_options(argc, argv, surroundings());
  if (!options) return complain(options.error());
  if (options->mode != Options::Mode::serve) return print(options->mode);

  // Take the signals. Beyond this point a signal ends the loop, not the process.
  const os::Fd signals = take_signals();

  // Lock the state and the socket. Beyond this point this is the only controller here.
  const auto locks = lock(*options);
  if (!locks) return complain(locks.error());

  // Open the database. Beyond this point every node of earlier runs is known.
  auto database = open_database(*options);
  if (!database) return complain(database.error());

  // Link the nodes of the command line. Beyond this point their set is fixed.
  os::Loop loop;
  KnownNodes nodes(loop, std::move(database->store), options->nodes, database->nodes);

  // Poll the agents. Beyond this point each change of a node is logged and stored.
  nodes.begin();

  // Open the sockets. Beyond this point callers arrive.
  const auto api = Api::open(loop, nodes, *options);
  if (!api) return complain(api.error());

  // Serve until a signal. Agents and slices run on.
  return serve(loop, signals, nodes, *options);
}

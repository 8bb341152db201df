// carved: the node agent.
#include <sys/stat.h>

#include <csignal>

#include "node/crash_restart.h"
#include "node/steps.h"

int main(int argc, char** argv) {
  using namespace carve::node;
  umask(022);
  signal(SIGPIPE, SIG_IGN);  // A closed connection must not end the agent.

  // Parse the command line. Beyond this point the options are consistent, and this process is the agent.
  const auto options = parse_options(argc, argv, surroundings());
  if (!options) return complain(options.error());
  if (const auto status = run_task(*options)) return *status;
  if (options->restart_after_crash)
    if (const auto status = restart_after_crashes()) return *status;
  prepare_process(*options);

  // Lock the state and the socket. Beyond this point this is the only agent here.
  const auto locks = lock(*options);
  if (!locks) return complain(locks.error());

  // Find the devices. Beyond this point the set of devices is fixed, and no other agent uses them.
  auto machine = find_machine(*options);
  if (!machine) return complain(machine.error());

  // Open the ledger, the runtime directory and the fd store. Beyond this point every earlier grant is known.
  auto stores = open_stores(*options);
  if (!stores) return complain(stores.error());

  // Adopt the running slices. Beyond this point every live process is watched.
  carve::os::Loop loop;
  const auto running = adopt_slices(loop, *options, *machine, std::move(*stores));
  if (!running) return complain(running.error());

  // Start the sampler. Beyond this point the devices' memory and work are measured, as soon as NVML responds.
  const auto measurement = start_sampler(loop, *options, **running, *machine);

  // Open the sockets. Beyond this point the API accepts requests.
  const auto sockets = open_sockets(loop, *options, **running);
  if (!sockets) return complain(sockets.error());

  // Serve until a signal. Slices keep running.
  const int status = serve(loop, *options, (*running)->agent, *measurement);
  return measurement->devices_changed ? start_again(argv) : status;
}

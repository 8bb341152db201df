// carve-sim: makes, breaks and shows simulated GPUs. A set is a directory of plain files; there is no daemon.
#include "sim/tool/command.h"

int main(int argc, char** argv) {
  using namespace carve::sim;
  try {
    // Parse the command line. Beyond this point the verb exists, and each option is one of carve-sim.
    const Command command = parse_command(argc, argv);

    // Carry out the verb. Beyond this point its changes are in the files of the set.
    return command.act(command.arguments);
  } catch (const std::exception& reason) {
    // Print why the verb was refused.
    return complain(reason);
  }
}

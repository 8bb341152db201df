// carve-sim: creates and shows simulated GPUs, and injects faults into them. A set is a directory of plain
// files; there is no daemon.
#include "sim/tool/command.h"

int main(int argc, char** argv) {
  using namespace carve::sim;
  try {
    // Parse the command line. After this, the command exists, and each option is an option of carve-sim.
    const Command command = parse_command(argc, argv);

    // Carry out the command. After this, its changes are in the files of the set.
    return command.act(command.arguments);
  } catch (const std::exception& reason) {
    // Print why the command failed.
    return complain(reason);
  }
}

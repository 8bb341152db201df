#include "node/agent/agent.h"

namespace carve::node {

std::string mode_message(DeviceMode mode) {
  switch (mode) {
    case DeviceMode::whole: return "";
    case DeviceMode::mig:
      return "in MIG mode: the hardware partitions it, so slices are not offered; end its programs, then "
             "turn MIG "
             "off with nvidia-smi -mig 0";
    case DeviceMode::mps:
      return "an MPS server runs its programs, whose memory and time the driver cannot tell apart, so slices "
             "are "
             "not offered; end the server with: echo quit | nvidia-cuda-mps-control";
  }
  return "";
}

}  // namespace carve::node

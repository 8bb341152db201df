// Detects from outside whether a process avoids the guest library.
//
// A program can avoid it: as a static program, by unsetting LD_PRELOAD, by dlmopen or RTLD_DEEPBIND, or by
// using the device without libcuda. The driver reports each process's memory and utilization at each sample;
// a process that ends before the next sample becomes known only after its end (ended_audit.h). A process of a
// slice that holds memory and is not attached has bypassed the library. Its memory is charged like all growth
// (growth.h); the operator configures any further action.
//
// The agent acts only on processes inside a slice. Unmanaged processes on a shared device are reported,
// because they may belong to the machine's owner. Graphics clients and NVIDIA's MPS server, which serves
// other processes, are reported too.
#pragma once

#include <string>

#include "core/violation.h"

namespace carve::node {

// The agent's view of an unattached process from outside.
struct ProcessEvidence {
  bool our_library = false;    // libcarve.so or a shim is mapped.
  bool the_driver = false;     // Some libcuda is mapped.
  bool loader = false;         // The dynamic loader is mapped, so the program is not static.
  bool preload_asked = true;   // Its initial LD_PRELOAD names the guest library.
  bool is_mps_server = false;  // Its executable is this machine's nvidia-cuda-mps-server.
  bool unreadable = false;     // The process blocks the above reads (node/inspect/inspector.h).
};

// Returns why the process did not attach, as far as the evidence shows.
std::string why_unattached(const ProcessEvidence&);

// The facts that determine, together with the configured action, what the agent does about a bypass.
struct BypassEvidence {
  bool limited = true;         // Its slice has isolation.
  bool graphics_only = false;  // The driver lists it among graphics clients only.
  bool is_mps_server = false;
};
AuditAction action_against(const BypassEvidence&, AuditAction configured);

// Finds a slice that works beyond its leases: compares the driver's utilization of its kernels with the time
// that the arbiter charged. A process can forge what the library writes, but not what the driver reports. The
// two cover slightly different times, and the driver's figures are whole percentages. So one sample proves
// nothing, but two samples within one second do. Over a window of seconds the two agree better.
class Bypass {
 public:
  explicit Bypass(unsigned samples = 2) : samples_(samples) {}

  // Returns true once, at the sample that makes it certain, and again only after the slice has kept to its
  // leases.
  bool certain(double driver_percent, double charged_percent, bool over_a_window = false) {
    const bool beyond = driver_percent > charged_percent + (over_a_window ? 5 : 15);
    in_a_row_ = beyond ? in_a_row_ + 1 : 0;
    return in_a_row_ == samples_;
  }

 private:
  unsigned samples_;
  unsigned in_a_row_ = 0;
};

}  // namespace carve::node

// Detects from outside whether a process bypasses the guest library.
//
// A program can do so if it is static, by unsetting LD_PRELOAD, with dlmopen or RTLD_DEEPBIND, or by using
// the device without libcuda. The driver reports each process's memory and utilization at each sample; a
// process that ends before the next sample becomes known only after its end (ended_audit.h). A process of a
// slice that holds memory and is not attached has bypassed the library. Its memory is charged like all growth
// (growth.h); the operator configures any further action.
//
// The agent acts only on processes inside a slice. Unmanaged processes on a shared device are only reported,
// because they may belong to the machine's owner. The same applies to graphics clients and to NVIDIA's MPS
// server, which serves other processes.
#pragma once

#include <string>

#include "core/violation.h"

namespace carve::node {

// The facts that the agent can determine about an unattached process from outside.
struct ProcessEvidence {
  bool our_library = false;    // Whether libcarve.so or a shim is mapped.
  bool the_driver = false;     // Whether some libcuda is mapped.
  bool loader = false;         // The dynamic loader is mapped, so the program is not static.
  bool preload_asked = true;   // Whether its initial LD_PRELOAD names the guest library.
  bool is_mps_server = false;  // Whether it runs this machine's nvidia-cuda-mps-server.
  bool unreadable = false;     // The process blocks the above reads (node/inspect/inspector.h).
};

// Returns why the process did not attach, as far as the evidence shows.
std::string why_unattached(const ProcessEvidence&);

// The facts that, together with the configured action, determine what the agent does about a bypass.
struct BypassEvidence {
  bool limited = true;         // Whether its slice has isolation.
  bool graphics_only = false;  // The driver lists it among graphics clients only.
  bool is_mps_server = false;
};
AuditAction action_against(const BypassEvidence&, AuditAction configured);

// Detects a slice that works beyond its leases by comparing the utilization that the driver reports for its
// kernels with the time that the arbiter charged. A process can forge what the library writes, but not what
// the driver reports. The two figures cover slightly different times, and the driver's are whole percentages.
// So one sample proves nothing, but two samples within one second do. Over a window of several seconds the
// figures agree better.
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

// The audit: the action against a process that uses a device without being attached, and against a slice that
// holds more than its quota. Decisions only; agent/audit.cc acts.
//
// A program can avoid the guest library: as a static program, by unsetting LD_PRELOAD, by dlmopen or
// RTLD_DEEPBIND, or by using the device without libcuda. It cannot do so unseen, because the driver reports
// each process's memory. A process of a slice that holds memory and is not attached bypassed the library. Its
// memory is charged like all growth (reconcile.h); the operator configures any further action.
//
// The agent acts only on processes inside a slice. Unmanaged processes on a shared device are reported,
// because they may belong to the machine's owner. Graphics clients and NVIDIA's MPS, which serves other
// processes, are reported too.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace carve::node {

// --audit
enum class AuditAction { report, freeze, kill };
// --over-quota: growth took the slice beyond its quota. report: it may still allocate what its own calls have
// not used; refuse: no allocation until it is below the quota again; kill: the slice ends.
enum class OverQuotaAction { report, refuse, kill };

std::string_view text(AuditAction);
std::string_view text(OverQuotaAction);
std::optional<AuditAction> parse_audit_act(std::string_view);
std::optional<OverQuotaAction> parse_over_quota_act(std::string_view);

// What the agent can see of an unattached process from outside.
struct ProcessEvidence {
  bool our_library = false;   // libcarve.so or a shim is mapped.
  bool the_driver = false;    // Some libcuda is mapped.
  bool loader = false;        // The dynamic loader is mapped, so the program is not static.
  bool preload_asked = true;  // Its initial LD_PRELOAD names the guest library.
};
ProcessEvidence looks_of(pid_t);
// Returns why the process did not attach, as far as the evidence shows.
std::string why_unattached(const ProcessEvidence&);

// Finds a slice that works beyond its leases: compares the driver's utilization of its kernels with the time
// that the arbiter charged. A process can forge what the library writes, but not what the driver reports. The
// two cover slightly different times, and the driver's figures are whole percents. So one sample proves
// nothing; two samples within one second do.
class Bypass {
 public:
  // Returns true once, at the sample that makes it certain, and again only after the slice kept to its
  // leases.
  bool certain(double driver_percent, double charged_percent) {
    const bool beyond = driver_percent > charged_percent + 15;
    in_a_row_ = beyond ? in_a_row_ + 1 : 0;
    return in_a_row_ == 2;
  }

 private:
  unsigned in_a_row_ = 0;
};

// The facts that decide the action, with the configured one.
struct BypassEvidence {
  bool limited = true;         // Its slice has isolation.
  bool graphics_only = false;  // The driver lists it among graphics clients only.
  bool is_mps_server = false;  // Its executable is this machine's nvidia-cuda-mps-server.
};
AuditAction answer_to(const BypassEvidence&, AuditAction configured);
bool is_mps_server(pid_t);

}  // namespace carve::node

// The audit: what becomes of a process that uses a device behind the library's back, and of a slice that
// holds more than its quota. Decisions only; agent/audit.cc acts.
//
// The library can be avoided: by a static program, by unsetting LD_PRELOAD, by dlmopen or RTLD_DEEPBIND, by
// talking to the device without libcuda. It cannot be avoided unseen: the driver says which process holds how
// much, and a process of a slice that holds memory without having attached got round it. It is charged like
// all growth (reconcile.h); beyond that, what happens is the operator's choice.
//
// Only processes inside a slice can be touched at all. Strangers on a shared device are reported: they may be
// the machine owner's own. So are clients that draw, and NVIDIA's MPS, which serves others.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace carve::node {

// --audit
enum class AuditAction { report, freeze, kill };
// --over-quota: memory that no call asked for took the slice beyond its quota. report: it may still allocate
// what its calls have not used; refuse: nothing more until it is below again; kill: the slice ends.
enum class OverQuotaAction { report, refuse, kill };

std::string_view text(AuditAction);
std::string_view text(OverQuotaAction);
std::optional<AuditAction> parse_audit_act(std::string_view);
std::optional<OverQuotaAction> parse_over_quota_act(std::string_view);

// What can be seen from outside of a process that did not attach.
struct ProcessEvidence {
  bool our_library = false;   // libcarve.so or a shim is mapped.
  bool the_driver = false;    // Some libcuda is mapped.
  bool loader = false;        // The dynamic loader is mapped: it is not a static program.
  bool preload_asked = true;  // LD_PRELOAD of its first moment names our library.
};
ProcessEvidence looks_of(pid_t);
// Why it did not attach, as far as its looks tell.
std::string why_unattached(const ProcessEvidence&);

// Whether a slice works beyond its leases: what the driver says that its kernels had of the device, against
// what the arbiter charged it. The library's words can be forged, the driver's not. Both are of slightly
// different times and the driver's are whole percents, so one look is no proof; two are, within a second.
class Bypass {
 public:
  // True at the look that makes it certain, once, until it has been within its leases again.
  bool certain(double driver_percent, double charged_percent) {
    const bool beyond = driver_percent > charged_percent + 15;
    in_a_row_ = beyond ? in_a_row_ + 1 : 0;
    return in_a_row_ == 2;
  }

 private:
  unsigned in_a_row_ = 0;
};

// What is done to it, given what was configured.
struct BypassEvidence {
  bool limited = true;         // Its slice has isolation.
  bool graphics_only = false;  // The driver lists it among graphics clients alone.
  bool is_mps_server = false;  // It runs the very file that is this machine's nvidia-cuda-mps-server.
};
AuditAction answer_to(const BypassEvidence&, AuditAction configured);
bool is_mps_server(pid_t);

}  // namespace carve::node

#include "node/reconcile/bypass.h"

namespace carve::node {

std::string why_unattached(const ProcessEvidence& seen) {
  if (seen.unreadable) return "its mappings and environment cannot be read";
  if (seen.our_library && seen.the_driver)
    return "the library is loaded but was bypassed: dlmopen, RTLD_DEEPBIND or dlvsym found the driver "
           "directly";
  if (seen.our_library) return "the library is loaded, but the program uses the device without libcuda";
  if (!seen.loader) return "it is statically linked, so no library can be preloaded";
  if (!seen.preload_asked) return "it was started with LD_PRELOAD unset";
  return "the library is not loaded";
}

AuditAction action_against(const BypassEvidence& found, AuditAction configured) {
  return found.limited && !found.graphics_only && !found.is_mps_server ? configured : AuditAction::report;
}

}  // namespace carve::node

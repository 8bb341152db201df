// Any bytes as a pod are rejected or admitted, and an admitted pod is admitted again unchanged.
#include <cstdint>
#include <cstdlib>

#include "dialects/pod/admission.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carve;
  const auto pod = api::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!pod) return 0;
  const auto admitted = dialects::admit(*pod, {});
  if (!admitted) {
    if (admitted.error().empty() || admitted.error().size() > api::max_field_errors) std::abort();
    return 0;
  }
  const auto again = dialects::admit(admitted->pod, {});
  if (!again || again->is_sliced != admitted->is_sliced) std::abort();
  if (!api::Json::diff(admitted->pod, again->pod).empty()) std::abort();
  return 0;
}

// Any bytes as a Kubernetes manifest yield a service that can be stored, or errors.
#include <cstdint>
#include <cstdlib>

#include "dialects/pod/manifest.h"
#include "objects/rules/service_terms.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carve;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto manifest = dialects::from_manifest(text);
  if (!manifest) {
    if (manifest.error().empty() || manifest.error().size() > api::max_field_errors) std::abort();
    return 0;
  }
  if (!dialects::is_manifest(text) || !objects::check(manifest->service).empty()) std::abort();
  return 0;
}

// Any bytes as an EAS document yield a service or errors. A service is valid and keeps the document, and the
// same document can also be parsed with an override.
#include <cstdint>
#include <cstdlib>

#include "dialects/eas/eas.h"
#include "objects/rules/service_terms.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carve;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t line = text.find('\n');
  const std::string_view document = text.substr(0, line);
  const dialects::EasContext context{.pool_instance_types = {"ml.a"}, .largest_usable_bytes = 1ull << 40};
  (void)dialects::eas_pool(document);
  const auto eas = dialects::from_eas(document, context);
  if (eas) {
    if (!objects::check(eas->service).empty() || eas->service.spec.source.document != document) std::abort();
  } else if (eas.error().empty() || eas.error().size() > api::max_field_errors) {
    std::abort();
  }
  // The second line is an override.
  if (line == std::string_view::npos) return 0;
  const std::vector<std::string> overrides{std::string(text.substr(line + 1))};
  const auto changed = dialects::modified(document, overrides);
  if (!changed && changed.error().empty()) std::abort();
  if (changed) (void)dialects::from_eas(*changed, context);
  return 0;
}

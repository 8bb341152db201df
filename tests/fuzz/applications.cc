// Any bytes as an application yield a service that can be stored, or errors. What could be parsed is checked
// too.
#include <cstdint>
#include <cstdlib>

#include "dialects/application/application_terms.h"
#include "objects/rules/service_terms.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carve;
  const auto [application, errors] = dialects::read_application({reinterpret_cast<const char*>(data), size});
  const auto service = dialects::service_of(application, {.is_elastic_pool = size % 2 == 1});
  if (!errors.empty()) return 0;
  if (service ? !objects::check_spec(service->spec).empty() : service.error().empty()) std::abort();
  return 0;
}

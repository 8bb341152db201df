// Any bytes that a user applies yield documents or errors. Each document is a JSON object that parses to
// itself again.
#include <cstdint>
#include <cstdlib>

#include "objects/object.h"
#include "wire/api/json_value.h"
#include "yaml/documents.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carve;
  const auto documents = yaml::documents_of({reinterpret_cast<const char*>(data), size});
  if (!documents) {
    if (documents.error().empty() || documents.error().size() > api::max_field_errors) std::abort();
    for (const api::FieldError& error : documents.error())
      if (error.message.empty()) std::abort();
    return 0;
  }
  for (const std::string& document : *documents) {
    const auto value = api::parse(document);
    if (!value || !value->is_object()) std::abort();
    const auto again = yaml::documents_of(document);
    if (document.size() <= api::max_document_bytes && (!again || *again != std::vector{document}))
      std::abort();
  }
  return 0;
}

// Any bytes as a request's body yield a document or an error, and a parsed document can be written and parsed
// again.
#include <cstdint>
#include <cstdlib>

#include "wire/api/json.h"
#include "wire/api/node.h"
#include "wire/api/slice.h"

using namespace carve::api;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto request = read<SliceRequest>(text, Reading::strict)) {
    const std::string once = write(*request);
    const auto again = read<SliceRequest>(once, Reading::strict);
    if (again && write(*again) != once) std::abort();
  } else if (request.error().empty()) {
    std::abort();
  }
  (void)read<EnterRequest>(text, Reading::strict);
  (void)read<ContainerStarted>(text, Reading::strict);
  (void)read<SliceChange>(text, Reading::strict);
  (void)read<NodeChange>(text, Reading::strict);
  (void)read<Slice>(text, Reading::lenient);
  return 0;
}

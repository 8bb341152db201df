// Any process that may open the API's socket can send any bytes, in parts of any size. The first byte is the
// size of the parts. A complete request is read as the agent reads it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "http/server.h"
#include "wire/api/json.h"
#include "wire/api/slice.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const size_t piece = data[0] % 64 + 1;
  std::string_view left(reinterpret_cast<const char*>(data) + 1, size - 1);
  carve::http::Conversation conversation([](unsigned status, const std::string& detail) {
    return carve::http::Response{status, "application/problem+json", detail};
  });
  std::string out;
  bool open = true;
  while (open && !left.empty()) {
    const std::string_view bytes = left.substr(0, piece);
    left.remove_prefix(bytes.size());
    out.clear();
    open = conversation.receive(
        bytes,
        [](const carve::http::Request& request) {
          if (request.body.size() > 64 << 10) abort();
          const auto document =
              carve::api::read<carve::api::SliceRequest>(request.body, carve::api::Reading::strict);
          return carve::http::Response{document ? 200u : 400u, "application/json",
                                       document ? carve::api::write(*document) : document.error()};
        },
        out);
    if (!open && out.empty()) abort();  // Closed without an answer.
  }
  return 0;
}

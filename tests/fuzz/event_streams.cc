// A server's stream of events as `carve get -w` and `carve logs -f` read it. The first byte is the size of
// the parts in which the bytes arrive. The events must be those of the whole stream, whatever the size of the
// parts, and no event may exceed its limit of bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "client/event_stream.h"

namespace {

using namespace carve::client;

// Returns all events as one text.
std::string events_of(std::string_view bytes, size_t part) {
  EventStreamReader reader;
  std::string out;
  const auto keep = [&](const StreamEvent& event) {
    if (event.data.size() > max_event_bytes || event.data.find('\r') != std::string::npos) abort();
    out += event.id + '\0' + event.type + '\0' + event.data + '\0';
  };
  for (; !bytes.empty(); bytes.remove_prefix(std::min(part, bytes.size())))
    if (!reader.read(bytes.substr(0, part), keep)) return out;
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (events_of(bytes, size_t{data[0]} + 1) != events_of(bytes, bytes.size())) abort();
  return 0;
}

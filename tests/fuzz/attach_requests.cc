// Any process on the machine can send any bytes to the attach socket.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "node/attach/attach_server.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto request = carve::node::parse_attach_request(data, static_cast<ssize_t>(size));
  if (request && (size < sizeof *request || request->size != size)) abort();
  return 0;
}

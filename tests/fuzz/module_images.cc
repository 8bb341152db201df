// A program may pass any bytes to cuModuleLoadData as a cubin or a fatbin, whose entries may be compressed.
#include <cstdint>
#include <cstdlib>

#include "sim/image/binary_image.h"
#include "sim/image/decompress.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const unsigned capability : {75u, 86u, 120u}) {
    carve::sim::Image image;
    if (carve::sim::parse_binary(bytes, capability, &image) != carve::sim::ImageError::none) continue;
    if (image.target == 0) std::abort();
    for (const auto& kernel : image.kernels)
      for (const auto& p : kernel.parameters)
        if (p.offset + p.bytes > kernel.parameter_bytes) std::abort();
  }
  std::string out;
  constexpr size_t most = 1 << 16;
  if (carve::sim::decompress_lz4(bytes, most, &out) && out.size() != most) std::abort();
  if (carve::sim::decompress_zstd(bytes, most, &out) && out.size() != most) std::abort();
  return 0;
}

// A program may pass any bytes to cuModuleLoadData, and users write the kernels.rules file of a simulated
// set.
#include <cstdint>
#include <cstdlib>

#include "sim/image/image.h"
#include "sim/image/kernel_rules.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  carve::sim::Image image;
  if (carve::sim::parse_ptx(text, &image) == carve::sim::ImageError::none) {
    if (image.target == 0) std::abort();
    for (const auto& kernel : image.kernels)
      for (const auto& p : kernel.parameters)
        if (p.offset + p.bytes > kernel.parameter_bytes) std::abort();
  }
  std::string expression;
  carve::sim::Rule rule;
  if (carve::sim::parse_rule(text, &expression, &rule) && !(rule.each_ns >= 0)) std::abort();
  return 0;
}

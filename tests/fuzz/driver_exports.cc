// The file from which `carve doctor` reads the driver's exports may have any content.
#include <cstdint>

#include "cli/coverage.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)carve::cli::exported_names(bytes);
  (void)carve::cli::uncovered({"cuMemAlloc_v2", "cuLaunchKernel"}, carve::cli::parse_coverage(bytes));
  return 0;
}

#include "guest/process/hint.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace carve::guest {
namespace {

TEST(Hint, accepts_only_bytes_and_the_units_k_m_and_g) {
  const struct {
    const char* text;
    std::optional<uint64_t> bytes;
  } table[] = {
      {"1", 1},
      {"1024m", 1u << 30},
      {"2G", 2ull << 30},
      {"3k", 3072},
      {"18446744073709551615", UINT64_MAX},
      {"", {}},
      {"0", {}},
      {"0g", {}},
      {"-1", {}},
      {"+1", {}},
      {" 1", {}},
      {"1 ", {}},
      {"1gb", {}},
      {"1GiB", {}},
      {"1.5g", {}},
      {"0x10", {}},
      {"g", {}},
      {"12X", {}},
      {"17179869184g", {}},
      {"18446744073709551616", {}},
  };
  for (const auto& row : table) EXPECT_EQ(parse_limit(row.text), row.bytes) << row.text;
}

TEST(Hint, prefers_the_devices_own_variable_and_ignores_invalid_values) {
  setenv("CUDA_DEVICE_MEMORY_LIMIT", "4k", 1);
  setenv("CUDA_DEVICE_MEMORY_LIMIT_1", "8k", 1);
  setenv("CUDA_DEVICE_MEMORY_LIMIT_12", "lots", 1);
  EXPECT_EQ(limit_hint(0), 4096u);
  EXPECT_EQ(limit_hint(1), 8192u);
  EXPECT_EQ(limit_hint(12), 4096u);
  unsetenv("CUDA_DEVICE_MEMORY_LIMIT");
  EXPECT_EQ(limit_hint(0), UINT64_MAX);
  EXPECT_EQ(limit_hint(12), UINT64_MAX);
  unsetenv("CUDA_DEVICE_MEMORY_LIMIT_1");
  unsetenv("CUDA_DEVICE_MEMORY_LIMIT_12");
}

}  // namespace
}  // namespace carve::guest

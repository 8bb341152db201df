#include "guest/linkage/artefact.h"
#include "guest/testing/driver_fake.h"

namespace carve::guest {
namespace {

using Addresses = DriverTest;

// The address that the fake driver returns, set by each test.
void* answer = nullptr;

TEST_F(Addresses, are_exchanged_by_address_whatever_name_was_looked_up) {
  on<&cuGetProcAddress_v2>([](const char*, void** out, int, cuuint64_t, CUdriverProcAddressQueryResult*) {
    *out = answer;
    return CUDA_SUCCESS;
  });
  const auto ask = [](const char* name) {
    void* out = nullptr;
    EXPECT_EQ(cuGetProcAddress_v2(name, &out, 12000, 0, nullptr), CUDA_SUCCESS);
    return out;
  };
  for (const char* name : {"cuMemAlloc_v2", "cuGetProcAddress_v2"})
    index_hook(*find_hook(name), find_hook(name)->theirs());
  answer = reinterpret_cast<void*>(Driver<&cuMemAlloc_v2>::slot.load());
  EXPECT_EQ(ask("cuMemAlloc"), reinterpret_cast<void*>(&cuMemAlloc_v2));
  answer = reinterpret_cast<void*>(&answer);
  EXPECT_EQ(ask("cuMemAlloc"), answer) << "an entry point without a hook is not exchanged";
  answer = reinterpret_cast<void*>(Driver<&cuGetProcAddress_v2>::slot.load());
  EXPECT_EQ(ask("cuGetProcAddress"), reinterpret_cast<void*>(&cuGetProcAddress_v2));
}

TEST_F(Addresses, are_unchanged_if_the_driver_fails) {
  on<&cuGetProcAddress>([](const char*, void**, int, cuuint64_t) { return CUDA_ERROR_NOT_FOUND; });
  void* out = &out;
  EXPECT_EQ(cuGetProcAddress("cuNothing", &out, 12000, 0), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(out, &out);
  EXPECT_EQ(cuGetProcAddress("cuNothing", nullptr, 12000, 0), CUDA_ERROR_NOT_FOUND);
}

TEST(Hooks, are_found_by_exact_name_only) {
  EXPECT_NE(find_hook("cuMemAlloc_v2"), nullptr);
  EXPECT_NE(find_hook("cuInit"), nullptr);
  for (const char* name : {"cu", "cuMemAlloc_v", "cuMemAlloc_v22", "curl_easy_init", "cuCtxGetDevice", ""})
    EXPECT_EQ(find_hook(name), nullptr) << name;
}

TEST(Hooks, return_an_error_if_there_is_no_driver) {
  EXPECT_EQ(driver<&cuCtxCreate_v4>(nullptr, nullptr, 0, 0), CUDA_ERROR_NOT_FOUND);
}

}  // namespace
}  // namespace carve::guest

// Batches of copies through the real library.
#include <cstring>
#include <vector>

#include "sim/libcuda/test_child.h"

namespace carve::sim {
namespace {

CUdeviceptr address(void* p) { return reinterpret_cast<CUdeviceptr>(p); }

TEST_F(DriverTest, a_batch_copies_the_bytes_of_all_its_copies) {
  EXPECT_EQ(0, run([] {
              begin();
              CUstream s = nullptr;
              CUdeviceptr d = 0;
              OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
              OK(CU(cuMemAlloc_v2)(&d, 300'000));
              std::vector<char> in(300'000, 'a'), out(300'000);
              CUdeviceptr to[] = {d, d + 100'000, d + 200'000};
              CUdeviceptr from[] = {address(in.data()), address(in.data()), address(in.data())};
              size_t sizes[] = {100'000, 100'000, 100'000}, first_of[] = {0, 1};
              CUmemcpyAttributes how[2] = {};
              how[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
              how[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
              OK(CU(cuMemcpyBatchAsync_v2)(to, from, sizes, 3, how, first_of, 2, s));
              std::memset(in.data(), 'b', in.size());  // The bytes were read during the call.
              OK(CU(cuMemcpyDtoHAsync_v2)(out.data(), d, 300'000, s));
              OK(CU(cuStreamSynchronize)(s));
              REQUIRE(out == std::vector<char>(300'000, 'a'));
            }));
}

TEST_F(DriverTest, a_batch_reports_which_copy_failed) {
  EXPECT_EQ(
      0, run([] {
        begin();
        CUstream s = nullptr;
        CUdeviceptr d = 0;
        OK(CU(cuStreamCreate)(&s, 0));
        OK(CU(cuMemAlloc_v2)(&d, 2000));
        CUdeviceptr to[] = {d, d + 1001}, from[] = {d + 1000, d};
        size_t sizes[] = {1000, 1000}, first_of[] = {0, 2}, failed = 7;
        CUmemcpyAttributes how[2] = {};
        how[0].srcAccessOrder = how[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
        const auto batch = CU(cuMemcpyBatchAsync);
        REQUIRE(batch(to, from, sizes, 2, how, first_of, 1, &failed, s) == CUDA_ERROR_INVALID_VALUE);
        REQUIRE(failed == 1);
        REQUIRE(batch(to, from, sizes, 2, how, first_of, 2, &failed, s) == CUDA_ERROR_INVALID_VALUE);
        REQUIRE(failed == SIZE_MAX);
        REQUIRE(batch(to, from, sizes, 1, how, first_of, 1, &failed, nullptr) == CUDA_ERROR_INVALID_VALUE);
        OK(batch(to, from, sizes, 1, how, first_of, 1, &failed, s));
      }));
}

}  // namespace
}  // namespace carve::sim

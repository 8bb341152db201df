// The device memory of modules, libraries and limits.
#include <cstring>
#include <string>
#include <vector>

#include "sim/libcuda/test_child.h"

namespace carve::sim {
namespace {

std::string with_variable(size_t bytes) {
  return ".version 6.0\n.target sm_50\n.address_size 64\n.global .align 4 .b8 v[" + std::to_string(bytes) +
         "];\n.visible .entry k() { ret; }\n";
}

TEST_F(DriverTest, small_modules_share_a_block_and_a_large_variable_has_its_own) {
  EXPECT_EQ(
      0, run([] {
        begin();
        const size_t before = free_now();
        CUmodule small[8], large = nullptr, none = nullptr;
        for (CUmodule& m : small) OK(CU(cuModuleLoadData)(&m, with_variable(4096).c_str()));
        REQUIRE(free_now() == before - 2 * MiB);
        OK(CU(cuModuleLoadData)(&large, with_variable(100 * MiB).c_str()));
        REQUIRE(free_now() == before - 104 * MiB);
        CUdeviceptr p = 0, q = 0;
        size_t bytes = 0;
        OK(CU(cuModuleGetGlobal_v2)(&p, &bytes, large, "v"));
        REQUIRE(bytes == 100 * MiB && free_now() == before - 104 * MiB);
        OK(CU(cuMemsetD8_v2)(p, 5, bytes));
        REQUIRE(CU(cuMemsetD8_v2)(p, 5, bytes + 1) == CUDA_ERROR_INVALID_VALUE);
        REQUIRE(CU(cuMemFree_v2)(p) == CUDA_ERROR_INVALID_VALUE);
        OK(CU(cuModuleGetGlobal_v2)(&q, &bytes, large, "v"));
        REQUIRE(p == q);
        // A new module's variables are zero even if the memory was used before.
        OK(CU(cuModuleGetGlobal_v2)(&p, &bytes, small[3], "v"));
        OK(CU(cuMemsetD8_v2)(p, 5, bytes));
        OK(CU(cuModuleUnload)(small[3]));
        OK(CU(cuModuleLoadData)(&small[3], with_variable(4096).c_str()));
        OK(CU(cuModuleGetGlobal_v2)(&p, &bytes, small[3], "v"));
        std::vector<char> got(bytes);
        OK(CU(cuMemcpyDtoH_v2)(got.data(), p, bytes));
        REQUIRE(got == std::vector<char>(bytes));
        REQUIRE(CU(cuModuleLoadData)(&none, with_variable(30'000 * MiB).c_str()) == CUDA_ERROR_OUT_OF_MEMORY);
        OK(CU(cuModuleUnload)(large));
        REQUIRE(free_now() == before - 2 * MiB);
        for (const CUmodule m : small) OK(CU(cuModuleUnload)(m));
        REQUIRE(free_now() == before);
        REQUIRE(CU(cuMemcpyDtoH_v2)(got.data(), p, 1) == CUDA_ERROR_INVALID_VALUE);
      }));
}

TEST_F(DriverTest, a_library_takes_memory_in_each_context_that_uses_it) {
  EXPECT_EQ(0, run([] {
              const CUcontext first = begin();
              const size_t before = free_now();
              CUlibrary library = nullptr;
              CUkernel kernel = nullptr;
              const std::string code = with_variable(10 * MiB);
              OK(CU(cuLibraryLoadData)(&library, code.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
              OK(CU(cuLibraryGetKernel)(&kernel, library, "k"));
              REQUIRE(free_now() == before);
              const auto f = reinterpret_cast<CUfunction>(kernel);
              for (int i = 0; i < 2; ++i)
                OK(CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
              REQUIRE(free_now() == before - 12 * MiB);
              CUdeviceptr here = 0, there = 0;
              OK(CU(cuLibraryGetGlobal)(&here, nullptr, library, "v"));
              CUcontext second = nullptr;
              OK(CU(cuCtxCreate_v2)(&second, 0, 1));
              const size_t other = free_now();
              OK(CU(cuLibraryGetGlobal)(&there, nullptr, library, "v"));
              REQUIRE(here != there && free_now() == other - 12 * MiB);
              OK(CU(cuCtxDestroy_v2)(second));
              OK(CU(cuCtxSetCurrent)(first));
              OK(CU(cuLibraryUnload)(library));
              REQUIRE(free_now() == before);
            }));
}

TEST_F(DriverTest, limits_grow_and_shrink_a_contexts_memory) {
  EXPECT_EQ(0, run([] {
              begin();
              const size_t before = free_now();
              OK(CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * MiB));
              REQUIRE(free_now() == before);
              OK(CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, 1000 * MiB));
              REQUIRE(free_now() == before - 992 * MiB);
              REQUIRE(CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, 90'000 * MiB) == CUDA_ERROR_OUT_OF_MEMORY);
              size_t value = 0;
              OK(CU(cuCtxGetLimit)(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
              REQUIRE(value == 1000 * MiB);
              OK(CU(cuCtxSetLimit)(CU_LIMIT_PRINTF_FIFO_SIZE, 4 * MiB));
              REQUIRE(free_now() == before - 996 * MiB);
              // 72 multiprocessors with 1,536 threads each, and 3 KiB more per thread.
              OK(CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 4096));
              REQUIRE(free_now() == before - 996 * MiB - 324 * MiB);
              REQUIRE(CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, MiB) == CUDA_ERROR_INVALID_VALUE);
              OK(CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 1024));
              OK(CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, 0));
              OK(CU(cuCtxSetLimit)(CU_LIMIT_PRINTF_FIFO_SIZE, 1 * MiB));
              REQUIRE(free_now() == before);
            }));
}

}  // namespace
}  // namespace carve::sim

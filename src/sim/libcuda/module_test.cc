// Modules and libraries of PTX through the real library, and the checks of a launch of their kernels.
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>

#include "sim/libcuda/test_child.h"

namespace carve::sim {
namespace {

TEST_F(DriverTest, launches_are_checked_as_the_driver_checks_them) {
  EXPECT_EQ(
      0, run([] {
        begin();
        const CUfunction f = spin();
        uint64_t ns = 1;
        uint32_t other = 0;
        void* p[] = {&ns, &other};
        const auto launch_as = [&](unsigned grid, unsigned block, unsigned shared, void** parameters) {
          return CU(cuLaunchKernel)(f, grid, 1, 1, block, 1, 1, shared, nullptr, parameters, nullptr);
        };
        OK(launch_as(1, 1024, 0, p));
        REQUIRE(launch_as(0, 32, 0, p) == CUDA_ERROR_INVALID_VALUE);
        REQUIRE(launch_as(1, 1025, 0, p) == CUDA_ERROR_INVALID_VALUE);
        REQUIRE(launch_as(1, 32, 64 << 10, p) == CUDA_ERROR_INVALID_VALUE);
        REQUIRE(launch_as(1, 32, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
        OK(CU(cuFuncSetAttribute)(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10));
        OK(launch_as(1, 32, 64 << 10, p));
        REQUIRE(CU(cuLaunchKernel)(reinterpret_cast<CUfunction>(p), 1, 1, 1, 1, 1, 1, 0, nullptr, p,
                                   nullptr) == CUDA_ERROR_INVALID_HANDLE);
        int blocks = 0;
        OK(CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, f, 256, 0));
        REQUIRE(blocks == 6);
        REQUIRE(CU(cuLaunchCooperativeKernel)(f, 72 * 6, 1, 1, 256, 1, 1, 0, nullptr, p) == CUDA_SUCCESS);
        REQUIRE(CU(cuLaunchCooperativeKernel)(f, 72 * 6 + 1, 1, 1, 256, 1, 1, 0, nullptr, p) ==
                CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
        // The same launch through a configuration structure, with the arguments in one buffer.
        struct {
          uint64_t nanoseconds;
          uint32_t more;
        } buffer = {20 * ms, 0};
        size_t bytes = 12;
        void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                         CU_LAUNCH_PARAM_END};
        CUlaunchConfig config = {};
        config.gridDimX = config.gridDimY = config.gridDimZ = 1;
        config.blockDimX = config.blockDimY = config.blockDimZ = 1;
        OK(CU(cuCtxSynchronize)());
        const auto from = std::chrono::steady_clock::now();
        OK(CU(cuLaunchKernelEx)(&config, f, nullptr, extra));
        OK(CU(cuCtxSynchronize)());
        REQUIRE(ms_since(from) >= 20);
      }));
}

TEST_F(DriverTest, modules_and_libraries_contain_kernels_and_variables) {
  EXPECT_EQ(0, run([] {
              begin();
              CUmodule m = nullptr;
              CUfunction f = nullptr;
              OK(CU(cuModuleLoadData)(&m, spin_ptx));
              REQUIRE(CU(cuModuleGetFunction)(&f, m, "absent") == CUDA_ERROR_NOT_FOUND);
              unsigned count = 0;
              OK(CU(cuModuleGetFunctionCount)(&count, m));
              REQUIRE(count == 2);
              CUdeviceptr table = 0, again = 0;
              size_t bytes = 0;
              OK(CU(cuModuleGetGlobal_v2)(&table, &bytes, m, "table"));
              OK(CU(cuModuleGetGlobal_v2)(&again, nullptr, m, "table"));
              REQUIRE(bytes == 4096 && table == again);
              OK(CU(cuMemsetD8_v2)(table, 1, 4096));
              OK(CU(cuModuleUnload)(m));
              REQUIRE(CU(cuModuleUnload)(m) == CUDA_ERROR_INVALID_HANDLE);
              REQUIRE(CU(cuMemsetD8_v2)(table, 1, 4096) == CUDA_ERROR_INVALID_VALUE);
              REQUIRE(CU(cuModuleLoadData)(&m, "not a module") == CUDA_ERROR_INVALID_IMAGE);
              REQUIRE(CU(cuModuleLoadData)(&m, ".version 8.0 .target sm_90 .entry k(){}") ==
                      CUDA_ERROR_INVALID_PTX);

              CUlibrary l = nullptr;
              CUkernel k = nullptr;
              OK(CU(cuLibraryLoadData)(&l, spin_ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
              OK(CU(cuLibraryGetKernel)(&k, l, "carve_spin"));
              size_t offset = 0, size = 0;
              OK(CU(cuKernelGetParamInfo)(k, 1, &offset, &size));
              REQUIRE(offset == 8 && size == 4);
              OK(launch(reinterpret_cast<CUfunction>(k), nullptr, 1000));
              OK(CU(cuCtxSynchronize)());
              OK(CU(cuLibraryUnload)(l));
            }));
}

TEST_F(DriverTest, the_linker_joins_ptx_and_its_result_can_be_loaded) {
  const std::string path = directory_ + "/more.ptx";
  std::ofstream(path) << ".entry from_file() { ret; }\n";
  EXPECT_EQ(0, run([&] {
              begin();
              CUlinkState link = nullptr;
              OK(CU(cuLinkCreate_v2)(0, nullptr, nullptr, &link));
              OK(CU(cuLinkAddData_v2)(link, CU_JIT_INPUT_PTX, const_cast<char*>(spin_ptx), sizeof spin_ptx,
                                      "a", 0, nullptr, nullptr));
              OK(CU(cuLinkAddFile_v2)(link, CU_JIT_INPUT_PTX, path.c_str(), 0, nullptr, nullptr));
              REQUIRE(CU(cuLinkAddFile_v2)(link, CU_JIT_INPUT_PTX, "/nowhere", 0, nullptr, nullptr) ==
                      CUDA_ERROR_FILE_NOT_FOUND);
              void* image = nullptr;
              size_t bytes = 0;
              OK(CU(cuLinkComplete)(link, &image, &bytes));
              CUmodule m = nullptr;
              CUfunction f = nullptr;
              OK(CU(cuModuleLoadData)(&m, image));
              OK(CU(cuLinkDestroy)(link));
              OK(CU(cuModuleGetFunction)(&f, m, "carve_spin"));
              OK(CU(cuModuleGetFunction)(&f, m, "from_file"));
            }));
}

}  // namespace
}  // namespace carve::sim

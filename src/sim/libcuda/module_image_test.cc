// Compiled modules through the real library: in memory, in files, and in the wrapper that compilers put into
// programs, on matching and other devices. binary_image_test.cc describes the files.
#include <fstream>
#include <iterator>

#include "sim/libcuda/graph_fixture.h"

namespace carve::sim {
namespace {

std::string path_of(const char* name) {
  return std::string(CARVE_SOURCE_DIR "/tests/fuzz/corpus/module_images/") + name;
}
std::string sample(const char* name) {
  std::ifstream in(path_of(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

int attribute(CUfunction f, CUfunction_attribute which) {
  int value = 0;
  OK(CU(cuFuncGetAttribute)(&value, which, f));
  return value;
}

void launch_mixed(CUfunction f) {
  struct {
    uint64_t a;
    uint8_t b;
    alignas(8) char c[24];
    float d;
  } p = {};
  void* parameters[] = {&p.a, &p.b, p.c, &p.d};
  OK(CU(cuLaunchKernel)(f, 8, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr));
  size_t bytes = 44;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &p, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  OK(CU(cuLaunchKernel)(f, 8, 1, 1, 64, 1, 1, 0, nullptr, nullptr, extra));
  OK(CU(cuCtxSynchronize)());
}

TEST_F(DriverTest, cubins_and_fatbins_of_both_compressions_load_from_memory_files_and_wrappers) {
  EXPECT_EQ(0, run([] {
              begin();
              const auto check = [](CUmodule m, int registers) {
                CUfunction mixed, bounded;
                OK(CU(cuModuleGetFunction)(&mixed, m, "mixed"));
                OK(CU(cuModuleGetFunction)(&bounded, m, "bounded"));
                REQUIRE(attribute(mixed, CU_FUNC_ATTRIBUTE_NUM_REGS) == registers);
                REQUIRE(attribute(mixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) == 2048);
                REQUIRE(attribute(bounded, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 128);
                launch_mixed(mixed);
                CUdeviceptr table = 0;
                size_t bytes = 0;
                OK(CU(cuModuleGetGlobal_v2)(&table, &bytes, m, "table"));
                REQUIRE(table && bytes == 4096);
                OK(CU(cuModuleUnload)(m));
              };
              const struct {
                const char* name;
                int registers;
              } files[] = {{"sm_86.cubin", 10}, {"lz4.fatbin", 10}, {"zstd.fatbin", 10}, {"ptx.fatbin", 32}};
              for (const auto& f : files) {
                const std::string bytes = sample(f.name);
                const struct {
                  uint32_t magic, version;
                  const void *fatbin, *file;
                } wrapper = {0x466243b1, 1, bytes.data(), nullptr};
                CUmodule m = nullptr;
                OK(CU(cuModuleLoadData)(&m, bytes.data()));
                check(m, f.registers);
                OK(CU(cuModuleLoadDataEx)(&m, &wrapper, 0, nullptr, nullptr));
                check(m, f.registers);
                OK(CU(cuModuleLoadFatBinary)(&m, bytes.data()));
                check(m, f.registers);
                OK(CU(cuModuleLoad)(&m, path_of(f.name).c_str()));
                check(m, f.registers);
                CUlibrary l = nullptr;
                CUkernel k = nullptr;
                OK(CU(cuLibraryLoadData)(&l, bytes.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
                OK(CU(cuLibraryGetKernel)(&k, l, "mixed"));
                size_t offset = 0, size = 0;
                OK(CU(cuKernelGetParamInfo)(k, 2, &offset, &size));
                REQUIRE(offset == 16 && size == 24);
                OK(CU(cuLibraryUnload)(l));
              }
            }));
}

TEST_F(DriverTest, images_for_other_devices_and_broken_images_get_specific_errors) {
  create("t4");
  EXPECT_EQ(0, run([] {
              begin();
              CUmodule m = nullptr;
              const std::string cubin = sample("sm_86.cubin");
              REQUIRE(CU(cuModuleLoadData)(&m, cubin.data()) == CUDA_ERROR_NO_BINARY_FOR_GPU);
              OK(CU(cuModuleLoadData)(&m, sample("zstd.fatbin").data()));  // The driver uses its PTX.
              std::string broken = sample("lz4.fatbin");
              for (size_t i = broken.size() - 300; i < broken.size(); ++i) broken[i] = '\x55';
              REQUIRE(CU(cuModuleLoadData)(&m, broken.data()) == CUDA_ERROR_INVALID_IMAGE);
              REQUIRE(CU(cuModuleLoadData)(&m, "?") == CUDA_ERROR_INVALID_IMAGE);
            }));
}

}  // namespace
}  // namespace carve::sim

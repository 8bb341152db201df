// The driver as a program sees it: its names and versions, the visible devices, and what is not simulated.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "sim/libcuda/test_child.h"

namespace carve::sim {
namespace {

TEST_F(DriverTest, every_name_that_a_real_driver_exports_is_there) {
  std::ifstream list(CARVE_SOURCE_DIR "/src/abi/cuda_exports.txt");
  unsigned names = 0;
  for (std::string line; std::getline(list, line);) {
    if (line.starts_with("#")) continue;
    const std::string name = line.substr(0, line.find(' '));
    EXPECT_NE(dlsym(library(), name.c_str()), nullptr) << name;
    ++names;
  }
  EXPECT_GT(names, 650u);
  EXPECT_EQ(dlsym(library(), "carve_sim_exports"), nullptr) << "the library's own names are not exported";
  for (const char* linked : {"LZ4_decompress_safe", "ZSTD_decompressDCtx"})
    EXPECT_EQ(dlsym(library(), linked), nullptr) << "the names of the libraries in it are not exported";
}

TEST_F(DriverTest, cuGetProcAddress_gives_the_pointer_of_the_right_version_and_stream) {
  const struct {
    const char* name;
    int version;
    unsigned long long flags;
    const char* symbol;  // Null: not found, or too new.
    int status;
  } cases[] = {{"cuMemAlloc", 2000, 0, "cuMemAlloc", 0},
               {"cuMemAlloc", 3020, 0, "cuMemAlloc_v2", 0},
               {"cuMemAlloc", 12000, 0, "cuMemAlloc_v2", 0},
               {"cuCtxCreate", 11040, 0, "cuCtxCreate_v3", 0},
               {"cuCtxCreate", 11030, 0, "cuCtxCreate_v2", 0},
               {"cuMemcpyHtoD", 12000, 0, "cuMemcpyHtoD_v2", 0},
               {"cuMemcpyHtoD", 12000, 1, "cuMemcpyHtoD_v2", 0},
               {"cuMemcpyHtoD", 12000, 2, "cuMemcpyHtoD_v2_ptds", 0},
               {"cuMemcpyHtoD", 6000, 2, "cuMemcpyHtoD_v2", 0},
               {"cuLaunchKernel", 12000, 2, "cuLaunchKernel_ptsz", 0},
               {"cuGetProcAddress", 11030, 0, "cuGetProcAddress", 0},
               {"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2", 0},
               {"cuMemPrefetchAsync", 12000, 0, "cuMemPrefetchAsync", 0},
               {"cuMemPrefetchAsync", 12020, 0, "cuMemPrefetchAsync_v2", 0},
               {"cuInit", 12000, 2, "cuInit", 0},
               {"cuGraphCreate", 9000, 0, nullptr, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
               {"cuMemAlloc_v2", 12000, 0, nullptr, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
               {"curl_easy_init", 12000, 0, nullptr, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND}};
  for (const auto& c : cases) {
    void* p = nullptr;
    CUdriverProcAddressQueryResult status;
    ASSERT_EQ(CUDA_SUCCESS, CU(cuGetProcAddress_v2)(c.name, &p, c.version, c.flags, &status));
    EXPECT_EQ(p, c.symbol ? dlsym(library(), c.symbol) : nullptr) << c.name << " " << c.version;
    EXPECT_EQ(status, c.status) << c.name << " " << c.version;
  }
  void* p = nullptr;
  EXPECT_EQ(CUDA_ERROR_NOT_FOUND, CU(cuGetProcAddress)("cuNothing", &p, 11030, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, CU(cuGetProcAddress_v2)("cuInit", &p, 99000, 0, nullptr));
}

TEST_F(DriverTest, CUDA_VISIBLE_DEVICES_means_what_the_programming_guide_says) {
  create("a10x2,t4,h100-80");
  std::string uuid[4];
  const pid_t reader = start([&] {
    std::ofstream out(directory_ + "/uuids");
    OK(CU(cuInit)(0));
    for (int i = 0; i < 4; ++i) {
      CUuuid u;
      OK(CU(cuDeviceGetUuid_v2)(&u, i));
      char text[48] = "GPU-";
      for (int b = 0; b < 16; ++b)
        std::sprintf(text + std::strlen(text), b == 3 || b == 5 || b == 7 || b == 9 ? "%02x-" : "%02x",
                     static_cast<unsigned char>(u.bytes[b]));
      out << text << "\n";
    }
    out.close();
  });
  ASSERT_EQ(0, finish(reader));
  std::ifstream in(directory_ + "/uuids");
  for (auto& u : uuid) std::getline(in, u);
  ASSERT_EQ(uuid[3].size(), 40u);
  const struct {
    std::string list;
    std::vector<int> multiprocessors;  // For the visible devices, in order; empty: no device.
  } cases[] = {{"0,1,2,3", {72, 72, 40, 132}},
               {"3,0", {132, 72}},
               {"2", {40}},
               {uuid[3] + "," + uuid[2], {132, 40}},
               {uuid[2].substr(0, 16), {40}},
               {"0,-1,2", {72}},
               {"0,9,2", {72}},
               {"0,garbage,2", {72}},
               {"-1", {}},
               {"", {}},
               {"GPU-", {}},
               {"1,1", {}},
               {" 2 , 3", {40, 132}}};
  for (const auto& c : cases)
    EXPECT_EQ(0, run([&] {
                setenv("CUDA_VISIBLE_DEVICES", c.list.c_str(), 1);
                const CUresult result = CU(cuInit)(0);
                REQUIRE(result == (c.multiprocessors.empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS));
                if (result) return;
                int count = 0;
                OK(CU(cuDeviceGetCount)(&count));
                REQUIRE(count == static_cast<int>(c.multiprocessors.size()));
                for (int i = 0; i < count; ++i) {
                  int n = 0;
                  OK(CU(cuDeviceGetAttribute)(&n, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, i));
                  REQUIRE(n == c.multiprocessors[static_cast<size_t>(i)]);
                }
              }))
        << "CUDA_VISIBLE_DEVICES=" << c.list;
}

TEST_F(DriverTest, without_a_set_there_is_no_device) {
  EXPECT_EQ(0, run([] {
              setenv("SIMGPU_DIR", "/nonexistent", 1);
              REQUIRE(CU(cuInit)(0) == CUDA_ERROR_NO_DEVICE);
              int n = 0;
              REQUIRE(CU(cuDeviceGetCount)(&n) == CUDA_ERROR_NOT_INITIALIZED);
            }));
}

TEST_F(DriverTest, the_driver_answers_after_main_has_returned) {
  EXPECT_EQ(0, run([] {
              begin();
              static CUdeviceptr p = 0;
              OK(CU(cuMemAlloc_v2)(&p, 4096));
              std::atexit([] {
                OK(CU(cuMemFree_v2)(p));
                OK(CU(cuCtxSynchronize)());
              });
              std::exit(0);
            }));
}

TEST_F(DriverTest, what_is_not_simulated_says_so_and_is_logged_once) {
  const std::string log = directory_ + "/log";
  EXPECT_EQ(0, run([&] {
              setenv("SIMGPU_LOG", log.c_str(), 1);
              begin();
              for (int i = 0; i < 3; ++i)
                REQUIRE(CU(cuGraphicsUnregisterResource)(nullptr) == CUDA_ERROR_NOT_SUPPORTED);
            }));
  std::ifstream in(log);
  std::string line, more;
  std::getline(in, line);
  EXPECT_NE(line.find("cuGraphicsUnregisterResource"), std::string::npos);
  EXPECT_FALSE(std::getline(in, more));
}

}  // namespace
}  // namespace carve::sim

// The driver as a program sees it: its names and versions, the visible devices, and what is not simulated.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "abi/nvml.h"
#include "sim/libcuda/test_child.h"

namespace carve::sim {
namespace {

TEST_F(DriverTest, every_name_that_a_real_driver_exports_is_exported) {
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
    EXPECT_EQ(dlsym(library(), linked), nullptr)
        << "the names of statically linked libraries are not exported";
}

TEST_F(DriverTest, cuGetProcAddress_returns_the_pointer_of_the_right_version_and_stream) {
  const struct {
    const char* name;
    int version;
    unsigned long long flags;
    const char* symbol;  // Null if not found.
    int status;
  } cases[] = {{"cuMemAlloc", 2000, 0, "cuMemAlloc", 0},
               {"cuMemAlloc", 3020, 0, "cuMemAlloc_v2", 0},
               {"cuMemAlloc", 12000, 0, "cuMemAlloc_v2", 0},
               {"cuCtxCreate", 11040, 0, "cuCtxCreate_v3", 0},
               {"cuCtxCreate", 11030, 0, "cuCtxCreate_v2", 0},
               {"cuMemcpyHtoD", 12000, 0, "cuMemcpyHtoD_v2", 0},
               {"cuMemcpyHtoD", 12000, 1, "cuMemcpyHtoD_v2", 0},
               {"cuMemcpyHtoD", 12000, 2, "cuMemcpyHtoD_v2_ptds", 0},
               {"cuMemcpyHtoD", 6000, 2, nullptr, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
               {"cuMemcpyHtoD", 6000, 1, "cuMemcpyHtoD_v2", 0},
               {"cuMemcpyHtoD", 12000, 3, "cuMemcpyHtoD_v2_ptds", 0},
               {"cuLaunchKernel", 12000, 2, "cuLaunchKernel_ptsz", 0},
               {"cuGetProcAddress", 11030, 0, "cuGetProcAddress", 0},
               {"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2", 0},
               {"cuMemPrefetchAsync", 12000, 0, "cuMemPrefetchAsync", 0},
               {"cuMemPrefetchAsync", 12020, 0, "cuMemPrefetchAsync_v2", 0},
               {"cuInit", 12000, 2, "cuInit", 0},
               {"cuInit", 99000, 0, "cuInit", 0},  // NVIDIA's driver 550 rejects no version as too new,
               {"cuInit", -1, 0, "cuInit", 0},     // and compares versions as unsigned numbers.
               {"cuInit", 0, 0, nullptr, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
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
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, CU(cuGetProcAddress_v2)("cuInit", &p, 12000, 4, nullptr));
}

// Opens a library of a driver. The process has loaded no other driver.
void* library_of(const std::string& driver, const char* name) {
  void* const library = dlopen((build_directory() / "lib/carve/sim" / driver / name).c_str(), RTLD_NOW);
  REQUIRE(library != nullptr);
  return library;
}
template <class F>
F* entry_of(F*, void* library, const char* name) {
  return reinterpret_cast<F*>(dlsym(library, name));
}
#define OF(library, name) entry_of(static_cast<decltype(&name)>(nullptr), library, #name)

TEST_F(DriverTest, each_driver_has_its_own_names_and_versions) {
  const struct {
    const char *driver, *version;
    int cuda_version;
    bool has_v2, has_green, has_logs;
  } rows[] = {{"470", "470.256.02", 11040, false, false, false},
              {"525", "525.147.05", 12000, true, false, false},
              {"535", "535.261.03", 12020, true, false, false},
              {"550", "550.163.01", 12040, true, true, false},
              {"580", "580.65.06", 13000, true, true, true}};
  for (const auto& row : rows) {
    create(std::string("a10@") + row.driver);
    EXPECT_EQ(0, run([&] {
                void* const cuda = library_of(row.driver, "libcuda.so.1");
                void* const nvml = library_of(row.driver, "libnvidia-ml.so.1");
                const auto has = [&](const char* name) { return dlsym(cuda, name) != nullptr; };
                REQUIRE(has("cuMemAlloc_v2") && has("cuGetProcAddress") && has("cuEGLApiInit"));
                REQUIRE(has("cuGetProcAddress_v2") == row.has_v2);
                REQUIRE(has("cuGreenCtxCreate") == row.has_green);
                REQUIRE(has("cuLogsDumpToFile") == row.has_logs);
                REQUIRE(!has("cuGetProcAddress_v2_ptsz") && !has("cuStreamGetDevResource"));
                int version = 0;
                OK(OF(cuda, cuDriverGetVersion)(&version));
                REQUIRE(version == row.cuda_version);
                void* found = nullptr;
                const auto look_up = OF(cuda, cuGetProcAddress);
                REQUIRE(look_up("cuLogsDumpToFile", &found, 13000, 0) ==
                        (row.has_logs ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND));
                REQUIRE(found == dlsym(cuda, "cuLogsDumpToFile"));
                OK(look_up("cuGetProcAddress", &found, 13000, 0));
                REQUIRE(found == dlsym(cuda, row.has_v2 ? "cuGetProcAddress_v2" : "cuGetProcAddress"));
                OK(OF(cuda, cuInit)(0));
                OK(OF(cuda, cuDriverGetVersion)(&version));
                REQUIRE(version == row.cuda_version);
                char text[80] = "";
                REQUIRE(OF(nvml, nvmlInit_v2)() == NVML_SUCCESS);
                REQUIRE(OF(nvml, nvmlSystemGetDriverVersion)(text, sizeof text) == NVML_SUCCESS);
                REQUIRE(std::string(text) == row.version);
              }))
        << row.driver;
  }
}

TEST_F(DriverTest, a_library_rejects_the_devices_of_another_driver) {
  for (const char* spec : {"a10@535", "a10"}) {
    create(spec);
    for (const std::string driver : {"550", "535", ""}) {
      const bool fits = driver == (std::strcmp(spec, "a10") == 0 ? "" : "535");
      EXPECT_EQ(0, run([&] {
                  REQUIRE(OF(library_of(driver, "libcuda.so.1"), cuInit)(0) ==
                          (fits ? CUDA_SUCCESS : CUDA_ERROR_SYSTEM_DRIVER_MISMATCH));
                  REQUIRE(OF(library_of(driver, "libnvidia-ml.so.1"), nvmlInit_v2)() ==
                          (fits ? NVML_SUCCESS : NVML_ERROR_LIB_RM_VERSION_MISMATCH));
                }))
          << spec << " by the libraries of driver '" << driver << "'";
    }
  }
}

// One row of visible_lists.txt, for devices with these UUIDs.
struct ListRow {
  std::string list;
  int result = 0;
  std::vector<int> devices;
};

// Replaces "{1}", "{1:12}", "{1:bare}", "{1:lower}" and "{1:upper}", and C's escapes for a tab and a new
// line.
std::string filled_in(std::string list, const std::vector<std::string>& uuids) {
  for (size_t at; (at = list.find('{')) != std::string::npos;) {
    const size_t end = list.find('}', at);
    std::string uuid = uuids.at(static_cast<size_t>(list[at + 1] - '0'));
    const std::string form = end > at + 2 ? list.substr(at + 3, end - at - 3) : "";
    if (form == "bare") uuid.erase(0, 4);
    if (form == "lower") uuid.replace(0, 4, "gpu-");
    if (form == "upper") std::ranges::transform(uuid, uuid.begin(), ::toupper);
    if (!form.empty() && isdigit(form[0]) != 0) uuid.resize(std::stoul(form));
    list.replace(at, end + 1 - at, uuid);
  }
  for (size_t at; (at = list.find('\\')) != std::string::npos;)
    list.replace(at, 2, list[at + 1] == 't' ? "\t" : "\n");
  return list;
}

std::vector<ListRow> list_rows(const std::vector<std::string>& uuids) {
  std::vector<ListRow> rows;
  std::ifstream in(CARVE_SOURCE_DIR "/tests/nvidia/visible_lists.txt");
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t end = line.rfind('"');
    ListRow& row = rows.emplace_back();
    row.list = filled_in(line.substr(1, end - 1), uuids);
    std::istringstream rest(line.substr(end + 1));
    rest >> row.result;
    for (int device; rest >> device;) row.devices.push_back(device);
  }
  return rows;
}

TEST_F(DriverTest, CUDA_VISIBLE_DEVICES_is_parsed_as_by_nvidias_driver) {
  create("a10x2,t4,h100-80");
  const int multiprocessors[] = {72, 72, 40, 132};
  std::vector<std::string> uuids(4);
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
  for (auto& uuid : uuids) std::getline(in, uuid);
  const std::vector<ListRow> rows = list_rows(uuids);
  ASSERT_GT(rows.size(), 60u);
  for (const ListRow& row : rows)
    EXPECT_EQ(0, run([&] {
                setenv("CUDA_VISIBLE_DEVICES", row.list.c_str(), 1);
                REQUIRE(CU(cuInit)(0) == row.result);
                if (row.result != 0) return;
                int count = 0;
                OK(CU(cuDeviceGetCount)(&count));
                REQUIRE(count == static_cast<int>(row.devices.size()));
                for (int i = 0; i < count; ++i) {
                  int n = 0;
                  OK(CU(cuDeviceGetAttribute)(&n, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, i));
                  REQUIRE(n == multiprocessors[row.devices[static_cast<size_t>(i)]]);
                }
              }))
        << "CUDA_VISIBLE_DEVICES='" << row.list << "'";
}

TEST_F(DriverTest, no_device_is_found_without_a_set) {
  EXPECT_EQ(0, run([] {
              setenv("SIMGPU_DIR", "/nonexistent", 1);
              REQUIRE(CU(cuInit)(0) == CUDA_ERROR_NO_DEVICE);
              int n = 0;
              REQUIRE(CU(cuDeviceGetCount)(&n) == CUDA_ERROR_NOT_INITIALIZED);
            }));
}

TEST_F(DriverTest, calls_still_work_after_main_has_returned) {
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

// The order is that of NVIDIA's driver 550. tests/nvidia/test_simulator.py compares all entry points that
// Carve hooks.
TEST_F(DriverTest, calls_without_a_context_check_arguments_in_nvidias_order) {
  EXPECT_EQ(0, run([] {
              OK(CU(cuInit)(0));
              CUdeviceptr p = 1;
              REQUIRE(CU(cuMemAlloc_v2)(&p, 4096) == CUDA_ERROR_INVALID_CONTEXT && p == 0);
              CUdeviceptr_v1 early = 1;
              REQUIRE(CU(cuMemAlloc)(&early, 4096) == CUDA_ERROR_INVALID_CONTEXT && early == 0);
              p = 1;
              REQUIRE(CU(cuMemAllocManaged)(&p, 4096, 0) == CUDA_ERROR_INVALID_VALUE && p == 0);
              OK(CU(cuMemFree_v2)(0));
              REQUIRE(CU(cuMemFree_v2)(4096) == CUDA_ERROR_INVALID_VALUE);
              REQUIRE(CU(cuMemcpy2D_v2)(nullptr) == CUDA_ERROR_INVALID_CONTEXT);
              REQUIRE(CU(cuArrayCreate_v2)(nullptr, nullptr) == CUDA_ERROR_INVALID_CONTEXT);
              REQUIRE(CU(cuArrayDestroy)(nullptr) == CUDA_ERROR_INVALID_HANDLE);
              REQUIRE(CU(cuLaunchKernel)(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
                      CUDA_ERROR_INVALID_HANDLE);
              REQUIRE(CU(cuDevicePrimaryCtxRelease_v2)(0) == CUDA_ERROR_INVALID_CONTEXT);
              OK(CU(cuDevicePrimaryCtxRelease)(0));
              CUcontext c = nullptr;
              REQUIRE(CU(cuCtxCreate_v2)(&c, ~0u, 7) == CUDA_ERROR_INVALID_DEVICE);
              REQUIRE(CU(cuGraphicsUnregisterResource)(nullptr) == CUDA_ERROR_INVALID_CONTEXT);
            }));
}

TEST_F(DriverTest, calls_that_are_not_simulated_fail_and_are_logged_once) {
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

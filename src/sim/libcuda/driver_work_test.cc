// Work through the real library: names, streams, events, kernels with time, faults.
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "sim/libcuda/test_child.h"

namespace carve::sim {
namespace {

constexpr uint64_t us = 1000, ms = 1000 * us;

double ms_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - t).count();
}

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
  EXPECT_EQ(dlsym(library(), "carve_sim_exports"), nullptr) << "our own names stay inside";
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
    std::vector<int> multiprocessors;  // Of the visible devices, in order; empty: no device.
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

TEST_F(DriverTest, events_measure_model_time_exactly) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              CUstream s = nullptr;
              CUevent a = nullptr, b = nullptr;
              OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
              OK(CU(cuEventCreate)(&a, 0));
              OK(CU(cuEventCreate)(&b, 0));
              OK(launch(f, s, 500 * ms));  // All that follows is queued behind it, however late we are.
              OK(CU(cuEventRecord)(a, s));
              for (int i = 0; i < 10; ++i) OK(launch(f, s, 2 * ms));
              OK(CU(cuEventRecord)(b, s));
              REQUIRE(CU(cuEventQuery)(b) == CUDA_ERROR_NOT_READY);
              OK(CU(cuEventSynchronize)(b));
              float elapsed = 0;
              OK(CU(cuEventElapsedTime)(&elapsed, a, b));
              REQUIRE(elapsed > 19.999f && elapsed < 20.001f);
            }));
}

TEST_F(DriverTest, a_synchronise_waits_as_long_as_the_kernel_takes) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              const auto from = std::chrono::steady_clock::now();
              OK(launch(f, nullptr, 500 * ms));
              REQUIRE(ms_since(from) < 450);
              REQUIRE(CU(cuStreamQuery)(nullptr) == CUDA_ERROR_NOT_READY);
              OK(CU(cuCtxSynchronize)());
              REQUIRE(ms_since(from) >= 500 && ms_since(from) < 5000);
            }));
}

TEST_F(DriverTest, the_launch_queue_takes_1024_and_then_blocks) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              CUstream s = nullptr;
              OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
              OK(launch(f, s, 800 * ms));
              auto from = std::chrono::steady_clock::now();
              for (int i = 1; i < 1024; ++i) OK(launch(f, s, 1 * us));
              REQUIRE(ms_since(from) < 700);
              OK(launch(f, s, 1 * us));  // Waits for the first to end.
              REQUIRE(ms_since(from) > 700);
              OK(CU(cuStreamSynchronize)(s));
            }));
}

TEST_F(DriverTest, streams_wait_for_events_of_other_streams_and_of_other_devices) {
  EXPECT_EQ(0, run([] {
              const CUcontext first = begin(0);
              const CUfunction f = spin();
              CUstream s = nullptr, t = nullptr;
              CUevent done = nullptr, start = nullptr, end = nullptr;
              OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
              OK(CU(cuStreamCreate)(&t, CU_STREAM_NON_BLOCKING));
              for (CUevent* e : {&done, &start, &end}) OK(CU(cuEventCreate)(e, 0));
              OK(CU(cuEventRecord)(start, t));
              OK(launch(f, s, 20 * ms, 6));
              OK(CU(cuEventRecord)(done, s));
              OK(CU(cuStreamWaitEvent)(t, done, 0));
              OK(launch(f, t, 5 * ms, 6));
              OK(CU(cuEventRecord)(end, t));
              OK(CU(cuEventSynchronize)(end));
              float elapsed = 0;
              OK(CU(cuEventElapsedTime)(&elapsed, start, end));
              REQUIRE(elapsed >= 25.0f);

              OK(launch(f, s, 30 * ms, 6));
              OK(CU(cuEventRecord)(done, s));
              const auto from = std::chrono::steady_clock::now();
              CUcontext second = nullptr;
              OK(CU(cuCtxCreate_v2)(&second, 0, 1));
              CUstream u = nullptr;
              OK(CU(cuStreamCreate)(&u, CU_STREAM_NON_BLOCKING));
              OK(CU(cuStreamWaitEvent)(u, done, 0));
              OK(CU(cuStreamSynchronize)(u));
              REQUIRE(ms_since(from) > 25);
              OK(CU(cuCtxSetCurrent)(first));
            }));
}

std::atomic<int> calls;
const unsigned char* seen_at;
void count_call(void* expected) {
  if (seen_at[100] == static_cast<unsigned char>(reinterpret_cast<uintptr_t>(expected))) ++calls;
}

TEST_F(DriverTest, host_functions_run_in_order_and_see_what_was_copied_before) {
  EXPECT_EQ(0, run([] {
              begin();
              CUstream s = nullptr;
              OK(CU(cuStreamCreate)(&s, 0));
              CUdeviceptr d = 0;
              void* pinned = nullptr;
              OK(CU(cuMemAlloc_v2)(&d, 4096));
              OK(CU(cuMemAllocHost_v2)(&pinned, 4096));
              seen_at = static_cast<const unsigned char*>(pinned);
              for (uintptr_t i = 1; i <= 50; ++i) {
                OK(CU(cuMemsetD8Async)(d, static_cast<unsigned char>(i), 4096, s));
                OK(CU(cuMemcpyDtoHAsync_v2)(pinned, d, 4096, s));
                OK(CU(cuLaunchHostFunc)(s, count_call, reinterpret_cast<void*>(i)));
              }
              OK(CU(cuStreamSynchronize)(s));
              REQUIRE(calls == 50);
            }));
}

TEST_F(DriverTest, each_threads_default_stream_is_its_own) {
  EXPECT_EQ(0, run([] {
              const CUcontext c = begin();
              const CUfunction f = spin();
              uint64_t ns = 1000 * ms;
              uint32_t other = 0;
              void* parameters[] = {&ns, &other};
              OK(CU(cuLaunchKernel_ptsz)(f, 6, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
              std::thread([&] {
                OK(CU(cuCtxSetCurrent)(c));
                REQUIRE(CU(cuStreamQuery_ptsz)(nullptr) == CUDA_SUCCESS);
                REQUIRE(CU(cuStreamQuery)(nullptr) == CUDA_SUCCESS);
                uint64_t brief = 1 * ms;
                void* p[] = {&brief, &other};
                OK(CU(cuLaunchKernel_ptsz)(f, 6, 1, 1, 256, 1, 1, 0, nullptr, p, nullptr));
                const auto from = std::chrono::steady_clock::now();
                OK(CU(cuStreamSynchronize_ptsz)(nullptr));
                REQUIRE(ms_since(from) < 800);
              }).join();
              REQUIRE(CU(cuStreamQuery_ptsz)(nullptr) == CUDA_ERROR_NOT_READY);
              OK(CU(cuCtxSynchronize)());
            }));
}

TEST_F(DriverTest, two_processes_share_the_card_by_time_slices) {
  const Signal go[2];
  std::vector<pid_t> children;
  for (const Signal& mine : go)
    children.push_back(start([&] {
      begin();
      const CUfunction f = spin();
      mine.take();
      CUevent a = nullptr, b = nullptr;
      OK(CU(cuEventCreate)(&a, 0));
      OK(CU(cuEventCreate)(&b, 0));
      OK(CU(cuEventRecord)(a, nullptr));
      for (int i = 0; i < 300; ++i) OK(launch(f, nullptr, 1 * ms));
      OK(CU(cuEventRecord)(b, nullptr));
      OK(CU(cuEventSynchronize)(b));
      float elapsed = 0;
      OK(CU(cuEventElapsedTime)(&elapsed, a, b));
      // 300 ms of work at 2.0/4.2 of the card, less what one was alone before the other came.
      REQUIRE(elapsed > 400 && elapsed < 640);
    }));
  for (const Signal& s : go) s.give();
  for (const pid_t pid : children) EXPECT_EQ(0, finish(pid));
}

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
        // The same through a configuration, and with the arguments in one buffer.
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

TEST_F(DriverTest, modules_and_libraries_bring_kernels_and_variables) {
  EXPECT_EQ(0, run([] {
              begin();
              CUmodule m = nullptr;
              CUfunction f = nullptr;
              OK(CU(cuModuleLoadData)(&m, kSpin));
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
              OK(CU(cuLibraryLoadData)(&l, kSpin, nullptr, nullptr, 0, nullptr, nullptr, 0));
              OK(CU(cuLibraryGetKernel)(&k, l, "carve_spin"));
              size_t offset = 0, size = 0;
              OK(CU(cuKernelGetParamInfo)(k, 1, &offset, &size));
              REQUIRE(offset == 8 && size == 4);
              OK(launch(reinterpret_cast<CUfunction>(k), nullptr, 1000));
              OK(CU(cuCtxSynchronize)());
              OK(CU(cuLibraryUnload)(l));
            }));
}

TEST_F(DriverTest, the_linker_joins_ptx_and_its_result_loads) {
  const std::string path = directory_ + "/more.ptx";
  std::ofstream(path) << ".entry from_file() { ret; }\n";
  EXPECT_EQ(0, run([&] {
              begin();
              CUlinkState link = nullptr;
              OK(CU(cuLinkCreate_v2)(0, nullptr, nullptr, &link));
              OK(CU(cuLinkAddData_v2)(link, CU_JIT_INPUT_PTX, const_cast<char*>(kSpin), sizeof kSpin, "a", 0,
                                      nullptr, nullptr));
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

TEST_F(DriverTest, an_urgent_stream_overtakes_a_batch_stream) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              CUstream batch = nullptr, urgent = nullptr;
              CUevent batch_end = nullptr, urgent_end = nullptr;
              OK(CU(cuStreamCreate)(&batch, CU_STREAM_NON_BLOCKING));
              OK(CU(cuStreamCreateWithPriority)(&urgent, CU_STREAM_NON_BLOCKING, -99));
              int priority = 0;
              OK(CU(cuStreamGetPriority)(urgent, &priority));
              REQUIRE(priority == -5);
              OK(CU(cuEventCreate)(&batch_end, 0));
              OK(CU(cuEventCreate)(&urgent_end, 0));
              OK(launch(f, batch, 300 * ms));
              OK(CU(cuEventRecord)(batch_end, batch));
              OK(launch(f, urgent, 1 * ms));
              OK(CU(cuEventRecord)(urgent_end, urgent));
              OK(CU(cuCtxSynchronize)());
              float later = 0;
              OK(CU(cuEventElapsedTime)(&later, urgent_end, batch_end));
              REQUIRE(later > 0);
            }));
}

TEST_F(DriverTest, copies_between_two_cards_bring_the_bytes) {
  EXPECT_EQ(0, run([] {
              const CUcontext a = begin(0), b = begin(1);
              CUdeviceptr here = 0, there = 0;
              OK(CU(cuCtxSetCurrent)(a));
              OK(CU(cuMemAlloc_v2)(&here, 4096));
              OK(CU(cuCtxSetCurrent)(b));
              OK(CU(cuMemAlloc_v2)(&there, 4096));
              REQUIRE(here != there);
              OK(CU(cuMemsetD8_v2)(here, 0x42, 4096));
              OK(CU(cuMemcpyPeer)(there, b, here, a, 4096));
              unsigned char back[4096] = {};
              OK(CU(cuMemcpyDtoH_v2)(back, there, 4096));
              REQUIRE(back[0] == 0x42 && back[4095] == 0x42);
              int ordinal = -1;
              OK(CU(cuPointerGetAttribute)(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, there));
              REQUIRE(ordinal == 1);
            }));
}

TEST_F(DriverTest, an_xid_breaks_the_contexts_that_are_there_and_a_new_one_works) {
  const Signal ready, broken;
  const pid_t child = start([&] {
    const CUcontext c = begin();
    ready.give();
    broken.take();
    CUdeviceptr p = 0;
    REQUIRE(CU(cuMemAlloc_v2)(&p, 1) == CUDA_ERROR_ILLEGAL_ADDRESS);
    REQUIRE(CU(cuCtxSynchronize)() == CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(CU(cuCtxDestroy_v2)(c));
    begin();
    OK(CU(cuMemAlloc_v2)(&p, 1));
  });
  ready.take();
  fault("xid 31 --device 0");
  broken.give();
  EXPECT_EQ(0, finish(child));
}

TEST_F(DriverTest, a_hung_kernel_ends_when_the_fault_is_cleared_and_a_lost_device_takes_no_context) {
  fault("hung-kernel --device 0");
  const Signal waiting;
  const pid_t child = start([&] {
    begin();
    OK(launch(spin(), nullptr, 1 * us));
    waiting.give();
    const auto from = std::chrono::steady_clock::now();
    OK(CU(cuCtxSynchronize)());
    REQUIRE(ms_since(from) > 100);
  });
  waiting.take();
  usleep(200'000);
  fault("clear");
  EXPECT_EQ(0, finish(child));
  fault("device-lost --device 1");
  EXPECT_EQ(0, run([] {
              OK(CU(cuInit)(0));
              CUcontext c = nullptr;
              REQUIRE(CU(cuCtxCreate_v2)(&c, 0, 1) == CUDA_ERROR_DEVICE_UNAVAILABLE);
              OK(CU(cuCtxCreate_v2)(&c, 0, 0));
            }));
}

TEST_F(DriverTest, threads_of_one_process_use_one_context_at_once) {
  EXPECT_EQ(0, run([] {
              const CUcontext c = begin();
              const CUfunction f = spin();
              const size_t before = free_now();
              std::vector<std::thread> threads;
              for (int t = 0; t < 8; ++t)
                threads.emplace_back([=] {
                  OK(CU(cuCtxSetCurrent)(c));
                  CUstream s = nullptr;
                  CUevent e = nullptr;
                  OK(CU(cuStreamCreate)(&s, t % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
                  OK(CU(cuEventCreate)(&e, 0));
                  std::vector<unsigned char> out(5000), in(5000, static_cast<unsigned char>(t + 1));
                  for (int i = 0; i < 30; ++i) {
                    CUdeviceptr p = 0;
                    OK(CU(cuMemAlloc_v2)(&p, 5000));
                    OK(CU(cuMemcpyHtoDAsync_v2)(p, in.data(), in.size(), s));
                    OK(launch(f, s, 20 * us, 6));
                    OK(CU(cuEventRecord)(e, s));
                    OK(CU(cuStreamWaitEvent)(nullptr, e, 0));
                    OK(CU(cuMemcpyDtoHAsync_v2)(out.data(), p, out.size(), s));
                    OK(CU(cuStreamSynchronize)(s));
                    REQUIRE(out == in);
                    OK(CU(cuMemFree_v2)(p));
                  }
                  OK(CU(cuEventDestroy_v2)(e));
                  OK(CU(cuStreamDestroy_v2)(s));
                });
              for (auto& t : threads) t.join();
              OK(CU(cuCtxSynchronize)());
              REQUIRE(free_now() == before);
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

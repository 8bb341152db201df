// Memory that processes share by handle, and pools that they import, through the real library.
#include <fcntl.h>

#include <cstring>
#include <thread>
#include <vector>

#include "sim/libcuda/test_child.h"

namespace carve::sim {
namespace {

TEST_F(DriverTest, an_opened_handle_shares_the_exporters_bytes_and_is_counted_once) {
  const Pipe handles;
  const Signal written, done;
  const pid_t exporter = start([&] {
    begin();
    CUdeviceptr big = 0, small = 0;
    OK(CU(cuMemAlloc_v2)(&big, 5 * MiB));
    OK(CU(cuMemAlloc_v2)(&small, 1000));
    OK(CU(cuMemsetD8_v2)(big, 1, 5 * MiB));
    OK(CU(cuMemsetD8_v2)(small, 2, 1000));
    const size_t before = free_now();
    CUipcMemHandle h[2];
    OK(CU(cuIpcGetMemHandle)(&h[0], big));
    OK(CU(cuIpcGetMemHandle)(&h[1], small + 7));
    REQUIRE(free_now() == before);
    CUdeviceptr mine = 0;
    REQUIRE(CU(cuIpcOpenMemHandle_v2)(&mine, h[0], 1) == CUDA_ERROR_INVALID_CONTEXT);
    handles.put(h[0]);
    handles.put(h[1]);
    written.take();
    unsigned char got = 0;
    OK(CU(cuMemcpyDtoH_v2)(&got, big + 4 * MiB, 1));
    REQUIRE(got == 9);
    // The exporter continues to work, with neighbours in the block, frees and new memory.
    CUdeviceptr next = 0;
    OK(CU(cuMemAlloc_v2)(&next, 1000));
    REQUIRE(free_now() == before - 256 * MiB);
    OK(CU(cuMemFree_v2)(next));
    OK(CU(cuMemFree_v2)(big));
    OK(CU(cuMemFree_v2)(small));
    done.take();
    REQUIRE(free_now() == before - 256 * MiB + 8 * MiB);
    written.give();
  });
  EXPECT_EQ(0, run([&] {
              const auto a = handles.take<CUipcMemHandle>(), b = handles.take<CUipcMemHandle>();
              begin();  // Not earlier, because the exporter would measure its context too.
              const size_t before = free_now();
              CUdeviceptr big = 0, again = 0, small = 0;
              OK(CU(cuIpcOpenMemHandle_v2)(&big, a, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
              OK(CU(cuIpcOpenMemHandle_v2)(&again, a, 0));
              OK(CU(cuIpcOpenMemHandle_v2)(&small, b, 0));
              REQUIRE(again == big && free_now() == before);
              std::vector<unsigned char> bytes(5 * MiB);
              OK(CU(cuMemcpyDtoH_v2)(bytes.data(), big, bytes.size()));
              REQUIRE(bytes[0] == 1 && bytes.back() == 1);
              OK(CU(cuMemcpyDtoH_v2)(bytes.data(), small, 1000));
              REQUIRE(bytes[0] == 2 && bytes[999] == 2);
              REQUIRE(CU(cuMemcpyDtoH_v2)(bytes.data(), small, 1001) == CUDA_ERROR_INVALID_VALUE);
              OK(CU(cuMemsetD8_v2)(big, 9, 5 * MiB));
              REQUIRE(CU(cuMemFree_v2)(big) == CUDA_ERROR_INVALID_VALUE);
              written.give();
              usleep(50'000);
              OK(CU(cuIpcCloseMemHandle)(big));
              OK(CU(cuMemcpyDtoH_v2)(bytes.data(), big, 1));  // The handle was opened twice.
              OK(CU(cuIpcCloseMemHandle)(again));
              REQUIRE(CU(cuMemcpyDtoH_v2)(bytes.data(), big, 1) == CUDA_ERROR_INVALID_VALUE);
              OK(CU(cuIpcCloseMemHandle)(small));
              REQUIRE(CU(cuIpcCloseMemHandle)(small) == CUDA_ERROR_INVALID_VALUE);
              done.give();
              written.take();
            }));
  EXPECT_EQ(0, finish(exporter));
  EXPECT_TRUE(std::filesystem::is_empty(directory_ + "/memory"));
}

TEST_F(DriverTest, a_killed_exporter_or_importer_takes_no_memory_from_the_other) {
  const Pipe handles;
  const auto exporter_body = [&] {
    begin();
    CUdeviceptr p = 0;
    CUipcMemHandle h;
    OK(CU(cuMemAlloc_v2)(&p, 40 * MiB));
    OK(CU(cuMemsetD8_v2)(p, 3, 40 * MiB));
    OK(CU(cuIpcGetMemHandle)(&h, p));
    handles.put(h);
    for (;;) pause();
  };
  const Signal opened;
  const pid_t exporter = start(exporter_body);
  const auto handle = handles.take<CUipcMemHandle>();
  const auto open_and_stay = [&] {
    begin();
    CUdeviceptr p = 0;
    OK(CU(cuIpcOpenMemHandle_v2)(&p, handle, 1));
    opened.give();
    for (;;) pause();
  };
  const pid_t first = start(open_and_stay);
  opened.take();
  kill(first, SIGKILL);
  finish(first);
  EXPECT_EQ(0, run([&] {
              begin();
              const size_t with = free_now();
              CUdeviceptr p = 0;
              OK(CU(cuIpcOpenMemHandle_v2)(&p, handle, 1));
              kill(exporter, SIGKILL);
              EVENTUALLY(free_now() == with + 256 * MiB);
              unsigned char last = 0;
              OK(CU(cuMemcpyDtoH_v2)(&last, p + 40 * MiB - 1, 1));
              REQUIRE(last == 3);
              OK(CU(cuIpcCloseMemHandle)(p));
              EVENTUALLY(free_now() == with + 296 * MiB);  // The exporter may still be dying.
              REQUIRE(CU(cuIpcOpenMemHandle_v2)(&p, handle, 1) == CUDA_ERROR_MAP_FAILED);
            }));
  EXPECT_EQ(128 + SIGKILL, finish(exporter));
}

// Copies by other threads are not lost while the block is moved.
TEST_F(DriverTest, memory_that_is_being_written_can_be_shared) {
  EXPECT_EQ(0, run([] {
              const CUcontext c = begin();
              std::vector<CUdeviceptr> p(40);
              for (auto& x : p) OK(CU(cuMemAlloc_v2)(&x, 50'000));
              std::thread writer([&] {
                OK(CU(cuCtxSetCurrent)(c));
                for (int turn = 0; turn < 200; ++turn)
                  for (const CUdeviceptr x : p)
                    OK(CU(cuMemsetD8_v2)(x, static_cast<unsigned char>(turn), 50'000));
              });
              for (const CUdeviceptr x : p) {
                CUipcMemHandle h;
                OK(CU(cuIpcGetMemHandle)(&h, x));
              }
              writer.join();
              for (const CUdeviceptr x : p) {
                unsigned char got[2] = {};
                OK(CU(cuMemcpyDtoH_v2)(&got[0], x, 1));
                OK(CU(cuMemcpyDtoH_v2)(&got[1], x + 49'999, 1));
                REQUIRE(got[0] == 199 && got[1] == 199);
              }
            }));
}

TEST_F(DriverTest, an_imported_pool_shares_the_exporters_memory_and_holds_none) {
  const Pipe data;
  const Signal done;
  int fd = -1;
  // The importer inherits the descriptor, so the exporter forks it.
  EXPECT_EQ(
      0, run([&] {
        const Signal go;
        const pid_t importer = start([&] {
          go.take();
          const int pool_fd = data.take<int>();
          const auto shared = data.take<CUmemPoolPtrExportData>();
          const int theirs = data.take<int>();
          char path[64];
          std::snprintf(path, sizeof path, "/proc/%d/fd/%d", theirs, pool_fd);
          const int own = open(path, O_RDWR);
          REQUIRE(own >= 0);
          begin();
          const size_t before = free_now();
          CUmemoryPool pool = nullptr;
          OK(CU(cuMemPoolImportFromShareableHandle)(&pool, reinterpret_cast<void*>(intptr_t{own}),
                                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
          CUdeviceptr p = 0, q = 0;
          auto copy = shared;
          OK(CU(cuMemPoolImportPointer)(&p, pool, &copy));
          REQUIRE(free_now() == before);
          unsigned char got = 0;
          OK(CU(cuMemcpyDtoH_v2)(&got, p + 9 * MiB, 1));
          REQUIRE(got == 6);
          REQUIRE(CU(cuMemAllocFromPoolAsync)(&q, 100, pool, nullptr) == CUDA_ERROR_INVALID_VALUE);
          OK(CU(cuMemFreeAsync)(p, nullptr));
          OK(CU(cuCtxSynchronize)());
          REQUIRE(CU(cuMemcpyDtoH_v2)(&got, p, 1) == CUDA_ERROR_INVALID_VALUE);
          done.give();
        });
        begin();
        const size_t before = free_now();
        CUmemPoolProps props = {};
        props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
        CUmemoryPool pool = nullptr;
        OK(CU(cuMemPoolCreate)(&pool, &props));
        CUdeviceptr p = 0;
        OK(CU(cuMemAllocFromPoolAsync)(&p, 10 * MiB, pool, nullptr));
        REQUIRE(before - free_now() == 32 * MiB);
        OK(CU(cuMemsetD8_v2)(p, 6, 10 * MiB));
        OK(CU(cuMemPoolExportToShareableHandle)(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        CUmemPoolPtrExportData shared;
        OK(CU(cuMemPoolExportPointer)(&shared, p));
        go.give();
        data.put(fd);
        data.put(shared);
        data.put(static_cast<int>(getpid()));
        done.take();
        REQUIRE(finish(importer) == 0);
        OK(CU(cuMemFreeAsync)(p, nullptr));
        OK(CU(cuCtxSynchronize)());
        REQUIRE(free_now() == before);
      }));
}

}  // namespace
}  // namespace carve::sim

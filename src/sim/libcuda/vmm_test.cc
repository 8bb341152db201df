// Memory that programs map themselves, and share between processes, through the real library.
#include <fcntl.h>
#include <sys/socket.h>

#include <cstring>
#include <vector>

#include "sim/libcuda/test_child.h"

namespace carve::sim {
namespace {

constexpr auto file_descriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

CUmemAllocationProp pinned_properties(CUmemAllocationHandleType types = CU_MEM_HANDLE_TYPE_NONE,
                                      int device = 0, CUmemLocationType where = CU_MEM_LOCATION_TYPE_DEVICE) {
  CUmemAllocationProp p = {};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.requestedHandleTypes = types;
  p.location = {where, device};
  return p;
}
CUmemGenericAllocationHandle make(size_t bytes, CUmemAllocationHandleType types = CU_MEM_HANDLE_TYPE_NONE) {
  const CUmemAllocationProp p = pinned_properties(types);
  CUmemGenericAllocationHandle h = 0;
  OK(CU(cuMemCreate)(&h, bytes, &p, 0));
  return h;
}
void allow(CUdeviceptr at, size_t bytes, CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
  const CUmemAccessDesc d = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, flags};
  OK(CU(cuMemSetAccess)(at, bytes, &d, 1));
}
CUdeviceptr reserve(size_t bytes) {
  CUdeviceptr at = 0;
  OK(CU(cuMemAddressReserve)(&at, bytes, 0, 0, 0));
  return at;
}
CUdeviceptr mapped(CUmemGenericAllocationHandle h, size_t bytes) {
  const CUdeviceptr at = reserve(bytes);
  OK(CU(cuMemMap)(at, bytes, 0, h, 0));
  allow(at, bytes);
  return at;
}

void send_fd(int socket, int fd) {
  char byte = 'x', control[CMSG_SPACE(sizeof fd)] = {};
  iovec io = {&byte, 1};
  msghdr m = {};
  m.msg_iov = &io;
  m.msg_iovlen = 1;
  m.msg_control = control;
  m.msg_controllen = sizeof control;
  cmsghdr* c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
  REQUIRE(sendmsg(socket, &m, 0) == 1);
}
int receive_fd(int socket) {
  char byte = 0, control[CMSG_SPACE(sizeof(int))] = {};
  iovec io = {&byte, 1};
  msghdr m = {};
  m.msg_iov = &io;
  m.msg_iovlen = 1;
  m.msg_control = control;
  m.msg_controllen = sizeof control;
  REQUIRE(recvmsg(socket, &m, 0) == 1);
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
  return fd;
}
void* as_handle(int fd) { return reinterpret_cast<void*>(static_cast<intptr_t>(fd)); }

TEST_F(DriverTest, physical_memory_needs_no_context_and_lives_as_long_as_its_handles_and_mappings) {
  EXPECT_EQ(0, run([] {
              OK(CU(cuInit)(0));
              const CUmemGenericAllocationHandle h = make(64 * MiB);
              CUcontext c = nullptr;
              OK(CU(cuCtxCreate_v2)(&c, 0, 0));
              const size_t with = free_now();
              const CUdeviceptr at = mapped(h, 64 * MiB);
              OK(CU(cuMemRelease)(h));
              REQUIRE(CU(cuMemRelease)(h) == CUDA_ERROR_INVALID_VALUE);
              OK(CU(cuMemsetD8_v2)(at, 5, 64 * MiB));
              REQUIRE(free_now() == with);
              CUmemGenericAllocationHandle again = 0;
              OK(CU(cuMemRetainAllocationHandle)(&again, reinterpret_cast<void*>(at + 3 * MiB)));
              OK(CU(cuMemUnmap)(at, 64 * MiB));
              REQUIRE(free_now() == with);
              OK(CU(cuMemRelease)(again));
              REQUIRE(free_now() == with + 64 * MiB);
              OK(CU(cuMemAddressFree)(at, 64 * MiB));
            }));
}

TEST_F(DriverTest, copies_cross_adjacent_mappings_but_not_unmapped_addresses) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUdeviceptr at = reserve(8 * MiB);
              const CUmemGenericAllocationHandle a = make(2 * MiB), b = make(4 * MiB);
              OK(CU(cuMemMap)(at, 2 * MiB, 0, a, 0));
              OK(CU(cuMemMap)(at + 2 * MiB, 4 * MiB, 0, b, 0));
              std::vector<char> in(6 * MiB, 'q'), out(6 * MiB);
              in[2 * MiB] = 'r';
              REQUIRE(CU(cuMemcpyHtoD_v2)(at, in.data(), in.size()) == CUDA_ERROR_INVALID_VALUE);
              allow(at, 6 * MiB);
              OK(CU(cuMemcpyHtoD_v2)(at, in.data(), in.size()));
              OK(CU(cuMemcpyDtoH_v2)(out.data(), at, out.size()));
              REQUIRE(in == out);
              OK(CU(cuMemsetD8_v2)(at + MiB, 1, 2 * MiB));
              REQUIRE(CU(cuMemcpyHtoD_v2)(at + 1, in.data(), in.size()) == CUDA_ERROR_INVALID_VALUE);
              // Maps the same memory at a second address.
              const CUdeviceptr twin = mapped(b, 4 * MiB);
              OK(CU(cuMemcpyDtoH_v2)(out.data(), twin, 4 * MiB));
              REQUIRE(out[0] == 1 && out[MiB] == 'q');
              REQUIRE(CU(cuMemUnmap)(at, 3 * MiB) == CUDA_ERROR_INVALID_VALUE);
              REQUIRE(CU(cuMemAddressFree)(at, 8 * MiB) == CUDA_ERROR_INVALID_VALUE);
              OK(CU(cuMemUnmap)(at, 6 * MiB));
              REQUIRE(CU(cuMemcpyDtoH_v2)(out.data(), at, 1) == CUDA_ERROR_INVALID_VALUE);
              OK(CU(cuMemcpyDtoH_v2)(out.data(), twin, 4 * MiB));
              REQUIRE(out[MiB] == 'q');
              OK(CU(cuMemAddressFree)(at, 8 * MiB));
            }));
}

TEST_F(DriverTest, invalid_mappings_are_rejected_as_documented) {
  EXPECT_EQ(
      0, run([] {
        begin();
        CUmemAllocationProp p = pinned_properties();
        CUmemGenericAllocationHandle h = 0, got = 0;
        size_t granularity = 0;
        OK(CU(cuMemGetAllocationGranularity)(&granularity, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
        REQUIRE(granularity == 2 * MiB);
        REQUIRE(CU(cuMemCreate)(&h, 3 * MiB, &p, 0) == CUDA_ERROR_INVALID_VALUE);
        REQUIRE(CU(cuMemCreate)(&h, 1000ull << 30, &p, 0) == CUDA_ERROR_OUT_OF_MEMORY);
        p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
        REQUIRE(CU(cuMemCreate)(&h, 2 * MiB, &p, 0) == CUDA_ERROR_NOT_SUPPORTED);
        p = pinned_properties(CU_MEM_HANDLE_TYPE_NONE, 7);
        REQUIRE(CU(cuMemCreate)(&h, 2 * MiB, &p, 0) == CUDA_ERROR_INVALID_DEVICE);
        h = make(2 * MiB);
        int fd = -1;
        REQUIRE(CU(cuMemExportToShareableHandle)(&fd, h, file_descriptor, 0) == CUDA_ERROR_INVALID_VALUE);
        const CUdeviceptr at = mapped(h, 2 * MiB);
        REQUIRE(CU(cuMemMap)(at, 2 * MiB, 0, h, 0) == CUDA_ERROR_INVALID_VALUE);
        REQUIRE(CU(cuMemMap)(at + 2 * MiB, 2 * MiB, 0, h, 0) == CUDA_ERROR_INVALID_VALUE);
        REQUIRE(CU(cuMemFree_v2)(at) == CUDA_ERROR_INVALID_VALUE);
        const int file = open("/proc/self/exe", O_RDONLY);
        REQUIRE(CU(cuMemImportFromShareableHandle)(&got, as_handle(file), file_descriptor) != CUDA_SUCCESS);
        unsigned long long flags = 0;
        const CUmemLocation own = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
        OK(CU(cuMemGetAccess)(&flags, &own, at));
        REQUIRE(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        OK(CU(cuMemGetAllocationPropertiesFromHandle)(&p, h));
        REQUIRE(p.location.id == 0 && p.type == CU_MEM_ALLOCATION_TYPE_PINNED);
      }));
}

TEST_F(DriverTest, host_memory_by_handle_takes_no_device_memory_and_is_readable_by_the_host) {
  EXPECT_EQ(0, run([] {
              begin();
              const size_t before = free_now();
              const CUmemAllocationProp p =
                  pinned_properties(CU_MEM_HANDLE_TYPE_NONE, 0, CU_MEM_LOCATION_TYPE_HOST);
              CUmemGenericAllocationHandle h = 0;
              OK(CU(cuMemCreate)(&h, 4 * MiB, &p, 0));
              const CUdeviceptr at = mapped(h, 4 * MiB);
              REQUIRE(free_now() == before);
              OK(CU(cuMemsetD8_v2)(at, 9, 4 * MiB));
              REQUIRE(reinterpret_cast<unsigned char*>(at)[4 * MiB - 1] == 9);
            }));
}

// The exporter dies. Its memory remains in the importer, byte for byte, and is released when the importer
// releases it.
TEST_F(DriverTest, exported_memory_outlives_its_exporter_and_is_freed_with_its_last_holder) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const pid_t exporter = start([&] {
    begin();
    const CUmemGenericAllocationHandle h = make(100 * MiB, file_descriptor);
    const CUdeviceptr at = mapped(h, 100 * MiB);
    OK(CU(cuMemsetD8_v2)(at, 0x41, 100 * MiB));
    int fd = -1;
    OK(CU(cuMemExportToShareableHandle)(&fd, h, file_descriptor, 0));
    send_fd(ends[0], fd);
    pause();
  });
  EXPECT_EQ(0, run([&] {
              begin();
              const int fd = receive_fd(ends[1]);
              CUmemGenericAllocationHandle h = 0;
              const size_t both = free_now();
              OK(CU(cuMemImportFromShareableHandle)(&h, as_handle(fd), file_descriptor));
              close(fd);
              REQUIRE(free_now() == both);  // Counted once.
              const CUdeviceptr at = mapped(h, 100 * MiB);
              OK(CU(cuMemRelease)(h));
              kill(exporter, SIGKILL);
              EVENTUALLY(free_now() == both + 256 * MiB);  // Its context is destroyed, its memory is not.
              std::vector<char> bytes(100 * MiB);
              OK(CU(cuMemcpyDtoH_v2)(bytes.data(), at, bytes.size()));
              REQUIRE(bytes[0] == 0x41 && bytes.back() == 0x41);
              OK(CU(cuMemUnmap)(at, 100 * MiB));
              EVENTUALLY(free_now() == both + 356 * MiB);
            }));
  EXPECT_EQ(128 + SIGKILL, finish(exporter));
  EXPECT_TRUE(std::filesystem::is_empty(directory_ + "/memory"));
}

TEST_F(DriverTest, memory_is_kept_by_an_open_descriptor_that_no_process_has_imported) {
  const Signal ready, closed, done;
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const pid_t exporter = start([&] {
    begin();
    const CUmemGenericAllocationHandle h = make(10 * MiB, file_descriptor);
    int fd = -1;
    OK(CU(cuMemExportToShareableHandle)(&fd, h, file_descriptor, 0));
    send_fd(ends[0], fd);
    close(fd);
    OK(CU(cuMemRelease)(h));
    ready.give();
    done.take();
  });
  ready.take();
  const pid_t watcher = start([&] {
    begin();
    const size_t with = free_now();
    ready.give();
    closed.take();
    EVENTUALLY(free_now() == with + 10 * MiB);
  });
  ready.take();
  const int fd = receive_fd(ends[1]);  // This process has not loaded the driver.
  usleep(10'000);
  close(fd);
  closed.give();
  EXPECT_EQ(0, finish(watcher));
  done.give();
  EXPECT_EQ(0, finish(exporter));
}

TEST_F(DriverTest, a_forked_child_keeps_no_shared_memory_alive) {
  EXPECT_EQ(0, run([] {
              begin();
              const size_t before = free_now();
              const CUmemGenericAllocationHandle h = make(10 * MiB, file_descriptor);
              const pid_t child = start([] { pause(); });
              OK(CU(cuMemRelease)(h));
              REQUIRE(free_now() == before);
              kill(child, SIGKILL);
              finish(child);
            }));
}

}  // namespace
}  // namespace carve::sim

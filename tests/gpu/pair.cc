// Two processes share device memory: `give` allocates and passes handles, `take` opens them. In the same
// slice the second process finds the bytes of the first and is charged nothing. In another slice it is
// rejected if the library can detect this.
//
//   pair give SOCKET    allocates 64 MiB twice, waits for one `take`; exit status 0 after that has ended
//   pair take SOCKET    prints {"ipc": ERROR, "descriptor": ERROR, "charged": BYTES} and exits 0, or 1 if
//                       the opened memory lacks the bytes of the first
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "gpu/driver.h"

using namespace carve::gpu;

namespace {

constexpr size_t size = 64 << 20;
constexpr CUmemAllocationHandleType kind = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

void fail(const char* what) {
  perror(what);
  exit(1);
}

sockaddr_un address_of(const char* path) {
  sockaddr_un a = {};
  a.sun_family = AF_UNIX;
  if (strlen(path) >= sizeof a.sun_path) fail(path);
  strcpy(a.sun_path, path);
  return a;
}

CUmemAllocationProp exportable() {
  CUmemAllocationProp p = {};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.requestedHandleTypes = kind;
  p.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return p;
}

CUdeviceptr mapped(CUmemGenericAllocationHandle handle) {
  CUdeviceptr at = 0;
  MUST(CU(cuMemAddressReserve)(&at, size, 0, 0, 0));
  MUST(CU(cuMemMap)(at, size, 0, handle, 0));
  CUmemAccessDesc access = {};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  MUST(CU(cuMemSetAccess)(at, size, &access, 1));
  return at;
}

// The handle's bytes, and space for a descriptor.
struct Message {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part;
  msghdr header = {};
  explicit Message(CUipcMemHandle& handle) : part{&handle, sizeof handle} {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
};

int give(const char* path) {
  const sockaddr_un at = address_of(path);
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  begin();
  CUdeviceptr linear = 0;
  CUipcMemHandle handle = {};
  MUST(CU(cuMemAlloc_v2)(&linear, size));
  MUST(CU(cuMemsetD8_v2)(linear, 0x5a, size));
  MUST(CU(cuIpcGetMemHandle)(&handle, linear));
  const CUmemAllocationProp prop = exportable();
  CUmemGenericAllocationHandle piece = 0;
  int fd = -1;
  MUST(CU(cuMemCreate)(&piece, size, &prop, 0));
  MUST(CU(cuMemsetD8_v2)(mapped(piece), 0xa5, size));
  MUST(CU(cuMemExportToShareableHandle)(&fd, piece, kind, 0));
  MUST(CU(cuCtxSynchronize)());
  if (bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 || listen(listener, 1) != 0)
    fail(path);
  const int peer = accept(listener, nullptr, nullptr);
  Message message(handle);
  cmsghdr* header = CMSG_FIRSTHDR(&message.header);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  if (sendmsg(peer, &message.header, 0) != sizeof handle) fail("sendmsg");
  char end;
  return read(peer, &end, 1) == 0 ? 0 : 1;
}

bool holds(CUdeviceptr at, unsigned char value) {
  unsigned char ends[2] = {};
  MUST(CU(cuMemcpyDtoH_v2)(&ends[0], at, 1));
  MUST(CU(cuMemcpyDtoH_v2)(&ends[1], at + size - 1, 1));
  return ends[0] == value && ends[1] == value;
}

int take(const char* path) {
  const sockaddr_un at = address_of(path);
  begin();
  const int peer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int tries = 0;
  while (connect(peer, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
    if (++tries > 30'000 || usleep(1000) != 0) fail(path);
  CUipcMemHandle handle = {};
  Message message(handle);
  if (recvmsg(peer, &message.header, MSG_WAITALL) != sizeof handle ||
      CMSG_FIRSTHDR(&message.header) == nullptr)
    fail("recvmsg");
  int fd = -1;
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message.header)), sizeof fd);

  const size_t before = free_bytes();
  CUdeviceptr linear = 0;
  const CUresult ipc = CU(cuIpcOpenMemHandle_v2)(&linear, handle, 1);
  CUmemGenericAllocationHandle piece = 0;
  const CUresult descriptor =
      CU(cuMemImportFromShareableHandle)(&piece, reinterpret_cast<void*>(static_cast<intptr_t>(fd)), kind);
  bool right = true;
  if (ipc == CUDA_SUCCESS) right = holds(linear, 0x5a);
  if (descriptor == CUDA_SUCCESS) right = holds(mapped(piece), 0xa5) && right;
  printf("{\"ipc\": %d, \"descriptor\": %d, \"charged\": %zu}\n", static_cast<int>(ipc),
         static_cast<int>(descriptor), before - free_bytes());
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "give") == 0) return give(argv[2]);
  if (argc == 3 && strcmp(argv[1], "take") == 0) return take(argv[2]);
  fprintf(stderr, "pair give|take SOCKET\n");
  return 2;
}

// adverse_fuse_hang DIRECTORY ALLOCATE: a process of a slice whose files in /proc cannot be read. It maps a
// file of a FUSE file system whose server never answers a read. Another process reads that address through
// /proc/PID/mem and thereby holds the lock of the memory map, and a thread waits to change the map. From then
// on every reader of the process's cmdline, environ or maps waits until the process ends. If ALLOCATE is a
// path, the process first loads that libcuda without the guest library and allocates device memory, so that
// the agent has a reason to inspect it. Prints "ready PID" and keeps running.
//
// Exits with status 77 if /dev/fuse cannot be opened or mounts are not allowed.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "abi/cuda.h"

namespace {

constexpr int not_possible_here = 77;
constexpr uint64_t file_node = 2;
constexpr size_t file_bytes = 1 << 20;
constexpr uint64_t valid_seconds = 1000;

fuse_attr attributes_of(uint64_t node) {
  fuse_attr out{};
  out.ino = node;
  out.mode = node == file_node ? S_IFREG | 0644 : S_IFDIR | 0755;
  out.nlink = 1;
  out.size = file_bytes;
  return out;
}

template <class Body>
void reply(int device, uint64_t unique, const Body& body) {
  struct {
    fuse_out_header header;
    Body body;
  } message{{static_cast<uint32_t>(sizeof(fuse_out_header) + sizeof(Body)), 0, unique}, body};
  if (write(device, &message, message.header.len) < 0 && errno != ENOENT) _exit(1);
}

// Serves a directory with one file and never answers a read of it.
[[noreturn]] void serve(int device) {
  static char request[1 << 20];
  for (;;) {
    const ssize_t size = read(device, request, sizeof request);
    if (size < 0 && (errno == EINTR || errno == ENOENT)) continue;
    if (size < static_cast<ssize_t>(sizeof(fuse_in_header))) _exit(0);
    fuse_in_header header;
    memcpy(&header, request, sizeof header);
    switch (header.opcode) {
      case FUSE_INIT: {
        fuse_init_out out{};
        out.major = FUSE_KERNEL_VERSION;
        out.minor = 31;
        out.max_write = 4096;
        reply(device, header.unique, out);
        break;
      }
      case FUSE_LOOKUP: {
        fuse_entry_out out{};
        out.nodeid = file_node;
        out.entry_valid = out.attr_valid = valid_seconds;
        out.attr = attributes_of(file_node);
        reply(device, header.unique, out);
        break;
      }
      case FUSE_GETATTR: {
        fuse_attr_out out{};
        out.attr_valid = valid_seconds;
        out.attr = attributes_of(header.nodeid);
        reply(device, header.unique, out);
        break;
      }
      case FUSE_OPEN: {
        fuse_open_out out{};
        out.open_flags = FOPEN_KEEP_CACHE;
        reply(device, header.unique, out);
        break;
      }
      case FUSE_READ:
      case FUSE_FORGET:
      case FUSE_INTERRUPT: break;
      default: {
        const fuse_out_header refusal{sizeof(fuse_out_header), -ENOSYS, header.unique};
        if (write(device, &refusal, sizeof refusal) < 0 && errno != ENOENT) _exit(1);
      }
    }
  }
}

pid_t child(void (*run)(int), int argument) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  run(argument);
  _exit(0);
}

// Allocates 64 MiB on the device, like a program without the guest library.
bool take_memory(const char* libcuda) {
  void* driver = dlopen(libcuda, RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return false;
  const auto init = reinterpret_cast<decltype(&cuInit)>(dlsym(driver, "cuInit"));
  const auto create = reinterpret_cast<decltype(&cuCtxCreate_v2)>(dlsym(driver, "cuCtxCreate_v2"));
  const auto allocate = reinterpret_cast<decltype(&cuMemAlloc_v2)>(dlsym(driver, "cuMemAlloc_v2"));
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  return init(0) == CUDA_SUCCESS && create(&context, 0, 0) == CUDA_SUCCESS &&
         allocate(&memory, size_t{64} << 20) == CUDA_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string directory = argv[1];
  const int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device < 0) return not_possible_here;
  const std::string options = "fd=" + std::to_string(device) +
                              ",rootmode=40000,user_id=" + std::to_string(getuid()) +
                              ",group_id=" + std::to_string(getgid());
  if (mount("fuse", directory.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
    return not_possible_here;
  child([](int fd) { serve(fd); }, device);
  const int file = open((directory + "/file").c_str(), O_RDONLY | O_CLOEXEC);
  umount2(directory.c_str(), MNT_DETACH);
  close(device);
  if (argc > 2 && !take_memory(argv[2])) {
    fprintf(stderr, "no device memory from %s\n", argv[2]);
    return 1;
  }
  static void* const page = mmap(nullptr, file_bytes, PROT_READ, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) return 1;
  char memory[64];
  snprintf(memory, sizeof memory, "/proc/%d/mem", getpid());
  static const int own = open(memory, O_RDONLY | O_CLOEXEC);
  const pid_t self = getpid();
  printf("ready %d\n", self);
  fflush(stdout);
  child(
      [](int fd) {
        char byte;
        pread(fd, &byte, 1, reinterpret_cast<off_t>(page));
      },
      own);
  usleep(200'000);  // The reader has the lock; a waiting writer blocks all further readers.
  std::thread([] { mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }).join();
  return 0;
}

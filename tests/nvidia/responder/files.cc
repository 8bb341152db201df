// The responder: a library for LD_PRELOAD that makes the files of NVIDIA's kernel modules appear to exist and
// answers their ioctls (ioctls.h). Everything else is passed on to the kernel.
//
// A device file is a memory file of 1 MiB, so that it can be mapped. It is recognized by its inode, because a
// process may close or replace a descriptor without this library.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <atomic>

#include "exports.h"
#include "ioctls.h"
#include "machine.h"
#include "mappings.h"
#include "memory.h"
#include "trace.h"

namespace {

using responder::machine;

constexpr unsigned control_minor = 255, uvm_minor = 1000, no_minor = ~0u;
constexpr unsigned max_descriptors = 1024;
struct Opened {
  std::atomic<ino_t> inode;
  std::atomic<unsigned> minor;
};
Opened opened[max_descriptors];
// The device number of the file system of memory files; 0 before the first one is opened.
std::atomic<dev_t> device_of_files;

bool is_nvidias(const char* path) {
  constexpr const char* places[] = {"/dev/nvidia", "/proc/driver/nvidia", "/sys/module/nvidia"};
  for (const char* place : places)
    if (path != nullptr && strncmp(path, place, strlen(place)) == 0) return true;
  return false;
}

// Returns the minor number of a device file, or `no_minor` for any other path.
unsigned minor_of(const char* path) {
  constexpr size_t start = sizeof "/dev/nvidia" - 1;
  if (strncmp(path, "/dev/nvidia", start) != 0) return no_minor;
  if (strcmp(path + start, "ctl") == 0) return control_minor;
  if (strcmp(path + start, "-uvm") == 0) return uvm_minor;
  char* end = nullptr;
  const unsigned long index = strtoul(path + start, &end, 10);
  return end != path + start && *end == 0 && index < machine().gpu_count ? static_cast<unsigned>(index)
                                                                         : no_minor;
}

// Writes the content of a file of /proc or /sys. Returns false if there is no such file.
bool text_of(const char* path, char (&text)[256]) {
  const char* const name = strrchr(path, '/') + 1;
  text[0] = 0;
  if (strcmp(name, "params") == 0)
    snprintf(text, sizeof text,
             "ModifyDeviceFiles: 0\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n");
  if (strcmp(name, "initstate") == 0) snprintf(text, sizeof text, "live\n");
  if (strcmp(path, "/proc/driver/nvidia/version") == 0)
    snprintf(text, sizeof text, "NVRM version: NVIDIA UNIX x86_64 Kernel Module  %s\n", machine().version);
  return text[0] != 0;
}

int open_nvidias(const char* path) {
  const unsigned minor = minor_of(path);
  char text[256];
  if (minor == no_minor && !text_of(path, text)) {
    errno = ENOENT;
    return -1;
  }
  const int file = memfd_create(path, 0);
  if (file < 0) return -1;
  if (minor == no_minor) {
    if (write(file, text, strlen(text)) < 0) return -1;
    lseek(file, 0, SEEK_SET);
    return file;
  }
  struct stat status;
  if (file >= static_cast<int>(max_descriptors) || ftruncate(file, 1 << 20) != 0 ||
      fstat(file, &status) != 0) {
    close(file);
    errno = EMFILE;
    return -1;
  }
  device_of_files = status.st_dev;
  opened[file].minor = minor;
  opened[file].inode = status.st_ino;
  return file;
}

int open_file(const char* path, int flags, mode_t mode) {
  if (is_nvidias(path)) return open_nvidias(path);
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

FILE* open_stream(const char* path, const char* mode, const char* symbol) {
  if (is_nvidias(path)) {
    const int file = open_nvidias(path);
    return file < 0 ? nullptr : fdopen(file, mode);
  }
  using Open = FILE* (*)(const char*, const char*);
  return reinterpret_cast<Open>(dlvsym(RTLD_NEXT, symbol, "GLIBC_2.2.5"))(path, mode);
}

int status_of(const char* path, struct stat* status) {
  if (!is_nvidias(path)) return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, status, 0));
  const unsigned minor = minor_of(path);
  if (minor == no_minor) {
    errno = ENOENT;
    return -1;
  }
  *status = {};
  status->st_mode = S_IFCHR | 0666;
  status->st_rdev = minor == uvm_minor ? makedev(511, 0) : makedev(195, minor);
  return 0;
}

// Returns the minor number of a descriptor that open_nvidias() created, or of a duplicate of it.
unsigned minor_of(int file) {
  struct stat status;
  if (file < 0 || device_of_files.load() == 0 || fstat(file, &status) != 0 ||
      status.st_dev != device_of_files.load())
    return no_minor;
  if (file < static_cast<int>(max_descriptors) && opened[file].inode == status.st_ino)
    return opened[file].minor;
  for (const Opened& one : opened)
    if (one.inode == status.st_ino) return one.minor;
  return no_minor;
}

}  // namespace

#define VISIBLE extern "C" __attribute__((visibility("default")))

VISIBLE int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return open_file(path, flags, mode);
}

VISIBLE int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return open_file(path, flags | O_LARGEFILE, mode);
}

VISIBLE FILE* fopen(const char* path, const char* mode) { return open_stream(path, mode, "fopen"); }
VISIBLE FILE* fopen64(const char* path, const char* mode) { return open_stream(path, mode, "fopen64"); }

VISIBLE int access(const char* path, int mode) {
  char text[256];
  if (!is_nvidias(path)) return static_cast<int>(syscall(SYS_access, path, mode));
  if (minor_of(path) != no_minor || text_of(path, text)) return 0;
  errno = ENOENT;
  return -1;
}

VISIBLE int stat(const char* path, struct stat* status) { return status_of(path, status); }
VISIBLE int stat64(const char* path, struct stat64* status) {
  return status_of(path, reinterpret_cast<struct stat*>(status));
}
// The same for libraries built against glibc before 2.33.
VISIBLE int __xstat(int, const char* path, struct stat* status) { return status_of(path, status); }
VISIBLE int __xstat64(int, const char* path, struct stat64* status) {
  return status_of(path, reinterpret_cast<struct stat*>(status));
}

// Maps the memory object if NV_ESC_RM_MAP_MEMORY announced one. A mapping of nvidia-uvm is managed memory,
// for which the device uses the process's own pages.
VISIBLE void* mmap(void* address, size_t length, int protection, int flags, int file, off_t offset) noexcept {
  const unsigned minor = minor_of(file);
  responder::Pending pending;
  if (minor != no_minor && minor != uvm_minor && responder::take_pending(file, pending)) {
    file = responder::memory_file();
    offset = static_cast<off_t>(pending.offset);
  } else if (minor == uvm_minor) {
    file = -1;
    offset = 0;
    flags = (flags & ~MAP_TYPE) | MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE;
  }
  const long mapped = syscall(SYS_mmap, address, length, protection, flags, file, offset);
  if (minor == uvm_minor && mapped != -1) responder::map_managed(static_cast<uint64_t>(mapped), length);
  return reinterpret_cast<void*>(mapped);
}
VISIBLE void* mmap64(void* address, size_t length, int protection, int flags, int file,
                     off_t offset) noexcept {
  return mmap(address, length, protection, flags, file, offset);
}

VISIBLE int munmap(void* address, size_t length) noexcept {
  responder::unmap_managed(reinterpret_cast<uint64_t>(address), length);
  return static_cast<int>(syscall(SYS_munmap, address, length));
}

// No event is ever pending on a device file. (A memory file is always readable, so the driver's thread for
// errors would spin.)
VISIBLE int poll(pollfd* files, nfds_t count, int timeout) {
  if (count > max_descriptors) return static_cast<int>(syscall(SYS_poll, files, count, timeout));
  pollfd others[max_descriptors];
  for (nfds_t i = 0; i < count; ++i) {
    others[i] = files[i];
    if (minor_of(files[i].fd) != no_minor) others[i].fd = -1;
  }
  const int result = static_cast<int>(syscall(SYS_poll, others, count, timeout));
  for (nfds_t i = 0; i < count; ++i) files[i].revents = others[i].revents;
  return result;
}

VISIBLE int close(int file) {
  responder::forget_export(file);
  return static_cast<int>(syscall(SYS_close, file));
}

VISIBLE int ioctl(int file, unsigned long command, ...) noexcept {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  const unsigned minor = minor_of(file);
  if (minor == no_minor) return static_cast<int>(syscall(SYS_ioctl, file, command, argument));
  const bool is_uvm = minor == uvm_minor;
  const auto number = static_cast<unsigned>(is_uvm ? command : _IOC_NR(command));
  responder::trace("<", file, is_uvm, number, _IOC_SIZE(command), argument);
  const int result = responder::answer_ioctl(is_uvm, command, argument);
  responder::trace(">", file, is_uvm, number, _IOC_SIZE(command), argument);
  if (result >= 0) return result;
  errno = -result;
  return -1;
}

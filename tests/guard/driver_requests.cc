#include "driver_requests.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace guard_test {
namespace {

struct Alloc {
  uint32_t root, parent, object, class_number;
  uint64_t parameters, rights;
  uint32_t bytes, flags, status, pad;
};
static_assert(sizeof(Alloc) == 48);

// Memory below 4 GiB, which a 32-bit system call can name.
char* low_memory() {
  static thread_local char* const page = static_cast<char*>(mmap(
      nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT | MAP_POPULATE, -1, 0));
  return page;
}

long system_call(int fd, unsigned long command, void* argument) {
  return ioctl(fd, command, argument) == 0 ? 0 : -errno;
}
long system_call_32(int fd, unsigned long command, void* argument) {
  long result = 54;
  asm volatile("int $0x80"
               : "+a"(result)
               : "b"(static_cast<long>(fd)), "c"(command), "d"(argument)
               : "memory", "r8", "r9", "r10", "r11");
  return static_cast<int>(result);
}
unsigned long command_of(uint32_t escape, uint32_t bytes) {
  return _IOC(_IOC_READ | _IOC_WRITE, 'F', escape, bytes);
}

// NV_MEMORY_ALLOCATION_PARAMS
struct MemoryParameters {
  uint64_t words[16] = {};
  explicit MemoryParameters(uint64_t bytes) { words[8] = bytes; }
};

}  // namespace

long request(int fd, uint32_t escape, void* parameters, uint32_t bytes, Entry entry) {
  if (entry == Entry::native) return system_call(fd, command_of(escape, bytes), parameters);
  if (entry == Entry::compat) {
    memcpy(low_memory(), parameters, bytes);
    const long result = system_call_32(fd, command_of(escape, bytes), low_memory());
    memcpy(parameters, low_memory(), bytes);
    return result;
  }
  struct {
    uint32_t number, bytes;
    void* parameters;
  } inner{escape, bytes, parameters};
  return system_call(fd, command_of(211, sizeof inner), &inner);
}

Driver Driver::open(const std::string& control_path, const std::string& node_path, uint32_t instance) {
  Driver out;
  out.control = ::open(control_path.c_str(), O_RDWR);
  if (out.control < 0) out.trouble = -errno;
  out.node = ::open(node_path.c_str(), O_RDWR);
  if (out.node < 0 && out.trouble == 0) out.trouble = -errno;
  if (out.trouble != 0) return out;
  out.trouble = system_call(out.node, command_of(201, 4), &out.control);
  if (out.trouble == 0) out.trouble = out.alloc_class(client, client, 0x41);
  if (out.trouble != 0) return out;
  uint32_t nested[14] = {instance};
  Alloc asked{client, client, device_handle, 0x80, reinterpret_cast<uint64_t>(nested), 0, 56, 0, 0, 0};
  const long result = request(out.control, 0x2b, &asked, sizeof asked, Entry::native);
  out.trouble = result != 0 ? result : asked.status;
  return out;
}

long Driver::alloc(uint32_t handle, uint64_t bytes, Entry entry) const {
  MemoryParameters nested(bytes);
  Alloc asked{client, device_handle, handle, 0x40, reinterpret_cast<uint64_t>(&nested), 0, 128, 0, 0, 0};
  const long result = request(control, 0x2b, &asked, sizeof asked, entry);
  return result != 0 ? result : asked.status;
}

long Driver::alloc_short(uint32_t handle, uint64_t bytes) const {
  MemoryParameters nested(bytes);
  struct {
    uint32_t root, parent, object, class_number;
    uint64_t parameters;
    uint32_t bytes, status;
  } asked{client, device_handle, handle, 0x40, reinterpret_cast<uint64_t>(&nested), 120, 0};
  static_assert(sizeof asked == 32);
  const long result = request(control, 0x2b, &asked, sizeof asked, Entry::native);
  return result != 0 ? result : asked.status;
}

long Driver::alloc_memory(uint32_t handle, uint64_t bytes) const {
  uint32_t words[14] = {client, device_handle, handle, 0x40};
  const uint64_t limit = bytes - 1;
  memcpy(words + 8, &limit, 8);
  const long result = request(control, 0x27, words, sizeof words, Entry::native);
  return result != 0 ? result : words[10];
}

long Driver::heap_alloc(uint32_t handle, uint64_t bytes) const {
  uint32_t words[46] = {client, device_handle, 2};
  words[11] = handle;
  memcpy(words + 22, &bytes, 8);
  const long result = request(control, 0x4a, words, sizeof words, Entry::native);
  return result != 0 ? result : words[5];
}

long Driver::alloc_unread(uint32_t handle, uint64_t bytes) const {
  const int file = memfd_create("parameters", 0);
  const MemoryParameters nested(bytes);
  if (write(file, &nested, sizeof nested) != static_cast<ssize_t>(sizeof nested)) return -EIO;
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  const long result = alloc_at(handle, page);
  munmap(page, 4096);
  return result;
}

long Driver::alloc_at(uint32_t handle, void* parameters) const {
  Alloc asked{client, device_handle, handle, 0x40, reinterpret_cast<uint64_t>(parameters), 0, 128, 0, 0, 0};
  const long result = request(control, 0x2b, &asked, sizeof asked, Entry::native);
  return result != 0 ? result : asked.status;
}

long Driver::alloc_class(uint32_t handle, uint32_t parent, uint32_t class_number, uint32_t flags) const {
  MemoryParameters nested(1 << 20);
  Alloc asked{client, parent, handle, class_number, reinterpret_cast<uint64_t>(&nested), 0, 128, flags, 0, 0};
  const long result = request(control, 0x2b, &asked, sizeof asked, Entry::native);
  return result != 0 ? result : asked.status;
}

long Driver::free(uint32_t handle) const {
  uint32_t words[4] = {client, device_handle, handle, 0};
  const long result = request(control, 0x29, words, sizeof words, Entry::native);
  return result != 0 ? result : words[3];
}

long Driver::dup(uint32_t handle, uint32_t from) const {
  uint32_t words[7] = {client, device_handle, handle, client, from, 0, 0};
  const long result = request(control, 0x34, words, sizeof words, Entry::native);
  return result != 0 ? result : words[6];
}

long Driver::control_call(uint32_t command, Entry entry) const {
  uint32_t words[8] = {client, device_handle, command};
  const long result = request(control, 0x2a, words, sizeof words, entry);
  return result != 0 ? result : words[7];
}

}  // namespace guard_test

// Requests to NVIDIA's kernel driver as a program without libcuda makes them, for the attacks on the kernel
// guard. Each returns 0, the driver's status, or -errno if the kernel refused the ioctl.
#pragma once

#include <cstdint>
#include <string>

namespace guard_test {

inline constexpr uint32_t client = 0xc1d00001, device_handle = 0x5c000001;
inline constexpr uint32_t status_no_memory = 0x51;

// How an ioctl reaches the driver.
enum class Entry {
  native,    // A 64-bit system call.
  compat,    // A 32-bit system call.
  transfer,  // Inside escape 211.
};

// An open control node with one client and one device.
class Driver {
 public:
  // Opens the nodes with these paths; the device is the driver's number `instance`.
  static Driver open(const std::string& control, const std::string& node, uint32_t instance);

  bool is_ready() const { return trouble == 0; }
  int control = -1, node = -1;
  long trouble = 0;  // The first result that is not 0.

  long alloc(uint32_t handle, uint64_t bytes, Entry entry = Entry::native) const;  // NVOS64, class 0x40
  long alloc_short(uint32_t handle, uint64_t bytes) const;                         // NVOS21
  long alloc_memory(uint32_t handle, uint64_t bytes) const;                        // NVOS02
  long heap_alloc(uint32_t handle, uint64_t bytes) const;                          // NVOS32
  // The size is in a page that is not in memory yet.
  long alloc_unread(uint32_t handle, uint64_t bytes) const;
  // The size is where `parameters` points, which another thread may change.
  long alloc_at(uint32_t handle, void* parameters) const;
  long alloc_class(uint32_t handle, uint32_t parent, uint32_t class_number, uint32_t flags = 0) const;
  long free(uint32_t handle) const;
  long dup(uint32_t handle, uint32_t from) const;
  long control_call(uint32_t command, Entry entry = Entry::native) const;
};

// An ioctl through one of the entries.
long request(int fd, uint32_t escape, void* parameters, uint32_t bytes, Entry entry);

}  // namespace guard_test

// The memory of a program for tests of the guard's ioctl rules, in pages of 4 KiB. A page that is not present
// cannot be read, as in a BPF program. Defines the reader of ioctl_rules.h.
#pragma once

#include <linux/types.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>

namespace carve::node {

class ProgramMemory {
 public:
  static inline ProgramMemory* current = nullptr;  // From which guard_read_program() reads.

  void put(uint64_t address, const void* from, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i)
      pages_[(address + i) >> 12][(address + i) & 4095] = static_cast<const uint8_t*>(from)[i];
  }
  void put32(uint64_t address, uint32_t value) { put(address, &value, sizeof value); }
  void put64(uint64_t address, uint64_t value) { put(address, &value, sizeof value); }
  void remove(uint64_t address) { pages_.erase(address >> 12); }

  long read(void* to, size_t bytes, uint64_t address) const {
    for (size_t i = 0; i < bytes; ++i) {
      const auto page = pages_.find((address + i) >> 12);
      if (page == pages_.end()) return -14;  // EFAULT
      static_cast<uint8_t*>(to)[i] = page->second[(address + i) & 4095];
    }
    return 0;
  }

 private:
  std::map<uint64_t, std::array<uint8_t, 4096>> pages_;
};

}  // namespace carve::node

static inline __attribute__((always_inline)) long guard_read_program(void* to, __u32 bytes, __u64 from) {
  return carve::node::ProgramMemory::current->read(to, bytes, from);
}

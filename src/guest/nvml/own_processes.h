// Narrows a list of processes to the slice's own, with their pids inside the slice. The driver's whole list
// is fetched into mmap'd pages, because the caller's array may be too small for all processes on the device.
// Otherwise the rules of the call apply: if the array is too small, the call returns the number of entries.
#pragma once

#include <sys/mman.h>

#include <algorithm>

#include "guest/nvml/slice_devices.h"

namespace carve::guest {

// Space for the driver's list. Monitors call rarely, so the space is mapped for each call and unmapped
// afterwards.
template <class Item>
class Scratch {
 public:
  explicit Scratch(unsigned capacity) : capacity_(capacity) {
    void* pages =
        mmap(nullptr, capacity * sizeof(Item), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    items_ = pages == MAP_FAILED ? nullptr : static_cast<Item*>(pages);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (items_ != nullptr) munmap(items_, capacity_ * sizeof(Item));
  }
  Item* items() const { return items_; }

 private:
  unsigned capacity_;
  Item* items_;
};

// `list(&count, items)` is the driver's call. `empty` is the result to return if there are no processes.
template <class Item, class List>
nvmlReturn_t own(const Process& p, unsigned int* count, Item* items, nvmlReturn_t empty, List list) {
  // The list may grow between two calls. The attempts are limited, in case the driver's list never fits.
  unsigned capacity = 256;
  for (int attempt = 0; attempt < 6; ++attempt) {
    const Scratch<Item> all(capacity);
    if (all.items() == nullptr) return NVML_ERROR_MEMORY;
    unsigned found = capacity;
    const nvmlReturn_t result = list(&found, all.items());
    if (result == NVML_ERROR_INSUFFICIENT_SIZE) {
      capacity = std::min(std::max(found, capacity) * 2, 1u << 20);
      continue;
    }
    if (result != NVML_SUCCESS) return result;
    unsigned this_thread = 0;
    for (unsigned i = 0; i < std::min(found, capacity); ++i) {
      const uint32_t pid = own_pid(p, all.items()[i].pid);
      if (pid == 0) continue;
      if (items != nullptr && this_thread < *count) {
        items[this_thread] = all.items()[i];
        items[this_thread].pid = pid;
      }
      ++this_thread;
    }
    const bool fits = this_thread == 0 || (items != nullptr && this_thread <= *count);
    *count = this_thread;
    return this_thread == 0 ? empty : fits ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
  }
  return NVML_ERROR_INSUFFICIENT_SIZE;
}

}  // namespace carve::guest

#include "sim/libcuda/imported.h"

#include <map>

#include "sim/libcuda/heap.h"

namespace carve::sim {
namespace {

struct Import {
  std::shared_ptr<Shared> segment;
  uint64_t length = 0;
  unsigned users = 0;
};
struct Imports {
  std::mutex mutex;
  std::map<uint64_t, Import> at;
};
Imports& imports() {
  static auto* all = new Imports;
  return *all;
}

}  // namespace

CUresult import_attach(const std::shared_ptr<Shared>& segment, uint64_t* base) {
  const std::lock_guard lock(imports().mutex);
  for (auto& [where, known] : imports().at)
    if (known.segment == segment) {
      ++known.users;
      *base = where;
      return CUDA_SUCCESS;
    }
  const uint64_t length =
      (segment->bytes() + memory_block_bytes - 1) / memory_block_bytes * memory_block_bytes;
  *base = heap_take_range(length);
  if (!*base) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!heap_attach(*base, segment->base(), segment->bytes(), false)) {
    heap_give_range(*base, length);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  imports().at[*base] = {segment, length, 1};
  return CUDA_SUCCESS;
}

void import_detach(uint64_t base) {
  Import dying;  // Destroyed after the lock is released.
  const std::lock_guard lock(imports().mutex);
  const auto found = imports().at.find(base);
  if (found == imports().at.end() || --found->second.users) return;
  dying = std::move(found->second);
  imports().at.erase(found);
  heap_detach(base, dying.length);
  heap_give_range(base, dying.length);
}

}  // namespace carve::sim

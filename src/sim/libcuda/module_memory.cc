#include "sim/libcuda/module_memory.h"

#include <algorithm>
#include <cstring>

#include "sim/libcuda/heap.h"
#include "sim/libcuda/schedule.h"

namespace carve::sim {
namespace {

constexpr uint64_t step_bytes = 512;
// No machine code is generated here. A module's code counts with the length of the image that describes it,
// and with at least this many bytes per kernel.
constexpr uint64_t min_code_bytes = 1024;

constexpr uint64_t rounded(uint64_t n) { return (n + step_bytes - 1) / step_bytes * step_bytes; }

uint64_t code_bytes(const Image& image) {
  return rounded(std::max(image.code_bytes, image.kernels.size() * min_code_bytes));
}

// Returns the offset of a variable, which follows the code, or the end of the last variable if `wanted` is
// null.
uint64_t offset_of(const Image& image, const GlobalImage* wanted) {
  uint64_t at = code_bytes(image);
  for (const GlobalImage& g : image.globals) {
    if (&g == wanted) break;
    at += rounded(g.bytes);
  }
  return at;
}

std::mutex& placing() {
  static auto* m = new std::mutex;
  return *m;
}

}  // namespace

CUresult place_module(CUmod_st& m, CUctx_st& c) {
  const std::lock_guard lock(placing());
  if (m.placed.contains(c.id)) return CUDA_SUCCESS;
  for (const GlobalImage& g : m.image.globals)
    if (g.bytes > 1ull << 40) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t bytes = offset_of(m.image, nullptr);
  uint64_t base = 0;
  if (bytes)
    if (const CUresult e = heap_allocate_code(c, bytes, &base)) return e;
  for (const GlobalImage& g : m.image.globals) {
    const uint64_t at = base + offset_of(m.image, &g);
    if (bytes <= memory_block_bytes)
      std::memset(heap_raw(at), 0, g.bytes);  // Larger variables have their own pages.
    heap_record({.base = at, .bytes = g.bytes, .context = &c, .device = c.device, .kind = Memory::variable});
  }
  m.placed[c.id] = {&c, base};
  return CUDA_SUCCESS;
}

CUdeviceptr variable_at(CUmod_st& m, const CUctx_st& c, const GlobalImage& g) {
  const std::lock_guard lock(placing());
  const auto found = m.placed.find(c.id);
  return found == m.placed.end() ? 0 : found->second.base + offset_of(m.image, &g);
}

void remove_module(CUmod_st& m) {
  for (const auto& [id, place] : m.placed) {
    const auto c = find_context(place.context);
    if (!c || c->id != id) continue;  // The context was destroyed, which released all of its memory.
    wait_idle(*c);
    HeapRecord a;
    for (const GlobalImage& g : m.image.globals)
      heap_strike(place.base + offset_of(m.image, &g), Memory::variable, &a);
    if (place.base) heap_free(place.base, Memory::code, Memory::code);
  }
}

}  // namespace carve::sim

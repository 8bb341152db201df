// The copy engine (class/clc7b5.h): copies of lines, fills by the remap unit, and the semaphore.
#include <string.h>

#include <algorithm>

#include "engines.h"
#include "memory.h"

namespace responder {
namespace {

enum Method : uint32_t {
  semaphore_high = 0x240 / 4,
  semaphore_low = 0x244 / 4,
  payload_low = 0x248 / 4,
  payload_high = 0x24c / 4,
  launch = 0x300 / 4,
  in_high = 0x400 / 4,
  in_low = 0x404 / 4,
  out_high = 0x408 / 4,
  out_low = 0x40c / 4,
  pitch_in = 0x410 / 4,
  pitch_out = 0x414 / 4,
  line_length = 0x418 / 4,
  line_count = 0x41c / 4,
  remap_constant = 0x700 / 4,
  remap_components = 0x708 / 4,
  out_surface = 0x70c / 4,
  in_surface = 0x728 / 4,
};

constexpr uint32_t max_pixel = 16;

// SET_REMAP_COMPONENTS: each component of a destination element is a component of the source element or a
// constant.
struct Remap {
  uint32_t size, source, destination;  // Bytes per component; components per element.
  uint32_t selection[4];
  uint32_t constants[2];
};

Remap remap_of(const Subchannel& at) {
  const uint32_t r = at.registers[remap_components];
  return {(r >> 16 & 3) + 1,
          (r >> 20 & 3) + 1,
          (r >> 24 & 3) + 1,
          {r & 7, r >> 4 & 7, r >> 8 & 7, r >> 12 & 7},
          {at.registers[remap_constant], at.registers[remap_constant + 1]}};
}

bool reads_source(const Remap& m) {
  for (uint32_t i = 0; i < m.destination; ++i)
    if (m.selection[i] < 4) return true;
  return false;
}

// Writes one element. Returns false if an address is not mapped.
bool write_element(const Remap& m, uint64_t to, uint64_t from) {
  uint8_t source[max_pixel] = {};
  const uint8_t* const in = reads_source(m) ? bytes_at(from, m.source * m.size) : source;
  if (in == nullptr) return false;
  for (uint32_t i = 0; i < m.destination; ++i) {
    const uint32_t chosen = m.selection[i];
    if (chosen > 5) continue;  // NO_WRITE
    uint8_t* const out = bytes_at(to + i * m.size, m.size);
    if (out == nullptr) return false;
    memcpy(out, chosen < 4 ? static_cast<const void*>(in + chosen * m.size) : &m.constants[chosen - 4],
           m.size);
  }
  return true;
}

// Fills a line whose elements contain only constants: writes one element, then copies what was written.
bool fill_line(const Remap& m, uint64_t to, uint64_t elements) {
  const uint64_t element = m.destination * m.size;
  uint8_t pattern[max_pixel];
  for (uint32_t i = 0; i < m.destination; ++i) {
    if (m.selection[i] < 4 || m.selection[i] > 5) return false;
    memcpy(pattern + i * m.size, &m.constants[m.selection[i] - 4], m.size);
  }
  uint8_t block[4096];
  const uint64_t in_block = sizeof block / element;
  for (uint64_t i = 0; i < in_block; ++i) memcpy(block + i * element, pattern, element);
  for (uint64_t done = 0; done < elements; done += in_block)
    if (!write_bytes(to + done * element, block, std::min(in_block, elements - done) * element)) return false;
  return true;
}

bool remap_line(const Remap& m, uint64_t to, uint64_t from, uint64_t elements) {
  if (fill_line(m, to, elements)) return true;
  for (uint64_t i = 0; i < elements; ++i)
    if (!write_element(m, to + i * m.destination * m.size, from + i * m.source * m.size)) return false;
  return true;
}

// One side of a transfer. A surface in blocks (the layout of CUDA arrays) is stored row by row, because only
// this engine reads it and rows need no more bytes than blocks.
struct Side {
  uint64_t address, pitch;
  // The registers from SET_*_BLOCK_SIZE on contain the width, height, depth, layer and origin.
  Side(const Subchannel& at, Method high, Method pitch_method, Method surface, bool in_blocks,
       uint64_t element) {
    const uint32_t* const r = at.registers;
    address = uint64_t{r[high] & 0x1ffff} << 32 | r[high + 1];
    pitch = static_cast<uint64_t>(static_cast<int32_t>(r[pitch_method]));
    if (!in_blocks) return;
    const uint64_t width = r[surface + 1] * element, height = r[surface + 2];
    const uint64_t x = (r[surface + 5] & 0xffff) * element, y = r[surface + 5] >> 16;
    pitch = width;
    address += (r[surface + 4] * height + y) * width + x;
  }
};

bool transfer(const Subchannel& at, uint32_t flags) {
  const bool is_remapped = (flags >> 10 & 1) != 0, has_lines = (flags >> 9 & 1) != 0;
  const bool in_blocks = (flags >> 7 & 1) == 0, out_blocks = (flags >> 8 & 1) == 0;
  const Remap remap = remap_of(at);
  const Side in(at, in_high, pitch_in, in_surface, in_blocks, is_remapped ? remap.source * remap.size : 1);
  const Side out(at, out_high, pitch_out, out_surface, out_blocks,
                 is_remapped ? remap.destination * remap.size : 1);
  const uint64_t length = at.registers[line_length], lines = has_lines ? at.registers[line_count] : 1;
  for (uint64_t i = 0; i < lines; ++i) {
    const uint64_t to = out.address + i * out.pitch, from = in.address + i * in.pitch;
    if (is_remapped ? !remap_line(remap, to, from, length) : !copy_bytes(to, from, length)) return false;
  }
  return true;
}

}  // namespace

Outcome execute_copy(Subchannel& at, uint32_t method, uint32_t data) {
  if (method != launch) return Outcome::done;
  if ((data & 3) != 0 && !transfer(at, data)) return Outcome::fault;
  const uint32_t kind = data >> 3 & 3;
  if (kind == 0) return Outcome::done;
  const uint32_t* const r = at.registers;
  const bool is_long = (data >> 27 & 1) != 0;
  const uint64_t payload = r[payload_low] | (is_long ? uint64_t{r[payload_high]} << 32 : 0);
  return release_semaphore(uint64_t{r[semaphore_high] & 0x1ffff} << 32 | r[semaphore_low], payload, is_long,
                           kind == 2);
}

}  // namespace responder

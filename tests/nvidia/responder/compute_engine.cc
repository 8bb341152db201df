// The compute engine (class/clc7c0.h): inline data and semaphores. Kernels end at once.
#include <algorithm>

#include "engines.h"

namespace responder {
namespace {

enum Method : uint32_t {
  payload_low = 0x158 / 4,
  payload_high = 0x15c / 4,
  semaphore_low = 0x160 / 4,
  semaphore_high = 0x164 / 4,
  semaphore_execute = 0x168 / 4,
  line_length = 0x180 / 4,
  line_count = 0x184 / 4,
  out_high = 0x188 / 4,
  out_low = 0x18c / 4,
  launch_inline = 0x1b0 / 4,
  inline_data = 0x1b4 / 4,
  report_high = 0x1b00 / 4,
  report_low = 0x1b04 / 4,
  report_payload = 0x1b08 / 4,
  report_execute = 0x1b0c / 4,
};

Outcome write_inline(Subchannel& at, uint32_t data) {
  const uint64_t size = std::min<uint64_t>(at.inline_left, sizeof data);
  if (!write_bytes(at.inline_address, &data, size)) return Outcome::fault;
  at.inline_address += size;
  at.inline_left -= size;
  return Outcome::done;
}

}  // namespace

Outcome execute_compute(Subchannel& at, uint32_t method, uint32_t data) {
  const uint32_t* const r = at.registers;
  switch (method) {
    case launch_inline:
      at.inline_address = uint64_t{r[out_high] & 0x1ffff} << 32 | r[out_low];
      at.inline_left = uint64_t{r[line_length]} * r[line_count];
      return Outcome::done;
    case inline_data: return write_inline(at, data);
    case semaphore_execute: {
      if ((data & 3) == 3) return Outcome::done;  // TRAP
      const bool is_long = (data >> 12 & 1) != 0;
      const uint64_t payload = r[payload_low] | (is_long ? uint64_t{r[payload_high]} << 32 : 0);
      const uint64_t address = uint64_t{r[semaphore_high] & 0xff} << 32 | r[semaphore_low];
      return release_semaphore(address, payload, is_long, (data >> 3 & 3) == 0);
    }
    case report_execute: {
      if ((data & 3) == 3) return Outcome::done;  // TRAP
      const uint64_t address = uint64_t{r[report_high] & 0xff} << 32 | r[report_low];
      return release_semaphore(address, r[report_payload], false, (data >> 28 & 1) == 0);
    }
    default: return Outcome::done;
  }
}

}  // namespace responder

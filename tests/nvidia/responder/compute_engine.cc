// The compute engine (class/clc7c0.h): inline data, semaphores, and kernels. A kernel ends immediately and
// only writes the semaphores in its description, except for libcuda's own kernels (driver_kernels.h).
// Descriptions (QMD) have version 3, see NVIDIA/open-gpu-doc classes/compute/clc9c0qmd.h.
#include <string.h>

#include <algorithm>
#include <iterator>

#include "driver_kernels.h"
#include "engines.h"
#include "memory.h"

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
  kernel_address = 0x2b4 / 4,
  kernel_action = 0x2c0 / 4,
  inline_kernel_high = 0x318 / 4,
  inline_kernel_low = 0x31c / 4,
  inline_kernel_first = 0x320 / 4,
  inline_kernel_last = 0x41c / 4,
  report_high = 0x1b00 / 4,
  report_low = 0x1b04 / 4,
  report_payload = 0x1b08 / 4,
  report_execute = 0x1b0c / 4,
};

constexpr uint32_t kernel_words = 64, max_chain = 1 << 16;

Outcome write_inline(Subchannel& at, uint32_t data) {
  const uint64_t size = std::min<uint64_t>(at.inline_left, sizeof data);
  if (!write_bytes(at.inline_address, &data, size)) return Outcome::fault;
  at.inline_address += size;
  at.inline_left -= size;
  return Outcome::done;
}

// QMDV03_00_RELEASE0 to 2: the address, how to write, and the payload. Structure size 0 is the one with a
// time.
Outcome release_at_end(const uint32_t* release) {
  const uint32_t how = release[1];
  if ((how >> 23 & 1) == 0) return Outcome::done;
  const uint64_t address = uint64_t{how & 0xff} << 32 | release[0];
  const bool is_long = (how >> 29 & 1) != 0;
  uint64_t payload = release[2] | (is_long ? uint64_t{release[3]} << 32 : 0);
  const bool is_reduced = (how >> 26 & 1) != 0, is_added = (how >> 20 & 7) == 0;
  if (is_reduced && !is_added) return Outcome::fault;
  if (is_reduced) {
    const uint8_t* const old = bytes_at(address, 4);
    uint32_t value = 0;
    if (old != nullptr) memcpy(&value, old, sizeof value);
    payload += value;
  }
  return release_semaphore(address, payload, is_long, (how >> 30 & 3) == 0);
}

struct Kernel {
  uint32_t words[kernel_words];
  uint64_t address_in(uint32_t word) const { return uint64_t{words[word + 1] & 0x1ffff} << 32 | words[word]; }
};

bool read_kernel(uint64_t address, Kernel& kernel) {
  constexpr uint32_t version = 18;
  const uint8_t* const at = bytes_at(address, sizeof kernel);
  if (at == nullptr) return false;
  memcpy(&kernel, at, sizeof kernel);
  return (kernel.words[version] >> 4 & 0xf) == 3;
}

// Ends a kernel: carries out its effect and then writes its semaphores.
Outcome end_kernel(const Kernel& kernel) {
  constexpr uint32_t grid = 12, constants = 32, program = 48, releases[] = {24, 28, 52};
  constexpr uint64_t first_parameter = 0x160;  // Offset in the first constant buffer.
  const uint32_t blocks = kernel.words[grid], rows = kernel.words[grid + 1] & 0xffff;
  if (!run_driver_kernel(kernel.address_in(program), kernel.address_in(constants) + first_parameter, blocks,
                         rows))
    return Outcome::fault;
  for (const uint32_t release : releases)
    if (release_at_end(kernel.words + release) != Outcome::done) return Outcome::fault;
  return Outcome::done;
}

// Counts an arrival in HW_ONLY_DEPENDENCE_COUNTER (QMDV03_00_DEPENDENCE_COUNTER), and returns whether all
// dependencies have arrived.
bool has_all_dependencies(uint64_t address, const Kernel& kernel) {
  constexpr uint32_t arrived_word = 61;
  const uint32_t wanted = kernel.words[4] >> 14 & 0xffff, arrived = (kernel.words[arrived_word] & 0xffff) + 1;
  const uint32_t next = arrived >= wanted ? 0 : arrived;
  return write_bytes(address + 4 * arrived_word, &next, sizeof next) && next == 0;
}

// Runs the kernel that is described at a GPU address, and the chain of kernels that depend on it
// (DEPENDENT_QMD0), as in the nodes of a graph. No use of a second dependent is known.
Outcome run_kernels(uint64_t address) {
  constexpr uint32_t schedule = 1, copy_and_schedule = 3, decrement = 4, second_enabled = 1 << 5;
  for (uint32_t i = 0; i < max_chain; ++i) {
    Kernel kernel;
    if (!read_kernel(address, kernel) || end_kernel(kernel) != Outcome::done) return Outcome::fault;
    const uint32_t dependent = kernel.words[16], action = dependent >> 1 & 7;
    if ((dependent & second_enabled) != 0) return Outcome::fault;
    if ((dependent & 1) == 0) return Outcome::done;
    address = uint64_t{kernel.words[15]} << 8;
    const bool counts =
        action == decrement && read_kernel(address, kernel) && has_all_dependencies(address, kernel);
    if (action != schedule && action != copy_and_schedule && !counts) return Outcome::done;
  }
  return Outcome::fault;
}

// Returns whether the action (SEND_SIGNALING_PCAS2_B) schedules the kernel. Invalidations and prefetches have
// no effect.
bool schedules(uint32_t action) {
  constexpr uint32_t scheduling[] = {2, 3, 9, 10, 11};
  return std::find(std::begin(scheduling), std::end(scheduling), action) != std::end(scheduling);
}

Outcome load_kernel(const Subchannel& at, uint32_t method, uint32_t data) {
  const uint32_t* const r = at.registers;
  const uint64_t address = (uint64_t{r[inline_kernel_high]} << 32 | r[inline_kernel_low]) << 8;
  if (!write_bytes(address + 4 * uint64_t{method - inline_kernel_first}, &data, sizeof data))
    return Outcome::fault;
  if (method != inline_kernel_last) return Outcome::done;
  Kernel kernel;
  if (!read_kernel(address, kernel)) return Outcome::fault;
  const bool is_scheduled_later = (kernel.words[4] >> 12 & 1) != 0;  // QMDV03_00_REQUIRE_SCHEDULING_PCAS
  return is_scheduled_later ? Outcome::done : run_kernels(address);
}

}  // namespace

Outcome execute_compute(Subchannel& at, uint32_t method, uint32_t data) {
  const uint32_t* const r = at.registers;
  if (method >= inline_kernel_first && method <= inline_kernel_last) return load_kernel(at, method, data);
  switch (method) {
    case launch_inline:
      at.inline_address = uint64_t{r[out_high] & 0x1ffff} << 32 | r[out_low];
      at.inline_left = uint64_t{r[line_length]} * r[line_count];
      return Outcome::done;
    case inline_data: return write_inline(at, data);
    case kernel_action:
      return schedules(data & 0xf) ? run_kernels(uint64_t{r[kernel_address]} << 8) : Outcome::done;
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

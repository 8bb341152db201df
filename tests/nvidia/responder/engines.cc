#include "engines.h"

#include <string.h>
#include <time.h>

#include <algorithm>

#include "memory.h"

namespace responder {
namespace {

uint64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

// Methods of the host (clc56f.h), divided by 4.
enum Host : uint32_t {
  set_object = 0x00 / 4,
  semaphore_a = 0x10 / 4,
  semaphore_d = 0x1c / 4,
  sem_address_low = 0x5c / 4,
  sem_address_high = 0x60 / 4,
  sem_payload_low = 0x64 / 4,
  sem_payload_high = 0x68 / 4,
  sem_execute = 0x6c / 4,
  last_host = 0xfc / 4,
};

bool is_reached(uint32_t operation, uint64_t value, uint64_t payload, bool is_long) {
  const auto difference =
      is_long ? static_cast<int64_t>(value - payload)
              : static_cast<int32_t>(static_cast<uint32_t>(value) - static_cast<uint32_t>(payload));
  switch (operation) {
    case 0: return value == payload;        // ACQUIRE
    case 2: return value >= payload;        // ACQ_STRICT_GEQ
    case 3: return difference >= 0;         // ACQ_CIRC_GEQ
    case 4: return (value & payload) != 0;  // ACQ_AND
    default: return ~(value | payload) != 0;
  }
}

uint64_t reduced(uint32_t how, uint64_t value, uint64_t payload) {
  switch (how) {
    case 0: return std::min(value, payload);
    case 1: return std::max(value, payload);
    case 2: return value ^ payload;
    case 3: return value & payload;
    case 4: return value | payload;
    case 5: return value + payload;
    case 6: return value >= payload ? 0 : value + 1;
    default: return value == 0 || value > payload ? payload : value - 1;
  }
}

// Executes NVC56F_SEM_EXECUTE.
Outcome execute_semaphore(const uint32_t* host, uint32_t data) {
  const uint64_t address = uint64_t{host[sem_address_high] & 0xff} << 32 | (host[sem_address_low] & ~3u);
  const bool is_long = (data >> 24 & 1) != 0;
  const uint64_t payload = host[sem_payload_low] | (is_long ? uint64_t{host[sem_payload_high]} << 32 : 0);
  const uint32_t operation = data & 7;
  if (operation == 1) return release_semaphore(address, payload, is_long, (data >> 25 & 1) != 0);
  const uint8_t* const at = bytes_at(address, is_long ? 8 : 4);
  if (at == nullptr) return Outcome::fault;
  const uint64_t value = is_long ? __atomic_load_n(reinterpret_cast<const uint64_t*>(at), __ATOMIC_ACQUIRE)
                                 : __atomic_load_n(reinterpret_cast<const uint32_t*>(at), __ATOMIC_ACQUIRE);
  if (operation == 6)
    return release_semaphore(address, reduced(data >> 27 & 7, value, payload), is_long, false);
  return is_reached(operation, value, payload, is_long) ? Outcome::done : Outcome::waits;
}

// Executes NVC56F_SEMAPHORED, the older form with 32 bits.
Outcome execute_old_semaphore(const uint32_t* host, uint32_t data) {
  const uint64_t address = uint64_t{host[semaphore_a] & 0xff} << 32 | (host[semaphore_a + 1] & ~3u);
  const uint32_t payload = host[semaphore_a + 2];
  if ((data & 0x1f) == 2) return release_semaphore(address, payload, false, (data >> 24 & 1) == 0);
  const uint8_t* const at = bytes_at(address, 4);
  if (at == nullptr) return Outcome::fault;
  const uint32_t value = __atomic_load_n(reinterpret_cast<const uint32_t*>(at), __ATOMIC_ACQUIRE);
  const bool has_come = (data & 0x1f) == 1   ? value == payload
                        : (data & 0x1f) == 4 ? static_cast<int32_t>(value - payload) >= 0
                                             : (value & payload) != 0;
  return has_come ? Outcome::done : Outcome::waits;
}

Outcome execute_host(Engines& engines, uint32_t method, uint32_t data) {
  engines.host[method] = data;
  if (method == sem_execute) return execute_semaphore(engines.host, data);
  if (method == semaphore_d) return execute_old_semaphore(engines.host, data);
  return Outcome::done;  // Barriers, TLB invalidations, NOP, WFI and YIELD: methods are executed in order.
}

}  // namespace

Outcome release_semaphore(uint64_t address, uint64_t payload, bool is_long, bool stamped) {
  uint8_t* const at = bytes_at(address, stamped ? 16 : is_long ? 8 : 4);
  if (at == nullptr || address % (is_long ? 8 : 4) != 0) return Outcome::fault;
  if (stamped) {
    const uint64_t time = now();
    memcpy(at + 8, &time, sizeof time);
  }
  if (is_long)
    __atomic_store_n(reinterpret_cast<uint64_t*>(at), payload, __ATOMIC_RELEASE);
  else
    __atomic_store_n(reinterpret_cast<uint32_t*>(at), static_cast<uint32_t>(payload), __ATOMIC_RELEASE);
  return Outcome::done;
}

bool write_bytes(uint64_t address, const void* bytes, uint64_t size) {
  const auto* from = static_cast<const uint8_t*>(bytes);
  while (size > 0) {
    const uint64_t part = std::min(size, mapped_from(address));
    uint8_t* const to = part > 0 ? bytes_at(address, part) : nullptr;
    if (to == nullptr) return false;
    memcpy(to, from, part);
    from += part;
    address += part;
    size -= part;
  }
  return true;
}

bool copy_bytes(uint64_t to, uint64_t from, uint64_t size) {
  while (size > 0) {
    const uint64_t part = std::min({size, mapped_from(to), mapped_from(from)});
    uint8_t* const out = part > 0 ? bytes_at(to, part) : nullptr;
    const uint8_t* const in = part > 0 ? bytes_at(from, part) : nullptr;
    if (out == nullptr || in == nullptr) return false;
    memmove(out, in, part);
    to += part;
    from += part;
    size -= part;
  }
  return true;
}

Outcome execute(Engines& engines, unsigned subchannel, uint32_t method, uint32_t data) {
  Subchannel& at = engines.subchannel[subchannel];
  if (method == set_object) {
    at.class_ = data & 0xffff;
    return Outcome::done;
  }
  if (method <= last_host) return execute_host(engines, method, data);
  at.registers[method] = data;
  switch (at.class_) {
    case 0xc7b5: return execute_copy(at, method, data);     // AMPERE_DMA_COPY_B
    case 0xc7c0: return execute_compute(at, method, data);  // AMPERE_COMPUTE_B
    default: return Outcome::fault;
  }
}

}  // namespace responder

// The engines of a channel (host, copy (class/clc7b5.h) and compute (class/clc7c0.h)) as far as they are
// needed for semaphores, copies, fills and inline data.
#pragma once

#include <cstdint>

namespace responder {

enum class Outcome : uint8_t {
  done,
  waits,  // Waits for a semaphore; the method must be repeated.
  fault,  // An address is not mapped, or the method is unknown.
};

constexpr uint32_t subchannels = 8, methods = 0x1000;
struct Subchannel {
  uint32_t class_;
  uint32_t registers[methods];  // The newest data of each method.
  uint64_t inline_address, inline_left;
};
struct Engines {
  Subchannel subchannel[subchannels];
  uint32_t host[64];
};

// Executes a method; `method` is its address divided by 4.
Outcome execute(Engines& engines, unsigned subchannel, uint32_t method, uint32_t data);

// Execute a method of the class.
Outcome execute_copy(Subchannel& at, uint32_t method, uint32_t data);
Outcome execute_compute(Subchannel& at, uint32_t method, uint32_t data);

// Writes a semaphore of 4 or 8 bytes and, if `stamped`, the time in nanoseconds 8 bytes after its start.
Outcome release_semaphore(uint64_t address, uint64_t payload, bool is_long, bool stamped);
// Writes bytes at a GPU address, which may span several mappings.
bool write_bytes(uint64_t address, const void* bytes, uint64_t size);
bool copy_bytes(uint64_t to, uint64_t from, uint64_t size);

}  // namespace responder

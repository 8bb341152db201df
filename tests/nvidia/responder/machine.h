// The machine that the responder pretends to be: a driver of RESPONDER_VERSION and one NVIDIA A10 for each
// UUID of RESPONDER_GPUS ("GPU-...,GPU-..."). Without these variables there is one device, and the driver is
// 550.163.01.
#pragma once

#include <cstdint>

namespace responder {

inline constexpr unsigned max_gpus = 8;
inline constexpr unsigned memory_kib = 24u << 20;

// Properties of an A10's chip (GA102) that libcuda queries.
inline constexpr unsigned multiprocessors = 72;
inline constexpr unsigned vendor_id = 0x10de;
inline constexpr unsigned device_id = 0x2236;
inline constexpr char name[] = "NVIDIA A10";
// Sizes of the PCI device's regions in MiB: registers, device memory, and further registers.
inline constexpr uint32_t bars_mib[] = {16, 32 << 10, 32};

struct Machine {
  char version[32];
  unsigned gpu_count;
  uint8_t uuid[max_gpus][16];
};

const Machine& machine();

// The device's PCI bus, in domain 0 and slot 0.
inline uint8_t bus_of(unsigned index) { return static_cast<uint8_t>(index + 1); }
// Returns the resource manager's number of a device.
inline uint32_t gpu_id(unsigned index) { return 0x100 * (index + 1); }
// Returns the device's index, or `machine().gpu_count` if no device has that number.
unsigned index_of(uint32_t id);

}  // namespace responder

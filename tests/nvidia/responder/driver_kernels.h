// The kernels with which libcuda itself fills memory and copies within a device. The responder does not execute instructions; it knows
// these kernels by a hash of their code, and does what they do.
#pragma once

#include <cstdint>

namespace responder {

// Does what libcuda's kernel at `program` does with the parameters at a GPU address. Other kernels have no effect. Returns false for an
// address that is not mapped.
bool run_driver_kernel(uint64_t program, uint64_t parameters, uint32_t blocks, uint32_t rows);

}  // namespace responder

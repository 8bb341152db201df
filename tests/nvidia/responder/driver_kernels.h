// The kernels with which libcuda itself fills memory and copies within a device. The responder does not
// execute instructions; it recognizes these kernels by a hash of their code and performs their effect.
#pragma once

#include <cstdint>

namespace responder {

// Performs the effect of libcuda's kernel at `program` with the parameters at a GPU address. Other kernels
// have no effect. Returns false if an address is not mapped.
bool run_driver_kernel(uint64_t program, uint64_t parameters, uint32_t blocks, uint32_t rows);

}  // namespace responder

// Device memory of modules. The code and variables of a module are one piece of the context's blocks for
// code, in steps of 512 bytes as for allocations. A block holds the pieces of several modules and is released
// with the last piece.
//
// A module takes the memory when it is loaded, because the simulated driver loads eagerly
// (cuModuleGetLoadingMode). A library belongs to no context and takes the memory when a context first uses
// it.
#pragma once

#include "sim/libcuda/module.h"

namespace carve::sim {

// Takes the memory if the module has none in the context yet. Variables are zeroed.
CUresult place_module(CUmod_st&, CUctx_st&);

// Returns the address of a variable in a context in which the module is placed.
CUdeviceptr variable_at(CUmod_st&, const CUctx_st&, const GlobalImage&);

// Releases the module's memory in every context. Waits for work that may use it.
void remove_module(CUmod_st&);

}  // namespace carve::sim

// Device memory of modules: their code and their variables, in one piece of the context's blocks for code, at
// steps of 512 bytes, as for allocations. A block holds the pieces of several modules and is released with
// the last.
//
// A module takes the memory when it is loaded, since the simulated driver loads eagerly
// (cuModuleGetLoadingMode). A library belongs to no context and takes the memory when a context first uses
// it.
#pragma once

#include "sim/libcuda/module.h"

namespace carve::sim {

// Takes the memory if the module has none in the context yet. Variables start at zero.
CUresult place_module(CUmod_st&, CUctx_st&);

// Returns the address of a variable in a context in which the module is placed.
CUdeviceptr variable_at(CUmod_st&, const CUctx_st&, const GlobalImage&);

// Releases all memory, in every context; waits for work that may use it.
void remove_module(CUmod_st&);

}  // namespace carve::sim

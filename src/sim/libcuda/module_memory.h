// What modules take of a device: their code and their variables, in one piece of the context's blocks for
// code, at steps of 512 bytes, as for allocations. Blocks hold the pieces of several modules and go back with
// the last.
//
// A module takes it when it is loaded, since the simulated driver loads eagerly
// (cuModuleGetLoadingMode); a library, which belongs to no context, when a context first uses it.
#pragma once

#include "sim/libcuda/module.h"

namespace carve::sim {

// Takes the memory if the module has none in the context yet. Variables are zero.
CUresult place_module(CUmod_st&, CUctx_st&);

// Where a variable lies in a context in which the module is placed.
CUdeviceptr variable_at(CUmod_st&, const CUctx_st&, const GlobalImage&);

// Gives back all, in every context; waits for work that may use it.
void remove_module(CUmod_st&);

}  // namespace carve::sim

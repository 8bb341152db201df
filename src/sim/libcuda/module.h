// Modules, libraries and functions of this process. A function handle serves as CUfunction and as CUkernel. A
// kernel of a library can be launched in any context, so such a function has no context of its own and uses
// the current one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/image/image.h"
#include "sim/image/kernel_rules.h"
#include "sim/libcuda/driver_state.h"

struct CUfunc_st {
  CUmod_st* module = nullptr;
  carve::sim::KernelImage image;
  unsigned target = 0, ptx = 0;
  std::map<int, int> attributes;  // Attributes that cuFuncSetAttribute may change.
  bool ruled = false;
  carve::sim::Rule rule;
  // Launch state of CUDA 3's calls: cuFuncSetBlockShape, cuParamSet.
  unsigned block[3] = {1, 1, 1};
  unsigned shared = 0;
  std::vector<char> arguments;
};

struct CUmod_st {
  std::weak_ptr<CUctx_st> context;  // Context of a module; a library has none.
  bool library = false;
  carve::sim::Image image;
  std::vector<std::unique_ptr<CUfunc_st>> functions;
  struct Placed {
    CUctx_st* context;
    uint64_t base;
  };
  std::map<unsigned long long, Placed> placed;  // By the context's id; see module_memory.h.
};

namespace carve::sim {

// Returns the function of a handle, or nullptr. It runs in the module's context, or in the current one.
CUfunc_st* find_function(const void* handle);
CUresult context_of(const CUfunc_st&, std::shared_ptr<CUctx_st>*);

// The number of registers, which the compiler chooses. PTX is not compiled here and counts as 32, as in small
// kernels.
inline unsigned registers_of(const CUfunc_st& f) { return f.image.registers ? f.image.registers : 32; }

// Reads a whole file; returns false if it cannot be opened.
bool read_file(const char* path, std::string* all);

// Returns how many blocks fit on one multiprocessor at the same time.
unsigned resident_blocks(const Facts&, const CUfunc_st&, unsigned threads, unsigned dynamic_shared);

}  // namespace carve::sim

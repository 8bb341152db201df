// Modules, libraries and functions as this process holds them. A function handle serves as CUfunction and as
// CUkernel: the driver lets a kernel of a library be launched in any context, so one that belongs to a
// library has no context of its own and takes the current one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/image/image.h"
#include "sim/image/rules.h"
#include "sim/libcuda/process.h"

struct CUfunc_st {
  CUmod_st* module = nullptr;
  carve::sim::KernelImage image;
  unsigned target = 0, ptx = 0;
  std::map<int, int> attributes;  // Those that cuFuncSetAttribute may change.
  bool ruled = false;
  carve::sim::Rule rule;
  // The launch state of CUDA 3: cuFuncSetBlockShape, cuParamSet.
  unsigned block[3] = {1, 1, 1};
  unsigned shared = 0;
  std::vector<char> arguments;
};

struct CUmod_st {
  std::weak_ptr<CUctx_st> context;  // Of a module; a library belongs to none.
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

// The function behind a handle, or nullptr. The context that it runs in is the module's, or the current one.
CUfunc_st* find_function(const void* handle);
CUresult context_of(const CUfunc_st&, std::shared_ptr<CUctx_st>*);

// Registers are the compiler's choice; of PTX, which nobody compiles here, 32: what small kernels take.
inline unsigned registers_of(const CUfunc_st& f) { return f.image.registers ? f.image.registers : 32; }

// The whole of a file; false if it cannot be opened.
bool read_file(const char* path, std::string* all);

// How many blocks fit one multiprocessor at once.
unsigned resident_blocks(const Facts&, const CUfunc_st&, unsigned threads, unsigned dynamic_shared);

}  // namespace carve::sim

// The calls of the driver's linker (sim/image/linker.h). Inputs other than PTX are rejected.
#include <string_view>

#include "sim/image/linker.h"
#include "sim/libcuda/module.h"

using namespace carve::sim;

struct CUlinkState_st {
  Linker linker;
};

EXPORT CUresult cuLinkCreate_v2(unsigned int, CUjit_option*, void**, CUlinkState* out) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = new CUlinkState_st;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t bytes,
                                 const char*, unsigned int, CUjit_option*, void**) {
  if (!state || !data) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_JIT_INPUT_PTX) return unsupported("cuLinkAddData of inputs other than PTX");
  state->linker.add(std::string_view(static_cast<const char*>(data), bytes));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned int,
                                 CUjit_option*, void**) {
  if (!state || !path) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_JIT_INPUT_PTX) return unsupported("cuLinkAddFile of inputs other than PTX");
  std::string all;
  if (!read_file(path, &all)) return CUDA_ERROR_FILE_NOT_FOUND;
  state->linker.add(all);
  return CUDA_SUCCESS;
}
// The names of these calls before CUDA 6.5. With 64-bit pointers the calls do not differ.
EXPORT CUresult cuLinkCreate(unsigned int n, CUjit_option* options, void** values, CUlinkState* out) {
  return cuLinkCreate_v2(n, options, values, out);
}
EXPORT CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t bytes,
                              const char* name, unsigned int n, CUjit_option* options, void** values) {
  return cuLinkAddData_v2(state, type, data, bytes, name, n, options, values);
}
EXPORT CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned int n,
                              CUjit_option* options, void** values) {
  return cuLinkAddFile_v2(state, type, path, n, options, values);
}
EXPORT CUresult cuLinkComplete(CUlinkState state, void** image, size_t* bytes) {
  if (!state || !image) return CUDA_ERROR_INVALID_VALUE;
  const std::string& text = state->linker.text();
  *image = const_cast<char*>(text.c_str());  // The caller only reads it.
  if (bytes) *bytes = text.size() + 1;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuLinkDestroy(CUlinkState state) {
  delete state;
  return CUDA_SUCCESS;
}

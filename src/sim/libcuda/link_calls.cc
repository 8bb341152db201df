// The linker of the driver. What comes out is handed to cuModuleLoadData, so PTX goes in and the same PTX
// comes out, pieces one after the other; anything but PTX is refused.
#include <cstring>

#include "sim/libcuda/module.h"

using namespace carve::sim;

struct CUlinkState_st {
  std::string text;
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
  if (type != CU_JIT_INPUT_PTX) return unsupported("cuLinkAddData of anything but PTX");
  const char* text = static_cast<const char*>(data);
  state->text.append(text, strnlen(text, bytes)).append("\n");
  return CUDA_SUCCESS;
}
EXPORT CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned int,
                                 CUjit_option*, void**) {
  if (!state || !path) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_JIT_INPUT_PTX) return unsupported("cuLinkAddFile of anything but PTX");
  std::string all;
  if (!read_file(path, &all)) return CUDA_ERROR_FILE_NOT_FOUND;
  state->text.append(all.c_str()).append("\n");
  return CUDA_SUCCESS;
}
// The same under the names of before CUDA 6.5; with 64-bit pointers nothing differs.
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
  *image = state->text.data();
  if (bytes) *bytes = state->text.size() + 1;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuLinkDestroy(CUlinkState state) {
  delete state;
  return CUDA_SUCCESS;
}

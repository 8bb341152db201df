// Loads modules and libraries and describes their contents. A module is PTX text, a cubin, or a fatbin, which
// may be in the wrapper {magic, version, address} that compilers put into programs.
#include "sim/libcuda/module.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "sim/image/binary_image.h"
#include "sim/libcuda/module_memory.h"

using namespace carve::sim;

namespace {

struct FatbinWrapper {
  uint32_t magic, version;
  const void* fatbin;
};
constexpr uint32_t fatbin_wrapper = 0x466243b1;

// Modules and functions by handle; guarded by Process::mutex.
std::unordered_map<CUmod_st*, std::unique_ptr<CUmod_st>>& modules() {
  static auto* all = new std::unordered_map<CUmod_st*, std::unique_ptr<CUmod_st>>;
  return *all;
}
std::unordered_set<const void*>& functions() {
  static auto* all = new std::unordered_set<const void*>;
  return *all;
}

CUmod_st* known_module(const void* handle, bool library) {
  const auto found = modules().find(static_cast<CUmod_st*>(const_cast<void*>(handle)));
  return found != modules().end() && found->second->library == library ? found->second.get() : nullptr;
}

// Returns the compute capability for which a library is read before a context uses it: that of the first
// visible device.
unsigned first_capability() {
  const Facts& f = process().set.devices[process().visible[0]]->facts;
  return f.cc_major * 10 + f.cc_minor;
}

// Reads an image. `size` is the length of a file, or 0 if the image contains its own length.
CUresult read_image(const void* data, size_t size, unsigned device_capability, Image* out) {
  const char* text = static_cast<const char*>(data);
  ImageError result = ImageError::broken;
  if (strnlen(text, 4) == 4) {
    uint32_t magic = 0;
    std::memcpy(&magic, data, sizeof magic);
    if (magic == fatbin_wrapper && !size) {
      FatbinWrapper w;
      std::memcpy(&w, data, sizeof w);
      return w.fatbin ? read_image(w.fatbin, 0, device_capability, out) : CUDA_ERROR_INVALID_IMAGE;
    }
    const size_t bytes = is_binary(magic) ? (size ? size : binary_extent(data)) : 0;
    result = bytes ? parse_binary({text, bytes}, device_capability, out) : parse_ptx(text, out);
  }
  switch (result) {
    case ImageError::broken: return CUDA_ERROR_INVALID_IMAGE;
    case ImageError::no_code: return CUDA_ERROR_NO_BINARY_FOR_GPU;
    case ImageError::none: break;
    case ImageError::not_ptx: return CUDA_ERROR_INVALID_IMAGE;
    case ImageError::syntax: return CUDA_ERROR_INVALID_PTX;
    case ImageError::unsupported_version: return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  }
  if (out->target > device_capability) return CUDA_ERROR_INVALID_PTX;  // Code for a newer architecture.
  return CUDA_SUCCESS;
}

CUresult load(const void* data, size_t size, bool library, CUmod_st** out) {
  std::shared_ptr<CUctx_st> c;
  unsigned capability = 0;
  if (library) {
    if (const CUresult e = entered()) return e;
    capability = first_capability();
  } else {
    if (const CUresult e = current(&c)) return e;
    const Facts& f = c->own_device().facts;
    capability = f.cc_major * 10 + f.cc_minor;
  }
  if (!data || !out) return CUDA_ERROR_INVALID_VALUE;
  auto m = std::make_unique<CUmod_st>();
  if (const CUresult e = read_image(data, size, capability, &m->image)) return e;
  m->context = c;
  m->library = library;
  for (const KernelImage& k : m->image.kernels) {
    auto f = std::make_unique<CUfunc_st>();
    f->module = m.get();
    f->image = k;
    f->target = m->image.target;
    f->ptx = m->image.ptx_major * 10 + m->image.ptx_minor;
    f->ruled = find_rule(process().set.directory, k.name, &f->rule);
    m->functions.push_back(std::move(f));
  }
  if (c)
    if (const CUresult e = place_module(*m, *c)) return e;
  const std::lock_guard lock(process().mutex);
  for (const auto& f : m->functions) functions().insert(f.get());
  *out = m.get();
  modules()[m.get()] = std::move(m);
  return CUDA_SUCCESS;
}

CUresult load_file(const char* path, bool library, CUmod_st** out) {
  if (const CUresult e = entered()) return e;
  if (!path) return CUDA_ERROR_INVALID_VALUE;
  std::string all;
  return read_file(path, &all) ? load(all.c_str(), all.size(), library, out) : CUDA_ERROR_FILE_NOT_FOUND;
}

CUresult unload(const void* handle, bool library) {
  if (const CUresult e = entered()) return e;
  std::unique_ptr<CUmod_st> dying;
  {
    const std::lock_guard lock(process().mutex);
    CUmod_st* m = known_module(handle, library);
    if (!m) return CUDA_ERROR_INVALID_HANDLE;
    for (const auto& f : m->functions) functions().erase(f.get());
    dying = std::move(modules()[m]);
    modules().erase(m);
  }
  remove_module(*dying);
  return CUDA_SUCCESS;
}

CUresult get_function(CUfunc_st** out, const void* handle, bool library, const char* name) {
  if (const CUresult e = entered()) return e;
  if (!out || !name) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUmod_st* m = known_module(handle, library);
  if (!m) return CUDA_ERROR_INVALID_HANDLE;
  for (const auto& f : m->functions)
    if (f->image.name == name) {
      *out = f.get();
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult get_global(CUdeviceptr* pointer, size_t* bytes, const void* handle, bool library, const char* name) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (!name || (!pointer && !bytes)) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUmod_st* m = known_module(handle, library);
  if (!m) return CUDA_ERROR_INVALID_HANDLE;
  const auto g = std::ranges::find(m->image.globals, name, &GlobalImage::name);
  if (g == m->image.globals.end()) return CUDA_ERROR_NOT_FOUND;
  if (bytes) *bytes = g->bytes;
  if (!pointer) return CUDA_SUCCESS;
  if (!library) {
    c = m->context.lock();
    if (!c) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  if (const CUresult e = place_module(*m, *c)) return e;
  *pointer = variable_at(*m, *c, *g);
  return CUDA_SUCCESS;
}

CUresult list_functions(CUfunction* out, unsigned room, const void* handle, bool library) {
  if (const CUresult e = entered()) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUmod_st* m = known_module(handle, library);
  if (!m) return CUDA_ERROR_INVALID_HANDLE;
  for (size_t i = 0; i < std::min<size_t>(room, m->functions.size()); ++i) out[i] = m->functions[i].get();
  return CUDA_SUCCESS;
}

CUresult count_functions(unsigned* out, const void* handle, bool library) {
  if (const CUresult e = entered()) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUmod_st* m = known_module(handle, library);
  if (!m) return CUDA_ERROR_INVALID_HANDLE;
  *out = static_cast<unsigned>(m->functions.size());
  return CUDA_SUCCESS;
}

CUresult function_attribute(const CUfunc_st& f, int which, int* out) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (const auto set = f.attributes.find(which); set != f.attributes.end())
    return *out = set->second, CUDA_SUCCESS;
  switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *out = static_cast<int>(f.image.max_threads); break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *out = static_cast<int>(f.image.static_shared); break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *out = static_cast<int>(registers_of(f)); break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *out = static_cast<int>(f.target); break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *out = static_cast<int>((48u << 10) - std::min(f.image.static_shared, 48u << 10));
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *out = -1; break;
    default:
      if (which < 0 || which >= 16) return CUDA_ERROR_INVALID_VALUE;
      *out = 0;
  }
  return CUDA_SUCCESS;
}

CUresult set_function_attribute(CUfunc_st& f, int which, int value) {
  switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
      std::shared_ptr<CUctx_st> c;
      if (const CUresult e = context_of(f, &c)) return e;
      const uint32_t most = c->own_device().facts.shared_per_block_optin;
      if (value < 0 || static_cast<uint32_t>(value) + f.image.static_shared > most)
        return CUDA_ERROR_INVALID_VALUE;
      break;
    }
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  const std::lock_guard lock(process().mutex);
  f.attributes[which] = value;
  return CUDA_SUCCESS;
}

CUresult parameter_info(const void* handle, size_t index, size_t* offset, size_t* bytes) {
  if (const CUresult e = entered()) return e;
  const CUfunc_st* f = find_function(handle);
  if (!f) return CUDA_ERROR_INVALID_HANDLE;
  if (!offset || index >= f->image.parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = f->image.parameters[index].offset;
  if (bytes) *bytes = f->image.parameters[index].bytes;
  return CUDA_SUCCESS;
}

CUresult name_of(const char** out, const void* handle) {
  if (const CUresult e = entered()) return e;
  const CUfunc_st* f = find_function(handle);
  if (!f) return CUDA_ERROR_INVALID_HANDLE;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = f->image.name.c_str();
  return CUDA_SUCCESS;
}

CUresult exists(const void* function) {
  if (const CUresult e = entered()) return e;
  return find_function(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUmodule as_module(CUlibrary l) { return reinterpret_cast<CUmodule>(l); }
CUfunction as_function(CUkernel k) { return reinterpret_cast<CUfunction>(k); }

}  // namespace

namespace carve::sim {

bool read_file(const char* path, std::string* all) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char piece[16384];
  for (ssize_t n; (n = read(fd, piece, sizeof piece)) > 0;) all->append(piece, static_cast<size_t>(n));
  close(fd);
  return true;
}

CUfunc_st* find_function(const void* handle) {
  const std::lock_guard lock(process().mutex);
  return functions().contains(handle) ? static_cast<CUfunc_st*>(const_cast<void*>(handle)) : nullptr;
}

CUresult context_of(const CUfunc_st& f, std::shared_ptr<CUctx_st>* out) {
  if (f.module->library) return current(out);
  *out = f.module->context.lock();
  return *out ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

}  // namespace carve::sim

EXPORT CUresult cuModuleLoadData(CUmodule* out, const void* image) { return load(image, 0, false, out); }
EXPORT CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned int, CUjit_option*, void**) {
  return load(image, 0, false, out);
}
EXPORT CUresult cuModuleLoadFatBinary(CUmodule* out, const void* image) { return load(image, 0, false, out); }
EXPORT CUresult cuModuleLoad(CUmodule* out, const char* path) { return load_file(path, false, out); }
EXPORT CUresult cuModuleUnload(CUmodule m) { return unload(m, false); }
EXPORT CUresult cuModuleGetFunction(CUfunction* out, CUmodule m, const char* name) {
  return get_function(out, m, false, name);
}
EXPORT CUresult cuModuleGetFunctionCount(unsigned int* out, CUmodule m) {
  return count_functions(out, m, false);
}
EXPORT CUresult cuModuleEnumerateFunctions(CUfunction* out, unsigned int room, CUmodule m) {
  return list_functions(out, room, m, false);
}
EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr* pointer, size_t* bytes, CUmodule m, const char* name) {
  return get_global(pointer, bytes, m, false, name);
}
EXPORT CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* out) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = CU_MODULE_EAGER_LOADING;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuLibraryLoadData(CUlibrary* out, const void* code, CUjit_option*, void**, unsigned int,
                                  CUlibraryOption*, void**, unsigned int) {
  return load(code, 0, true, reinterpret_cast<CUmod_st**>(out));
}
EXPORT CUresult cuLibraryLoadFromFile(CUlibrary* out, const char* path, CUjit_option*, void**, unsigned int,
                                      CUlibraryOption*, void**, unsigned int) {
  return load_file(path, true, reinterpret_cast<CUmod_st**>(out));
}
EXPORT CUresult cuLibraryUnload(CUlibrary l) { return unload(l, true); }
EXPORT CUresult cuLibraryGetKernel(CUkernel* out, CUlibrary l, const char* name) {
  return get_function(reinterpret_cast<CUfunc_st**>(out), l, true, name);
}
EXPORT CUresult cuLibraryGetKernelCount(unsigned int* out, CUlibrary l) {
  return count_functions(out, l, true);
}
EXPORT CUresult cuLibraryEnumerateKernels(CUkernel* out, unsigned int room, CUlibrary l) {
  return list_functions(reinterpret_cast<CUfunction*>(out), room, l, true);
}
EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr* pointer, size_t* bytes, CUlibrary l, const char* name) {
  return get_global(pointer, bytes, l, true, name);
}
// A library's kernels exist in every context, so the library serves as its own module.
EXPORT CUresult cuLibraryGetModule(CUmodule* out, CUlibrary l) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  if (!known_module(l, true)) return CUDA_ERROR_INVALID_HANDLE;
  *out = as_module(l);
  return CUDA_SUCCESS;
}

// PTX that is not executed has no managed variables and no addresses of functions.
EXPORT CUresult cuLibraryGetManaged(CUdeviceptr*, size_t*, CUlibrary, const char*) {
  const CUresult e = entered();
  return e ? e : CUDA_ERROR_NOT_FOUND;
}
EXPORT CUresult cuLibraryGetUnifiedFunction(void**, CUlibrary, const char*) {
  const CUresult e = entered();
  return e ? e : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuKernelGetFunction(CUfunction* out, CUkernel k) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!find_function(k)) return CUDA_ERROR_INVALID_HANDLE;
  *out = as_function(k);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuKernelGetLibrary(CUlibrary* out, CUkernel k) {
  if (const CUresult e = entered()) return e;
  const CUfunc_st* f = find_function(k);
  if (!f || !f->module->library) return CUDA_ERROR_INVALID_HANDLE;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUlibrary>(f->module);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuKernelGetName(const char** out, CUkernel k) { return name_of(out, k); }
EXPORT CUresult cuKernelGetParamInfo(CUkernel k, size_t index, size_t* offset, size_t* bytes) {
  return parameter_info(k, index, offset, bytes);
}
EXPORT CUresult cuKernelGetAttribute(int* out, CUfunction_attribute which, CUkernel k, CUdevice) {
  if (const CUresult e = exists(k)) return e;
  return function_attribute(*find_function(k), which, out);
}
EXPORT CUresult cuKernelSetAttribute(CUfunction_attribute which, int value, CUkernel k, CUdevice) {
  if (const CUresult e = exists(k)) return e;
  return set_function_attribute(*find_function(k), which, value);
}
EXPORT CUresult cuKernelSetCacheConfig(CUkernel k, CUfunc_cache, CUdevice) { return exists(k); }

EXPORT CUresult cuFuncGetAttribute(int* out, CUfunction_attribute which, CUfunction f) {
  if (const CUresult e = exists(f)) return e;
  return function_attribute(*f, which, out);
}
EXPORT CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute which, int value) {
  if (const CUresult e = exists(f)) return e;
  return set_function_attribute(*f, which, value);
}
EXPORT CUresult cuFuncSetCacheConfig(CUfunction f, CUfunc_cache) { return exists(f); }
EXPORT CUresult cuFuncSetSharedMemConfig(CUfunction f, CUsharedconfig) { return exists(f); }
EXPORT CUresult cuFuncGetModule(CUmodule* out, CUfunction f) {
  if (const CUresult e = exists(f)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = f->module;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuFuncGetName(const char** out, CUfunction f) { return name_of(out, f); }
EXPORT CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t* offset, size_t* bytes) {
  return parameter_info(f, index, offset, bytes);
}
EXPORT CUresult cuFuncIsLoaded(CUfunctionLoadingState* out, CUfunction f) {
  if (const CUresult e = exists(f)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuFuncLoad(CUfunction f) { return exists(f); }

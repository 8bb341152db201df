// Hooks: how a call reaches the real driver, and which calls enter this library.
//
// A hook is a function with the driver's own name and declaration. `driver<&cuMemAlloc_v2>` is the driver's
// entry point of that name, with the type of the same declaration. A call costs one indirect jump. A slot
// starts at a stub that binds the tables and retries, as a PLT does, so no call checks for null. Calls that
// no table names never enter this library.
//
// Two libraries of NVIDIA have hooks, each with a table: libcuda.so.1 and libnvidia-ml.so.1.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <span>
#include <string_view>

// Hooks are the only names that this library exports, so only the declarations are visible.
#pragma GCC visibility push(default)
#include "abi/cuda.h"
#include "abi/nvml.h"
// Contexts for other interfaces (cudaGL.h, cudaVDPAU.h; a VdpDevice is 32 bits wide), and variants that
// cuda.h has only as macros.
extern "C" {
CUresult cuGetProcAddress_ptsz(const char* symbol, void** pfn, int cuda_version, cuuint64_t flags);
CUresult cuGetProcAddress_v2_ptsz(const char* symbol, void** pfn, int cuda_version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult* symbol_status);
CUresult cuGLCtxCreate(CUcontext* context, unsigned int flags, CUdevice device);
CUresult cuGLCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device);
CUresult cuVDPAUCtxCreate(CUcontext* context, unsigned int flags, CUdevice device, unsigned int vdpau,
                          void* get_address);
CUresult cuVDPAUCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device, unsigned int vdpau,
                             void* get_address);
}
#pragma GCC visibility pop

namespace carve::guest {

enum class Api { cuda, nvml };

// Finds the real library if the program has loaded it, and fills the slots of its table. A second or
// concurrent call stores the same pointers again. Returns false if there is no memory for the index of
// exchanged(). Then no slot is filled, because calls would bypass their hooks, and a hook returns absent().
bool bind(Api api);
// Does the same for a call of a hook, but loads the library if the program has not. A program calls a hook
// before it has loaded the driver only if it defines the driver's names itself, as functions that load the
// driver when they are first called (TensorFlow does). A preloaded library's names come first, so those
// functions are never called.
void load_and_bind(Api api);

// The result of an entry point that the installed driver lacks, or that could not be bound.
template <class R>
constexpr R absent();
template <>
constexpr CUresult absent() {
  return CUDA_ERROR_NOT_FOUND;
}
template <>
constexpr nvmlReturn_t absent() {
  return NVML_ERROR_FUNCTION_NOT_FOUND;
}
template <class R>
inline constexpr Api api_of = Api::cuda;
template <>
inline constexpr Api api_of<nvmlReturn_t> = Api::nvml;

template <auto Entry>
struct Driver;
template <class R, class... A, R (*Entry)(A...)>
struct Driver<Entry> {
  static R unbound(A... a) {
    load_and_bind(api_of<R>);
    const auto bound = slot.load(std::memory_order_relaxed);
    return bound != &unbound ? bound(a...) : absent<R>();
  }
  static inline constinit std::atomic<R (*)(A...)> slot{&unbound};
  R operator()(A... a) const { return slot.load(std::memory_order_relaxed)(a...); }
};
template <auto Entry>
inline constexpr Driver<Entry> driver;

// A row for an entry point that has a hook or, if `ours` is null, is only called.
struct Hook {
  const char* symbol;
  void* (*ours)();
  const void* slot;  // A std::atomic of a function pointer.
  void (*bind)(void* theirs);

  void* theirs() const {
    void* entry = nullptr;
    __builtin_memcpy(&entry, slot, sizeof entry);
    return entry;
  }
};

template <auto Entry>
consteval Hook call(const char* symbol) {
  return {symbol, nullptr, &Driver<Entry>::slot, [](void* theirs) {
            Driver<Entry>::slot.store(reinterpret_cast<decltype(Entry)>(theirs), std::memory_order_relaxed);
          }};
}
template <auto Entry>
consteval Hook hook(const char* symbol) {
  Hook row = call<Entry>(symbol);
  row.ours = [] { return reinterpret_cast<void*>(Entry); };
  return row;
}
// The only macro of this library, because C++20 cannot express the name of a function.
#define HOOK(entry) ::carve::guest::hook<&entry>(#entry)
#define CALL(entry) ::carve::guest::call<&entry>(#entry)

constexpr bool sorted_and_unique(std::span<const Hook> rows) {
  const auto name = [](const Hook& h) { return std::string_view(h.symbol); };
  return std::ranges::adjacent_find(rows, std::greater_equal{}, name) == rows.end();
}

struct Table {
  Api api;
  std::span<const Hook> hooks;  // Sorted by name.
  std::span<const Hook> calls;
};
extern const Table cuda_table, nvml_table;

// Returns the tables of this artefact (artefact.h).
std::span<const Table* const> tables();

// Returns the row with exactly that name, or null.
const Hook* find_hook(std::string_view symbol);

// Returns the hook for a driver address that has one, and any other address unchanged. It compares addresses,
// because only the driver knows which function a name, a version and a stream variant select. Takes 6 ns,
// with an index that bind() builds.
void* exchanged(void* theirs);
bool index_hook(const Hook& hook, const void* theirs);  // Returns false if there is no memory for the index.

}  // namespace carve::guest

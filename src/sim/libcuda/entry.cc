// Entry points by name. One table, made from NVIDIA's own typedefs, says which exported symbol a name, a CUDA
// version and a flavour of default stream mean; another, assembled from the list of exports, where each lies.
// So the answer is the same pointer that dlsym gives for that symbol.
#include <algorithm>
#include <cstring>

#include "sim/libcuda/process.h"

using namespace carve::sim;

extern "C" {
// In the generated exports.S: every name of src/abi/cuda_exports.txt, sorted, with its address.
struct ExportRow {
  const char* name;
  void* address;
};
extern const ExportRow carve_sim_exports[];
extern const uint64_t carve_sim_export_count;
// Where the weak stand-ins of exports.S jump to.
CUresult carve_sim_unsupported(const char* name) { return unsupported(name); }
}

namespace {

enum class Flavour : uint8_t { any, legacy, per_thread };
struct EntryPoint {
  const char* name;
  int version;
  Flavour flavour;
  const char* symbol;
};
constexpr cuuint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
constexpr EntryPoint kEntryPoints[] = {
#include "sim/libcuda/entry_points.inc"
};

void* address_of(const char* symbol) {
  const ExportRow* end = carve_sim_exports + carve_sim_export_count;
  const ExportRow* row =
      std::lower_bound(carve_sim_exports, end, symbol,
                       [](const ExportRow& r, const char* s) { return std::strcmp(r.name, s) < 0; });
  return row != end && std::strcmp(row->name, symbol) == 0 ? row->address : nullptr;
}

// The newest entry not newer than `version`; per-thread ones count only if they are wanted, and then win.
CUresult look_up(const char* name, void** out, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult* status) {
  if (!name || !out || flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  int newest = 13000;
  if (entered() == CUDA_SUCCESS) newest = std::max(newest, process().set.file->cuda_version);
  if (version > newest) return CUDA_ERROR_INVALID_VALUE;
  const bool own = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  const auto [first, last] = std::equal_range(
      std::begin(kEntryPoints), std::end(kEntryPoints), name, [](const auto& a, const auto& b) {
        const auto text = [](const auto& x) {
          if constexpr (std::is_same_v<std::decay_t<decltype(x)>, EntryPoint>)
            return x.name;
          else
            return x;
        };
        return std::strcmp(text(a), text(b)) < 0;
      });
  const EntryPoint* best = nullptr;
  for (const EntryPoint* e = first; e != last; ++e) {
    if (e->version > version || (e->flavour == Flavour::per_thread && !own)) continue;
    if (best && best->flavour == Flavour::per_thread && e->flavour != Flavour::per_thread) continue;
    best = e;
  }
  *out = best ? address_of(best->symbol) : nullptr;
  if (status)
    *status = *out            ? CU_GET_PROC_ADDRESS_SUCCESS
              : first != last ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                              : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_SUCCESS;
}

}  // namespace

EXPORT CUresult cuGetProcAddress_v2(const char* name, void** out, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult* status) {
  return look_up(name, out, version, flags, status);
}
EXPORT CUresult cuGetProcAddress_v2_ptsz(const char* name, void** out, int version, cuuint64_t flags,
                                         CUdriverProcAddressQueryResult* status) {
  return look_up(name, out, version, flags ? flags : kPerThread, status);
}
// CUDA 11 had no status and said CUDA_ERROR_NOT_FOUND instead.
EXPORT CUresult cuGetProcAddress(const char* name, void** out, int version, cuuint64_t flags) {
  if (const CUresult e = look_up(name, out, version, flags, nullptr)) return e;
  return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
EXPORT CUresult cuGetProcAddress_ptsz(const char* name, void** out, int version, cuuint64_t flags) {
  return cuGetProcAddress(name, out, version, flags ? flags : kPerThread);
}

// Private tables are between NVIDIA's own libraries and NVIDIA's driver. There are none here.
EXPORT CUresult cuGetExportTable(const void** table, const CUuuid* id) {
  if (!table || !id) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuProfilerStart() {
  std::shared_ptr<CUctx_st> c;
  return current(&c);
}
EXPORT CUresult cuProfilerStop() { return cuProfilerStart(); }

// Entry points by name. One table, made from NVIDIA's own typedefs, maps a name, a CUDA version and a flavour
// of default stream to an exported symbol. A second table, assembled from the list of exports, contains the
// address of each symbol. So the result is the same pointer that dlsym returns for that symbol. Names that
// this driver does not export are unknown to it. tests/nvidia/test_simulator.py compares each look-up with
// those of NVIDIA's drivers.
#include <algorithm>
#include <cstring>

#include "sim/libcuda/driver_state.h"

using namespace carve::sim;

extern "C" {
// Defined in the generated exports.S: every name that this driver exports, sorted, with its address.
struct ExportRow {
  const char* name;
  void* address;
};
extern const ExportRow carve_sim_exports[];
extern const uint64_t carve_sim_export_count;
// The target of the weak stubs of exports.S. Most of NVIDIA's entry points check for a current context first.
CUresult carve_sim_unsupported(const char* name) {
  const CUresult missing = has_context();
  const CUresult e = unsupported(name);
  return missing ? missing : e;
}
}

namespace {

enum class Flavour : uint8_t { any, legacy, per_thread };
struct EntryPoint {
  const char* name;
  int version;
  Flavour flavour;
  const char* symbol;
};
constexpr cuuint64_t per_thread_stream = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
constexpr EntryPoint entry_point_table[] = {
#include "sim/libcuda/entry_points.inc"
};

void* address_of(const char* symbol) {
  const ExportRow* end = carve_sim_exports + carve_sim_export_count;
  const ExportRow* row =
      std::lower_bound(carve_sim_exports, end, symbol,
                       [](const ExportRow& r, const char* s) { return std::strcmp(r.name, s) < 0; });
  return row != end && std::strcmp(row->name, symbol) == 0 ? row->address : nullptr;
}

// Returns the newest entry that is not newer than `version`. If a name has entries of both kinds, only those
// of the requested kind count, so below version 7000 there is no result for the per-thread stream. If both
// bits of `flags` are set, per-thread takes precedence.
CUresult look_up(const char* name, void** out, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult* status) {
  constexpr cuuint64_t all_flags = CU_GET_PROC_ADDRESS_LEGACY_STREAM | per_thread_stream;
  if (!name || !out || (flags & ~all_flags) != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto unwanted = (flags & per_thread_stream) != 0 ? Flavour::legacy : Flavour::per_thread;
  const auto [first, last] = std::equal_range(
      std::begin(entry_point_table), std::end(entry_point_table), name, [](const auto& a, const auto& b) {
        const auto text = [](const auto& x) {
          if constexpr (std::is_same_v<std::decay_t<decltype(x)>, EntryPoint>)
            return x.name;
          else
            return x;
        };
        return std::strcmp(text(a), text(b)) < 0;
      });
  bool known = false;
  *out = nullptr;
  for (const EntryPoint* e = first; e != last; ++e) {
    void* const address = address_of(e->symbol);
    known |= address != nullptr;
    // As in NVIDIA's driver, a negative version is treated as newer than all others.
    if (address && static_cast<unsigned>(e->version) <= static_cast<unsigned>(version) &&
        e->flavour != unwanted)
      *out = address;
  }
  if (status)
    *status = *out    ? CU_GET_PROC_ADDRESS_SUCCESS
              : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
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
  return look_up(name, out, version, flags ? flags : per_thread_stream, status);
}
// The version of CUDA 11 had no status argument and returned CUDA_ERROR_NOT_FOUND instead.
EXPORT CUresult cuGetProcAddress(const char* name, void** out, int version, cuuint64_t flags) {
  void* found = nullptr;
  if (const CUresult e = look_up(name, &found, version, flags, nullptr)) return e;
  if (!found) return CUDA_ERROR_NOT_FOUND;  // *out is unchanged.
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = found;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGetProcAddress_ptsz(const char* name, void** out, int version, cuuint64_t flags) {
  return cuGetProcAddress(name, out, version, flags ? flags : per_thread_stream);
}

// Private tables connect NVIDIA's own libraries to NVIDIA's driver. The simulator has none of them.
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

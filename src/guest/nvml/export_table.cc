// nvidia-smi gets its lists of processes from a private table of NVML. A process in a slice gets a copy of it
// whose three lists are narrowed; all other entries are the driver's. The table of an unknown driver is
// passed through, because an entry with another meaning would be called with the wrong arguments.
#include <string.h>
#include <sys/mman.h>

#include <atomic>

#include "abi/nvml_tables.h"
#include "guest/nvml/own_processes.h"

using namespace carve;
using namespace carve::guest;

namespace {

using List = nvmlReturn_t (*)(nvmlDevice_t device, unsigned int* count, void* rows);
constinit std::atomic<List> theirs[nvml_process_list_count]{};

template <unsigned row_bytes>
struct Row {
  unsigned int pid;
  unsigned char rest[row_bytes - sizeof(unsigned int)];
};

template <unsigned list, unsigned row_bytes>
nvmlReturn_t own_list(nvmlDevice_t device, unsigned int* count, void* rows) {
  const List all = theirs[list].load(std::memory_order_acquire);
  const Entered entered = enter();
  if (entered.refused) return NVML_ERROR_DRIVER_NOT_LOADED;
  if (entered.process == nullptr || count == nullptr) return all(device, count, rows);
  return own(*entered.process, count, static_cast<Row<row_bytes>*>(rows), NVML_SUCCESS,
             [=](unsigned* n, Row<row_bytes>* into) { return all(device, n, into); });
}

template <unsigned row_bytes>
constexpr List own_lists[] = {own_list<0, row_bytes>, own_list<1, row_bytes>, own_list<2, row_bytes>};

const List* lists_of(const NvmlProcessTable& known) {
  static_assert(sizeof own_lists<4120> == nvml_process_list_count * sizeof(List));
  if (known.row_bytes == sizeof(Row<4120>)) return own_lists<4120>;
  return known.row_bytes == sizeof(Row<4128>) ? own_lists<4128> : nullptr;
}

// Made once and never freed, because a program may hold its address. Null if there was no memory.
constinit std::atomic<const uint64_t*> narrowed_table{nullptr};

const uint64_t* narrowed(const uint64_t* table, const NvmlProcessTable& known) {
  const uint64_t* made = narrowed_table.load(std::memory_order_acquire);
  const List* const lists = lists_of(known);
  if (made != nullptr || lists == nullptr) return made;
  void* const pages =
      mmap(nullptr, known.table_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  auto* const copy = static_cast<uint64_t*>(pages);
  memcpy(copy, table, known.table_bytes);
  for (unsigned i = 0; i < nvml_process_list_count; ++i) {
    uint64_t& entry = copy[nvml_process_lists + i];
    if (entry == 0) continue;
    theirs[i].store(reinterpret_cast<List>(entry), std::memory_order_release);
    entry = reinterpret_cast<uint64_t>(lists[i]);
  }
  if (narrowed_table.compare_exchange_strong(made, copy)) return copy;
  munmap(pages, known.table_bytes);
  return made;
}

}  // namespace

nvmlReturn_t nvmlInternalGetExportTable(const void** table, const void* id) {
  const nvmlReturn_t result = driver<&nvmlInternalGetExportTable>(table, id);
  if (result != NVML_SUCCESS || table == nullptr || *table == nullptr || id == nullptr ||
      memcmp(id, nvml_process_table_id, sizeof nvml_process_table_id) != 0)
    return result;
  const Entered entered = enter();
  if (entered.refused) return NVML_ERROR_DRIVER_NOT_LOADED;
  const auto* const all = static_cast<const uint64_t*>(*table);
  const NvmlProcessTable* const known = find_process_table(*all);
  if (entered.process == nullptr || known == nullptr) return result;
  const uint64_t* const own_table = narrowed(all, *known);
  if (own_table == nullptr) return NVML_ERROR_MEMORY;
  *table = own_table;
  return result;
}

// Finds the real driver. We never load it: a program that did not ask for CUDA must not get it. RTLD_NOLOAD
// also pins what it finds, so that a program which closes the driver leaves no slot pointing nowhere.
#include <dlfcn.h>

#include "tenant/linkage/artefact.h"
#include "tenant/linkage/libc.h"

namespace carve::tenant {

std::span<const Table* const> tables() { return artefact.tables; }

namespace {

// The driver's entries that we stand in front of, for `exchanged`: open addressing, a quarter full.
struct Indexed {
  std::atomic<const void*> theirs;
  std::atomic<const Hook*> row;
};
constexpr unsigned index_bits = 10;
constinit Indexed entries[1 << index_bits];

// The place of an entry, or the free one where it belongs.
Indexed& place_of(const void* theirs) {
  auto at =
      static_cast<unsigned>(reinterpret_cast<uint64_t>(theirs) * 0x9e37'79b9'7f4a'7c15 >> (64 - index_bits));
  for (unsigned probes = 0; probes < 1 << index_bits; ++probes, at = (at + 1) % (1 << index_bits)) {
    const void* here = entries[at].theirs.load(std::memory_order_acquire);
    if (here == theirs || here == nullptr) break;
  }
  return entries[at];
}

}  // namespace

void index_hook(const Hook& hook, const void* theirs) {
  for (;;) {
    Indexed& place = place_of(theirs);
    const void* free = nullptr;
    if (!place.theirs.compare_exchange_strong(free, theirs) && free != theirs) continue;
    const Hook* nobody = nullptr;
    place.row.compare_exchange_strong(nobody, &hook);
    return;
  }
}

void bind(Api api) {
  void* library = open_library(artefact.library[static_cast<unsigned>(api)], RTLD_LAZY | RTLD_NOLOAD);
  const auto dlsym_ = find_dlsym();
  if (library == nullptr || dlsym_ == nullptr) return;
  // All are indexed before any is bound: no thread gets to the driver through a slot while an answer of the
  // driver's could still go out unexchanged.
  for (const Table* table : tables()) {
    if (table->api != api) continue;
    for (const Hook& row : table->hooks)
      if (const void* theirs = dlsym_(library, row.symbol)) index_hook(row, theirs);
  }
  for (const Table* table : tables()) {
    if (table->api != api) continue;
    for (const auto& rows : {table->hooks, table->calls}) {
      for (const Hook& row : rows)
        if (void* theirs = dlsym_(library, row.symbol)) row.bind(theirs);
    }
  }
}

const Hook* find_hook(std::string_view symbol) {
  const auto name = [](const Hook& h) { return std::string_view(h.symbol); };
  for (const Table* table : tables()) {
    const auto row = std::ranges::lower_bound(table->hooks, symbol, {}, name);
    if (row != table->hooks.end() && name(*row) == symbol) return &*row;
  }
  return nullptr;
}

void* exchanged(void* theirs) {
  const Hook* row = place_of(theirs).row.load(std::memory_order_acquire);
  return row != nullptr && theirs != nullptr ? row->ours() : theirs;
}

}  // namespace carve::tenant

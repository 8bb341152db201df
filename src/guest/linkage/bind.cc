// Finds the real driver. The guest library loads the driver only when a hook is called, because a program
// that does not use CUDA must not load it. RTLD_NOLOAD also pins the library, so a program that closes the
// driver leaves no slot with an invalid address.
#include <dlfcn.h>
#include <sys/mman.h>

#include "guest/linkage/artefact.h"
#include "guest/linkage/ensure.h"
#include "guest/linkage/libc.h"

namespace carve::guest {

std::span<const Table* const> tables() { return artefact.tables; }

namespace {

// The driver's entry points that have hooks, for exchanged(). A hash table with open addressing, a quarter
// full.
struct Indexed {
  std::atomic<const void*> theirs;
  std::atomic<const Hook*> row;
};
constexpr unsigned index_bits = 10;
// Mapped when the first driver is bound, so a program without a driver needs no page for it.
constinit std::atomic<Indexed*> index_page{nullptr};

// Returns null if there is no memory for the index.
Indexed* make_index() {
  Indexed* page = index_page.load(std::memory_order_acquire);
  if (page != nullptr) return page;
  constexpr size_t bytes = sizeof(Indexed) << index_bits;
  void* fresh = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!ensure(fresh != MAP_FAILED)) return nullptr;
  if (index_page.compare_exchange_strong(page, static_cast<Indexed*>(fresh)))
    return static_cast<Indexed*>(fresh);
  munmap(fresh, bytes);
  return page;
}

// Returns the slot of an entry point, or a free slot for it, or null if there is neither.
Indexed* find_entry(Indexed* entries, const void* theirs) {
  auto at =
      static_cast<unsigned>(reinterpret_cast<uint64_t>(theirs) * 0x9e37'79b9'7f4a'7c15 >> (64 - index_bits));
  for (unsigned probes = 0; probes < 1 << index_bits; ++probes, at = (at + 1) % (1 << index_bits)) {
    const void* here = entries[at].theirs.load(std::memory_order_acquire);
    if (here == theirs || here == nullptr) return &entries[at];
  }
  return nullptr;
}

}  // namespace

bool index_hook(const Hook& hook, const void* theirs) {
  Indexed* const index = make_index();
  if (index == nullptr) return false;
  for (;;) {
    Indexed* const entry = find_entry(index, theirs);
    if (!ensure(entry != nullptr)) return false;
    const void* free = nullptr;
    if (!entry->theirs.compare_exchange_strong(free, theirs) && free != theirs) continue;
    const Hook* none = nullptr;
    entry->row.compare_exchange_strong(none, &hook);
    return true;
  }
}

void load_and_bind(Api api) {
  // The handle is never closed.
  if (open_library(artefact.library[static_cast<unsigned>(api)], RTLD_LAZY) == nullptr)
    forget_library_error();
  bind(api);
}

bool bind(Api api) {
  void* library = open_library(artefact.library[static_cast<unsigned>(api)], RTLD_LAZY | RTLD_NOLOAD);
  const auto dlsym_ = find_dlsym();
  if (library == nullptr || dlsym_ == nullptr) return true;
  // Index all entry points before any is bound. Otherwise a thread could reach the driver through a slot and
  // get a driver address that is not exchanged yet.
  for (const Table* table : tables()) {
    if (table->api != api) continue;
    for (const Hook& row : table->hooks)
      if (const void* theirs = dlsym_(library, row.symbol); theirs != nullptr && !index_hook(row, theirs))
        return false;
  }
  for (const Table* table : tables()) {
    if (table->api != api) continue;
    for (const auto& rows : {table->hooks, table->calls}) {
      for (const Hook& row : rows)
        if (void* theirs = dlsym_(library, row.symbol)) row.bind(theirs);
    }
  }
  return true;
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
  Indexed* index = index_page.load(std::memory_order_acquire);
  if (index == nullptr) return theirs;  // No driver was bound, so this is not one of its entry points.
  const Indexed* const entry = find_entry(index, theirs);
  const Hook* row = entry != nullptr ? entry->row.load(std::memory_order_acquire) : nullptr;
  return row != nullptr && theirs != nullptr ? row->ours() : theirs;
}

}  // namespace carve::guest

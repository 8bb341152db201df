// Finds the real driver. We never load it: a program that did not ask for CUDA must not get it. RTLD_NOLOAD
// also pins what it finds, so that a program which closes the driver leaves no slot pointing nowhere.
#include <dlfcn.h>

#include "tenant/linkage/artefact.h"
#include "tenant/linkage/libc.h"

namespace carve::tenant {

std::span<const Table* const> tables() { return artefact.tables; }

void bind(Api api) {
  void* library = open_library(artefact.library[static_cast<unsigned>(api)], RTLD_LAZY | RTLD_NOLOAD);
  const auto dlsym_ = find_dlsym();
  if (library == nullptr || dlsym_ == nullptr) return;
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
  for (const Table* table : tables()) {
    for (const Hook& row : table->hooks)
      if (row.theirs() == theirs) return row.ours();
  }
  return theirs;
}

}  // namespace carve::tenant

#include "guest/linkage/own_symbols.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

// Both symbols are defined by the linker.
extern "C" {
extern const Elf64_Dyn carve_dynamic[] __asm__("_DYNAMIC") __attribute__((visibility("hidden")));
extern const Elf64_Ehdr carve_elf_header __asm__("__ehdr_start") __attribute__((visibility("hidden")));
}

namespace carve::guest {
namespace {

// glibc replaces the addresses in the dynamic section with absolute ones when it loads a library.
uintptr_t entry(Elf64_Sxword tag) {
  const auto base = reinterpret_cast<uintptr_t>(&carve_elf_header);
  for (const Elf64_Dyn* d = carve_dynamic; d->d_tag != DT_NULL; ++d)
    if (d->d_tag == tag) return d->d_un.d_ptr < base ? base + d->d_un.d_ptr : d->d_un.d_ptr;
  return 0;
}

uint32_t gnu_hash(const char* name) {
  uint32_t hash = 5381;
  for (; *name != 0; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

// Finds a symbol as the dynamic linker does, in the table of DT_GNU_HASH. The table has the number of
// buckets, the index of the first hashed symbol, the number of words of the filter, a shift, the filter, the
// buckets, and chains of hashes; the last hash of a chain has its lowest bit set.
const Elf64_Sym* find_symbol(const char* name) {
  const auto* const table = reinterpret_cast<const uint32_t*>(entry(DT_GNU_HASH));
  const auto* const symbols = reinterpret_cast<const Elf64_Sym*>(entry(DT_SYMTAB));
  const auto* const names = reinterpret_cast<const char*>(entry(DT_STRTAB));
  if (table == nullptr || symbols == nullptr || names == nullptr || table[0] == 0) return nullptr;
  const uint32_t buckets_count = table[0], first = table[1], filter_words = table[2];
  const uint32_t* const buckets = table + 4 + 2 * size_t{filter_words};
  const uint32_t* const chain = buckets + buckets_count;
  const uint32_t hash = gnu_hash(name);
  uint32_t i = buckets[hash % buckets_count];
  if (i < first) return nullptr;
  for (;; ++i) {
    const uint32_t here = chain[i - first];
    if ((here | 1) == (hash | 1) && strcmp(names + symbols[i].st_name, name) == 0) return &symbols[i];
    if ((here & 1) != 0) return nullptr;
  }
}

}  // namespace

bool hide_own_symbol(const char* name) {
  auto* const symbol = const_cast<Elf64_Sym*>(find_symbol(name));
  if (symbol == nullptr) return false;
  const auto page_size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t start = reinterpret_cast<uintptr_t>(symbol) & ~(page_size - 1);
  const uintptr_t end = reinterpret_cast<uintptr_t>(symbol + 1);
  void* const pages = reinterpret_cast<void*>(start);
  if (mprotect(pages, end - start, PROT_READ | PROT_WRITE) != 0) return false;
  // Look-ups skip a symbol without a value. A thread that looks the name up at the same time may or may not
  // still find it.
  __atomic_store_n(&symbol->st_value, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&symbol->st_shndx, SHN_UNDEF, __ATOMIC_RELEASE);
  mprotect(pages, end - start, PROT_READ);
  return true;
}

}  // namespace carve::guest

#include "memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>

#include "machine.h"
#include "trace.h"

namespace responder {
namespace {

void log_managed(const char* what, uint64_t length) {
  append("RESPONDER_REQUESTS", "%s managed 0 %llu %llu\n", what, static_cast<unsigned long long>(length),
         static_cast<unsigned long long>(length));
}

void log_request(const char* what, const Memory& memory) {
  constexpr const char* places[] = {"video", "system", "foreign"};
  append("RESPONDER_REQUESTS", "%s %s %u %llu %llu\n", what, places[static_cast<int>(memory.place)],
         memory.gpu, static_cast<unsigned long long>(memory.asked),
         static_cast<unsigned long long>(memory.size));
}

constexpr uint64_t page = 4096, file_size = uint64_t{256} << 30;
constexpr uint64_t video_bytes = uint64_t{memory_kib} << 10;

// Parts of the memory file that are in use: offset and size.
struct File {
  std::mutex mutex;
  std::map<uint64_t, uint64_t> parts;
  uint64_t video[max_gpus] = {};
  int descriptor = -1;
  uint8_t* bytes = nullptr;

  File() {
    descriptor = memfd_create("responder-memory", MFD_CLOEXEC);
    if (descriptor < 0 || ftruncate(descriptor, file_size) != 0) return;
    void* const all =
        mmap(nullptr, file_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
    if (all != MAP_FAILED) bytes = static_cast<uint8_t*>(all);
  }
};

// Never destroyed, because the driver makes calls until the process ends.
File& file() {
  static File* const made = new File;
  return *made;
}

// Returns the offset of a free part, aligned to 2 MiB if the part is that large; ~0 if there is none.
uint64_t place_part(const File& f, uint64_t size) {
  const uint64_t alignment = size >= 2 << 20 ? 2 << 20 : page;
  uint64_t start = 0;
  for (const auto& [offset, length] : f.parts) {
    if (start + size <= offset) return start;
    start = (offset + length + alignment - 1) & ~(alignment - 1);
  }
  return start + size <= file_size ? start : ~uint64_t{0};
}

struct Mapping {
  uint64_t length;
  Memory* memory;  // Null for managed memory.
  uint64_t offset;
  bool is_counted;  // Whether it is in the log of requests as managed memory.
};
struct Addresses {
  std::mutex mutex;
  std::map<uint64_t, Mapping> mappings;
  std::map<uint64_t, uint64_t> pools;  // Pools of semaphores that are not mapped yet.
};
Addresses& addresses() {
  static Addresses* const made = new Addresses;
  return *made;
}

// Adds the part [from, to) of a mapping that begins at `start`.
void keep(std::map<uint64_t, Mapping>& mappings, const Mapping& whole, uint64_t start, uint64_t from,
          uint64_t to) {
  if (from >= to) return;
  mappings[from] = {to - from, whole.memory != nullptr ? share(whole.memory) : nullptr,
                    whole.offset + (from - start), whole.is_counted};
}

// Removes [address, address + length) from the mappings. The caller must hold the mutex.
void cut(std::map<uint64_t, Mapping>& mappings, uint64_t address, uint64_t length) {
  const uint64_t end = address + length;
  auto it = mappings.upper_bound(address);
  if (it != mappings.begin()) --it;
  while (it != mappings.end() && it->first < end) {
    const uint64_t start = it->first, stop = start + it->second.length;
    if (stop <= address) {
      ++it;
      continue;
    }
    const Mapping whole = it->second;
    mappings.erase(it);
    keep(mappings, whole, start, start, std::min(address, stop));
    keep(mappings, whole, start, std::max(end, start), stop);
    if (whole.memory != nullptr)
      release(whole.memory);
    else if (whole.is_counted)
      log_managed("free", std::min(end, stop) - std::max(address, start));
    it = mappings.lower_bound(std::min(stop, end));
  }
}

bool add(uint64_t address, uint64_t length, Memory* memory, uint64_t offset) {
  if (length == 0 || address + length < address) return false;
  Addresses& all = addresses();
  const std::lock_guard locked(all.mutex);
  cut(all.mappings, address, length);
  all.mappings[address] = {length, memory, offset, memory == nullptr};
  return true;
}

// Returns whether the process has all pages of a range. (The kernel pins them and fails if one is missing.)
bool is_mapped(uint64_t start, uint64_t size) {
  constexpr uint64_t pages = 4096;
  unsigned char present[pages];
  const uint64_t end = start + size;
  if (size == 0 || end < start) return false;
  for (uint64_t at = start & ~(page - 1); at < end; at += pages * page)
    if (mincore(reinterpret_cast<void*>(at), std::min(end - at, pages * page), present) != 0) return false;
  return true;
}

}  // namespace

Memory* make_memory(Place place, unsigned gpu, uint64_t asked, uint64_t size) {
  if (size == 0 || size > file_size || gpu >= max_gpus) return nullptr;
  size = (size + page - 1) & ~(page - 1);
  File& f = file();
  const std::lock_guard locked(f.mutex);
  if (f.bytes == nullptr) return nullptr;
  if (place == Place::video && f.video[gpu] + size > video_bytes) return nullptr;
  const uint64_t offset = place_part(f, size);
  if (offset == ~uint64_t{0}) return nullptr;
  f.parts[offset] = size;
  if (place == Place::video) f.video[gpu] += size;
  auto* const made = new Memory{place, gpu, 1, size, asked, offset, f.bytes + offset, 0};
  log_request("alloc", *made);
  return made;
}

Memory* make_foreign(unsigned gpu, void* bytes, uint64_t size) {
  if (!is_mapped(reinterpret_cast<uint64_t>(bytes), size)) return nullptr;
  auto* const made = new Memory{Place::foreign, gpu, 1, size, size, 0, static_cast<uint8_t*>(bytes), 0};
  log_request("alloc", *made);
  return made;
}

Memory* share(Memory* memory) {
  __atomic_add_fetch(&memory->references, 1, __ATOMIC_RELAXED);
  return memory;
}

void release(Memory* memory) {
  if (__atomic_sub_fetch(&memory->references, 1, __ATOMIC_ACQ_REL) != 0) return;
  log_request("free", *memory);
  if (memory->place != Place::foreign) {
    File& f = file();
    const std::lock_guard locked(f.mutex);
    fallocate(f.descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(memory->offset),
              static_cast<off_t>(memory->size));
    f.parts.erase(memory->offset);
    if (memory->place == Place::video) f.video[memory->gpu] -= memory->size;
  }
  delete memory;
}

int memory_file() { return file().descriptor; }

uint64_t used_video(unsigned gpu) {
  File& f = file();
  const std::lock_guard locked(f.mutex);
  return gpu < max_gpus ? f.video[gpu] : 0;
}

bool map_address(uint64_t address, uint64_t length, Memory* memory, uint64_t offset) {
  if (offset > memory->size || length > memory->size - offset) return false;
  if (add(address, length, share(memory), offset)) return true;
  release(memory);
  return false;
}

bool map_managed(uint64_t address, uint64_t length) {
  if (!add(address, length, nullptr, 0)) return false;
  Addresses& all = addresses();
  const std::lock_guard locked(all.mutex);
  const auto pool = all.pools.find(address);
  const bool is_pool = pool != all.pools.end() && pool->second == length;
  if (is_pool) {
    all.pools.erase(pool);
    all.mappings[address].is_counted = false;
  } else {
    log_managed("alloc", length);
  }
  return true;
}

void unmap_address(uint64_t address, uint64_t length) {
  Addresses& all = addresses();
  const std::lock_guard locked(all.mutex);
  if (address + length > address) cut(all.mappings, address, length);
}

void expect_pool(uint64_t address, uint64_t length) {
  constexpr size_t most = 1024;
  Addresses& all = addresses();
  const std::lock_guard locked(all.mutex);
  if (all.pools.size() < most) all.pools[address] = length;
}

void unmap_managed(uint64_t address, uint64_t length) {
  Addresses& all = addresses();
  const std::lock_guard locked(all.mutex);
  const uint64_t end = address + length;
  auto it = all.mappings.upper_bound(address);
  if (it != all.mappings.begin()) --it;
  while (it != all.mappings.end() && it->first < end) {
    const uint64_t start = std::max(it->first, address), stop = std::min(it->first + it->second.length, end);
    const bool is_managed = it->second.memory == nullptr;
    ++it;
    if (!is_managed || start >= stop) continue;
    cut(all.mappings, start, stop - start);
    it = all.mappings.lower_bound(stop);
  }
}

uint64_t mapped_from(uint64_t address) {
  Addresses& all = addresses();
  const std::lock_guard locked(all.mutex);
  const auto it = all.mappings.upper_bound(address);
  if (it == all.mappings.begin()) return 0;
  const auto& [start, mapping] = *std::prev(it);
  return address - start < mapping.length ? mapping.length - (address - start) : 0;
}

uint8_t* bytes_at(uint64_t address, uint64_t length) {
  Addresses& all = addresses();
  const std::lock_guard locked(all.mutex);
  const auto it = all.mappings.upper_bound(address);
  if (it == all.mappings.begin()) return nullptr;
  const auto& [start, mapping] = *std::prev(it);
  const uint64_t within = address - start;
  if (within >= mapping.length || length > mapping.length - within) return nullptr;
  if (mapping.memory == nullptr) return reinterpret_cast<uint8_t*>(address);
  return mapping.memory->bytes + mapping.offset + within;
}

}  // namespace responder

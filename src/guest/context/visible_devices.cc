#include "guest/context/visible_devices.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "base/device_list.h"
#include "guest/process/uuid.h"

namespace carve::guest {
namespace {

static_assert(shm::max_devices <= DeviceList::max_devices);

constexpr char variable[] = "CUDA_VISIBLE_DEVICES=";
constexpr char variable_name[] = "CUDA_VISIBLE_DEVICES";
constexpr size_t name_size = sizeof variable - 1;

// The buffer is not on the stack, because another thread may read the variable now and use its value later.
// Two threads that arrive at the same time write the same text. The buffer is mapped on first use and never
// unmapped; null if there is no memory.
constexpr size_t words_size = name_size + (shm::max_devices + 1) * (uuid_text_size + 1);
constinit std::atomic<char*> words_page{nullptr};

char* make_words() {
  char* page = words_page.load(std::memory_order_acquire);
  if (page != nullptr) return page;
  void* fresh = mmap(nullptr, words_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return nullptr;
  if (words_page.compare_exchange_strong(page, static_cast<char*>(fresh))) return static_cast<char*>(fresh);
  munmap(fresh, words_size);
  return page;
}

// Returns the variable's entry of the environment, or null if it is not set.
char** find_variable() {
  for (char** e = environ; e != nullptr && *e != nullptr; ++e)
    if (strncmp(*e, variable, name_size) == 0) return e;
  return nullptr;
}

DeviceList named(const shm::Control& control, unsigned device_count, const char* list) {
  if (list != nullptr)
    return read_device_list(list, device_count, [&](unsigned i) { return control.devices[i].uuid; });
  DeviceList all;
  for (; all.count < device_count; ++all.count) all.devices[all.count] = static_cast<uint8_t>(all.count);
  return all;
}

}  // namespace

bool by_uuid(const shm::Control& control, unsigned device_count, const char* list, char* out, size_t room) {
  const DeviceList devices = named(control, device_count, list);
  if (room < devices.count * uuid_text_size + 1) return false;
  for (unsigned i = 0; i < devices.count; ++i) {
    char uuid[uuid_text_size];
    uuid_text(control.devices[devices.devices[i]].uuid, uuid);
    if (i > 0) *out++ = ',';
    memcpy(out, uuid, uuid_text_size - 1);
    out += uuid_text_size - 1;
  }
  *out = 0;
  return true;
}

VisibleByUuid::VisibleByUuid(const Process& process) {
  char** const place = find_variable();
  char* const words = make_words();
  if (words == nullptr || (place != nullptr && *place == words)) return;
  if (!by_uuid(*process.control, process.device_count, place != nullptr ? *place + name_size : nullptr,
               words + name_size, words_size - name_size))
    return;
  memcpy(words, variable, name_size);
  before_ = place != nullptr ? *place : nullptr;
  if (place != nullptr) __atomic_store_n(place, words, __ATOMIC_RELEASE);
  is_changed_ = place != nullptr || putenv(words) == 0;
}

// Restores the variable. If another thread has set variables in the meantime, the environment may have moved,
// so the destructor searches for the variable again.
VisibleByUuid::~VisibleByUuid() {
  if (!is_changed_) return;
  char** const place = find_variable();
  if (place == nullptr || *place != words_page.load(std::memory_order_acquire)) return;
  if (before_ != nullptr)
    __atomic_store_n(place, before_, __ATOMIC_RELEASE);
  else
    unsetenv(variable_name);
}

}  // namespace carve::guest

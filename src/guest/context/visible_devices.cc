#include "guest/context/visible_devices.h"

#include <sys/mman.h>

#include <string.h>
#include <unistd.h>
#include <atomic>

#include "guest/process/uuid.h"

namespace carve::guest {
namespace {

struct Word {
  const char* text;
  size_t size;
};

// Returns the text up to the next comma, without the spaces around it.
Word word_at(const char* list) {
  while (*list == ' ') ++list;
  size_t size = strcspn(list, ",");
  while (size > 0 && list[size - 1] == ' ') --size;
  return {list, size};
}

bool is_number(Word word) { return word.size > 0 && strspn(word.text, "0123456789") >= word.size; }

constexpr char variable[] = "CUDA_VISIBLE_DEVICES=";
constexpr size_t name_size = sizeof variable - 1;

// Not on the stack, because another thread may read the variable now and use it later. Two threads that come
// at once write the same text. Mapped when needed, and kept; null without memory.
constexpr size_t words_size = name_size + shm::max_devices * 4 * (uuid_text_size + 1);
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

// Returns a value far beyond any index if the number is longer.
unsigned value_of(Word word) {
  unsigned value = 0;
  for (size_t i = 0; i < word.size && value < 1000; ++i)
    value = value * 10 + static_cast<unsigned>(word.text[i] - '0');
  return value;
}

}  // namespace

bool by_uuid(const shm::Control& control, unsigned device_count, const char* list, char* out, size_t room) {
  bool replaced = false;
  for (const char* rest = list; rest != nullptr && !replaced; rest = strchr(rest, ',')) {
    if (*rest == ',') ++rest;
    replaced = is_number(word_at(rest));
  }
  if (!replaced) return false;
  size_t used = 0;
  for (const char* rest = list; rest != nullptr; rest = strchr(rest, ',')) {
    if (*rest == ',') ++rest;
    Word word = word_at(rest);
    char uuid[uuid_text_size];
    if (is_number(word)) {
      const unsigned index = value_of(word);
      if (index >= device_count) break;
      uuid_text(control.devices[index].uuid, uuid);
      word = {uuid, uuid_text_size - 1};
    }
    if (used + word.size + 2 > room) return false;
    if (used > 0) out[used++] = ',';
    memcpy(out + used, word.text, word.size);
    used += word.size;
  }
  if (room == 0) return false;
  out[used] = 0;
  return true;
}

VisibleByUuid::VisibleByUuid(const Process& process) {
  for (char** e = environ; e != nullptr && *e != nullptr; ++e) {
    if (strncmp(*e, variable, name_size) != 0) continue;
    char* words = make_words();
    if (words == nullptr || !by_uuid(*process.control, process.device_count, *e + name_size,
                                     words + name_size, words_size - name_size))
      return;
    memcpy(words, variable, name_size);
    place_ = e;
    before_ = *e;
    __atomic_store_n(place_, &words[0], __ATOMIC_RELEASE);
    return;
  }
}

// Restores the variable. If another thread has set variables meanwhile, the environment may have moved, so
// the variable is searched again.
VisibleByUuid::~VisibleByUuid() {
  if (place_ == nullptr) return;
  for (char** e = environ; e != nullptr && *e != nullptr; ++e)
    if (*e == words_page.load(std::memory_order_acquire)) __atomic_store_n(e, before_, __ATOMIC_RELEASE);
}

}  // namespace carve::guest

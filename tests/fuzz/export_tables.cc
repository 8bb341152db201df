// A slice may write any bytes to its table of exports. For any content a lookup must stay inside the table,
// find an entry that was just published, and return "own" only for a name in the table.
//
// An input is a list of records of 9 bytes: an operation and a word.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "wire/shm/exports.h"

using namespace carve::shm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto table = std::make_unique<Exports>();
  static const auto control = std::make_unique<Control>();
  for (unsigned slot = 0; slot < 16; ++slot) {
    control->processes[slot].pid = slot % 3;  // Every third slot is free.
    control->processes[slot].generation = slot;
  }
  for (auto& set : table->word)
    for (auto& word : set) word.store(0, std::memory_order_relaxed);
  for (; size >= 9; data += 9, size -= 9) {
    uint64_t word = 0;
    std::memcpy(&word, data + 1, 8);
    switch (data[0] % 3) {
      case 0:
        table->word[word % export_sets][data[0] / 3 % export_ways].store(word, std::memory_order_relaxed);
        break;
      case 1:
        publish(*table, *control, data[0] / 3 % 16, word);
        if (origin_of(*table, *control, word) != Origin::own) std::abort();
        break;
      case 2: {
        bool named = false;
        for (const auto& entry : table->word[exports::set_of(word)])
          named |= entry != 0 && (entry & ~exports::owner_mask) == exports::name_of(word);
        if ((origin_of(*table, *control, word) == Origin::own) != named) std::abort();
      }
    }
  }
  return 0;
}

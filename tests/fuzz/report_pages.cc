// A slice may write any bytes to its report page. For any content the agent's reads must terminate and stay
// inside the page, and a reclaimed slot must hold nothing.
//
// An input is a list of stores of 12 bytes: the word's position (4 bytes, modulo the page) and its value.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "wire/shm/budget.h"

using namespace carve::shm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto report = std::make_unique<Report>();
  auto* words = reinterpret_cast<uint64_t*>(report.get());
  Charges& charges = report->charges;
  std::vector<unsigned> slots{0, max_processes - 1, max_processes, Tag::agent};
  std::vector<size_t> written;
  for (; size >= 12; data += 12, size -= 12) {
    uint32_t slot = 0;
    uint64_t value = 0;
    std::memcpy(&slot, data, 4);
    std::memcpy(&value, data + 4, 8);
    // Most stores go to the important words: the budgets, the agent's lanes and the first three processes.
    const size_t word =
        slot % (slot & 1 ? offsetof(Report, pad) / 8 : (4096 + 3 * sizeof(ReportProcess)) / 8);
    words[word] = value;
    written.push_back(word);
    if (word >= 512) slots.push_back(static_cast<unsigned>((word - 512) / (sizeof(ReportProcess) / 8)));
  }
  for (const unsigned slot : slots) {
    const bool done = reclaim(charges, slot);
    for (unsigned device = 0; device < max_devices; ++device)
      for (unsigned lane = 0; lane < lanes; ++lane)
        if (done && slot < max_processes && holding(charges, {device, slot, lane}) != 0) std::abort();
  }
  for (unsigned device = 0; device < max_devices; ++device) {
    const LaneId growth{device, Tag::agent, 0};
    change(charges, growth, holding(charges, growth), 4096, UINT64_MAX, NoStops{}, agent_attempts);
  }
  std::memset(static_cast<void*>(report.get()), 0, 4096);
  for (const unsigned slot : slots)
    if (slot < max_processes)
      std::memset(static_cast<void*>(&charges.process[slot]), 0, sizeof(ReportProcess));
  return 0;
}

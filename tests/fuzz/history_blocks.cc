// Any bytes as a block of the history are rejected or yield entries, which are the same after they were written
// and read again. The checksum is set, so that most inputs reach the entries.
#include <cstdint>
#include <cstdlib>

#include "controller/history/history_block.h"

namespace {

using namespace carve::controller;

std::string sealed(std::string bytes) {
  uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int i = 0; i < 8; ++i) crc = (crc & 1) != 0 ? 0xedb88320u ^ (crc >> 1) : crc >> 1;
  }
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(~crc >> (8 * i));
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  (void)HistoryBlock::open(bytes);
  const std::string complete = sealed(bytes);
  const auto block = HistoryBlock::open(complete);
  if (!block) return 0;
  std::vector<HistoryEntry> entries;
  const bool is_read = block->each([&](HistoryEntry&& entry) { entries.push_back(std::move(entry)); });
  if (!is_read) return 0;
  std::vector<HistoryEntry> again;
  const std::string written = encode_block(entries, block->points());
  const auto reread = HistoryBlock::open(written);
  if (!reread || !reread->each([&](HistoryEntry&& entry) { again.push_back(std::move(entry)); }))
    std::abort();
  if (again != entries) std::abort();
  return 0;
}

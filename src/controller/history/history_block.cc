#include "controller/history/history_block.h"

#include <algorithm>

#include "core/invariant.h"

namespace carve::controller {
namespace {

constexpr char block_version = 1;
constexpr size_t header_bytes = 2, checksum_bytes = 4;

// A column has at most as many tokens as points, each of at most 5 bytes (34 bits).
enum Token : uint8_t { repeat = 0, absent = 1, change = 2 };

// The reflected polynomial of CRC-32 as in zlib and Ethernet.
constexpr std::array<uint32_t, 256> crc_table = [] {
  std::array<uint32_t, 256> out{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? 0xedb88320u ^ (value >> 1) : value >> 1;
    out[i] = value;
  }
  return out;
}();

uint32_t crc_of(std::string_view bytes) {
  uint32_t out = ~0u;
  for (const char c : bytes) out = crc_table[(out ^ static_cast<uint8_t>(c)) & 0xff] ^ (out >> 8);
  return ~out;
}

void add_number(std::string& out, uint64_t number) {
  while (number >= 0x80) {
    out += static_cast<char>(0x80 | (number & 0x7f));
    number >>= 7;
  }
  out += static_cast<char>(number);
}

std::optional<uint64_t> take_number(std::string_view& bytes) {
  uint64_t out = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    out |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return out;
  }
  return std::nullopt;
}

uint64_t zigzag(int64_t number) {
  return (static_cast<uint64_t>(number) << 1) ^ static_cast<uint64_t>(number >> 63);
}
int64_t from_zigzag(uint64_t number) {
  return static_cast<int64_t>(number >> 1) ^ -static_cast<int64_t>(number & 1);
}

void add_column(std::string& out, const HistoryColumn& column) {
  StepCount last = 0;
  for (size_t i = 0; i < column.size();) {
    const StepCount value = column[i];
    if (value != no_value && value != last) {
      add_number(out, zigzag(int64_t{value} - int64_t{last}) << 2 | change);
      last = value;
      ++i;
      continue;
    }
    const size_t begin = i;
    while (i < column.size() && column[i] == value) ++i;
    add_number(out, uint64_t{i - begin} << 2 | (value == no_value ? absent : repeat));
  }
}

// Fills the column up to `points` values.
bool take_column(std::string_view& bytes, size_t points, HistoryColumn& column) {
  int64_t last = 0;
  while (column.size() < points) {
    const auto token = take_number(bytes);
    if (!token) return false;
    const uint64_t number = *token >> 2;
    switch (*token & 3) {
      case repeat:
      case absent:
        if (number == 0 || number > points - column.size()) return false;
        column.insert(column.end(), number, (*token & 3) == absent ? no_value : static_cast<StepCount>(last));
        break;
      case change:
        if (number > uint64_t{no_value} << 1) return false;
        last += from_zigzag(number);
        if (last < 0 || last >= int64_t{no_value}) return false;
        column.push_back(static_cast<StepCount>(last));
        break;
      default: return false;
    }
  }
  return true;
}

bool take_columns(std::string_view bytes, size_t points, std::vector<HistoryColumn>& columns) {
  const auto count = take_number(bytes);
  if (!count || *count > max_history_metrics) return false;
  columns.resize(*count);
  for (HistoryColumn& column : columns) {
    column.reserve(points);
    if (!take_column(bytes, points, column)) return false;
  }
  return bytes.empty();
}

}  // namespace

std::string encode_block(std::span<const HistoryEntry> entries, size_t points) {
  invariant(points > 0 && points <= max_block_points);
  std::string out = {block_version, static_cast<char>(points)};
  uint64_t last = 0;
  for (const HistoryEntry& entry : entries) {
    invariant(entry.series > last && entry.columns.size() <= max_history_metrics);
    std::string columns;
    add_number(columns, entry.columns.size());
    for (const HistoryColumn& column : entry.columns) {
      invariant(column.size() == points);
      add_column(columns, column);
    }
    add_number(out, entry.series - last);
    add_number(out, columns.size());
    out += columns;
    last = entry.series;
  }
  const uint32_t crc = crc_of(out);
  for (size_t i = 0; i < checksum_bytes; ++i) out += static_cast<char>(crc >> (8 * i));
  return out;
}

std::optional<HistoryBlock> HistoryBlock::open(std::string_view bytes) {
  if (bytes.size() < header_bytes + checksum_bytes || bytes[0] != block_version) return std::nullopt;
  const auto points = static_cast<uint8_t>(bytes[1]);
  if (points == 0 || points > max_block_points) return std::nullopt;
  const std::string_view checked = bytes.substr(0, bytes.size() - checksum_bytes);
  uint32_t crc = 0;
  for (size_t i = 0; i < checksum_bytes; ++i)
    crc |= uint32_t{static_cast<uint8_t>(bytes[checked.size() + i])} << (8 * i);
  if (crc != crc_of(checked)) return std::nullopt;
  return HistoryBlock(checked.substr(header_bytes), points);
}

bool HistoryBlock::visit_entries(const std::function<bool(uint64_t)>& selects,
                                 const std::function<void(HistoryEntry&&)>& visit) const {
  std::string_view rest = entries_;
  uint64_t series = 0;
  while (!rest.empty()) {
    const auto difference = take_number(rest), size = take_number(rest);
    if (!difference || !size || *size > rest.size() || *difference == 0 || *difference > UINT64_MAX - series)
      return false;
    series += *difference;
    const std::string_view columns = rest.substr(0, *size);
    rest.remove_prefix(*size);
    if (!selects(series)) continue;
    HistoryEntry entry{.series = series, .columns = {}};
    if (!take_columns(columns, points_, entry.columns)) return false;
    visit(std::move(entry));
  }
  return true;
}

bool HistoryBlock::each(std::span<const uint64_t> series,
                        const std::function<void(HistoryEntry&&)>& visit) const {
  return visit_entries([&](uint64_t id) { return std::ranges::binary_search(series, id); }, visit);
}

bool HistoryBlock::each(const std::function<void(HistoryEntry&&)>& visit) const {
  return visit_entries([](uint64_t) { return true; }, visit);
}

}  // namespace carve::controller

// See zstd_codes.h.
#include "sim/libcuda/zstd_codes.h"

#include <algorithm>
#include <bit>

namespace carve::sim::zstd {
namespace {

constexpr unsigned kLongestCode = 11;
constexpr unsigned kMostWeights = 255;

unsigned highest_bit(uint64_t n) { return static_cast<unsigned>(std::bit_width(n)) - 1; }

uint64_t byte_at(std::string_view in, size_t i) {
  return i < in.size() ? static_cast<unsigned char>(in[i]) : 0u;
}

// The weights of all symbols but the last, two streams of states taking turns in one of bits.
bool coded_weights(std::string_view in, std::vector<uint8_t>* out) {
  size_t used = 0;
  const auto table = fse_read(in, 6, kMostWeights, &used);
  if (!table || used >= in.size()) return false;
  Backward bits(in.substr(used));
  if (bits.left() < 0) return false;
  uint64_t state[2] = {bits.read(table->accuracy), bits.read(table->accuracy)};
  for (unsigned turn = 0; out->size() < kMostWeights; turn ^= 1) {
    const FseTable::State& s = table->states[state[turn]];
    out->push_back(s.symbol);
    if (bits.left() < s.bits) {  // The other stream's last state has a symbol still.
      out->push_back(table->states[state[turn ^ 1]].symbol);
      return out->size() <= kMostWeights;
    }
    state[turn] = s.base + bits.read(s.bits);
  }
  return false;
}

}  // namespace

unsigned Forward::peek(unsigned bits) const {
  uint64_t word = 0;
  for (unsigned i = 0; i < 5; ++i) word |= byte_at(in_, at_ / 8 + i) << (8 * i);
  return static_cast<unsigned>(word >> (at_ % 8) & ((1ull << bits) - 1));
}

unsigned Forward::read(unsigned bits) {
  const unsigned value = peek(bits);
  skip(bits);
  return value;
}

Backward::Backward(std::string_view in) : in_(in) {
  if (in.empty() || in.back() == 0) return;
  left_ = static_cast<int64_t>(in.size() - 1) * 8 + highest_bit(static_cast<unsigned char>(in.back()));
}

uint64_t Backward::peek(unsigned bits) const {
  if (bits == 0) return 0;
  const int64_t from = left_ - static_cast<int64_t>(bits);
  if (from < 0) return left_ <= 0 ? 0 : Backward(*this).read(static_cast<unsigned>(left_)) << -from;
  uint64_t word = 0;
  const auto first = static_cast<size_t>(from) / 8;
  for (unsigned i = 0; i < 8; ++i) word |= byte_at(in_, first + i) << (8 * i);
  return word >> (from % 8) & ((1ull << bits) - 1);  // At most 56 bits.
}

uint64_t Backward::read(unsigned bits) {
  const uint64_t value = peek(bits);
  skip(bits);
  return value;
}

std::optional<FseTable> fse_table(std::span<const int16_t> counts, unsigned accuracy) {
  const unsigned size = 1u << accuracy;
  FseTable t{accuracy, std::vector<FseTable::State>(size)};
  std::vector<unsigned> next(counts.size());
  unsigned high = size;
  for (size_t s = 0; s < counts.size(); ++s)
    if (counts[s] == -1) {
      if (high == 0) return std::nullopt;
      t.states[--high].symbol = static_cast<uint8_t>(s);
      next[s] = 1;
    }
  const unsigned step = size / 2 + size / 8 + 3;
  unsigned at = 0;
  for (size_t s = 0; s < counts.size(); ++s) {
    if (counts[s] <= 0) continue;
    next[s] = static_cast<unsigned>(counts[s]);
    if (high == 0) return std::nullopt;
    for (int i = 0; i < counts[s]; ++i) {
      t.states[at].symbol = static_cast<uint8_t>(s);
      do at = (at + step) & (size - 1);
      while (at >= high);
    }
  }
  if (at != 0) return std::nullopt;  // The counts do not add up.
  for (FseTable::State& s : t.states) {
    const unsigned n = next[s.symbol]++;
    if (n == 0) return std::nullopt;
    s.bits = static_cast<uint8_t>(accuracy - highest_bit(n));
    s.base = static_cast<uint16_t>((n << s.bits) - size);
  }
  return t;
}

FseTable fse_single(uint8_t symbol) { return {0, {{symbol, 0, 0}}}; }

std::optional<FseTable> fse_read(std::string_view in, unsigned most_accuracy, unsigned most_symbols,
                                 size_t* used) {
  Forward bits(in);
  const unsigned accuracy = bits.read(4) + 5;
  if (accuracy > most_accuracy) return std::nullopt;
  std::vector<int16_t> counts;
  int left = 1 << accuracy;
  while (left > 0 && counts.size() < most_symbols) {
    // A value from 0 to left + 1, the lower ones in one bit less.
    const unsigned width = highest_bit(static_cast<unsigned>(left) + 1) + 1;
    const unsigned short_ones = (1u << width) - 1 - (static_cast<unsigned>(left) + 1);
    const unsigned half = (1u << (width - 1)) - 1;
    unsigned value = bits.peek(width);
    if ((value & half) < short_ones) {
      value &= half;
      bits.skip(width - 1);
    } else {
      if (value > half) value -= short_ones;
      bits.skip(width);
    }
    const int count = static_cast<int>(value) - 1;
    left -= count < 0 ? 1 : count;
    counts.push_back(static_cast<int16_t>(count));
    for (unsigned more = count == 0 ? 3 : 0; more == 3;) {
      more = bits.read(2);
      if (bits.bad() || counts.size() + more > most_symbols) return std::nullopt;
      counts.resize(counts.size() + more);
    }
  }
  if (left != 0 || bits.bad()) return std::nullopt;
  *used = bits.bytes();
  return fse_table(counts, accuracy);
}

std::optional<HuffmanTable> huffman_read(std::string_view in, size_t* used) {
  if (in.empty()) return std::nullopt;
  const auto head = static_cast<unsigned char>(in.front());
  std::vector<uint8_t> weights;
  if (head >= 128) {  // Four bits each.
    const unsigned n = head - 127u;
    *used = 1 + (n + 1) / 2;
    if (*used > in.size()) return std::nullopt;
    for (unsigned i = 0; i < n; ++i) {
      const auto two = static_cast<unsigned char>(in[1 + i / 2]);
      weights.push_back(i % 2 ? two & 15 : two >> 4);
    }
  } else {
    *used = 1u + head;
    if (*used > in.size() || !coded_weights(in.substr(1, head), &weights)) return std::nullopt;
  }
  uint64_t sum = 0;
  for (const unsigned w : weights) {
    if (w > kLongestCode) return std::nullopt;
    sum += w ? 1ull << (w - 1) : 0;
  }
  if (sum == 0) return std::nullopt;
  // The last symbol takes what is left to the next power of two.
  HuffmanTable t;
  t.longest = highest_bit(sum) + 1;
  const uint64_t rest = (1ull << t.longest) - sum;
  if (t.longest > kLongestCode || !std::has_single_bit(rest)) return std::nullopt;
  weights.push_back(static_cast<uint8_t>(highest_bit(rest) + 1));
  for (unsigned w = 1; w <= t.longest; ++w)
    for (size_t s = 0; s < weights.size(); ++s)
      if (weights[s] == w)
        t.codes.insert(t.codes.end(), size_t{1} << (w - 1),
                       {static_cast<uint8_t>(s), static_cast<uint8_t>(t.longest + 1 - w)});
  if (t.codes.size() != 1ull << t.longest) return std::nullopt;
  return t;
}

}  // namespace carve::sim::zstd

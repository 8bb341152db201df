// Zstandard frames (RFC 8878, section 3): blocks of literals and of sequences, which say how many literals to
// copy and which part of what came out before to repeat. Tables and the last three distances of a block serve
// those after it. The whole output is the window.
#include <algorithm>
#include <optional>

#include "sim/libcuda/decompress.h"
#include "sim/libcuda/zstd_codes.h"

namespace carve::sim {
namespace {

using zstd::Backward;
using zstd::FseTable;
using zstd::HuffmanTable;

constexpr uint32_t kMagic = 0xfd2fb528;
constexpr size_t kMostBlock = 128 << 10;

// A length's code stands for a base and so many bits more.
struct Length {
  uint32_t base;
  uint8_t bits;
};
constexpr Length kLiteralLengths[] = {
    {0, 0},     {1, 0},      {2, 0},      {3, 0},     {4, 0},   {5, 0},     {6, 0},     {7, 0},
    {8, 0},     {9, 0},      {10, 0},     {11, 0},    {12, 0},  {13, 0},    {14, 0},    {15, 0},
    {16, 1},    {18, 1},     {20, 1},     {22, 1},    {24, 2},  {28, 2},    {32, 3},    {40, 3},
    {48, 4},    {64, 6},     {128, 7},    {256, 8},   {512, 9}, {1024, 10}, {2048, 11}, {4096, 12},
    {8192, 13}, {16384, 14}, {32768, 15}, {65536, 16}};
constexpr Length kMatchLengths[] = {
    {3, 0},   {4, 0},     {5, 0},     {6, 0},     {7, 0},     {8, 0},      {9, 0},      {10, 0},    {11, 0},
    {12, 0},  {13, 0},    {14, 0},    {15, 0},    {16, 0},    {17, 0},     {18, 0},     {19, 0},    {20, 0},
    {21, 0},  {22, 0},    {23, 0},    {24, 0},    {25, 0},    {26, 0},     {27, 0},     {28, 0},    {29, 0},
    {30, 0},  {31, 0},    {32, 0},    {33, 0},    {34, 0},    {35, 1},     {37, 1},     {39, 1},    {41, 1},
    {43, 2},  {47, 2},    {51, 3},    {59, 3},    {67, 4},    {83, 4},     {99, 5},     {131, 7},   {259, 8},
    {515, 9}, {1027, 10}, {2051, 11}, {4099, 12}, {8195, 13}, {16387, 14}, {32771, 15}, {65539, 16}};
constexpr int16_t kLiteralCounts[] = {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
                                      2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1};
constexpr int16_t kMatchCounts[] = {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};
constexpr int16_t kOffsetCounts[] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 1,  1,  1,  1,  1, 1,
                                     1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};

// One of the three codes of sequences: what is used where the block says so, and the limits of a description.
struct CodeKind {
  std::span<const int16_t> standard;
  unsigned standard_accuracy, most_accuracy, most_symbols;
};
constexpr CodeKind kKinds[] = {
    {kLiteralCounts, 6, 9, 36}, {kOffsetCounts, 5, 8, 32}, {kMatchCounts, 6, 9, 53}};

class Frame {
 public:
  Frame(std::string_view in, size_t most, std::string* out) : in_(in), most_(most), out_(out) {}

  // What follows the frame, or nothing if it is broken.
  std::optional<std::string_view> decode() {
    uint64_t descriptor = 0, skipped = 0;
    if (!number(1, &descriptor) || (descriptor & 8)) return std::nullopt;
    const bool single = descriptor & 32;
    const size_t dictionary = descriptor & 3, size = descriptor >> 6;
    if (dictionary) return std::nullopt;
    if (!number((single ? 0 : 1) + (size == 0 ? single : 1u << size), &skipped)) return std::nullopt;
    for (bool last = false; !last;) {
      uint64_t header = 0;
      if (!number(3, &header)) return std::nullopt;
      last = header & 1;
      if (!block(static_cast<unsigned>(header >> 1 & 3), header >> 3)) return std::nullopt;
    }
    if ((descriptor & 4) && !number(4, &skipped)) return std::nullopt;
    return in_;
  }

 private:
  bool take(size_t n, std::string_view* out) {
    if (n > in_.size()) return false;
    *out = in_.substr(0, n);
    in_.remove_prefix(n);
    return true;
  }
  // Lowest byte first; of more than eight bytes the first eight.
  bool number(size_t bytes, uint64_t* out) {
    std::string_view b;
    if (!take(bytes, &b)) return false;
    *out = 0;
    for (size_t i = 0; i < std::min<size_t>(bytes, 8); ++i)
      *out |= uint64_t{static_cast<unsigned char>(b[i])} << (8 * i);
    return true;
  }

  bool block(unsigned type, size_t size) {
    std::string_view b;
    if (size > kMostBlock) return false;
    if (type == 1) {  // One byte, repeated.
      if (size > most_ - out_->size() || !take(1, &b)) return false;
      out_->append(size, b[0]);
      return true;
    }
    if (type == 3 || !take(size, &b)) return false;
    if (type == 0) {
      if (size > most_ - out_->size()) return false;
      out_->append(b);
      return true;
    }
    std::string literals;
    size_t used = 0;
    return read_literals(b, &literals, &used) && sequences(b.substr(used), literals);
  }

  bool read_literals(std::string_view b, std::string* out, size_t* used) {
    if (b.empty()) return false;
    const unsigned type = b[0] & 3, format = b[0] >> 2 & 3;
    const bool coded = type >= 2;
    const size_t head = coded ? (format < 2 ? 3 : format + 2u) : (format & 1) ? (format == 1 ? 2u : 3u) : 1u;
    uint64_t h = 0;
    if (head > b.size()) return false;
    for (size_t i = 0; i < head; ++i) h |= uint64_t{static_cast<unsigned char>(b[i])} << (8 * i);
    if (!coded) {
      const size_t n = h >> (head == 1 ? 3 : 4);
      *used = head + (type == 0 ? n : 1);
      if (n > kMostBlock || *used > b.size()) return false;
      *out = type == 0 ? std::string(b.substr(head, n)) : std::string(n, b[head]);
      return true;
    }
    const unsigned bits = format < 2 ? 10 : format == 2 ? 14 : 18;
    const size_t n = h >> 4 & ((1u << bits) - 1), compressed = h >> (4 + bits) & ((1u << bits) - 1);
    *used = head + compressed;
    if (n > kMostBlock || *used > b.size()) return false;
    std::string_view streams = b.substr(head, compressed);
    if (type == 2) {
      size_t table = 0;
      huffman_ = zstd::huffman_read(streams, &table);
      if (!huffman_) return false;
      streams.remove_prefix(table);
    }
    if (!huffman_) return false;
    return format == 0 ? stream(streams, n, out) : four_streams(streams, n, out);
  }

  bool four_streams(std::string_view s, size_t n, std::string* out) {
    if (s.size() < 6) return false;
    size_t at = 6;
    const size_t quarter = (n + 3) / 4;
    if (quarter * 3 > n) return false;
    for (unsigned i = 0; i < 3; ++i) {
      const size_t bytes =
          static_cast<unsigned char>(s[2 * i]) | size_t{static_cast<unsigned char>(s[2 * i + 1])} << 8;
      if (bytes > s.size() - at || !stream(s.substr(at, bytes), quarter, out)) return false;
      at += bytes;
    }
    return stream(s.substr(at), n - 3 * quarter, out);
  }

  bool stream(std::string_view s, size_t n, std::string* out) {
    Backward bits(s);
    if (bits.left() < 0) return false;
    for (size_t i = 0; i < n; ++i) {
      const HuffmanTable::Code c = huffman_->codes[bits.peek(huffman_->longest)];
      bits.skip(c.bits);
      if (bits.left() < 0) return false;
      out->push_back(static_cast<char>(c.symbol));
    }
    return bits.left() == 0;
  }

  // The tables of a block's sequences: standard ones, a single symbol, described, or the last block's.
  bool tables(unsigned modes, std::string_view* b) {
    for (unsigned k = 0; k < 3; ++k) {
      const CodeKind& kind = kKinds[k];
      switch (modes >> (6 - 2 * k) & 3) {
        case 0: tables_[k] = zstd::fse_table(kind.standard, kind.standard_accuracy); break;
        case 1:
          if (b->empty() || static_cast<unsigned char>((*b)[0]) >= kind.most_symbols) return false;
          tables_[k] = zstd::fse_single(static_cast<uint8_t>((*b)[0]));
          b->remove_prefix(1);
          break;
        case 2: {
          size_t used = 0;
          tables_[k] = zstd::fse_read(*b, kind.most_accuracy, kind.most_symbols, &used);
          if (tables_[k]) b->remove_prefix(used);
          break;
        }
        default: break;
      }
      if (!tables_[k]) return false;
    }
    return true;
  }

  bool sequences(std::string_view b, std::string_view literals) {
    if (b.empty()) return false;
    const auto at = [&](size_t i) { return size_t{static_cast<unsigned char>(b[i])}; };
    size_t count = at(0), head = count < 128 ? 1 : count < 255 ? 2 : 3;
    if (head > b.size()) return false;
    if (head == 2) count = ((count - 128) << 8) + at(1);
    if (head == 3) count = at(1) + (at(2) << 8) + 0x7f00;
    b.remove_prefix(head);
    if (count) {
      if (b.empty() || (b[0] & 3)) return false;
      const auto modes = static_cast<unsigned char>(b[0]);
      b.remove_prefix(1);
      if (!tables(modes, &b) || !run(b, count, &literals)) return false;
    }
    if (literals.size() > most_ - out_->size()) return false;
    out_->append(literals);
    return true;
  }

  bool run(std::string_view b, size_t count, std::string_view* literals) {
    Backward bits(b);
    if (bits.left() < 0) return false;
    uint64_t state[3];
    for (unsigned k = 0; k < 3; ++k) state[k] = bits.read(tables_[k]->accuracy);
    for (size_t i = 0; i < count; ++i) {
      FseTable::State s[3];
      for (unsigned k = 0; k < 3; ++k) s[k] = tables_[k]->states[state[k]];
      const uint64_t offset = (1ull << s[1].symbol) + bits.read(s[1].symbol);
      const Length& m = kMatchLengths[s[2].symbol];
      const size_t match = m.base + bits.read(m.bits);
      const Length& l = kLiteralLengths[s[0].symbol];
      const size_t copied = l.base + bits.read(l.bits);
      if (i + 1 < count)
        for (const unsigned k : {0u, 2u, 1u}) state[k] = s[k].base + bits.read(s[k].bits);
      if (bits.left() < 0 || !apply(copied, match, distance(offset, copied), literals)) return false;
    }
    return bits.left() == 0;
  }

  // The values 1 to 3 mean one of the last three distances.
  uint64_t distance(uint64_t value, size_t literals) {
    if (value > 3) {
      last_[2] = last_[1];
      last_[1] = last_[0];
      return last_[0] = value - 3;
    }
    const uint64_t which = value - 1 + (literals == 0);
    if (which == 0) return last_[0];
    const uint64_t chosen = which < 3 ? last_[which] : last_[0] - 1;
    if (which > 1) last_[2] = last_[1];
    last_[1] = last_[0];
    return last_[0] = chosen;
  }

  bool apply(size_t copied, size_t match, uint64_t back, std::string_view* literals) {
    if (copied > literals->size() || copied + match > most_ - out_->size()) return false;
    out_->append(literals->substr(0, copied));
    literals->remove_prefix(copied);
    if (back == 0 || back > out_->size()) return false;
    for (size_t i = 0; i < match; ++i) out_->push_back((*out_)[out_->size() - back]);
    return true;
  }

  std::string_view in_;
  size_t most_;
  std::string* out_;
  std::optional<HuffmanTable> huffman_;
  std::optional<FseTable> tables_[3];  // Literal lengths, offsets, match lengths.
  uint64_t last_[3] = {1, 4, 8};
};

}  // namespace

bool decompress_zstd(std::string_view from, size_t bytes, std::string* out) {
  out->clear();
  while (from.size() >= 4) {
    uint32_t magic = 0;
    for (unsigned i = 0; i < 4; ++i) magic |= uint32_t{static_cast<unsigned char>(from[i])} << (8 * i);
    if (magic != kMagic) return false;
    const auto rest = Frame(from.substr(4), bytes, out).decode();
    if (!rest) return false;
    from = *rest;
  }
  return from.empty() && out->size() == bytes;
}

}  // namespace carve::sim

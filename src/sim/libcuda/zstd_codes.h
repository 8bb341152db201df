// The entropy codes of Zstandard (RFC 8878, section 4): tables of finite-state entropy (FSE) and of Huffman
// codes, and the two ways in which bits are read, forwards for the descriptions of tables and backwards for
// what is coded with them. Pure; a reader that is asked for more than there is says so in `bad`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace carve::sim::zstd {

// Bits from the first byte on, lowest first.
class Forward {
 public:
  explicit Forward(std::string_view in) : in_(in) {}
  unsigned peek(unsigned bits) const;
  void skip(unsigned bits) { at_ += bits; }
  unsigned read(unsigned bits);
  bool bad() const { return at_ > in_.size() * 8; }
  size_t bytes() const { return (at_ + 7) / 8; }

 private:
  std::string_view in_;
  size_t at_ = 0;
};

// Bits from the last byte's highest set bit, which is a mark, down to the first byte. Beyond the beginning
// come zeros; `left` is negative then.
class Backward {
 public:
  explicit Backward(std::string_view in);
  uint64_t peek(unsigned bits) const;
  void skip(unsigned bits) { left_ -= bits; }
  uint64_t read(unsigned bits);
  int64_t left() const { return left_; }

 private:
  std::string_view in_;
  int64_t left_ = -1;
};

struct FseTable {
  struct State {
    uint8_t symbol, bits;
    uint16_t base;
  };
  unsigned accuracy = 0;
  std::vector<State> states;
};

// From how often each symbol comes, of 2^accuracy; -1 is less than once.
std::optional<FseTable> fse_table(std::span<const int16_t> counts, unsigned accuracy);
// A table that knows one symbol alone.
FseTable fse_single(uint8_t symbol);
// Reads a description; *used is its length in bytes.
std::optional<FseTable> fse_read(std::string_view in, unsigned most_accuracy, unsigned most_symbols,
                                 size_t* used);

struct HuffmanTable {
  struct Code {
    uint8_t symbol, bits;
  };
  unsigned longest = 0;
  std::vector<Code> codes;  // By the next `longest` bits.
};
std::optional<HuffmanTable> huffman_read(std::string_view in, size_t* used);

}  // namespace carve::sim::zstd

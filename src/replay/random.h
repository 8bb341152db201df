// Random numbers that are equal on every machine. std::shuffle and the standard distributions differ between
// libraries, so the generator and the draws are defined here:
//   next():    SplitMix64: state += 0x9e3779b97f4a7c15, then the state mixed by two multiplications.
//   below(n):  uniform in [0, n): the high 64 bits of next() * n. It is drawn again if the low 64 bits are
//              less than 2^64 mod n, so that no value is favoured.
//   shuffle:   from the last element to the second, each exchanged with element below(i + 1).
// A stream is a seed and a purpose, so the draws of one part of a replay never change those of another part.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace carve::replay {

class Random {
 public:
  Random(uint64_t seed, uint64_t purpose) : state_(seed * 0xd1342543de82ef95 + purpose) { next(), next(); }

  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }

  uint64_t below(uint64_t n) {
    for (;;) {
      const auto product = static_cast<unsigned __int128>(next()) * n;
      if (static_cast<uint64_t>(product) >= -n % n) return static_cast<uint64_t>(product >> 64);
    }
  }

  // Returns an exponential number with mean 1, in 2^-32. It uses only comparisons (von Neumann 1951), because
  // logarithms differ between libraries. Draw u; while further draws descend, count them; an even count gives
  // u plus the number of failed rounds.
  uint64_t exponential() {
    for (uint64_t whole = 0;; ++whole) {
      const uint64_t first = next();
      unsigned descents = 0;
      for (uint64_t last = first, u; (u = next()) < last; last = u) ++descents;
      if (descents % 2 == 0) return whole << 32 | first >> 32;
    }
  }

  template <class T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  uint64_t state_;
};

}  // namespace carve::replay

// The records of one memory pool: which parts of its chunks are in use, and which work must end before each
// free part can be reused.
//
// A pool reserves memory in chunks, whose sizes are multiples of 32 MiB, and allocates pieces in steps of 512
// bytes. The stream that freed a piece may still use it, up to a position in that stream. So an allocation
// prefers pieces whose last use is ordered before it, then pieces for which it could wait, and only then
// requests a chunk. A chunk is released when all of it is free and its last uses are over.
//
// The class is pure: the caller decides which use is over or ordered. An allocation takes the first piece
// that fits. Each call walks the free pieces, and neighbouring pieces of one stream are joined.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace carve::sim {

inline constexpr uint64_t pool_chunk_bytes = 32ull << 20;
inline constexpr uint64_t pool_step_bytes = 512;

// The position in a stream's work after which a piece is free. Stream 0 means that there is nothing to wait
// for.
struct LastUse {
  uint64_t stream = 0;
  uint64_t sequence = 0;
};

enum class Reuse { now, after_waiting, never };

class PoolBook {
 public:
  // Allocates `bytes` and returns their address. `judge` decides, from a free piece's last use, whether the
  // piece may be reused. The use for which the caller must wait is written to *wait (stream 0 if there is
  // none). Returns no value if the pool needs another chunk.
  std::optional<uint64_t> take(uint64_t bytes, const std::function<Reuse(const LastUse&)>& judge,
                               LastUse* wait);

  // Returns the size of the chunk that an allocation of `bytes` needs.
  static uint64_t chunk_for(uint64_t bytes);
  void add_chunk(uint64_t base, uint64_t bytes);

  // Frees the piece that starts at `base`. Returns false if no piece in use starts there.
  bool free(uint64_t base, const LastUse&);

  struct Chunk {
    uint64_t base, bytes;
  };
  // Removes a chunk of at most `most` bytes that is completely free and whose uses are over, if there is one.
  std::optional<Chunk> release(uint64_t most, const std::function<bool(const LastUse&)>& over);

  uint64_t reserved() const { return reserved_; }
  uint64_t used() const { return used_; }
  uint64_t reserved_high = 0, used_high = 0;
  // Returns the chunk that contains an address in use; its base is 0 if none does.
  Chunk chunk_of(uint64_t address) const;

 private:
  struct Piece {
    uint64_t bytes;
    bool in_use;
    LastUse last;
  };
  using Pieces = std::map<uint64_t, Piece>;
  Pieces::iterator joined(Pieces::iterator);

  Pieces pieces_;                        // Pieces of every chunk, by address.
  std::map<uint64_t, uint64_t> chunks_;  // Base and length.
  uint64_t reserved_ = 0, used_ = 0;
};

}  // namespace carve::sim

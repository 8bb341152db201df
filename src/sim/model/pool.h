// The book of one memory pool: which parts of its chunks are in use, and behind which work the free ones are.
//
// A pool reserves memory in chunks, multiples of 32 MiB, and hands out pieces at steps of 512 bytes. A freed
// piece may still be used by the stream that freed it, up to a place in it; so an allocation prefers pieces
// whose last use is ordered before it, then pieces that it could wait for, and only then asks for a chunk. A
// chunk goes back when all of it is free and nothing uses it any more.
//
// Pure: which use is over or ordered is the caller's to say. First fit; a call walks the free pieces, which
// neighbours of one stream join.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace carve::sim {

inline constexpr uint64_t kPoolChunk = 32ull << 20;
inline constexpr uint64_t kPoolStep = 512;

// The place in a stream's work after which a piece is free. Stream 0: nothing is to be waited for.
struct LastUse {
  uint64_t stream = 0;
  uint64_t sequence = 0;
};

enum class Reuse { now, after_waiting, never };

class PoolBook {
 public:
  // A place for so many bytes. `judge` says of a free piece's last use whether it may be used again; what has
  // to be waited for is written to *wait (stream 0 if nothing). Empty: the pool needs another chunk.
  std::optional<uint64_t> take(uint64_t bytes, const std::function<Reuse(const LastUse&)>& judge,
                               LastUse* wait);

  // The size of the chunk that an allocation of so many bytes asks for.
  static uint64_t chunk_for(uint64_t bytes);
  void add_chunk(uint64_t base, uint64_t bytes);

  // False if nothing in use starts there.
  bool free(uint64_t base, const LastUse&);

  struct Chunk {
    uint64_t base, bytes;
  };
  // Removes a chunk that is wholly free and whose uses are over, if there is one of at most `most` bytes.
  std::optional<Chunk> release(uint64_t most, const std::function<bool(const LastUse&)>& over);

  uint64_t reserved() const { return reserved_; }
  uint64_t used() const { return used_; }
  uint64_t reserved_high = 0, used_high = 0;
  // The chunk that contains an address in use; base 0 if none does.
  Chunk chunk_of(uint64_t address) const;

 private:
  struct Piece {
    uint64_t bytes;
    bool in_use;
    LastUse last;
  };
  using Pieces = std::map<uint64_t, Piece>;
  Pieces::iterator joined(Pieces::iterator);

  Pieces pieces_;                        // All of every chunk, by address.
  std::map<uint64_t, uint64_t> chunks_;  // Base and length.
  uint64_t reserved_ = 0, used_ = 0;
};

}  // namespace carve::sim

// Pieces never cross the border of a chunk, so a chunk is free exactly if one free piece is as long as the
// chunk.
#include "sim/model/pool_chunks.h"

#include <algorithm>

namespace carve::sim {
namespace {

constexpr uint64_t stepped(uint64_t n) {
  return (n + pool_step_bytes - 1) / pool_step_bytes * pool_step_bytes;
}

}  // namespace

uint64_t PoolBook::chunk_for(uint64_t bytes) {
  return (bytes + pool_chunk_bytes - 1) / pool_chunk_bytes * pool_chunk_bytes;
}

std::optional<uint64_t> PoolBook::take(uint64_t bytes, const std::function<Reuse(const LastUse&)>& judge,
                                       LastUse* wait) {
  const uint64_t length = stepped(bytes);
  auto chosen = pieces_.end();
  *wait = {};
  for (auto it = pieces_.begin(); it != pieces_.end(); ++it) {
    const Piece& p = it->second;
    if (p.in_use || p.bytes < length) continue;
    const Reuse reuse = p.last.stream ? judge(p.last) : Reuse::now;
    if (reuse == Reuse::never || (reuse == Reuse::after_waiting && chosen != pieces_.end())) continue;
    chosen = it;
    *wait = reuse == Reuse::now ? LastUse{} : p.last;
    if (reuse == Reuse::now) break;
  }
  if (chosen == pieces_.end()) return std::nullopt;
  const uint64_t base = chosen->first;
  Piece& p = chosen->second;
  if (p.bytes > length) pieces_[base + length] = {p.bytes - length, false, p.last};
  p = {length, true, {}};
  used_ += length;
  used_high = std::max(used_high, used_);
  return base;
}

void PoolBook::add_chunk(uint64_t base, uint64_t bytes) {
  pieces_[base] = {bytes, false, {}};
  chunks_[base] = bytes;
  reserved_ += bytes;
  reserved_high = std::max(reserved_high, reserved_);
}

// Joins the piece with its free neighbours, if they wait for the same stream or for nothing.
PoolBook::Pieces::iterator PoolBook::joined(Pieces::iterator at) {
  const auto join = [&](Pieces::iterator a, Pieces::iterator b) {
    if (a->second.in_use || b->second.in_use || chunks_.contains(b->first) ||
        a->second.last.stream != b->second.last.stream)
      return false;
    a->second.bytes += b->second.bytes;
    a->second.last.sequence = std::max(a->second.last.sequence, b->second.last.sequence);
    pieces_.erase(b);
    return true;
  };
  if (const auto next = std::next(at); next != pieces_.end()) join(at, next);
  if (at == pieces_.begin()) return at;
  const auto before = std::prev(at);
  return join(before, at) ? before : at;
}

bool PoolBook::free(uint64_t base, const LastUse& last) {
  const auto at = pieces_.find(base);
  if (at == pieces_.end() || !at->second.in_use) return false;
  used_ -= at->second.bytes;
  at->second.in_use = false;
  at->second.last = last;
  joined(at);
  return true;
}

std::optional<PoolBook::Chunk> PoolBook::release(uint64_t most,
                                                 const std::function<bool(const LastUse&)>& over) {
  // A piece whose use is over no longer waits for a stream, so pieces of different streams can be joined.
  for (auto it = pieces_.begin(); it != pieces_.end(); ++it) {
    Piece& p = it->second;
    if (p.in_use || (p.last.stream && !over(p.last))) continue;
    p.last = {};
    it = joined(it);
  }
  for (const auto& [base, bytes] : chunks_) {
    const auto piece = pieces_.find(base);
    if (bytes > most || piece->second.in_use || piece->second.bytes != bytes || piece->second.last.stream)
      continue;
    const Chunk chunk = {base, bytes};
    pieces_.erase(piece);
    chunks_.erase(chunk.base);  // `base` and `bytes` end with it.
    reserved_ -= chunk.bytes;
    return chunk;
  }
  return std::nullopt;
}

PoolBook::Chunk PoolBook::chunk_of(uint64_t address) const {
  auto it = chunks_.upper_bound(address);
  if (it == chunks_.begin()) return {0, 0};
  --it;
  return address - it->first < it->second ? Chunk{it->first, it->second} : Chunk{0, 0};
}

}  // namespace carve::sim

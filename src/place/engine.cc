#include "place/engine.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "place/rules.h"

namespace carve::place {
namespace {

constexpr uint32_t block_size = 64;

uint8_t highest(const uint8_t* bytes) {
  uint8_t high = 0;
  for (uint32_t i = 0; i < block_size; ++i) high = std::max(high, bytes[i]);
  return high;
}

}  // namespace

std::unique_ptr<Scoring> scoring(Strategy strategy) {
  switch (strategy) {
    case Strategy::binpack: return binpack();
    case Strategy::spread: return spread();
    case Strategy::first_fit: return first_fit();
    case Strategy::best_fit: return best_fit();
    case Strategy::fgd: return fgd();
    case Strategy::carve: return carve();
    case Strategy::lookahead: return lookahead();
  }
  return binpack();
}

size_t Engine::Hash::operator()(const Ask& a) const {
  uint64_t h = 0;
  for (const uint64_t word :
       {a.memory.count, uint64_t{a.part.basis_points}, uint64_t{a.share.basis_points}, a.spill.count,
        uint64_t{a.cards}, uint64_t{a.exclusive}, uint64_t{a.isolated}, uint64_t{a.unshared},
        uint64_t{a.policy}, uint64_t{a.only}, a.models, uint64_t{a.cpu_milli}, a.host_memory.count})
    h = (h ^ word) * 0x9e3779b97f4a7c15, h ^= h >> 29;
  return h;
}

Kind Engine::kind(const Ask& ask) {
  const auto [entry, fresh] = known_.try_emplace(ask, static_cast<Kind>(kinds_.size()));
  if (fresh) kinds_.push_back({ask, {}, {}, {}, 0, 0});
  return entry->second;
}

void Engine::expect(const Workload& workload) {
  learned_ = UINT64_MAX / 2;
  adopt(workload);
}

void Engine::adopt(const Workload& workload) {
  scoring_->expect(fleet_, workload);
  around_ = fleet_.changes();
  ++epoch_;
}

void Engine::rescore(Row& row, uint32_t n) {
  const auto fit = fitting(fleet_, n, row.ask);
  const Score score = fit ? scoring_->score(fleet_, n, row.ask, *fit) : Score{};
  const uint8_t now = score.value;
  if (!row.harm.empty())
    row.harm[n] = now == 0 ? 0 : scoring_->guards()->destroyed(fleet_, n, row.ask, score.cards);
  const uint8_t old = row.score[n];
  row.score[n] = now;
  uint8_t& high = row.block[n / block_size];
  if (now >= high)
    high = now;
  else if (old == high)
    high = highest(&row.score[n / block_size * block_size]);
}

void Engine::update(Row& row) {
  const uint64_t now = fleet_.changes();
  if (row.epoch != epoch_ || !fleet_.remembers(row.seen)) {
    // Whole blocks of whole blocks, so that no scan has an end to look for.
    const size_t blocks = (fleet_.nodes() + block_size - 1) / block_size;
    row.score.assign(blocks * block_size, 0);
    row.block.assign((blocks + block_size - 1) / block_size * block_size, 0);
    if (scoring_->guards() != nullptr) row.harm.assign(blocks * block_size, 0);
    for (uint32_t n = 0; n < fleet_.nodes(); ++n) rescore(row, n);
    row.epoch = epoch_;
  } else {
    for (uint64_t change = row.seen + 1; change <= now; ++change) {
      const uint32_t n = fleet_.changed_node(change);
      if (fleet_.last_change(n) == change) rescore(row, n);
    }
  }
  row.seen = now;
}

// Tells the policy which nodes changed.
void Engine::look_around() {
  const uint64_t now = fleet_.changes();
  if (!fleet_.remembers(around_)) {
    for (uint32_t n = 0; n < fleet_.nodes(); ++n) scoring_->changed(fleet_, n);
  } else {
    for (uint64_t change = around_ + 1; change <= now; ++change) {
      const uint32_t n = fleet_.changed_node(change);
      if (fleet_.last_change(n) == change) scoring_->changed(fleet_, n);
    }
  }
  around_ = now;
}

// Counts an arrival, and looks at the workload anew when there are a quarter more than last time.
void Engine::learn(const Ask& ask) {
  if (!scoring_->learns()) return;
  census_.count(ask);
  if (census_.counted() < 32 || census_.counted() < learned_ + learned_ / 4) return;
  learned_ = census_.counted();
  adopt(census_.workload());
}

// The first node with the highest score among those that are not barred.
std::optional<uint32_t> Engine::best(const Row& row, const Bar& bar, const Guards* guards) const {
  if (bar.models == 0 && bar.slots == 0 && bar.kept == 0) {
    uint8_t high = 0;
    for (size_t i = 0; i < row.block.size(); i += block_size) high = std::max(high, highest(&row.block[i]));
    if (high == 0) return std::nullopt;
    const auto block = static_cast<size_t>(
        static_cast<const uint8_t*>(std::memchr(row.block.data(), high, row.block.size())) -
        row.block.data());
    return static_cast<uint32_t>(
        static_cast<const uint8_t*>(std::memchr(&row.score[block * block_size], high, block_size)) -
        row.score.data());
  }
  uint8_t high = 0;
  std::optional<uint32_t> found;
  for (size_t block = 0; block < row.block.size(); ++block) {
    if (row.block[block] <= high) continue;
    for (size_t n = block * block_size; n < (block + 1) * block_size; ++n) {
      const auto node = static_cast<uint32_t>(n);
      if (row.score[n] <= high || (row.harm[n] & bar.slots) != 0) continue;
      if ((guards->kept(node) & bar.kept) != 0 || (bar.models >> fleet_.node(node).model & 1) != 0) continue;
      high = row.score[n];
      found = node;
    }
  }
  return found;
}

std::optional<Spot> Engine::find(Kind k) {
  look_around();
  Row& row = kinds_[k];
  update(row);
  Guards::Bars bars;
  Guards* guards = scoring_->guards();
  if (guards != nullptr) guards->settle(fleet_);
  unsigned standing = guards == nullptr ? 0 : guards->bars(fleet_, row.ask, bars);
  std::optional<uint32_t> found;
  for (;; --standing) {
    Bar bar;
    for (unsigned i = 0; i < standing; ++i)
      bar.models |= bars[i].models, bar.slots |= bars[i].slots, bar.kept |= bars[i].kept;
    found = best(row, bar, guards);
    if (found || standing == 0) break;
  }
  if (!found) return std::nullopt;
  const uint32_t n = *found;

  const CardSet fit = *fitting(fleet_, n, row.ask);
  Score score = scoring_->score(fleet_, n, row.ask, fit);
  // Which node is the policy's choice; which of its cards, theirs who must talk to each other.
  if (row.ask.cards > 1)
    if (const Topology* links = fleet_.topology(n))
      score.cards = links->choose(fit, row.ask.cards, score.cards);
  Spot spot{n, score.cards, {}};
  const auto cards = fleet_.cards(n);
  bool first = true;
  for (CardSet set = score.cards; set != 0; set &= set - 1, first = false) {
    const Bytes needed = need(row.ask, cards[static_cast<unsigned>(std::countr_zero(set))]);
    spot.memory = first ? needed : std::min(spot.memory, needed);
  }
  return spot;
}

std::optional<Spot> Engine::place(Kind k) {
  learn(kinds_[k].ask);
  const auto spot = find(k);
  if (spot) take(k, *spot);
  return spot;
}

void Engine::take(Kind k, const Spot& spot) {
  fleet_.take(kinds_[k].ask, spot);
  if (Guards* guards = scoring_->guards()) guards->stands(fleet_, kinds_[k].ask, spot.node);
}

void Engine::release(Kind k, const Spot& spot) {
  fleet_.give(kinds_[k].ask, spot);
  if (Guards* guards = scoring_->guards()) guards->left(kinds_[k].ask, spot.node);
}

size_t Engine::bytes_per_node() const {
  if (fleet_.nodes() == 0) return 0;
  size_t bytes = fleet_.nodes() * (sizeof(NodeState) + sizeof(uint64_t)) + fleet_.cards() * sizeof(CardState);
  for (const Row& row : kinds_) bytes += row.score.capacity() + row.block.capacity() + row.harm.capacity();
  if (const Guards* guards = scoring_->guards()) bytes += guards->bytes();
  return bytes / fleet_.nodes();
}

}  // namespace carve::place

#include "place/engine.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/invariant.h"
#include "place/rules.h"

namespace carve::place {
namespace {

constexpr uint32_t block_size = block_nodes;
constexpr size_t max_node_bytes = 1024;         // In total, per node.
constexpr size_t min_score_bytes = 320;         // At least this part of it is available for scores.
constexpr uint64_t fading = uint64_t{1} << 16;  // Number of decisions after which a count is worth half.

using Block = std::span<const uint8_t, block_size>;  // A byte for each node.

Block block_of(const std::vector<uint8_t>& bytes, size_t block) {
  return std::span(bytes).subspan(block * block_size).first<block_size>();
}

uint8_t highest(Block bytes) {
  uint8_t high = 0;
  for (uint32_t i = 0; i < block_size; ++i) high = std::max(high, bytes[i]);
  return high;
}

// Returns the scores of a block, with 0 for each node that would lose a reserved slot or is kept.
std::array<uint8_t, block_size> open_scores(Block scores, Block slots_lost, Block kept,
                                            const ReservedCapacity& reserved) {
  std::array<uint8_t, block_size> out;
  for (uint32_t i = 0; i < block_size; ++i) {  // Branch-free, so that it is vectorized.
    const bool is_open = ((slots_lost[i] & reserved.slots) | (kept[i] & reserved.kept)) == 0;
    out[i] = static_cast<uint8_t>(scores[i] & -int{is_open});
  }
  return out;
}

}  // namespace

std::unique_ptr<Scoring> scoring(Strategy strategy) {
  switch (strategy) {
    case Strategy::binpack: return binpack();
    case Strategy::spread: return spread();
    case Strategy::first_fit: return first_fit();
    case Strategy::best_fit: return best_fit();
    case Strategy::fgd: return fgd();
    case Strategy::fgd_scarcity: return fgd_scarcity();
    case Strategy::lookahead: return lookahead();
  }
  return binpack();
}

size_t Engine::Hash::operator()(const RequestShape& a) const {
  uint64_t h = 0;
  for (const uint64_t word : {a.memory.count, uint64_t{a.part.basis_points}, uint64_t{a.share.basis_points},
                              a.spill.count, uint64_t{a.devices}, uint64_t{a.exclusive}, uint64_t{a.isolated},
                              uint64_t{a.best_effort}, uint64_t{a.policy}, uint64_t{a.only}, a.models,
                              uint64_t{a.kinds}, uint64_t{a.cpu_milli}, a.host_memory.count})
    h = (h ^ word) * 0x9e3779b97f4a7c15, h ^= h >> 29;
  for (const PartShape& part : a.parts)
    for (const uint64_t word :
         {part.memory.count, uint64_t{part.part.basis_points}, uint64_t{part.share.basis_points}})
      h = (h ^ word) * 0x9e3779b97f4a7c15, h ^= h >> 29;
  return h;
}

RequestClass Engine::request_class(const RequestShape& shape) {
  const auto [entry, fresh] = known_.try_emplace(shape, static_cast<RequestClass>(classes_.size()));
  if (fresh) classes_.push_back({shape, {}, {}, {}, 0, 0});
  invariant(known_.size() == classes_.size());
  return entry->second;
}

void Engine::set_workload_model(const WorkloadModel& workload) {
  learned_ = UINT64_MAX / 2;
  adopt(workload);
}

void Engine::adopt(const WorkloadModel& workload) {
  scoring_->set_workload_model(fleet_, workload);
  around_ = fleet_.changes();
  ++epoch_;
}

void Engine::rescore(Row& row, uint32_t n) {
  const auto fit = fitting(fleet_, n, row.shape);
  const Score score = fit ? scoring_->score(fleet_, n, row.shape, *fit) : Score{};
  const uint8_t now = score.value;
  invariant(fit.has_value() == (now != 0), "a node has a score if and only if it can serve");
  if (!row.slots_lost.empty())
    row.slots_lost[n] = now == 0 ? 0 : scoring_->guards()->destroyed(fleet_, n, row.shape, score.devices);
  const uint8_t old = row.score[n];
  row.score[n] = now;
  uint8_t& high = row.block[n / block_size];
  if (now >= high)
    high = now;
  else if (old == high)
    high = highest(block_of(row.score, n / block_size));
}

size_t Engine::most_rows() const {
  if (fleet_.nodes() == 0) return SIZE_MAX;
  const size_t fixed =
      sizeof(NodeState) + sizeof(uint64_t) + 24 + sizeof(DeviceState) * fleet_.devices() / fleet_.nodes();
  const size_t all =
      fleet_.nodes() * std::max(min_score_bytes, max_node_bytes - std::min(fixed, max_node_bytes));
  const size_t blocks = (fleet_.nodes() + block_size - 1) / block_size;
  return all / (blocks * block_size * (scoring_->guards() != nullptr ? 2 : 1) +
                (blocks + block_size - 1) / block_size * block_size) +
         1;
}

// Provides memory for scores to a row that has none.
void Engine::make_room(RequestClass k) {
  invariant(k < classes_.size());
  if (++finds_ % fading == 0)
    for (Row& row : classes_) row.asked /= 2;
  ++classes_[k].asked;
  if (classes_[k].epoch != 0) return;
  if (scored_.size() < most_rows()) {
    scored_.push_back(k);
    return;
  }
  RequestClass& rarest =
      *std::ranges::min_element(scored_, {}, [&](RequestClass other) { return classes_[other].asked; });
  invariant(rarest != k, "a class with scores needs no room");
  Row& from = classes_[rarest];
  Row& to = classes_[k];
  std::swap(from.score, to.score);
  std::swap(from.block, to.block);
  std::swap(from.slots_lost, to.slots_lost);
  from.epoch = to.epoch = 0;  // Invalid.
  rarest = k;
}

void Engine::update(Row& row) {
  const uint64_t now = fleet_.changes();
  invariant(row.seen <= now);
  if (row.epoch != epoch_ || !fleet_.journal_covers(row.seen) || row.score.size() < fleet_.nodes()) {
    // The sizes are multiples of the block size, so that scans need no end check.
    const size_t blocks = (fleet_.nodes() + block_size - 1) / block_size;
    row.score.assign(blocks * block_size, 0);
    row.block.assign((blocks + block_size - 1) / block_size * block_size, 0);
    if (scoring_->guards() != nullptr) row.slots_lost.assign(blocks * block_size, 0);
    for (uint32_t n = 0; n < fleet_.nodes(); ++n) rescore(row, n);
    row.epoch = epoch_;
  } else {
    // A large fleet does not fit in the caches, so its nodes are prefetched several changes ahead. In a small
    // fleet prefetching costs more than it saves.
    const uint64_t ahead = fleet_.nodes() > 8192 ? 4 : now;
    for (uint64_t change = row.seen + 1; change <= now; ++change) {
      if (change + ahead <= now) {
        const uint32_t soon = fleet_.changed_node(change + ahead);
        fleet_.fetch_devices(soon);
        __builtin_prefetch(&row.score[soon], 1);
        if (!row.slots_lost.empty()) __builtin_prefetch(&row.slots_lost[soon], 1);
        fleet_.fetch_node(fleet_.changed_node(std::min(change + 2 * ahead, now)));
      }
      const uint32_t n = fleet_.changed_node(change);
      if (fleet_.last_change(n) == change) rescore(row, n);
    }
  }
  row.seen = now;
  invariant(row.score.size() >= fleet_.nodes() && row.score.size() % block_size == 0);
}

// Notifies the strategy of the changed nodes.
void Engine::look_around() {
  const uint64_t now = fleet_.changes();
  invariant(around_ <= now);
  if (!fleet_.journal_covers(around_)) {
    for (uint32_t n = 0; n < fleet_.nodes(); ++n) scoring_->changed(fleet_, n);
  } else {
    for (uint64_t change = around_ + 1; change <= now; ++change) {
      const uint32_t n = fleet_.changed_node(change);
      if (fleet_.last_change(n) == change) scoring_->changed(fleet_, n);
    }
  }
  around_ = now;
}

// Counts an arrival. Updates the workload model once the number of arrivals has grown by a quarter since the
// last update.
void Engine::count_arrival(const RequestShape& shape) {
  if (!scoring_->learns_workload_model()) return;
  arrivals_.count(shape);
  if (arrivals_.counted() < 32 || arrivals_.counted() < learned_ + learned_ / 4) return;
  learned_ = arrivals_.counted();
  adopt(arrivals_.workload());
}

// Returns the first node with the highest score that is outside the reserved capacity.
std::optional<uint32_t> Engine::best(const Row& row, const ReservedCapacity& reserved,
                                     const Guards* guards) const {
  if (reserved.models == 0 && reserved.slots == 0 && reserved.kept == 0) {
    uint8_t high = 0;
    for (size_t i = 0; i < row.block.size(); i += block_size)
      high = std::max(high, highest(block_of(row.block, i / block_size)));
    if (high == 0) return std::nullopt;
    const auto block = static_cast<size_t>(
        static_cast<const uint8_t*>(std::memchr(row.block.data(), high, row.block.size())) -
        row.block.data());
    return static_cast<uint32_t>(
        static_cast<const uint8_t*>(std::memchr(&row.score[block * block_size], high, block_size)) -
        row.score.data());
  }
  return first_of(
      row, reserved, guards, [](unsigned score, unsigned) { return score; }, [](uint32_t) { return 0u; });
}

// Returns the first node with the largest key among those that can serve and are outside the reserved
// capacity. A key increases with the score, and is largest for a node without replicas.
template <class Key, class Replicas>
std::optional<uint32_t> Engine::first_of(const Row& row, const ReservedCapacity& reserved,
                                         const Guards* guards, Key key, Replicas replicas) const {
  unsigned high = 0;
  std::optional<uint32_t> found;
  for (size_t block = 0; block < row.block.size(); ++block) {
    if (row.block[block] == 0 || key(row.block[block], 0) <= high) continue;
    Block scores = block_of(row.score, block);
    std::array<uint8_t, block_size> open;
    if (guards != nullptr) {
      open = open_scores(scores, block_of(row.slots_lost, block), guards->kept_of_block(block), reserved);
      scores = open;
    }
    const uint8_t most = highest(scores);
    if (most == 0 || key(most, 0) <= high) continue;
    for (uint32_t i = 0; i < block_size; ++i) {
      const auto n = static_cast<uint32_t>(block * block_size + i);
      if (scores[i] == 0 || key(scores[i], replicas(n)) <= high) continue;
      if ((reserved.models >> fleet_.node(n).model & 1) != 0) continue;
      high = key(scores[i], replicas(n));
      found = n;
    }
  }
  return found;
}

// Returns the node to use instead of `found`, which is the node with the fewest replicas of the application.
// It is chosen among all nodes if the strategy spreads replicas, otherwise among the nodes with the same
// score.
uint32_t Engine::apart(const Row& row, const ReservedCapacity& reserved, const Guards* guards, uint32_t found,
                       Application application) {
  invariant(application < replicas_.size());
  const auto& standing = replicas_[application];
  if (standing.empty()) return found;
  if (!scoring_->spreads_replicas() && std::ranges::find(standing, found, &Replica::node) == standing.end())
    return found;
  constexpr unsigned most = 255;
  if (count_.size() < fleet_.nodes()) count_.resize(fleet_.nodes());
  for (const Replica& r : standing)
    count_[r.node] = static_cast<uint8_t>(std::min(most, count_[r.node] + 1u));
  const auto few = [&](uint32_t n) { return unsigned{count_[n]}; };
  const auto by_replicas = [](unsigned score, unsigned count) { return (most - count) << 8 | score; };
  const auto by_score = [](unsigned score, unsigned count) { return score << 8 | (most - count); };
  const auto other = scoring_->spreads_replicas() ? first_of(row, reserved, guards, by_replicas, few)
                                                  : first_of(row, reserved, guards, by_score, few);
  for (const Replica& r : standing) count_[r.node] = 0;
  return other.value_or(found);
}

// Chooses among the fitting devices of node n. If the strategy spreads replicas, only the devices with the
// fewest replicas of the application are offered to the strategy. Otherwise a chosen device is replaced by a
// device in the same state that has fewer replicas, if there is one.
Score Engine::scored(const Scoring& scoring, uint32_t n, const RequestShape& shape, const FittingDevices& fit,
                     Application application) const {
  std::array<unsigned, max_node_devices> count{};
  unsigned most = 0;
  for (const Replica& r : replicas_[application])
    if (r.node == n)
      for (DeviceSet s = r.devices; s != 0; s &= s - 1)
        most = std::max(most, ++count[static_cast<unsigned>(std::countr_zero(s))]);
  const auto with = [&](auto holds) {
    DeviceSet out = 0;
    for (DeviceSet s = fit.any; s != 0; s &= s - 1)
      if (holds(static_cast<unsigned>(std::countr_zero(s)))) out |= s & -s;
    return out;
  };
  if (most != 0 && scoring.spreads_replicas())
    for (unsigned allowed = 0; allowed < most; ++allowed) {
      const FittingDevices few = within(fit, with([&](unsigned i) { return count[i] <= allowed; }));
      if (can_serve(few)) return scoring.score(fleet_, n, shape, few);
    }
  Score score = scoring.score(fleet_, n, shape, fit);
  if (most == 0) return score;
  const auto devices = fleet_.devices(n);
  const PartDevices chosen = score.devices;
  chosen.each([&](unsigned part, unsigned i) {
    const DeviceSet same = with([&](unsigned j) {
      return (score.devices.set >> j & 1) == 0 && count[j] < count[i] && devices[j] == devices[i];
    });
    if (same == 0) return;
    score.devices.set = (score.devices.set & ~(DeviceSet{1} << i)) | (same & -same);
    if (!shape.parts.empty()) score.devices.of_part[part] = static_cast<uint8_t>(std::countr_zero(same));
  });
  arrange(score.devices, shape);
  return score;
}

Application Engine::application(std::string_view name) {
  if (name.empty()) return no_application;
  const auto [entry, fresh] =
      applications_.try_emplace(std::string(name), static_cast<Application>(replicas_.size()));
  if (fresh) replicas_.emplace_back();
  return entry->second;
}

std::optional<Assignment> Engine::find(RequestClass k, Application application) {
  look_around();
  make_room(k);
  Row& row = classes_[k];
  update(row);
  Guards::Reservations reservations;
  Guards* guards = scoring_->guards();
  if (guards != nullptr) guards->settle(fleet_);
  unsigned standing = guards == nullptr ? 0 : guards->reservations(fleet_, row.shape, reservations);
  std::optional<uint32_t> found;
  ReservedCapacity reserved;
  for (;; --standing) {
    reserved = {};
    for (unsigned i = 0; i < standing; ++i)
      reserved.models |= reservations[i].models, reserved.slots |= reservations[i].slots,
          reserved.kept |= reservations[i].kept;
    found = best(row, reserved, guards);
    if (found || standing == 0) break;
  }
  if (!found) return std::nullopt;
  const uint32_t n = apart(row, reserved, guards, *found, application);
  invariant(n < fleet_.nodes() && row.score[n] != 0);

  const auto assignment = assigned(*scoring_, n, row.shape, application);
  invariant(assignment.has_value(), "a node with a score can serve");
  return assignment;
}

std::optional<Assignment> Engine::assigned(const Scoring& scoring, uint32_t n, const RequestShape& shape,
                                           Application application) const {
  const auto fit = fitting(fleet_, n, shape);
  if (!fit) return std::nullopt;
  Score score = scored(scoring, n, shape, *fit, application);
  // The strategy chooses the node. If the request needs several devices, the topology chooses among the
  // node's devices.
  if (shape.devices > 1)
    if (const Topology* links = fleet_.topology(n)) {
      const DeviceSet liked = score.devices.set;
      const DeviceSet group = links->tightest(
          fit->any, liked, [&](DeviceSet set) { return can_serve(*fit, all_parts(fit->parts), set); });
      if ((liked & ~group) != 0)
        score.devices =
            choose(shape, within(*fit, group), [&](unsigned, unsigned i) { return (liked >> i & 1) == 0; });
    }
  invariant((score.devices.set & ~fit->any) == 0, "the request fits on each chosen device");
  invariant(std::popcount(score.devices.set) == shape.devices);
  Assignment assignment{n, score.devices.set, {}};
  const auto devices = fleet_.devices(n);
  score.devices.each([&](unsigned part, unsigned device) {
    const Bytes needed = need(shape, part, devices[device]);
    if (!shape.parts.empty())
      assignment.parts.push_back({device, needed});
    else
      assignment.memory = part == 0 ? needed : std::min(assignment.memory, needed);
  });
  return assignment;
}

std::optional<Assignment> Engine::find_on(RequestClass k, uint32_t n, Application application,
                                          std::optional<Strategy> strategy) {
  invariant(k < classes_.size() && n < fleet_.nodes());
  look_around();
  if (!strategy) return assigned(*scoring_, n, classes_[k].shape, application);
  auto& other = other_scorings_[*strategy];
  if (other == nullptr) other = scoring(*strategy);
  return assigned(*other, n, classes_[k].shape, application);
}

std::span<const uint8_t> Engine::scores(RequestClass k) {
  invariant(k < classes_.size());
  look_around();
  make_room(k);
  update(classes_[k]);
  return classes_[k].score;
}

std::optional<Assignment> Engine::place(RequestClass k, Application application) {
  count_arrival(classes_[k].shape);
  const auto assignment = find(k, application);
  if (assignment) take(k, *assignment, application);
  return assignment;
}

void Engine::take(RequestClass k, const Assignment& assignment, Application application) {
  invariant(k < classes_.size());
  fleet_.take(classes_[k].shape, assignment);
  add_placed(k, assignment, application);
}

void Engine::add_placed(RequestClass k, const Assignment& assignment, Application application) {
  add_replica(application, assignment);
  if (Guards* guards = scoring_->guards()) guards->add_placed(fleet_, classes_[k].shape, assignment.node);
}

void Engine::release(RequestClass k, const Assignment& assignment, Application application) {
  invariant(k < classes_.size() && application < replicas_.size());
  fleet_.give(classes_[k].shape, assignment);
  remove_placed(k, assignment, application);
}

void Engine::remove_placed(RequestClass k, const Assignment& assignment, Application application) {
  invariant(k < classes_.size() && application < replicas_.size());
  if (application != no_application) {
    auto& standing = replicas_[application];
    const auto gone = std::ranges::find_if(standing, [&](const Replica& r) {
      return r.node == assignment.node && r.devices == assignment.devices;
    });
    if (gone != standing.end()) *gone = standing.back(), standing.pop_back();
  }
  if (Guards* guards = scoring_->guards()) guards->remove_placed(fleet_, classes_[k].shape, assignment.node);
}

void Engine::add_replica(Application application, const Assignment& assignment) {
  invariant(application < replicas_.size());
  if (application != no_application) replicas_[application].push_back({assignment.node, assignment.devices});
}

size_t Engine::bytes_per_node() const {
  if (fleet_.nodes() == 0) return 0;
  size_t bytes =
      fleet_.nodes() * (sizeof(NodeState) + sizeof(uint64_t)) + fleet_.devices() * sizeof(DeviceState);
  for (const Row& row : classes_)
    bytes += row.score.capacity() + row.block.capacity() + row.slots_lost.capacity();
  if (const Guards* guards = scoring_->guards()) bytes += guards->bytes();
  return bytes / fleet_.nodes();
}

}  // namespace carve::place

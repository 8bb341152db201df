// Estimates how much of a node would still be free after the expected requests have been offered to it.
// W(state) is the mean free compute that is left after each of 16 fixed sequences of 200 typical requests,
// each of which takes the tightest devices on which it fits. A placement costs least on the node (and device)
// where it lowers W most, because the capacity that it takes would have been wasted. Differences are compared
// in steps of 30 thousandths of a device. Ties go to the first node and its lowest-numbered device. The
// guards of fgd-scarcity also apply.
//
// All fills of a state take about 5 us. Their result is cached (in a table of 2^18 entries, 4 MiB), because
// nodes of one model in one state have the same result. If slices never end, the strategy places 0.8 to 1.4 %
// more than FGD. If slices end, the guards without lookahead do as well (docs/decisions/0004), so it is not
// the default.
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "core/invariant.h"
#include "place/guards.h"
#include "place/order.h"
#include "place/rules.h"
#include "place/scoring.h"

namespace carve::place {
namespace {

constexpr unsigned sequences = 16;
constexpr unsigned offers = 200;
// The unit of a score, in basis points of a device. A score is a byte, so more than six devices count as six.
constexpr int64_t step = 300;
constexpr int64_t unchanged = 50;

uint64_t mixed(uint64_t z) {  // SplitMix64's output function.
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

// The part of a node that a fill uses. The devices are in ascending order of their free compute, so the
// tightest device that fits comes first.
struct Room {
  struct FreeDevice {
    uint32_t share;
    uint64_t memory;  // 0 if no type needs memory.
    friend auto operator<=>(const FreeDevice&, const FreeDevice&) = default;
  };
  uint32_t cpu;
  uint64_t host;
  unsigned model;
  unsigned count;
  uint64_t usable;  // Usable bytes of one device; all devices of a node are equal.
  std::array<FreeDevice, max_node_devices> devices;
};

// One request of a sequence.
struct Offer {
  uint32_t cpu;
  uint32_t share;
  uint64_t host;
  uint64_t memory;  // Bytes of each device,
  uint16_t part;    // or this part of a device in basis points; `whole` for all of it.
  uint8_t devices;
  static constexpr uint16_t whole = UINT16_MAX;
};

class Lookahead : public Scoring {
 public:
  Score score(const Fleet& fleet, uint32_t n, const RequestShape& shape,
              const FittingDevices& fitting) const override {
    const NodeState& node = fleet.node(n);
    const auto devices = fleet.devices(n);
    Room room{node.cpu_free, node.host_free.count, node.model, static_cast<unsigned>(devices.size()), 0, {}};
    for (unsigned i = 0; i < devices.size(); ++i) {
      const DeviceState& c = devices[i];
      const bool closed = c.sick || c.partitioned || c.exclusive;
      room.devices[i] =
          closed ? Room::FreeDevice{0, 0} : Room::FreeDevice{c.free_share.basis_points, c.free.count};
      room.usable = std::max(room.usable, c.usable.count);
      if (!asks_memory_) room.devices[i].memory = 0;
    }
    invariant(shape.cpu_milli <= room.cpu && shape.host_memory.count <= room.host);
    const int64_t before = left_of(room);
    room.cpu -= shape.cpu_milli;
    room.host -= shape.host_memory.count;

    Score best;
    const auto consider = [&](const PartDevices& set) {
      Room then = room;
      set.each([&](unsigned part, unsigned i) {
        invariant(needed_share(shape, part).basis_points <= then.devices[i].share);
        then.devices[i].share -= needed_share(shape, part).basis_points;
        if (asks_memory_) then.devices[i].memory -= need(shape, part, devices[i]).count;
      });
      int64_t steps = before - left_of(then);
      steps =
          steps >= 0 ? steps / (step * sequences) : -((-steps + step * sequences - 1) / (step * sequences));
      const auto value = static_cast<uint8_t>(std::clamp<int64_t>(unchanged + steps, 1, 255));
      if (value > best.value) best = {value, set};
    };
    if (shape.devices == 1) {
      for (DeviceSet s = fitting.any; s != 0; s &= s - 1) {
        const auto i = static_cast<unsigned>(std::countr_zero(s));
        bool seen = false;
        for (unsigned j = 0; j < i && !seen; ++j)
          seen = (fitting.any >> j & 1) != 0 && room.devices[j] == room.devices[i] &&
                 devices[j].usable == devices[i].usable;
        if (!seen) consider({.set = s & -s});
      }
    } else {
      consider(choose(shape, fitting,
                      [&](unsigned part, unsigned i) { return freedom(shape, part, devices[i]); }));
    }
    return best;
  }

  void set_workload_model(const Fleet& fleet, const WorkloadModel& workload) override {
    guards_.set_workload_model(fleet, workload);
    const WorkloadModel types = typical(workload);
    std::vector<int64_t> up_to;  // Running sums of the weights.
    int64_t all = 0;
    for (const Type& t : types) up_to.push_back(all += t.weight);
    for (unsigned k = 0; k < sequences; ++k)
      for (auto& of_model : offered_[k]) of_model.clear();
    least_cpu_ = least_share_ = UINT32_MAX;
    asks_memory_ = false;
    std::vector<Offer> offers_of;  // Indexed by type.
    for (const Type& t : types) {
      const RequestShape& a = t.shape;
      offers_of.push_back({a.cpu_milli, needed_share(a).basis_points, a.host_memory.count, a.memory.count,
                           a.exclusive ? Offer::whole : static_cast<uint16_t>(a.part.basis_points),
                           a.devices});
      if (a.devices == 0) continue;
      least_cpu_ = std::min(least_cpu_, a.cpu_milli);
      least_share_ = std::min(least_share_, needed_share(a).basis_points);
      asks_memory_ |= a.memory.count != 0 || a.part.basis_points != 0 || a.exclusive;
    }
    // Each sequence contains every type as often as its probability requires, to within one. The positions of
    // the offers in the sum of weights are evenly spaced and differ between any two sequences. Only their
    // order is random.
    uint64_t draws = 0;
    for (unsigned k = 0; all > 0 && k < sequences; ++k) {
      std::array<uint16_t, offers> sequence;
      for (unsigned i = 0; i < offers; ++i) {
        const auto place = static_cast<int64_t>(static_cast<__int128>(all) * (i * sequences + k) /
                                                (uint64_t{sequences} * offers));
        sequence[i] = static_cast<uint16_t>(std::ranges::upper_bound(up_to, place) - up_to.begin());
        invariant(sequence[i] < types.size());
      }
      for (unsigned i = offers; i > 1; --i)
        std::swap(sequence[i - 1], sequence[mixed(++draws * 0x9e3779b97f4a7c15) % i]);
      for (const uint16_t type : sequence)
        for (unsigned t = 0; t < fleet.models(); ++t)
          if (types[type].shape.devices == 0 || (types[type].shape.models >> t & 1) != 0)
            offered_[k][t].push_back(offers_of[type]);
    }
    memo_.assign(memo_size, {});
  }
  bool uses_workload_model() const override { return true; }
  bool learns_workload_model() const override { return true; }
  void changed(const Fleet& fleet, uint32_t n) override { guards_.changed(fleet, n); }
  Guards* guards() override { return &guards_; }

 private:
  static constexpr size_t memo_size = 1 << 18;
  struct Known {
    uint64_t key = 0;
    uint64_t host = 0;  // Sufficient bytes; more would not change the result.
    int64_t left = 0;
  };

  // Returns the sum over the sequences, in basis points.
  int64_t left_of(Room room) const {
    if (memo_.empty()) return 0;
    std::sort(room.devices.begin(), room.devices.begin() + room.count);
    uint64_t key = mixed(uint64_t{room.cpu} << 16 | room.model << 8 | room.count) + 1;
    const auto add = [&](uint64_t word) { key = mixed(key ^ word * 0x9e3779b97f4a7c15) + 1; };
    for (unsigned i = 0; i < room.count; i += 4) {
      uint64_t four = 0;
      for (unsigned j = i; j < std::min(i + 4, room.count); ++j) four = four << 16 | room.devices[j].share;
      add(four);
    }
    if (asks_memory_)
      for (unsigned i = 0; i < room.count; ++i) add(room.devices[i].memory);
    // Host memory is rarely the limit, and would split one state into many entries.
    if (const Known& any = memo_[key % memo_size]; any.key == key && room.host >= any.host) return any.left;
    const uint64_t ample = key;
    add(room.host);
    if (const Known& same = memo_[key % memo_size]; same.key == key) return same.left;

    Known known;
    bool limited = false;
    for (unsigned k = 0; k < sequences; ++k) {
      Room rest = room;
      known.left += filled(rest, offered_[k][room.model], limited);
      known.host = std::max(known.host, room.host - rest.host);
    }
    known.key = limited ? key : ample;
    invariant(known.left >= 0 && known.host <= room.host);
    memo_[known.key % memo_size] = known;
    return known.left;
  }

  // Offers the sequence and returns the free compute that remains. `limited` is set if more host memory would
  // leave less of it.
  int64_t filled(Room& room, const std::vector<Offer>& sequence, bool& limited) const {
    Room::FreeDevice* const devices = room.devices.data();
    const unsigned count = room.count;
    for (const Offer& o : sequence) {
      if (o.cpu > room.cpu) continue;
      if (o.host > room.host) {
        limited = true;
        continue;
      }
      if (o.devices != 0 &&
          (count < o.devices || o.share > devices[count - o.devices].share || !taken(room, o)))
        continue;
      room.cpu -= o.cpu;
      room.host -= o.host;
      // No later request for a device can fit.
      if (room.cpu < least_cpu_ || (count != 0 && devices[count - 1].share < least_share_)) break;
    }
    int64_t left = 0;
    for (unsigned i = 0; i < count; ++i) left += devices[i].share;
    return left;
  }

  // Takes the tightest devices on which the request fits.
  static bool taken(Room& room, const Offer& o) {
    const uint64_t memory = o.part == 0              ? o.memory
                            : o.part == Offer::whole ? room.usable
                                                     : whole_mib(room.usable, o.part);
    std::array<uint8_t, max_node_devices> chosen;
    unsigned found = 0;
    Room::FreeDevice* const devices = room.devices.data();
    for (unsigned i = 0; i < room.count && found < o.devices; ++i)
      if (devices[i].share >= o.share && devices[i].memory >= memory)
        chosen[found++] = static_cast<uint8_t>(i);
    if (found < o.devices) return false;
    // A device with less free compute moves to its new position. The lower ones move first, so that the
    // others keep their positions.
    for (unsigned c = 0; c < found; ++c) {
      unsigned at = chosen[c];
      Room::FreeDevice less = devices[at];
      less.share -= o.share;
      less.memory -= memory;
      for (; at > 0 && less < devices[at - 1]; --at) devices[at] = devices[at - 1];
      devices[at] = less;
    }
    return true;
  }
  static uint64_t whole_mib(uint64_t usable, uint16_t part) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(usable) * part / 10000) &
           ~((uint64_t{1} << 20) - 1);
  }

  // A fill ignores that other requests could go elsewhere; three times the reserve compensates for that.
  Guards guards_{3};
  std::array<std::array<std::vector<Offer>, max_models>, sequences> offered_;
  uint32_t least_cpu_ = 0;  // Minimum over the types that need a device, as is the next field.
  uint32_t least_share_ = 0;
  bool asks_memory_ = false;
  mutable std::vector<Known> memo_;  // A cache that does not affect results.
};

}  // namespace

std::unique_ptr<Scoring> lookahead() { return std::make_unique<Lookahead>(); }

}  // namespace carve::place

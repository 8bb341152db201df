// Looks ahead: how much of a node would still be free after it was offered what is likely to come? W(state)
// is the mean free compute left when the node is offered each of 16 fixed sequences of 200 typical requests,
// each taking the tightest devices that it fits on. The node (and device) where a placement lowers W most is
// where it costs the future least: the space that it takes would have been wasted anyway. Differences are
// compared in steps of 30 thousandths of a device, equals go to the lowest device and the first node; the
// guards of carve hold as well.
//
// All fills of a state take some 5 us; what it comes to is remembered (a table of 2^18, 4 MiB), for nodes of
// one model in one state are one question. With arrivals that never leave it places 0.8 to 1.4 % more than
// FGD; where slices leave, the guards alone do as well (docs/decisions/0004), so it is a mode and not the
// default.
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "place/guards.h"
#include "place/order.h"
#include "place/rules.h"
#include "place/scoring.h"

namespace carve::place {
namespace {

constexpr unsigned sequences = 16;
constexpr unsigned offers = 200;
constexpr int64_t step = 300;  // Basis points of a device. A score is a byte: beyond six devices all is one.
constexpr int64_t unchanged = 50;

uint64_t mixed(uint64_t z) {  // SplitMix64's output function.
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

// What of a node a fill consumes. The devices stand in ascending order, so the tightest that serves comes
// first.
struct Room {
  struct FreeDevice {
    uint32_t share;
    uint64_t memory;  // 0 where nobody asks for any.
    friend auto operator<=>(const FreeDevice&, const FreeDevice&) = default;
  };
  uint32_t cpu;
  uint64_t host;
  unsigned model;
  unsigned count;
  uint64_t usable;  // Of one device: those of a node are alike.
  std::array<FreeDevice, max_node_devices> devices;
};

// A request of a sequence.
struct Offer {
  uint32_t cpu;
  uint32_t share;
  uint64_t host;
  uint64_t memory;  // Of each device,
  uint16_t part;    // or this part of it in basis points, or all of it: `whole`.
  uint8_t devices;
  static constexpr uint16_t whole = UINT16_MAX;
};

class Lookahead : public Scoring {
 public:
  Score score(const Fleet& fleet, uint32_t n, const RequestShape& shape, DeviceSet fitting) const override {
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
    const int64_t before = left_of(room);
    room.cpu -= shape.cpu_milli;
    room.host -= shape.host_memory.count;

    Score best;
    const auto consider = [&](DeviceSet set) {
      Room then = room;
      for (DeviceSet s = set; s != 0; s &= s - 1) {
        const auto i = static_cast<unsigned>(std::countr_zero(s));
        then.devices[i].share -= needed_share(shape).basis_points;
        if (asks_memory_) then.devices[i].memory -= need(shape, devices[i]).count;
      }
      int64_t steps = before - left_of(then);
      steps =
          steps >= 0 ? steps / (step * sequences) : -((-steps + step * sequences - 1) / (step * sequences));
      const auto value = static_cast<uint8_t>(std::clamp<int64_t>(unchanged + steps, 1, 255));
      if (value > best.value) best = {value, set};
    };
    if (shape.devices == 1) {
      for (DeviceSet s = fitting; s != 0; s &= s - 1) {
        const auto i = static_cast<unsigned>(std::countr_zero(s));
        bool seen = false;
        for (unsigned j = 0; j < i && !seen; ++j)
          seen = (fitting >> j & 1) != 0 && room.devices[j] == room.devices[i] &&
                 devices[j].usable == devices[i].usable;
        if (!seen) consider(s & -s);
      }
    } else {
      consider(
          first_by(devices, fitting, shape.devices, [&](const DeviceState& c) { return freedom(shape, c); }));
    }
    return best;
  }

  void set_workload_model(const Fleet& fleet, const WorkloadModel& workload) override {
    guards_.set_workload_model(fleet, workload);
    const WorkloadModel types = typical(workload);
    std::vector<int64_t> up_to;  // Sums of weights.
    int64_t all = 0;
    for (const Type& t : types) up_to.push_back(all += t.weight);
    for (unsigned k = 0; k < sequences; ++k)
      for (auto& of_model : offered_[k]) of_model.clear();
    least_cpu_ = least_share_ = UINT32_MAX;
    asks_memory_ = false;
    std::vector<Offer> offers_of;  // By type.
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
    // Each sequence holds every type as often as it is likely, to within one: the offers' places in the sum
    // of weights are evenly spaced, and no two sequences have the same ones. Only their order is drawn.
    uint64_t draws = 0;
    for (unsigned k = 0; all > 0 && k < sequences; ++k) {
      std::array<uint16_t, offers> sequence;
      for (unsigned i = 0; i < offers; ++i) {
        const auto place = static_cast<int64_t>(static_cast<__int128>(all) * (i * sequences + k) /
                                                (uint64_t{sequences} * offers));
        sequence[i] = static_cast<uint16_t>(std::ranges::upper_bound(up_to, place) - up_to.begin());
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
    uint64_t host = 0;  // As much is enough: with more the answer is the same.
    int64_t left = 0;
  };

  // Sums over the sequences, in basis points.
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
    // Host memory limits seldom, and would make one state many.
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
    memo_[known.key % memo_size] = known;
    return known.left;
  }

  // Offers the sequence; what is left. `limited`: with more host memory it would have been less.
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
      // Nobody who wants a device comes any more.
      if (room.cpu < least_cpu_ || (count != 0 && devices[count - 1].share < least_share_)) break;
    }
    int64_t left = 0;
    for (unsigned i = 0; i < count; ++i) left += devices[i].share;
    return left;
  }

  // The tightest devices on which the request fits.
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
    // What becomes smaller moves to where it belongs; the lower ones first, so that the others stay where
    // they are.
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

  // A fill does not see who else could have gone elsewhere: thrice the reserve makes up for it.
  Guards guards_{3};
  std::array<std::array<std::vector<Offer>, max_models>, sequences> offered_;
  uint32_t least_cpu_ = 0;  // Of those who want a device, as is the next.
  uint32_t least_share_ = 0;
  bool asks_memory_ = false;
  mutable std::vector<Known> memo_;  // Remembered answers, not state: the same question has the same answer.
};

}  // namespace

std::unique_ptr<Scoring> lookahead() { return std::make_unique<Lookahead>(); }

}  // namespace carve::place

// Random histories of a cluster: nodes and pods come and go, events arrive late and in any order among
// objects, lists replace watches, bindings fail or their responses are lost, and a coordinator dies and its
// successor starts from a list. After every step the API server's objects grant no device more than it has.
// At the end, a cache that is built from these objects makes the same decisions as the running one.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>

#include "kubernetes/coordinator/cache/cache.h"
#include "kubernetes/coordinator/cache/cache_views.h"
#include "kubernetes/coordinator/cache/decisions.h"
#include "kubernetes/coordinator/snapshot/testing/cluster_objects.h"

namespace carve::kubernetes::coordinator {
namespace {

using namespace coordinator::testing;

constexpr unsigned node_count = 4;
constexpr Bytes usable = 8_GiB;

class Cluster {
 public:
  explicit Cluster(uint64_t seed)
      : random_(seed),
        strategy_(std::array{Strategy::binpack, Strategy::spread, Strategy::fgd_scarcity}[below(3)]),
        cache_(std::make_unique<Cache>(strategy_)) {
    for (unsigned n = 0; n < node_count; ++n) put_node(n);
  }

  void step() {
    if (below(3) == 0) land();
    switch (below(16)) {
      case 0: put_node(below(node_count)); break;
      case 1: remove_node(); break;
      case 2:
      case 3:
      case 4: create_pod(); break;
      case 5: remove_pod(); break;
      case 6: restart(); break;
      case 7: list_again(); break;
      case 8:
      case 9: deliver(); break;
      default: schedule(); break;
    }
    check_objects();
    check_cache();
  }

  // Delivers all events and ends all bindings. Afterwards the cache must equal one that is built from the
  // objects.
  void settle() {
    while (!in_flight_.empty()) land();
    deliver_list();
    while (!events_.empty()) deliver_first();
    for (const std::string& uid : unconfirmed_pods(*cache_)) find_out(uid);
    while (!events_.empty()) deliver_first();
    Cache fresh = from_objects();
    for (const auto& [name, object] : nodes_)
      ASSERT_EQ(device_uses(fresh, name), device_uses(*cache_, name)) << "node " << name;
    EXPECT_EQ(cache_->pods().size(), pods_.size());
    EXPECT_TRUE(unconfirmed_pods(*cache_).empty());
    compare_answers(fresh);
  }

 private:
  struct Event {
    bool is_node = false, is_gone = false;
    kubernetes::ObjectMeta object;
  };

  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }

  // Compares the decisions of both caches about new pods.
  void compare_answers(Cache& fresh) {
    std::vector<std::string_view> names;
    for (const auto& [name, node] : nodes_) names.push_back(name);
    for (const uint64_t half_gib : {1, 4, 8, 15}) {
      for (const uint32_t share : {0u, 2000u, 9000u}) {
        const kubernetes::ObjectMeta pod = pod_object("asks", Bytes{half_gib << 29}, share);
        for (Cache* const cache : {&fresh, cache_.get()}) ASSERT_TRUE(cache->know_pod(pod));
        ASSERT_EQ(filter_nodes(fresh, pod.uid, names), filter_nodes(*cache_, pod.uid, names))
            << half_gib << " " << share;
        for (Cache* const cache : {&fresh, cache_.get()}) cache->remove_pod(pod.uid);
      }
    }
  }

  void put_node(unsigned n) {
    kubernetes::NodeDevices devices = a10_devices(n, 1 + n % 3, usable);
    devices.policy.effective = n == 3 ? Policy::native_burst_share : Policy::fixed_share;
    if (n == 2) devices.mode.desired = devices.mode.effective = NodeMode::none;
    if (below(4) == 0) devices.devices.front().health = "xid 79";
    const kubernetes::ObjectMeta object = node_object("n" + std::to_string(n), devices);
    nodes_[object.name] = object;
    events_.push_back({true, false, object});
  }
  void remove_node() {
    if (nodes_.empty()) return;
    const auto gone = std::next(nodes_.begin(), below(static_cast<unsigned>(nodes_.size())));
    events_.push_back({true, true, gone->second});
    nodes_.erase(gone);
  }
  void create_pod() {
    kubernetes::PodRequest request{.dialect = "carve"};
    const unsigned containers = below(5) == 0 ? 2 : 1;
    for (unsigned i = 0; i < containers; ++i) {
      Amounts amounts;
      if (below(8) == 0) {
        amounts.exclusive = true;
      } else {
        amounts.memory_bytes = uint64_t{1 + below(12)} << 29;
        if (below(2) == 0) amounts.share_bp = 1000 * (1 + below(9));
      }
      amounts.devices = below(6) == 0 ? 2 : 1;
      request.containers["c" + std::to_string(i)].amounts = amounts;
    }
    if (below(3) == 0) request.application = "app-" + std::to_string(below(3));
    const kubernetes::ObjectMeta pod = pod_object("p" + std::to_string(++created_), request);
    pods_[pod.uid] = pod;
    events_.push_back({false, false, pod});
  }
  void remove_pod() {
    if (pods_.empty()) return;
    const auto gone = std::next(pods_.begin(), below(static_cast<unsigned>(pods_.size())));
    events_.push_back({false, true, gone->second});
    pods_.erase(gone);
  }

  // Events of one object stay in order. Events of different objects may overtake each other.
  void deliver() {
    deliver_list();
    if (events_.empty()) return;
    const size_t at = below(static_cast<unsigned>(events_.size()));
    const std::string uid = events_[at].object.uid;
    const auto first = std::ranges::find_if(events_, [&](const Event& e) { return e.object.uid == uid; });
    std::rotate(events_.begin(), first, first + 1);
    deliver_first();
  }
  void deliver_first() {
    const Event event = events_.front();
    events_.pop_front();
    if (event.is_node && event.is_gone)
      cache_->remove_node(event.object.name);
    else if (event.is_node)
      cache_->set_node(event.object);
    else if (event.is_gone)
      cache_->remove_pod(event.object.uid);
    else
      cache_->set_pod(event.object);
  }

  Cache from_objects() const {
    Cache out(strategy_);
    kubernetes::ObjectsByUid nodes, pods;
    for (const auto& [name, object] : nodes_) nodes[object.uid] = object;
    for (const auto& [uid, object] : pods_) pods[uid] = object;
    out.replace_nodes(nodes);
    out.replace_pods(pods);
    return out;
  }
  // A list has the state of the moment of its request, but arrives later, before the events that follow it.
  void list_again() {
    events_.clear();
    list_.emplace();
    for (const auto& [name, object] : nodes_) list_->first[object.uid] = object;
    for (const auto& [uid, object] : pods_) list_->second[uid] = object;
  }
  void deliver_list() {
    if (!list_) return;
    cache_->replace_nodes(list_->first);
    cache_->replace_pods(list_->second);
    list_.reset();
  }
  // The Lease keeps a successor from reading before the last binding of its predecessor has ended.
  void restart() {
    while (!in_flight_.empty()) land();
    events_.clear();
    list_.reset();
    cache_ = std::make_unique<Cache>(from_objects());
  }

  void schedule() {
    std::vector<std::string> waiting;
    for (const auto& [uid, pod] : pods_)
      if (!pod.annotations.contains(kubernetes::slices_annotation) && !is_in_flight(uid))
        waiting.push_back(uid);
    if (waiting.empty()) return;
    const std::string uid = waiting[below(static_cast<unsigned>(waiting.size()))];
    ASSERT_TRUE(cache_->know_pod(pods_.at(uid)));
    std::vector<std::string_view> names;
    for (const auto& [name, node] : nodes_) names.push_back(name);
    const auto refusals = filter_nodes(*cache_, uid, names);
    const auto scores = prioritize_nodes(*cache_, uid, names);
    std::optional<size_t> best;
    for (size_t i = 0; i < names.size(); ++i)
      if (refusals[i].empty() && (!best || scores[i] > scores[*best])) best = i;
    if (!best) return;
    const auto slices = reserve_devices(*cache_, uid, std::string(names[*best]));
    ASSERT_TRUE(slices) << slices.error();  // The pod has passed the filter.
    bind(uid, *slices);
  }

  void bind(const std::string& uid, const kubernetes::PodSlices& slices) {
    if (below(4) == 0)
      cache_->release(uid);  // The API server rejected the binding, so nothing is written.
    else
      in_flight_.emplace_back(uid, slices);
  }
  // A request either arrives at the API server or is lost. In both cases its response may be lost.
  void land() {
    if (in_flight_.empty()) return;
    const auto [uid, slices] = in_flight_.front();
    in_flight_.pop_front();
    const auto pod = pods_.find(uid);
    const bool is_written = pod != pods_.end() && below(3) != 0;
    if (is_written) {
      pod->second = bound(pod->second, slices);
      events_.push_back({false, false, pod->second});
    }
    if (!is_written && below(2) == 0) cache_->release(uid);
  }
  bool is_in_flight(const std::string& uid) const {
    return std::ranges::any_of(in_flight_, [&](const auto& binding) { return binding.first == uid; });
  }
  // Does what the coordinator does for an unconfirmed reservation: it reads the pod.
  void find_out(const std::string& uid) {
    const auto pod = pods_.find(uid);
    if (pod == pods_.end()) {
      cache_->release(uid);
      cache_->remove_pod(uid);
    } else if (pod->second.annotations.contains(kubernetes::slices_annotation)) {
      cache_->set_pod(pod->second);
    } else {
      cache_->release(uid);
    }
  }

  // Checks the sums of the objects' grants, without the cache.
  void check_objects() const {
    std::map<Uuid, std::tuple<uint64_t, uint64_t, unsigned, bool>>
        taken;  // Memory, share, number of slices, whole device.
    for (const auto& [uid, pod] : pods_) {
      const auto found = pod.annotations.find(kubernetes::slices_annotation);
      if (found == pod.annotations.end()) continue;
      const auto slices = kubernetes::read_slices(found->second);
      ASSERT_TRUE(slices) << slices.error();
      for (const auto& [container, slice] : slices->containers)
        for (const kubernetes::PlacedPart& part : slice.parts) {
          auto& [memory, share, count, is_whole] = taken[part.device];
          memory += part.memory.count;
          if (slice.policy != Policy::native_burst_share) share += part.share.basis_points;
          ASSERT_FALSE(is_whole) << "a whole device has one slice";
          ASSERT_FALSE(slice.exclusive && count != 0) << "a whole device has one slice";
          is_whole = slice.exclusive.has_value();
          ++count;
        }
    }
    for (const auto& [device, sums] : taken) {
      ASSERT_LE(std::get<0>(sums), usable.count) << text(device);
      ASSERT_LE(std::get<1>(sums), whole_device.basis_points) << text(device);
    }
  }
  // Checks that the running cache grants no device more than it has.
  void check_cache() const {
    for (const auto& [name, node] : nodes_)
      for (const fleet::DeviceUse& device : device_uses(*cache_, name)) {
        ASSERT_LE(device.memory, usable);
        ASSERT_LE(device.promised, whole_device);
      }
  }

  std::mt19937_64 random_;
  const Strategy strategy_;
  std::unique_ptr<Cache> cache_;
  std::map<std::string, kubernetes::ObjectMeta> nodes_;  // By name.
  std::map<std::string, kubernetes::ObjectMeta> pods_;   // By uid.
  std::deque<Event> events_;
  std::optional<std::pair<kubernetes::ObjectsByUid, kubernetes::ObjectsByUid>>
      list_;  // Nodes and pods of a list that has not arrived yet.
  std::deque<std::pair<std::string, kubernetes::PodSlices>> in_flight_;  // Bindings.
  unsigned created_ = 0;
};

TEST(CacheSimulation, grants_no_device_twice_in_any_history) {
  const char* const is_long = getenv("CARVE_LONG");
  const unsigned histories = is_long != nullptr && *is_long != '\0' ? 10'000 : 150;
  for (uint64_t seed = 0; seed < histories && !::testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Cluster cluster(seed);
    for (int step = 0; step < 120 && !::testing::Test::HasFailure(); ++step) cluster.step();
    cluster.settle();
    if (::testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace carve::kubernetes::coordinator

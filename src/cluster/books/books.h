// The coordinator's books: which pod has which part of which device of the cluster, and what a pod that waits
// can have.
//
// The API server's objects are the truth; the books are made from them alone. In addition they hold what was
// decided here and is not yet confirmed by an object: a reservation stays until its pod is seen with it, is
// gone, or the caller knows that the binding was not written.
//
// A decision is a pure function of the books: no clock, socket or random number. One thread uses them.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cluster/books/device_drift.h"
#include "cluster/books/node_book.h"
#include "cluster/books/pod_book.h"
#include "place/engine.h"
#include "wire/kube/node_ledger.h"
#include "wire/kube/pod_wish.h"

namespace carve::cluster {

// Which slices would have to move so that devices become empty; nothing is moved (place/consolidation.h).
struct BooksPlan {
  struct Device {
    std::string node;
    unsigned device = 0;
  };
  struct Move {
    std::string pod;               // NAMESPACE/NAME; it has this slice alone.
    std::vector<Device> from, to;  // The devices that the move exchanges.
    Bytes memory;                  // On each of them.
  };
  std::vector<Move> moves;  // In an order in which each has room.
  std::vector<Device> emptied;
  Bytes moved;
};

// So many nodes the scheduler's dry run looks at (minCandidateNodesAbsolute of DefaultPreemptionArgs).
inline constexpr size_t max_preemptible_nodes = 100;
// In an answer each of these tries takes about 20 us.
inline constexpr size_t max_preemption_tries = 500;

// A device of which more is granted than it has: it has shrunk, or annotations were forged.
struct Overcommit {
  std::string node;
  unsigned device = 0;
  Uuid uuid;
  Bytes granted, usable;
  unsigned isolated = 0;  // Slices whose memory is limited.
  struct Grant {
    std::string pod;  // NAMESPACE/NAME
    Bytes memory;
  };
  std::vector<Grant> pods;  // The largest first.
};
// Returns device, amounts and pods in a sentence.
std::string text(const Overcommit&);

class Books {
 public:
  explicit Books(Strategy);

  // What the API server says. A removed node keeps its books until its last pod is gone; it serves no new
  // one.
  void set_node(const kube::ObjectMeta&);
  void remove_node(const std::string& name);
  void replace_nodes(const kube::ObjectsByUid&);
  void set_pod(const kube::ObjectMeta&);
  void remove_pod(const std::string& uid);
  // Reservations stay: what was decided after the list was made is not in it.
  void replace_pods(kube::ObjectsByUid);

  // A pod as the scheduler sends it, which may be ahead of the watch. Fails with a sentence if the webhook
  // has not written its request.
  Result<void, std::string> know_pod(const kube::ObjectMeta&);

  // Returns for each node why the pod cannot be there, as a rule's short name; empty: it can.
  std::vector<std::string_view> filter(const std::string& uid, std::span<const std::string_view> nodes);

  // Returns a score from 0 to 10 for each node; the strategy's choice among them has 10.
  std::vector<uint8_t> prioritize(const std::string& uid, std::span<const std::string_view> nodes);

  // Returns whether the pod could be on the node if these pods were gone from it. Changes nothing.
  bool fits_without(const std::string& uid, const std::string& node, std::span<const std::string> pods);
  // Completes the pods that a scheduler would remove from the node with pods of lower priority, until the pod
  // fits there: of the lowest priorities, few large ones, the newest first. No value: that does not help.
  std::optional<std::vector<std::string>> victims(const std::string& uid, const std::string& node,
                                                  std::span<const std::string> given);

  // Returns the positions of nodes that could serve the pod if all pods of lower priority were gone from
  // them: the first max_preemptible_nodes of these.
  std::vector<size_t> preemptible(const std::string& uid, std::span<const std::string_view> nodes);

  // The pod has preempted others and waits for the node. For pods of lower priority it counts as placed
  // there, until it is bound or this is forgotten.
  void nominate(const kube::ObjectMeta& pod, const std::string& node);
  void forget_nomination(const std::string& uid);

  // Chooses devices of the node and reserves them. The same question again gets the same answer. Fails with a
  // sentence.
  Result<kube::PodSlices, std::string> reserve(const std::string& uid, const std::string& node);
  // The binding was not written, and will not be.
  void release(const std::string& uid);
  // Chooses the amounts of a running pod's slices after a wish, and books the larger of old and new until the
  // pod is seen with the new ones, or the change is ended. Fails with a sentence if the devices have no room.
  Result<kube::PodSlices, std::string> begin_change(const std::string& uid, const kube::PodWish&);
  // The change was not written, and will not be.
  void end_change(const std::string& uid);

  // Reservations that no object confirms yet: uids.
  std::vector<std::string> unconfirmed() const;
  bool is_unconfirmed(const std::string& uid) const;

  // Returns whether the pod could be bound to some node now.
  bool fits_somewhere(const std::string& uid);
  // The same of these nodes alone.
  bool fits_somewhere(const std::string& uid, std::span<const std::string_view> nodes);
  // Returns why the pod waits: how many nodes break which rule, and what the nearest node lacks.
  std::string explain(const std::string& uid);
  // The same of these nodes alone: those that the scheduler has left.
  std::string explain(const std::string& uid, std::span<const std::string_view> nodes);

  // Plans how `wanted` more devices become empty. Pods of several slices stay, because they are on one node;
  // what the scheduler demands beside the devices is not known here.
  BooksPlan plan_consolidation(unsigned wanted);

  // For views and checks. What cannot be read, by "node NAME" or "pod NAMESPACE/NAME".
  std::map<std::string, std::string> problems() const;
  std::vector<DeviceBook> devices(const std::string& node) const;
  std::vector<std::string> models() const;  // Of all devices, sorted, each once.
  // Pods that were asked for in units, by the unit's bytes: NAMESPACE/NAME, sorted.
  std::map<uint64_t, std::vector<std::string>> pods_in_units() const;
  // Devices of which the annotations of pods grant more than there is, by node and device.
  std::vector<Overcommit> overcommitted() const;
  // Devices of the node for which its ledger has other slices than the books, by device.
  std::vector<DeviceDrift> ledger_drift(const std::string& node, const kube::NodeLedger&) const;
  // Returns the uid of the pod NAMESPACE/NAME; empty: no such pod is known.
  std::string uid_of(std::string_view full_name) const;
  size_t pods() const { return pods_.size(); }
  size_t nodes() const { return nodes_.size(); }
  size_t rebuilt() const { return rebuilt_; }  // How often the engine was made anew.

 private:
  // It may throw, as far as the library knows: the library then keeps the hashes beside the keys, and a
  // search does not compute those of the keys that it passes.
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  template <class Value>
  using ByText = std::unordered_map<std::string, Value, Hash, std::equal_to<>>;

  struct Choice {  // Of devices for one container.
    std::string container;
    const ContainerAsk* ask;
    place::RequestClass request_class;
    place::Assignment assignment;
  };

  PodBook& pod_book(const ClusterPod&);
  void erase_pod(const std::string& uid);
  void book(PodBook&, kube::PodSlices);
  void book_change(PodBook&);
  void unbook(PodBook&);
  void count(PodBook&, const NodeBook&);
  void uncount(PodBook&);

  void count_models(const NodeBook&, int change);
  void set_state(NodeBook&, ClusterNode);
  void erase_state(NodeBook&);
  void join_fleet(NodeBook&);
  void leave_fleet(NodeBook&);
  void recount(NodeBook&);
  void note_overcommitted(const NodeBook&, const std::vector<DeviceBook>&);
  void rebuild_if_sparse();
  void forget_if_empty(const std::string& node);
  std::vector<const kube::PodSlices*> slices_on(const NodeBook&) const;
  static const kube::PlacedPart* granted_part(const PodBook&, const std::string& node,
                                              const kube::LedgerPart&);

  const std::vector<ContainerAsk>* asks_on(PodBook&, const NodeBook&);
  place::RequestClass class_of(const ContainerAsk&);
  class Supposition;
  std::vector<std::string_view> node_names() const;
  std::string_view refusal(PodBook&, const NodeBook&);
  std::string_view refusal_now(PodBook&, const NodeBook&);
  void place_nominated(Supposition&, const PodBook& asking, const NodeBook&);
  kube::PodSlices slices_of(std::span<const Choice>, const NodeBook&) const;
  void filter_kind(PodBook&, std::span<const NodeBook* const> nodes, unsigned kind,
                   std::span<std::string_view> out);
  std::optional<std::vector<Choice>> choices(PodBook&, const NodeBook&);
  std::optional<std::vector<Choice>> choices_apart(PodBook&, const NodeBook&, std::span<const ContainerAsk>);
  std::string lacks(PodBook&, const NodeBook&);
  std::string what_would_fit(const place::RequestShape&) const;
  std::string migration_for(const PodBook&, const ContainerAsk&, std::span<NodeBook* const>);

  const Strategy strategy_;
  std::unique_ptr<place::Engine> engine_;
  ByText<NodeBook> nodes_;
  ByText<PodBook> pods_;  // By uid.
  AskCache asks_;
  std::set<std::string> overcommitted_nodes_;
  std::map<std::string, int64_t> devices_of_model_;
  size_t left_ = 0;  // Numbers of the fleet that no node has.
  size_t rebuilt_ = 0;
};

}  // namespace carve::cluster

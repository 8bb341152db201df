// The objects' side: how nodes, pods and reservations are booked. Decisions are in decisions.cc.
#include "cluster/books/books.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "core/invariant.h"

namespace carve::cluster {
namespace {

constexpr size_t min_left = 64;  // Numbers without a node, from which on the fleet may be made anew.

const std::string& application_of(const kube::PodRequest& request) {
  static const std::string none;
  return request.application ? *request.application : none;
}

// Versions are numbers that grow (Kubernetes KEP-5504). 0: it is none.
uint64_t version_of(const kube::ObjectMeta& object) {
  uint64_t out = 0;
  const std::string& text = object.resource_version;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
  return problem == std::errc() && end == text.data() + text.size() ? out : 0;
}

// Returns the keys of what is known and not listed.
template <class Known, class Listed>
std::vector<std::string> missing(const Known& known, const Listed& listed) {
  std::vector<std::string> out;
  for (const auto& [key, value] : known)
    if (!listed.contains(key)) out.push_back(key);
  return out;
}

}  // namespace

Books::Books(Strategy strategy) : strategy_(strategy), engine_(std::make_unique<place::Engine>(strategy)) {}

// Nodes.

void Books::set_node(const kube::ObjectMeta& object) {
  NodeBook& node = nodes_[object.name];
  node.name = object.name;
  const uint64_t version = version_of(object);
  if (version != 0 && version == node.version) return;  // Listed again.
  node.version = version;
  auto state = read_node(object);
  if (!state) {
    erase_state(node);
    node.problem = std::move(state.error());
    return;
  }
  set_state(node, std::move(*state));
  rebuild_if_sparse();
}

void Books::remove_node(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  erase_state(found->second);
  found->second.problem.clear();
  found->second.version = 0;
  forget_if_empty(name);
}

void Books::replace_nodes(const kube::ObjectsByUid& by_uid) {
  std::set<std::string_view> names;
  for (const auto& [uid, object] : by_uid) names.insert(object.name);
  for (const std::string& name : missing(nodes_, names)) remove_node(name);
  for (const auto& [uid, object] : by_uid) set_node(object);
}

void Books::count_models(const NodeBook& node, int change) {
  if (!node.state) return;
  for (const ClusterDevice& device : node.state->devices) {
    const auto count = devices_of_model_.try_emplace(device.model, 0).first;
    count->second += change;
    if (count->second == 0) devices_of_model_.erase(count);
  }
}

// A number of the fleet is one set of devices as long as it is used.
void Books::set_state(NodeBook& node, ClusterNode state) {
  const auto same_model = [](const ClusterDevice& a, const ClusterDevice& b) {
    return a.uuid == b.uuid && a.model == b.model;
  };
  const bool stays = node.state && node.number && node.state->kind == state.kind &&
                     node.state->links == state.links &&
                     std::ranges::equal(node.state->devices, state.devices, same_model);
  if (!stays) leave_fleet(node);
  count_models(node, -1);
  node.state = std::move(state);
  count_models(node, 1);
  if (!stays) join_fleet(node);
  recount(node);
}

void Books::erase_state(NodeBook& node) {
  leave_fleet(node);
  count_models(node, -1);
  overcommitted_nodes_.erase(node.name);
  node.state.reset();
}

void Books::join_fleet(NodeBook& node) {
  invariant(node.state && !node.number);
  node.problem.clear();
  place::Fleet& fleet = engine_->fleet();
  const unsigned models = fleet.models();
  std::map<unsigned, size_t> devices_of;
  std::vector<unsigned> model_of;
  for (const ClusterDevice& device : node.state->devices) {
    const auto model = fleet.model(device.model);
    if (!model) {
      node.problem =
          fmt::format("{} models of devices are the most; {} is one more", place::max_models, device.model);
      return;
    }
    ++devices_of[*model];
    model_of.push_back(*model);
  }
  if (devices_of.empty()) return;
  if (fleet.models() != models) asks_.forget_kinds();
  const auto most = std::ranges::max_element(devices_of, {}, [](const auto& entry) { return entry.second; });
  place::NodeState state{.host_free = {UINT64_MAX}};
  state.model = static_cast<uint8_t>(most->first);
  state.kind = static_cast<uint8_t>(number_of(node.state->kind));
  state.mixed = devices_of.size() > 1;
  std::vector<place::DeviceState> devices(node.state->devices.size());
  for (size_t i = 0; state.mixed && i < devices.size(); ++i)
    devices[i].model = static_cast<uint8_t>(model_of[i]);
  node.number = fleet.add(state, devices);
  if (node.state->links) fleet.set_topology(*node.number, *node.state->links);
  recount(node);
  for (const std::string& uid : node.pods) count(pods_.at(uid), node);
}

void Books::leave_fleet(NodeBook& node) {
  if (!node.number) return;
  for (const std::string& uid : node.pods) uncount(pods_.at(uid));
  engine_->fleet().set_up(*node.number, false);
  node.number.reset();
  ++left_;
}

// Numbers of nodes that left are not used again; when they are many, the fleet is made without them.
void Books::rebuild_if_sparse() {
  if (left_ < min_left + nodes_.size() / 4) return;
  left_ = 0;
  ++rebuilt_;
  engine_ = std::make_unique<place::Engine>(strategy_);
  asks_.forget_kinds();
  for (auto& [uid, pod] : pods_) pod.counted.clear();
  std::map<std::string_view, NodeBook*> in_order;  // Equal books make equal decisions.
  for (auto& [name, node] : nodes_) in_order.emplace(name, &node);
  for (const auto& [name, node] : in_order) {
    node->number.reset();
    if (node->state) join_fleet(*node);
  }
}

std::vector<const kube::PodSlices*> Books::slices_on(const NodeBook& node) const {
  std::vector<const kube::PodSlices*> out;
  for (const std::string& uid : node.pods) out.push_back(&*pods_.find(uid)->second.slices);
  return out;
}

// The engine's states are computed anew from the pods, so that no fault of an earlier change stays.
void Books::recount(NodeBook& node) {
  if (!node.state) return;
  const std::vector<DeviceBook> books = booked(*node.state, slices_on(node));
  note_overcommitted(node, books);
  if (!node.number) return;
  place::Fleet& fleet = engine_->fleet();
  for (unsigned i = 0; i < books.size(); ++i) {
    const place::DeviceState& old = fleet.devices(*node.number)[i];
    place::DeviceState state = state_of(node.state->devices[i], books[i], node.state->refuses_best_effort);
    state.model = old.model;
    if (state != old) fleet.set_device(*node.number, i, state);
  }
  uint64_t cpu = 0;
  for (const std::string& uid : node.pods)
    if (const PodBook& pod = pods_.find(uid)->second; pod.asked != nullptr) cpu += pod.asked->request.cpu;
  const uint64_t all = node.state->cpu_milli == 0 ? UINT32_MAX : node.state->cpu_milli;
  const auto free = static_cast<uint32_t>(std::min<uint64_t>(all - std::min(cpu, all), UINT32_MAX));
  if (free != fleet.node(*node.number).cpu_free) fleet.set_host(*node.number, free, {UINT64_MAX});
}

void Books::note_overcommitted(const NodeBook& node, const std::vector<DeviceBook>& books) {
  bool is_over = false;
  for (size_t i = 0; i < books.size(); ++i) is_over |= is_overcommitted(node.state->devices[i], books[i]);
  if (is_over)
    overcommitted_nodes_.insert(node.name);
  else
    overcommitted_nodes_.erase(node.name);
}

void Books::forget_if_empty(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found != nodes_.end() && found->second.is_empty()) nodes_.erase(found);
}

// Pods.

PodBook& Books::pod_book(const ClusterPod& object) {
  PodBook& pod = pods_[object.uid];
  pod.uid = object.uid;
  pod.full_name = object.full_name();
  pod.problem = object.problem;
  if (object.created != 0) pod.created = object.created;
  if (object.request && pod.asked == nullptr) {  // It never changes.
    pod.asked = asks_.shared(*object.request);
    pod.application = application_of(*object.request);
    pod.priority = object.request->priority;
  }
  return pod;
}

void Books::set_pod(const kube::ObjectMeta& object) {
  const uint64_t version = version_of(object);
  if (const auto found = pods_.find(object.uid); found != pods_.end() && version != 0) {
    // The binder reads single pods, and is ahead of the watch or of a list then: what comes behind is older.
    // In a list that is read anew nearly all pods are as they were.
    const PodBook& known = found->second;
    if (version < known.version || (version == known.version && known.is_known)) return;
  }
  ClusterPod read = read_pod(object);
  PodBook& pod = pod_book(read);
  pod.version = version;
  pod.is_known = true;
  pod.is_deleting = read.is_deleting;
  if (read.slices) {
    forget_nomination(pod.uid);
    pod.is_reserved = false;
    if (pod.change && *read.slices != pod.change->to) {
      pod.change->from = std::move(*read.slices);
      return book_change(pod);
    }
    pod.change.reset();
    if (!pod.slices || *pod.slices != *read.slices) book(pod, std::move(*read.slices));
  } else if (pod.slices && !pod.is_reserved && read.problem.empty()) {
    pod.change.reset();
    unbook(pod);  // The annotation is gone. One that cannot be read stays booked as it was.
  }
}

void Books::remove_pod(const std::string& uid) {
  if (pods_.contains(uid)) erase_pod(uid);
}

// Each object is given up when it is read: of 50,000 there is not a second copy for a moment.
void Books::replace_pods(kube::ObjectsByUid by_uid) {
  for (const std::string& uid : missing(pods_, by_uid)) {
    PodBook& pod = pods_.at(uid);
    pod.is_known = false;
    if (!pod.is_reserved) erase_pod(uid);
  }
  while (!by_uid.empty()) set_pod(by_uid.extract(by_uid.begin()).mapped());
}

Result<void, std::string> Books::know_pod(const kube::ObjectMeta& object) {
  const ClusterPod read = read_pod(object);
  if (read.uid.empty()) return tl::unexpected(std::string("the pod has no uid"));
  if (!read.request)
    return tl::unexpected(fmt::format("pod {} has no readable annotation {}: {}", read.full_name(),
                                      kube::request_annotation,
                                      read.problem.empty() ? "the webhook did not see it" : read.problem));
  pod_book(read);
  return {};
}

void Books::erase_pod(const std::string& uid) {
  const auto found = pods_.find(uid);
  forget_nomination(uid);
  unbook(found->second);
  pods_.erase(found);
}

void Books::book(PodBook& pod, kube::PodSlices slices) {
  unbook(pod);
  pod.slices = std::move(slices);
  NodeBook& node = nodes_[pod.slices->node];
  node.name = pod.slices->node;
  node.pods.insert(pod.uid);
  recount(node);
  count(pod, node);
}

void Books::unbook(PodBook& pod) {
  if (!pod.slices) return;
  uncount(pod);
  const std::string name = pod.slices->node;
  const auto node = nodes_.find(name);
  invariant(node != nodes_.end(), "a booked pod has a node's book");
  node->second.pods.erase(pod.uid);
  pod.slices.reset();
  pod.is_reserved = false;
  recount(node->second);
  forget_if_empty(name);
}

// Tells the engine of the pod's slices, for its guards and to keep replicas apart. The devices' states have
// them already.
void Books::count(PodBook& pod, const NodeBook& node) {
  invariant(pod.counted.empty());
  if (!node.number || !pod.slices || pod.asked == nullptr) return;
  const auto* const asks = asks_on(pod, node);
  if (asks == nullptr) return;
  const place::Application application = engine_->application(pod.application);
  for (const ContainerAsk& ask : *asks) {
    const auto slice = pod.slices->containers.find(ask.container);
    if (slice == pod.slices->containers.end() || slice->second.parts.empty()) continue;
    const auto devices = device_set(*node.state, slice->second.parts);
    if (!devices || std::popcount(*devices) != ask.shape.devices) continue;
    const PodBook::Counted counted{
        class_of(ask), {*node.number, *devices, slice->second.parts.front().memory}, application};
    engine_->add_placed(counted.request_class, counted.assignment, application);
    pod.counted.push_back(counted);
  }
}

void Books::uncount(PodBook& pod) {
  for (const PodBook::Counted& counted : pod.counted)
    engine_->remove_placed(counted.request_class, counted.assignment, counted.application);
  pod.counted.clear();
}

std::map<std::string, std::string> Books::problems() const {
  std::map<std::string, std::string> out;
  for (const auto& [name, node] : nodes_)
    if (!node.problem.empty()) out["node " + name] = node.problem;
  for (const auto& [uid, pod] : pods_)
    if (!pod.problem.empty()) out["pod " + pod.full_name] = pod.problem;
  return out;
}

std::string Books::uid_of(std::string_view full_name) const {
  const auto found =
      std::ranges::find_if(pods_, [&](const auto& pod) { return pod.second.full_name == full_name; });
  return found == pods_.end() ? "" : found->first;
}

std::vector<DeviceBook> Books::devices(const std::string& name) const {
  const auto found = nodes_.find(name);
  if (found == nodes_.end() || !found->second.state) return {};
  return booked(*found->second.state, slices_on(found->second));
}

bool Books::is_unconfirmed(const std::string& uid) const {
  const auto pod = pods_.find(uid);
  return pod != pods_.end() && pod->second.is_reserved;
}

std::vector<std::string> Books::unconfirmed() const {
  std::vector<std::string> out;
  for (const auto& [uid, pod] : pods_)
    if (pod.is_reserved) out.push_back(uid);
  std::ranges::sort(out);
  return out;
}

}  // namespace carve::cluster

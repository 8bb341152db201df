#include "kubernetes/coordinator/cache/cache.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <utility>

#include "core/invariant.h"
#include "kubernetes/coordinator/cache/resized_slices.h"

namespace carve::kubernetes::coordinator {
namespace {

constexpr size_t min_unused_numbers = 64;  // Minimum number that causes a rebuild of the fleet.

const std::string& application_of(const kubernetes::PodRequest& request) {
  static const std::string none;
  return request.application ? *request.application : none;
}

// Returns resourceVersion as a number, which grows (Kubernetes KEP-5504). Returns 0 if it is not a number.
uint64_t version_of(const kubernetes::ObjectMeta& object) {
  uint64_t out = 0;
  const std::string& text = object.resource_version;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
  return problem == std::errc() && end == text.data() + text.size() ? out : 0;
}

// Returns the keys of the known entries that the list does not contain.
template <class Known, class Listed>
std::vector<std::string> missing(const Known& known, const Listed& listed) {
  std::vector<std::string> out;
  for (const auto& [key, value] : known)
    if (!listed.contains(key)) out.push_back(key);
  return out;
}

}  // namespace

Cache::Cache(Strategy strategy) : strategy_(strategy), engine_(std::make_unique<place::Engine>(strategy)) {}

// Nodes.

void Cache::set_node(const kubernetes::ObjectMeta& object) {
  CachedNode& node = nodes_[object.name];
  node.name = object.name;
  const uint64_t version = version_of(object);
  if (version != 0 && version == node.version) return;  // Unchanged since it was last listed.
  node.version = version;
  auto state = fleet::read_node(object);
  if (!state) {
    erase_state(node);
    node.problem = std::move(state.error());
    return;
  }
  set_state(node, std::move(*state));
  rebuild_if_sparse();
}

void Cache::remove_node(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  erase_state(found->second);
  found->second.problem.clear();
  found->second.version = 0;
  forget_if_empty(name);
}

void Cache::replace_nodes(const kubernetes::ObjectsByUid& by_uid) {
  std::set<std::string_view> names;
  for (const auto& [uid, object] : by_uid) names.insert(object.name);
  for (const std::string& name : missing(nodes_, names)) remove_node(name);
  for (const auto& [uid, object] : by_uid) set_node(object);
}

void Cache::count_models(const CachedNode& node, int change) {
  if (!node.state) return;
  for (const fleet::GpuDevice& device : node.state->devices) {
    const auto count = devices_of_model_.try_emplace(device.model, 0).first;
    count->second += change;
    if (count->second == 0) devices_of_model_.erase(count);
  }
}

// A fleet number refers to the same devices while it is in use.
void Cache::set_state(CachedNode& node, fleet::GpuNode state) {
  const auto same_model = [](const fleet::GpuDevice& a, const fleet::GpuDevice& b) {
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

void Cache::erase_state(CachedNode& node) {
  leave_fleet(node);
  count_models(node, -1);
  overcommitted_nodes_.erase(node.name);
  node.state.reset();
}

void Cache::join_fleet(CachedNode& node) {
  invariant(node.state && !node.number);
  node.problem.clear();
  const unsigned models = engine_->fleet().models();
  const auto joined = fleet::join(engine_->fleet(), *node.state);
  if (engine_->fleet().models() != models) asks_.forget_kinds();
  if (!joined) {
    node.problem = joined.error();
    return;
  }
  if (!*joined) return;
  node.number = *joined;
  recount(node);
  for (const std::string& uid : node.pods) count(pods_.at(uid), node);
}

void Cache::leave_fleet(CachedNode& node) {
  if (!node.number) return;
  for (const std::string& uid : node.pods) uncount(pods_.at(uid));
  engine_->fleet().set_up(*node.number, false);
  node.number.reset();
  ++unused_numbers_;
}

// Fleet numbers of removed nodes are not reused. When too many are unused, the fleet is rebuilt.
void Cache::rebuild_if_sparse() {
  if (unused_numbers_ < min_unused_numbers + nodes_.size() / 4) return;
  unused_numbers_ = 0;
  ++rebuilds_;
  engine_ = std::make_unique<place::Engine>(strategy_);
  asks_.forget_kinds();
  for (auto& [uid, pod] : pods_) pod.counted.clear();
  std::map<std::string_view, CachedNode*> in_order;  // By name, so that equal caches have equal fleets.
  for (auto& [name, node] : nodes_) in_order.emplace(name, &node);
  for (const auto& [name, node] : in_order) {
    node->number.reset();
    if (node->state) join_fleet(*node);
  }
}

// Recomputes the engine's states from all pods of the node, so that an earlier error does not persist.
void Cache::recount(CachedNode& node) {
  if (!node.state) return;
  const std::vector<fleet::DeviceUse> uses = device_uses(*this, node);
  note_overcommitted(node, uses);
  if (!node.number) return;
  place::Fleet& fleet = engine_->fleet();
  fleet::set_uses(fleet, *node.number, *node.state, uses);
  uint64_t cpu = 0;
  for (const std::string& uid : node.pods)
    if (const CachedPod& pod = pods_.find(uid)->second; pod.asked != nullptr) cpu += pod.asked->request.cpu;
  const uint64_t all = node.state->cpu_milli == 0 ? UINT32_MAX : node.state->cpu_milli;
  const auto free = static_cast<uint32_t>(std::min<uint64_t>(all - std::min(cpu, all), UINT32_MAX));
  if (free != fleet.node(*node.number).cpu_free) fleet.set_host(*node.number, free, {UINT64_MAX});
}

void Cache::note_overcommitted(const CachedNode& node, const std::vector<fleet::DeviceUse>& uses) {
  bool is_over = false;
  for (size_t i = 0; i < uses.size(); ++i) is_over |= is_overcommitted(node.state->devices[i], uses[i]);
  if (is_over)
    overcommitted_nodes_.insert(node.name);
  else
    overcommitted_nodes_.erase(node.name);
}

void Cache::forget_if_empty(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found != nodes_.end() && found->second.is_empty()) nodes_.erase(found);
}

// Pods.

CachedPod& Cache::cached_pod(const ClusterPod& object) {
  CachedPod& pod = pods_[object.uid];
  pod.uid = object.uid;
  pod.full_name = object.full_name();
  pod.problem = object.problem;
  if (object.created != 0) pod.created = object.created;
  if (object.request && pod.asked == nullptr) {  // A request never changes.
    pod.asked = asks_.shared(*object.request);
    pod.application = application_of(*object.request);
    pod.priority = object.request->priority;
  }
  return pod;
}

void Cache::set_pod(const kubernetes::ObjectMeta& object) {
  const uint64_t version = version_of(object);
  if (const auto found = pods_.find(object.uid); found != pods_.end() && version != 0) {
    // The binder reads single pods and can be ahead of the watch or of a list, which then deliver older
    // objects. In a repeated list nearly all pods are unchanged.
    const CachedPod& known = found->second;
    if (version < known.version || (version == known.version && known.is_known)) return;
  }
  ClusterPod read = read_pod(object);
  CachedPod& pod = cached_pod(read);
  pod.version = version;
  pod.is_known = true;
  pod.is_deleting = read.is_deleting;
  if (read.slices) {
    forget_nomination(pod.uid);
    pod.is_reserved = false;
    if (pod.change && *read.slices != pod.change->to) {
      pod.change->from = std::move(*read.slices);
      return add_change(pod);
    }
    pod.change.reset();
    if (!pod.slices || *pod.slices != *read.slices) add_slices(pod, std::move(*read.slices));
  } else if (pod.slices && !pod.is_reserved && read.problem.empty()) {
    pod.change.reset();
    erase_slices(pod);  // The annotation was removed. An unreadable one would leave the slices as they were.
  }
}

void Cache::remove_pod(const std::string& uid) {
  if (pods_.contains(uid)) erase_pod(uid);
}

// Frees each object after reading it, so that there are never two copies of all 50,000 pods.
void Cache::replace_pods(kubernetes::ObjectsByUid by_uid) {
  for (const std::string& uid : missing(pods_, by_uid)) {
    CachedPod& pod = pods_.at(uid);
    pod.is_known = false;
    if (!pod.is_reserved) erase_pod(uid);
  }
  while (!by_uid.empty()) set_pod(by_uid.extract(by_uid.begin()).mapped());
}

Result<void, std::string> Cache::know_pod(const kubernetes::ObjectMeta& object) {
  const ClusterPod read = read_pod(object);
  if (read.uid.empty()) return tl::unexpected(std::string("the pod has no uid"));
  if (!read.request)
    return tl::unexpected(fmt::format(
        "pod {} has no readable annotation {}: {}", read.full_name(), kubernetes::request_annotation,
        read.problem.empty() ? "the webhook has not processed the pod" : read.problem));
  cached_pod(read);
  return {};
}

void Cache::nominate(const kubernetes::ObjectMeta& object, const std::string& node) {
  if (!know_pod(object)) return;
  forget_nomination(object.uid);
  CachedPod& pod = pods_.at(object.uid);
  if (pod.slices) return;
  pod.nominated = node;
  CachedNode& cached = nodes_[node];
  cached.name = node;
  cached.nominated.insert(pod.uid);
}

void Cache::forget_nomination(const std::string& uid) {
  const auto pod = pods_.find(uid);
  if (pod == pods_.end() || pod->second.nominated.empty()) return;
  const std::string name = std::exchange(pod->second.nominated, {});
  nodes_.at(name).nominated.erase(uid);
  forget_if_empty(name);
}

void Cache::erase_pod(const std::string& uid) {
  const auto found = pods_.find(uid);
  forget_nomination(uid);
  erase_slices(found->second);
  pods_.erase(found);
}

// Slices.

void Cache::place(const std::string& uid, kubernetes::PodSlices slices) {
  add_slices(pods_.at(uid), std::move(slices));
}

void Cache::reserve(const std::string& uid, kubernetes::PodSlices slices) {
  forget_nomination(uid);
  CachedPod& pod = pods_.at(uid);
  add_slices(pod, std::move(slices));
  pod.is_reserved = true;
}

void Cache::remove_slices(const std::string& uid) { erase_slices(pods_.at(uid)); }

void Cache::release(const std::string& uid) {
  const auto pod = pods_.find(uid);
  if (pod == pods_.end() || !pod->second.is_reserved) return;
  erase_slices(pod->second);
  if (!pod->second.is_known) pods_.erase(pod);
}

void Cache::begin_change(const std::string& uid, kubernetes::PodSlices to) {
  CachedPod& pod = pods_.at(uid);
  invariant(pod.slices && !pod.is_reserved && !pod.change, "a placed pod has at most one change at a time");
  pod.change = CachedPod::Change{.from = *pod.slices, .to = std::move(to)};
  add_change(pod);
}

void Cache::end_change(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || !found->second.change) return;
  kubernetes::PodSlices before = std::move(found->second.change->from);
  found->second.change.reset();
  add_slices(found->second, std::move(before));
}

void Cache::add_change(CachedPod& pod) {
  kubernetes::PodSlices larger = larger_of(pod.change->from, pod.change->to);
  if (larger != *pod.slices) add_slices(pod, std::move(larger));
}

void Cache::add_slices(CachedPod& pod, kubernetes::PodSlices slices) {
  erase_slices(pod);
  pod.slices = std::move(slices);
  CachedNode& node = nodes_[pod.slices->node];
  node.name = pod.slices->node;
  node.pods.insert(pod.uid);
  recount(node);
  count(pod, node);
}

void Cache::erase_slices(CachedPod& pod) {
  if (!pod.slices) return;
  uncount(pod);
  const std::string name = pod.slices->node;
  const auto node = nodes_.find(name);
  invariant(node != nodes_.end(), "a pod with slices has a cached node");
  node->second.pods.erase(pod.uid);
  pod.slices.reset();
  pod.is_reserved = false;
  recount(node->second);
  forget_if_empty(name);
}

// Adds the pod's slices to the engine's placements, which its guards and the spreading of replicas need. The
// devices' states already include them.
void Cache::count(CachedPod& pod, const CachedNode& node) {
  invariant(pod.counted.empty());
  if (!node.number || !pod.slices || pod.asked == nullptr) return;
  const auto& asks = pod.asked->on(node.state->kind, engine_->fleet());
  if (!asks) return;
  const place::Application application = engine_->application(pod.application);
  for (const ContainerAsk& ask : *asks) {
    const auto slice = pod.slices->containers.find(ask.container);
    if (slice == pod.slices->containers.end() || slice->second.parts.empty()) continue;
    const auto devices = device_set(*node.state, slice->second.parts);
    if (!devices || std::popcount(*devices) != ask.shape.devices) continue;
    CachedPod::Counted counted{engine_->request_class(ask.shape),
                               {*node.number, *devices, slice->second.parts.front().memory},
                               application};
    if (!ask.shape.parts.empty())
      for (const kubernetes::PlacedPart& part : slice->second.parts)
        counted.assignment.parts.push_back(
            {static_cast<unsigned>(std::countr_zero(*device_set(*node.state, {part}))), part.memory});
    engine_->add_placed(counted.request_class, counted.assignment, application);
    pod.counted.push_back(counted);
  }
}

void Cache::uncount(CachedPod& pod) {
  for (const CachedPod::Counted& counted : pod.counted)
    engine_->remove_placed(counted.request_class, counted.assignment, counted.application);
  pod.counted.clear();
}

std::vector<fleet::DeviceUse> device_uses(const Cache& cache, const CachedNode& node) {
  if (!node.state) return {};
  std::vector<const kubernetes::PodSlices*> slices;
  for (const std::string& uid : node.pods) slices.push_back(&*cache.find_pod(uid)->slices);
  return fleet::device_uses(*node.state, slices);
}

}  // namespace carve::kubernetes::coordinator

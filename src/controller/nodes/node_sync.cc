#include "controller/nodes/node_sync.h"

#include "objects/rules/pool_check.h"
#include "os/log.h"

namespace carve::controller {

using objects::Kind;

NodeSync::NodeSync(ObjectRegistry& objects, const std::vector<std::string>& nodes, int64_t now_ns,
                   int64_t expected_start_ns)
    : objects_(objects), expected_start_ns_(expected_start_ns) {
  for (const std::string& name : nodes) {
    seen_[name] = std::make_shared<const NodeObservation>(NodeObservation{.answered_ns = now_ns});
    if (objects_.find(node_key(name))) continue;
    Object node{.key = node_key(name)};
    node.created_ns = now_ns;
    node.uid = fmt::format("{:x}-{}", now_ns, name);
    node.spec = objects::NodeSpec{};
    node.status = observed_status(node, *seen_[name], now_ns, expected_start_ns_);
    if (const auto added = objects_.add(std::move(node)); !added)
      os::log::error("node {}: {}", name, added.error().message);
  }
}

template <class Edit>
void NodeSync::edit(const ObjectKey& key, Edit change) {
  const auto edited = objects_.update(key, [&](Object& object) -> Outcome<void> {
    change(object);
    return {};
  });
  if (!edited) os::log::error("{}", edited.error().message);
}

void NodeSync::answered(const std::string& name, NodeObservationPointer seen) {
  NodeObservationPointer& known = seen_[name];
  const bool is_first = known == nullptr || known->agent_started_ns() == 0;
  known = std::move(seen);
  const Pointer node = objects_.find(node_key(name));
  if (!node || !is_first || !node_status(*node).started_at.empty()) return;
  // A new node begins with the labels that its agent was started with.
  edit(node->key, [&](Object& object) { object.labels.merge(agent_labels(known->report.node)); });
}

void NodeSync::update_node(const std::string& name, int64_t now_ns) {
  const NodeObservation& seen = *seen_.at(name);
  const Pointer node = objects_.find(node_key(name));
  if (!node) return;
  const bool restarted = has_restarted(*node, seen);
  const Word<NodePhase> before = node_status(*node).state;
  edit(node->key, [&](Object& object) {
    objects::NodeStatus status = observed_status(object, seen, now_ns, expected_start_ns_);
    if (restarted) {
      objects::NodeSpec spec = node_spec(object);
      spec.restarting = false;
      object.spec = std::move(spec);
      status.removed_labels.clear();
    }
    object.status = std::move(status);
  });
  if (restarted) os::log::info("node {}: restarted; the desired settings are in effect", name);
  if (restarted || seen.report.slices.empty()) forced_.erase(name);
  if (const auto after = objects_.find(node_key(name)); after && node_status(*after).state != before)
    os::log::info("node {}: {}", name, text(node_status(*after).state));
}

void NodeSync::carry_out(const workload::PoolAction& action) {
  using Step = workload::PoolAction::Kind;
  edit(node_key(action.node), [&](Object& node) {
    if (action.kind == Step::set_label) {
      node.labels[action.key] = action.value;
      return;
    }
    objects::NodeStatus status = node_status(node);
    if (action.kind == Step::initialise) status.is_initialised = true;
    const std::string taint =
        fmt::format("{}={}:{}", action.taint.key, action.taint.value, carve::text(action.taint.effect));
    if (action.kind == Step::set_taint) status.taints.push_back(taint);
    if (action.kind == Step::remove_taint) std::erase(status.taints, taint);
    node.status = std::move(status);
  });
  if (action.kind == Step::set_label)
    os::log::info("node {}: label {}={} set by its pool", action.node, action.key, action.value);
}

void NodeSync::update_pool(const Object& pool, int64_t now_ns) {
  const std::string& name = pool.key.name;
  for (const workload::PoolAction& action : workload::actions(
           objects::node_pool(name, pool_spec(pool)), nodes_of(name, objects_.list(Kind::node), now_ns)))
    carry_out(action);
  const TypedJson status = pool_status(pool, objects_.list(Kind::node), now_ns);
  edit(pool.key, [&](Object& object) { object.status = status; });
}

void NodeSync::turn(int64_t now_ns) {
  for (const Pointer& pool : objects_.list(Kind::pool)) update_pool(*pool, now_ns);
  for (const auto& [name, seen] : seen_) update_node(name, now_ns);
}

AgentRequest NodeSync::request_for(const std::string& name) const {
  AgentRequest out;
  const Pointer node = objects_.find(node_key(name));
  const auto seen = seen_.find(name);
  if (!node || seen == seen_.end()) return out;
  out.change = agent_change(*node, *seen->second);
  if (forced_.contains(name))
    for (const api::Slice& slice : seen->second->report.slices) out.ended_slices.push_back(slice.name);
  return out;
}

}  // namespace carve::controller

// The part of the service reconciler that requests the slices of replicas from one candidate node after
// another.
#include <fmt/ranges.h>

#include <algorithm>

#include "controller/services/service_reconciler.h"
#include "controller/services/service_spec.h"
#include "objects/node_object.h"
#include "os/log.h"

namespace carve::controller {

// Returns the host resources requested by the replicas that are on the node or whose slices were requested
// from it.
workload::HostResources ServiceReconciler::requested_on(const std::string& node) const {
  workload::HostResources out;
  for (const auto& object : objects_.workloads()) {
    std::map<uint32_t, workload::HostResources> requests;  // Keyed by revision.
    for (const ReplicaRecord& replica : records_.replicas(object->uid)) {
      if (replica.node != node || replica.has_ended()) continue;
      const bool is_kept = !records_.spec(replica.uid, replica.revision).empty();
      if (!requests.contains(replica.revision) && is_kept)
        requests[replica.revision] = host_request(records_.form(replica.uid, replica.revision));
      out += requests[replica.revision];
    }
  }
  return out;
}

// Returns the nodes whose machines have the cores and the memory that the replica requests.
Outcome<std::vector<std::string>> ServiceReconciler::nodes_with_room(const std::vector<std::string>& nodes,
                                                                     const ReplicaRecord& replica) const {
  const workload::HostResources request = host_request(records_.form(replica.uid, replica.revision));
  if (request == workload::HostResources{}) return nodes;
  std::vector<std::string> out, lacking;
  for (const std::string& name : nodes) {
    const auto node = objects_.find({objects::Kind::node, "default", name});
    const auto status = node ? node->status.as<objects::NodeStatus>() : objects::NodeStatus();
    const std::string problem =
        workload::host_problem(request, {status.cpu_milli, status.memory_bytes}, requested_on(name));
    if (problem.empty())
      out.push_back(name);
    else
      lacking.push_back(fmt::format("node {}: {}", name, problem));
  }
  if (out.empty() && !lacking.empty())
    return failure(FailureKind::insufficient_capacity, "{}", fmt::join(lacking, "; "));
  return out;
}

// Uses a trial placement to check whether the current revision's next slice would fit if these replicas had
// ended.
Outcome<void> ServiceReconciler::check_room(const Turn& turn, std::span<const workload::ReplicaId> ended) {
  const objects::ServiceSpec& spec = records_.form(turn.record.uid, turn.record.revision);
  const ReplicaRecord next{.slice = fmt::format("{}-{}-0", turn.object->key.name, turn.record.revision),
                           .uid = turn.record.uid,
                           .revision = turn.record.revision};
  const auto amounts = slice_terms(spec);
  if (!amounts) return {};
  RoomQuery query{.choice = node_choice(spec),
                  .amounts = *amounts,
                  .host = host_request(spec),
                  .ended = {},
                  .host_left = {}};
  for (const auto& node : objects_.list(objects::Kind::node))
    query.host_left[node->key.name] = requested_on(node->key.name);
  for (const ReplicaRecord& replica : turn.replicas) {
    const workload::ReplicaId id{replica.revision, replica.replica};
    if (std::ranges::find(ended, id) == ended.end() || replica.node.empty()) continue;
    query.ended.push_back({.node = replica.node, .slice = replica.slice});
    query.host_left[replica.node] -= host_request(records_.form(replica.uid, replica.revision));
  }
  return effects_.check_room(query);
}

// Requests the slice from one node after another. The record names the node before the request is sent, so no
// other node gets a request while this one may have granted the slice. Rejections are not recorded: the next
// attempt tries all nodes again.
Outcome<void> ServiceReconciler::grant(const Turn& turn, ReplicaRecord& replica,
                                       const api::SliceRequest& request) {
  std::vector<std::string> nodes{replica.node};
  if (replica.node.empty()) {
    auto found = effects_.nodes_to_ask(node_choice(turn.spec), request.amounts);
    if (!found) return tl::unexpected(found.error());
    auto fitting = nodes_with_room(*found, replica);
    if (!fitting) return tl::unexpected(fitting.error());
    nodes = std::move(*fitting);
  }
  Failure last{FailureKind::unavailable, "no node is available for the slice"};
  for (const std::string& node : nodes) {
    if (replica.node != node) {
      replica.node = node;
      if (auto written = records_.write(replica); !written) return written;
    }
    if (auto kept = keep_owner(*turn.object, replica); !kept) return kept;
    auto granted = effects_.grant(request, node);
    if (granted) return granted;
    last = granted.error();
    if (last.kind == FailureKind::unavailable) return tl::unexpected(last);
  }
  replica.node.clear();
  if (auto written = records_.write(replica); !written) return written;
  return tl::unexpected(last);
}

// Requests the slices that were decided. After a kill a request is repeated, but granted only once.
void ServiceReconciler::request_slices(Turn& turn, Ns now) {
  for (ReplicaRecord replica : records_.replicas(turn.record.uid)) {
    if (replica.is_granted) continue;
    // The slice was requested from no node, and the service is stopped or deleted.
    if (turn.desired.replicas == 0 && replica.node.empty()) {
      forget(turn, replica);
      turn.changed = true;
      continue;
    }
    const auto request = slice_request(*turn.object, records_.form(replica.uid, replica.revision), replica);
    if (request) {
      const auto node = grant(turn, replica, *request);
      if (!node && node.error().kind != FailureKind::unavailable) {
        SliceRefusal& last = refusals_[replica.uid];
        const unsigned times = last.refusal.revision == replica.revision ? last.refusal.times + 1 : 1;
        last = {.refusal = {.revision = replica.revision, .at = now, .times = times},
                .kind = node.error().kind,
                .message = node.error().message};
        done(turn, node);
        forget(turn, replica);  // Removes its owner too, or the program would be adopted.
        continue;
      }
      if (!done(turn, node)) continue;
    }
    replica.is_granted = true;
    if (!done(turn, records_.write(replica))) continue;
    refusals_.erase(replica.uid);
    turn.changed = true;
    os::log::info(cause_of(*turn.object), "{}: replica {} of revision {} granted{}", text(turn.object->key),
                  replica.replica, replica.revision, replica.node.empty() ? "" : " on node " + replica.node);
  }
}

}  // namespace carve::controller

// How the service loop requests the slices of replicas: on which nodes, and one after the other.
#include <fmt/ranges.h>

#include "controller/services/service_loop.h"
#include "controller/services/service_spec.h"
#include "os/log.h"
#include "wire/api/json.h"
#include "wire/objects/node_object.h"

namespace carve::controller {

using K = FailureKind;

// Returns what the replicas that are on the node, or were requested there, ask of its machine.
workload::HostResources ServiceLoop::requested_on(const std::string& node) const {
  workload::HostResources out;
  for (const auto& object : objects_.workloads()) {
    std::map<uint32_t, workload::HostResources> requests;  // By revision.
    for (const ReplicaRecord& replica : records_.replicas(object->uid)) {
      if (replica.node != node) continue;
      const std::string spec = records_.spec(replica.uid, replica.revision);
      if (!requests.contains(replica.revision) && !spec.empty())
        requests[replica.revision] = host_request(stored_spec(spec));
      out += requests[replica.revision];
    }
  }
  return out;
}

// Returns the nodes whose machines have the cores and the memory that the replica requests.
Outcome<std::vector<std::string>> ServiceLoop::nodes_with_room(const std::vector<std::string>& nodes,
                                                               const ReplicaRecord& replica) const {
  const workload::HostResources request =
      host_request(stored_spec(records_.spec(replica.uid, replica.revision)));
  if (request == workload::HostResources{}) return nodes;
  std::vector<std::string> out, lacking;
  for (const std::string& name : nodes) {
    const auto node = objects_.find({objects::Kind::node, "default", name});
    const auto status = api::read<objects::NodeStatus>(node ? node->status : "{}", api::Reading::lenient);
    const std::string problem =
        status
            ? workload::host_problem(request, {status->cpu_milli, status->memory_bytes}, requested_on(name))
            : "";
    if (problem.empty())
      out.push_back(name);
    else
      lacking.push_back(fmt::format("node {}: {}", name, problem));
  }
  if (out.empty() && !lacking.empty())
    return failure(K::insufficient_capacity, "{}", fmt::join(lacking, "; "));
  return out;
}

// Asks the nodes one after the other. The record names the node before it is asked, so no other node is asked
// while it may have granted the slice. A node that refuses is forgotten: the next attempt asks all again.
Outcome<void> ServiceLoop::grant(const Pass& pass, ReplicaRecord& replica, const api::SliceRequest& request) {
  std::vector<std::string> nodes{replica.node};
  if (replica.node.empty()) {
    auto found = effects_.nodes_to_ask(node_choice(pass.spec), request);
    if (!found) return tl::unexpected(found.error());
    auto fitting = nodes_with_room(*found, replica);
    if (!fitting) return tl::unexpected(fitting.error());
    nodes = std::move(*fitting);
  }
  Failure last{K::unavailable, "no node was asked"};
  for (const std::string& node : nodes) {
    if (replica.node != node) {
      replica.node = node;
      if (auto written = records_.write(replica); !written) return written;
      if (auto kept = keep_owner(*pass.object, replica); !kept) return kept;
    }
    auto granted = effects_.grant(request, node);
    if (granted) return granted;
    last = granted.error();
    if (last.kind == K::unavailable) return tl::unexpected(last);
  }
  replica.node.clear();
  if (auto written = records_.write(replica); !written) return written;
  return tl::unexpected(last);
}

// Requests the slices that were decided. After a kill the request is repeated, and is granted once.
void ServiceLoop::request_slices(Pass& pass, Ns now) {
  for (ReplicaRecord replica : records_.replicas(pass.record.uid)) {
    if (replica.is_granted) continue;
    const auto request =
        slice_request(*pass.object, stored_spec(records_.spec(replica.uid, replica.revision)), replica);
    if (request) {
      const auto node = grant(pass, replica, *request);
      if (!node && node.error().kind != K::unavailable) {
        SliceRefusal& last = refusals_[replica.uid];
        const unsigned times = last.refusal.revision == replica.revision ? last.refusal.times + 1 : 1;
        last = {.refusal = {.revision = replica.revision, .at = now, .times = times},
                .kind = node.error().kind,
                .sentence = node.error().sentence};
        done(pass, node);
        done(pass, records_.remove(replica));
        continue;
      }
      if (!done(pass, node)) continue;
    }
    replica.is_granted = true;
    if (!done(pass, records_.write(replica))) continue;
    refusals_.erase(replica.uid);
    pass.changed = true;
    os::log::info("{}: replica {} of revision {} granted{}", text(pass.object->key), replica.replica,
                  replica.revision, replica.node.empty() ? "" : " on node " + replica.node);
  }
}

}  // namespace carve::controller

#include "kubernetes/coordinator/cluster_check.h"

#include "kubernetes/coordinator/cache/cache_views.h"
#include "kubernetes/coordinator/cache/device_drift.h"
#include "kubernetes/coordinator/cache/overcommit.h"
#include "kubernetes/format/node_ledger.h"

namespace carve::kubernetes::coordinator {
namespace {

constexpr const char* check_devices = "CheckDevices";
constexpr const char* read_annotations = "ReadAnnotations";
constexpr std::string_view node_prefix = "node ", pod_prefix = "pod ";

void add_drift(const Cache& cache, const kubernetes::ObjectMeta& node, ClusterFindings& out) {
  const auto annotation = node.annotations.find(kubernetes::ledger_annotation);
  if (annotation == node.annotations.end()) return;
  const auto ledger = kubernetes::read_ledger(annotation->second);
  if (!ledger) {
    out.findings.push_back({"Node", node.name, "CarveUnreadable", read_annotations, ledger.error()});
    return;
  }
  for (const DeviceDrift& device : ledger_drift(cache, node.name, *ledger)) {
    ++out.drifting_devices;
    out.findings.push_back({"Node", node.name, "CarveLedgerDrift", check_devices,
                            text(device) + ". The node refuses to start a container that exceeds the free "
                                           "capacity in its ledger; no pod is evicted"});
  }
}

}  // namespace

ClusterFindings check_cluster(const Cache& cache, const kubernetes::ObjectsByUid& nodes) {
  ClusterFindings out;
  for (const Overcommit& device : overcommitted_devices(cache)) {
    ++out.overcommitted_devices;
    out.findings.push_back({"Node", device.node, "CarveOvercommitted", check_devices,
                            text(device) + ". No pod is evicted; delete or shrink one"});
  }
  for (const auto& [uid, node] : nodes) add_drift(cache, node, out);
  for (const auto& [name, problem] : unreadable_objects(cache)) {
    const bool is_node = name.starts_with(node_prefix);
    out.findings.push_back(
        {is_node ? "Node" : "Pod", name.substr(is_node ? node_prefix.size() : pod_prefix.size()),
         "CarveUnreadable", read_annotations,
         is_node ? problem + "; the node gets no new slice until it can be read" : problem});
  }
  return out;
}

}  // namespace carve::kubernetes::coordinator

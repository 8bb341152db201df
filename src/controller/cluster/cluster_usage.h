// Copies the usage records of every node of a Kubernetes cluster. It follows the Node objects and the pods with
// slices, reads each node through carve-kubelet's port at the times of ReadSchedule, and reports what a user
// must know as events of the nodes: nodes that cannot be read, refused records, and lost ledgers.
//
// Everything runs in the thread of the API client's loop. It has neither a socket nor a clock of its own, so
// the simulation runs it unchanged (docs/decisions/0035-usage-of-a-cluster.md).
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "controller/cluster/node_read.h"
#include "controller/cluster/read_schedule.h"
#include "controller/objects/object_changes.h"
#include "kubernetes/api/watched_objects.h"

namespace carve::controller {

class ClusterUsage {
 public:
  struct Settings {
    UsageAccount account;
    ReadScheduleSettings schedule;
    std::set<std::string> local_nodes =
        {};  // Nodes with an agent on this machine; not read from the cluster.
    uint64_t seed = 0;
  };
  struct Effects {
    std::function<std::unique_ptr<kubernetes::ApiClient>(const ClusterNode&, const std::string& token)>
        connect;
    std::function<ledger::Stamp()> now;
    std::function<void(const std::string& node, const ChangeEvent&)> note;
  };
  ClusterUsage(kubernetes::ApiClient&, UsageBooks&, Settings, Effects);

  struct Figures {
    size_t nodes = 0;    // With a port for usage records.
    size_t failing = 0;  // Whose last read failed.
    size_t running = 0;  // Being read.
    uint64_t reads = 0, failed_reads = 0, records = 0, refused = 0, bytes = 0;  // Since the start.
  };
  Figures figures() const;
  // Returns why nodes or pods cannot be listed or watched. Empty if they can.
  std::string problem() const;

 private:
  struct Known {
    ClusterNode node;
    bool is_failing = false;
    std::string last_cause;        // Why the last read failed, without digits; reported when it changes.
    std::string last_refusal;      // That was reported.
    unsigned undecided_reads = 0;  // In a row.
  };
  void nodes_replaced(const kubernetes::ObjectsByUid&);
  void node_changed(const kubernetes::ObjectMeta&);
  void node_removed(const std::string& name);
  void step();
  void begin(const std::string& name);
  void ended(const std::string& name, const ReadResult&);
  void report(const std::string& name, Known&, const ReadResult&);
  int64_t heard_ns() const;

  kubernetes::ApiClient& client_;
  const Settings settings_;
  const Effects effects_;
  UsageTokens tokens_;
  PodEvidence evidence_;
  const NodeRead::Tools tools_;
  ReadSchedule schedule_;
  std::map<std::string, Known> nodes_;                      // By name.
  std::map<std::string, std::string> unusable_;             // Reported problems of annotations, by node.
  std::map<std::string, std::shared_ptr<NodeRead>> reads_;  // By node; also those of removed nodes.
  std::vector<std::shared_ptr<NodeRead>> over_;             // Destroyed outside of their callbacks.
  Figures counts_;                                          // Only the counters.
  std::unique_ptr<kubernetes::ApiCall> timer_, cleaning_;
  uint64_t pod_lists_ = 0;  // Number of lists of the pods that had begun when the last one was complete.
  kubernetes::ObjectWatch node_watch_;  // Declared last, with the pods, because they call the other members.
  kubernetes::ObjectWatch pod_watch_;
};

}  // namespace carve::controller

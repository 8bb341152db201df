// Keeps this node's object in the API saying what rules/advertisement.h decides, and lets the agent follow:
// settings that labels change, and slices whose pods are gone. It has a copy of the node's pods, also for
// container starts while the API server is away. All of it runs in the thread of the client's loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "kube/watched_objects.h"
#include "kubelet/rules/kubelet_metrics.h"
#include "kubelet/rules/ledger_drift.h"
#include "kubelet/rules/node_object.h"
#include "kubelet/rules/pod_object.h"
#include "kubelet/rules/releases.h"
#include "kubelet/rules/report_events.h"
#include "kubelet/rules/slice_updates.h"

namespace carve::kubelet {

inline constexpr kube::Nanoseconds pod_patience_ns = 2 * kube::second_ns;
inline constexpr kube::Nanoseconds same_update_ns =
    30 * kube::second_ns;                      // Until the same one is tried again.
inline constexpr size_t max_asked_pods = 512;  // Twice as many as there are slots.
// The same patch is not sent again before: another program, or the API server, undoes it.
inline constexpr kube::Nanoseconds same_patch_ns = 5 * kube::second_ns;

class NodePublisher {
 public:
  struct Settings {
    std::string node;
    HostFacts host;
    uint64_t seed = 0;  // Of random waits.
  };
  struct Effects {
    std::function<void(const api::NodeChange&)> change_agent;
    std::function<void(const std::string& slice)> release;
    std::function<void(const SliceUpdate&)> update;
    std::function<void(const EventNote&)> note;
    std::function<std::string()> now_text;  // RFC 3339.
  };

  NodePublisher(kube::ApiClient&, Settings, Effects);

  // What the agent said last; a failure is a sentence.
  void agent_reported(Result<AgentReport, std::string>);
  void runtime_found(const RuntimeCapability&);

  // What the metrics show of the watches and of the node.
  KubeletFigures figures() const;

  using PodAnswer = Result<std::optional<SeenPod>, std::string>;
  // Asks the API server for a pod; no pod: it has none of that name. A copy may still have a pod of that name
  // that was deleted, so it is used only if the API server does not answer within pod_patience_ns.
  void find_pod(const std::string& name_space, const std::string& name, std::function<void(PodAnswer)> found);

 private:
  void step();
  void read_node();
  void node_read(const kube::ApiAnswer&);
  void patch(std::string target, std::string type, std::string body);
  void failed(const std::string& what, const kube::ApiAnswer&);
  void release_orphans();
  void update_slices();
  void change_agent(const Result<NodeWishes, std::string>&);
  void find_drift();
  void tell(const std::vector<EventNote>&);
  AboutObject about_node() const;
  PodAnswer answered_pod(const std::string& full_name, const kube::ApiAnswer&);
  PodAnswer copied_pod(const std::string& full_name, const std::string& problem) const;
  std::string node_target() const { return "/api/v1/nodes/" + settings_.node; }

  kube::ApiClient& client_;
  const Settings settings_;
  const Effects effects_;
  std::optional<AgentReport> agent_;
  std::string agent_problem_;  // Empty without an agent: nothing is known of it yet.
  std::optional<RuntimeCapability> runtime_;
  std::optional<SeenNode> seen_;
  LastingDrift lasting_;
  kube::NodeLedger drift_;
  bool is_drift_known_ = false;  // What the node's object had of it is assumed.
  ReportEvents events_;
  bool is_stale_ = true;    // The node's object has changed since it was read.
  std::string last_patch_;  // The newest body, and when it was sent.
  kube::Nanoseconds last_patch_at_ = 0;
  std::string last_problem_;
  kube::Nanoseconds retry_ns_ = kube::first_retry_ns;
  std::unique_ptr<kube::ApiCall> call_;   // A read or a patch of the node; null: none is on its way.
  std::unique_ptr<kube::ApiCall> retry_;  // Null: nothing has failed.
  std::map<std::string, std::unique_ptr<kube::ApiCall>> orphans_;  // By slice: its pod is being asked for.
  // Pods that were asked for, by "NAMESPACE/NAME": the watch may not have told of them when the API server
  // leaves.
  std::map<std::string, SeenPod> asked_;
  // The newest updates by slice, and when the agent was told: it may have refused one for now.
  std::map<std::string, std::pair<SliceUpdate, kube::Nanoseconds>> updates_;
  uint64_t next_question_ = 0;
  std::map<uint64_t, std::unique_ptr<kube::ApiCall>> questions_;
  kube::ObjectWatch nodes_;  // Last, with the pods: they call the others.
  kube::WatchedObjects pods_;
};

}  // namespace carve::kubelet

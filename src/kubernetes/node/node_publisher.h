// Keeps this node's object up to date as rules/advertisement.h decides, and passes changes to the agent:
// settings that labels change, and slices whose pods are gone. It caches the node's pods, so that containers
// can start while the API server is unreachable. Everything runs in the thread of the client's loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "kubernetes/api/watched_objects.h"
#include "kubernetes/node/rules/kubelet_metrics.h"
#include "kubernetes/node/rules/ledger_drift.h"
#include "kubernetes/node/rules/node_object.h"
#include "kubernetes/node/rules/pod_object.h"
#include "kubernetes/node/rules/releases.h"
#include "kubernetes/node/rules/report_events.h"
#include "kubernetes/node/rules/resource_slice.h"
#include "kubernetes/node/rules/slice_updates.h"
#include "kubernetes/node/static_pods.h"
#include "os/tcp.h"

namespace carve::kubernetes::node {

inline constexpr kubernetes::Nanoseconds pod_patience_ns = 2 * kubernetes::second_ns;
inline constexpr kubernetes::Nanoseconds same_update_ns =
    30 * kubernetes::second_ns;                // Before the same change is sent to the agent again.
inline constexpr size_t max_asked_pods = 512;  // Twice as many as there are slots.
// Minimum delay before the same patch is sent again, in case another program or the API server keeps undoing
// it.
inline constexpr kubernetes::Nanoseconds same_patch_ns = 5 * kubernetes::second_ns;

class NodePublisher {
 public:
  // The port of the usage records. If `host` is a wildcard, the node's address is published.
  struct ReaderEndpoint {
    os::TcpAddress address;
    std::string key;  // tls::key_pin() of its certificate.
  };
  struct Settings {
    std::string node;
    HostFacts host;
    bool ends_pods = false;  // --taint-execute
    uint64_t seed = 0;       // For random waits.
    std::optional<ReaderEndpoint> reader = {};
  };
  struct Effects {
    std::function<void(const api::NodeChange&)> change_agent;
    std::function<void(const std::string& slice)> release;
    std::function<void(const SliceUpdate&)> update;
    std::function<void(const EventNote&)> note;
    // Takes the way in effect, when it is known and when it changes.
    std::function<void(Way)> use_way = [](Way) {};
    // Takes the ResourceSlice of a node with DRA after each step. Null if the node offers no devices.
    std::function<void(api::Json)> publish = [](const api::Json&) {};
    std::function<std::string()> now_text;  // RFC 3339.
  };

  NodePublisher(kubernetes::ApiClient&, Settings, Effects);

  // Takes the agent's last report, or a message if it cannot be read.
  void agent_reported(Result<api::AgentReport, std::string>);
  void runtime_found(const RuntimeCapability&);
  // Takes the agent's response to an update. `refusal` is empty if the update was carried out.
  void updated(const SliceUpdate&, const std::string& refusal);

  // Takes the agent's rejection of the change that change_agent sent.
  void change_refused(const std::string& refusal);

  // Takes kubelet's response to the registration of the DRA driver. Empty if it was accepted.
  void dra_registered(const std::string& problem);

  // Returns the metrics of the watches and of the node.
  KubeletFigures figures() const;

  using PodAnswer = Result<std::optional<SeenPod>, std::string>;
  // Requests a pod from the API server. The result has no pod if the API server has no pod of that name. The
  // cached copy is used only if the API server does not respond within pod_patience_ns, because the cache may
  // still contain a deleted pod of that name.
  void find_pod(const std::string& name_space, const std::string& name, std::function<void(PodAnswer)> found);

 private:
  void step();
  void read_node();
  void node_read(const kubernetes::ApiAnswer&);
  void patch(std::string target, std::string type, std::string body);
  void failed(const std::string& what, const kubernetes::ApiAnswer&);
  void release_orphans();
  void update_slices();
  void change_agent(const Result<LabelSettings, std::string>&);
  void use_way(const Result<LabelSettings, std::string>&);
  void publish(const Result<LabelSettings, std::string>&, const Advertisement&);
  void find_drift();
  void tell(const std::vector<EventNote>&);
  AboutObject about_node() const;
  PodAnswer answered_pod(const std::string& full_name, const kubernetes::ApiAnswer&);
  PodAnswer copied_pod(const std::string& full_name, const std::string& problem) const;
  std::optional<kubernetes::NodeReader> reader() const;
  std::string node_target() const { return "/api/v1/nodes/" + settings_.node; }

  kubernetes::ApiClient& client_;
  const Settings settings_;
  const Effects effects_;
  std::optional<api::AgentReport> agent_;
  std::string agent_problem_;  // Empty before the first report.
  std::optional<RuntimeCapability> runtime_;
  std::optional<SeenNode> seen_;
  LastingDrift lasting_;
  kubernetes::NodeLedger drift_;
  bool is_drift_known_ = false;  // The drift in the node's object was assumed.
  ReportEvents events_;
  bool is_stale_ = true;    // The node's object has changed since the last read.
  std::string last_patch_;  // The newest body, sent at last_patch_at_.
  kubernetes::Nanoseconds last_patch_at_ = 0;
  std::string last_problem_;
  kubernetes::Nanoseconds retry_ns_ = kubernetes::first_retry_ns;
  std::unique_ptr<kubernetes::ApiCall> call_;   // Read or patch in progress, or null.
  std::unique_ptr<kubernetes::ApiCall> retry_;  // Null unless a request has failed.
  std::map<std::string, std::unique_ptr<kubernetes::ApiCall>>
      orphans_;  // By slice: the request for its pod, if one is in progress.
  // Requested pods, by "NAMESPACE/NAME". They are needed if the API server becomes unreachable before the
  // watch reports them.
  std::map<std::string, SeenPod> asked_;
  UpdateAnswers updates_;  // The newest updates by slice.
  std::map<std::string, kubernetes::Nanoseconds>
      updated_at_;                              // When the agent got them; a rejection may be temporary.
  std::optional<api::NodeChange> sent_change_;  // To the agent; no value after it was unreachable.
  kubernetes::Nanoseconds change_sent_at_ = 0;
  std::string change_refusal_;  // The refusal of `sent_change_`.
  std::optional<Way> way_;      // In effect.
  std::string dra_problem_;
  StaticPods static_pods_;
  uint64_t next_question_ = 0;
  std::map<uint64_t, std::unique_ptr<kubernetes::ApiCall>> questions_;
  kubernetes::ObjectWatch nodes_;  // Declared last, with the pods, because they call the other members.
  kubernetes::WatchedObjects pods_;
};

}  // namespace carve::kubernetes::node

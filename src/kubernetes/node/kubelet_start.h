// The functions that main() calls, one per step.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "kubernetes/api/client/curl_client.h"
#include "kubernetes/node/agent_worker.h"
#include "kubernetes/node/container_reporter.h"
#include "kubernetes/node/container_starter.h"
#include "kubernetes/node/dra/claim_reader.h"
#include "kubernetes/node/dra/dra_side.h"
#include "kubernetes/node/dra/resource_slice_publisher.h"
#include "kubernetes/node/event_sender.h"
#include "kubernetes/node/kubelet_options.h"
#include "kubernetes/node/node_publisher.h"
#include "kubernetes/node/plugin/plugin_registrar.h"
#include "kubernetes/node/podresources/pod_resources.h"
#include "kubernetes/node/reader_port.h"
#include "kubernetes/node/rules/slot_choice.h"
#include "os/loop.h"
#include "os/worker.h"

namespace carve::kubernetes::node {

// Prints the message. Returns the exit status: 2 for an invalid command line, otherwise 1.
int complain(const Failure&);

// Prints the help, the version or the completion script. Returns the exit status.
int print(Options::Mode);

// The listening socket of /metrics. It is opened before metrics can be served, so connections wait.
struct MetricsListener {
  os::Fd socket;
  os::TcpAddress address;
  ReaderIdentity identity;
};
// Returns no value if the options disable the port.
Outcome<std::optional<MetricsListener>> listen(const Options&);

// The loop's thread: this node's object and pods, events, and metrics.
class ApiSide {
 public:
  ApiSide(os::Loop&, const kubernetes::Connection&, const Options&, AgentApi&, ContainerRuntime&,
          PodResources&, std::optional<MetricsListener>);
  ~ApiSide();

  // Must not be called from the loop's thread. Waits up to 5 s for the loop.
  ContainerStarter::PodAnswer pod(const std::string& name_space, const std::string& name);
  // The same for a claim.
  ClaimPreparer::ClaimAnswer claim(const ClaimName&);
  void note(const EventNote&);
  // Return the way in effect; no value until it is known. Thread-safe.
  std::optional<Way> way() const;
  void kubelet_asked_for_driver();
  void dra_registered(const std::string& problem);
  void dra_ended();
  // Sets what examines the containers of claims. Thread-safe; called once.
  void set_dra(DraSide*);
  void look_for_orphans() { agent_worker_->poll(); }
  void expect_container() { reporter_->expect(); }
  RuntimeCapability runtime() const { return reporter_->capability(); }

 private:
  ContainerReporter::Hooks reporter_hooks();
  NodePublisher::Effects publisher_effects();
  void update_slice(const SliceUpdate&);
  void use_way(Way);
  void publish(api::Json);
  void give_metrics(api::MetricsFormat, const kubernetes::ReaderCheck::Done&);

  os::Loop& loop_;
  kubernetes::CurlApiClient client_;
  const std::string node_;
  PodResources& pod_resources_;
  EventSender events_;
  ClaimReader claims_;
  std::atomic<int> way_ = -1;  // A Way; -1 until it is known.
  std::atomic<DraSide*> dra_ = nullptr;
  std::optional<ResourceSlicePublisher> resource_slice_;  // No value unless DRA is in effect.
  bool is_dra_registered_ =
      false;  // Also while another way is in effect, until the driver's sockets are gone.
  NodePublisher publisher_;
  std::unique_ptr<AgentWorker> agent_worker_;
  std::unique_ptr<ContainerReporter> reporter_;
  std::optional<ReaderPort> reader_port_;
};

// The threads that serve kubelet: as its device plugin, or as its DRA driver, as the node's labels request.
class PluginSide {
 public:
  PluginSide(const Options&, AgentApi&, PodResources&, ApiSide&);
  ~PluginSide();

 private:
  PluginHandlers handlers();
  ContainerStarter::Sources sources(const Options&);
  Outcome<std::optional<api::SlotFiles>> allocated(ContainerSlot);
  RuntimeCapability known_runtime() const;
  void granted(const api::SliceRequest&, const api::Slice&);
  DraSide::Links links();
  int64_t turn();

  AgentApi& agent_;
  ApiSide& api_;
  PodResources& pod_resources_;
  const std::string plugin_dir_;
  const int64_t began_at_;
  ContainerStarter starter_;
  os::Mutex mutex_;
  SlotUses uses_ GUARDED_BY(mutex_);
  DraSide dra_;
  std::unique_ptr<PluginRegistrar> registrar_;  // Null while DRA is in effect.
  os::Worker worker_;                           // Declared last, because it uses the other members.
};

// Runs the loop until a signal arrives. Returns the exit status.
int serve(os::Loop&, const os::Fd& signals);

}  // namespace carve::kubernetes::node

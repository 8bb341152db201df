// The functions that main() calls, one per step.
#pragma once

#include <memory>
#include <optional>

#include "kubernetes/api/client/curl_client.h"
#include "kubernetes/node/agent_worker.h"
#include "kubernetes/node/container_reporter.h"
#include "kubernetes/node/container_starter.h"
#include "kubernetes/node/event_sender.h"
#include "kubernetes/node/kubelet_options.h"
#include "kubernetes/node/node_publisher.h"
#include "kubernetes/node/plugin/plugin_registrar.h"
#include "kubernetes/node/podresources/pod_resources.h"
#include "kubernetes/node/reader_port.h"
#include "kubernetes/node/rules/slot_choice.h"
#include "os/loop.h"

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
          std::optional<MetricsListener>);
  ~ApiSide();

  // Must not be called from the loop's thread. Waits up to 5 s for the loop.
  ContainerStarter::PodAnswer pod(const std::string& name_space, const std::string& name);
  void note(const EventNote&);
  void look_for_orphans() { agent_worker_->poll(); }
  void expect_container() { reporter_->expect(); }
  RuntimeCapability runtime() const { return reporter_->capability(); }

 private:
  void give_metrics(api::MetricsFormat, const kubernetes::ReaderCheck::Done&);

  os::Loop& loop_;
  kubernetes::CurlApiClient client_;
  EventSender events_;
  NodePublisher publisher_;
  std::unique_ptr<AgentWorker> agent_worker_;
  std::unique_ptr<ContainerReporter> reporter_;
  std::optional<ReaderPort> reader_port_;
};

// The plugin's threads: slots and container starts.
class PluginSide {
 public:
  PluginSide(const Options&, AgentApi&, ApiSide&);
  ~PluginSide();

 private:
  PluginHandlers handlers();
  ContainerStarter::Sources sources(const Options&);
  Outcome<std::optional<api::SlotFiles>> allocated(ContainerSlot);
  RuntimeCapability known_runtime() const;
  void granted(const api::SliceRequest&, const api::Slice&);

  AgentApi& agent_;
  ApiSide& api_;
  std::unique_ptr<PodResources> pod_resources_;
  ContainerStarter starter_;
  os::Mutex mutex_;
  SlotUses uses_ GUARDED_BY(mutex_);
  std::unique_ptr<PluginRegistrar> registrar_;  // Declared last, because its threads use the other members.
};

// Runs the loop until a signal arrives. Returns the exit status.
int serve(os::Loop&, const os::Fd& signals);

}  // namespace carve::kubernetes::node

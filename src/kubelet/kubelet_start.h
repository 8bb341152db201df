// The steps of main(): what each of its sentences calls.
#pragma once

#include <memory>
#include <optional>

#include "kube/client/curl_client.h"
#include "kubelet/agent_worker.h"
#include "kubelet/container_reporter.h"
#include "kubelet/container_starter.h"
#include "kubelet/event_sender.h"
#include "kubelet/kubelet_options.h"
#include "kubelet/metrics_port.h"
#include "kubelet/node_publisher.h"
#include "kubelet/plugin/plugin_registrar.h"
#include "kubelet/podresources/pod_resources.h"
#include "kubelet/rules/slot_choice.h"
#include "os/loop_calls.h"

namespace carve::kubelet {

// Prints the sentence and returns the exit status: 2 for a wrong command line, else 1.
int complain(const Failure&);

// Prints the help, the version or the completion; returns the exit status.
int print(Options::Mode);

// The port of /metrics, open before the first answer is possible.
struct MetricsListener {
  os::Fd socket;
  tls::Identity identity;
};
// No value: the options want none.
Outcome<std::optional<MetricsListener>> listen(const Options&);

// The loop's thread: this node's object and pods, events, and metrics.
class ApiSide {
 public:
  ApiSide(os::Loop&, const kube::Connection&, const Options&, AgentLink&, ContainerRuntime&,
          std::optional<MetricsListener>);
  ~ApiSide();

  // In other threads. Waits for the loop, at most 5 s.
  ContainerStarter::PodAnswer pod(const std::string& name_space, const std::string& name);
  void note(const EventNote&);
  void look_for_orphans() { agent_worker_->poll(); }
  void expect_container() { reporter_->expect(); }
  RuntimeCapability runtime() const { return reporter_->capability(); }

 private:
  void give_metrics(const kube::ReaderCheck::Done&);

  os::LoopCalls calls_;
  kube::CurlApiClient client_;
  EventSender events_;
  NodePublisher publisher_;
  std::unique_ptr<AgentWorker> agent_worker_;
  std::unique_ptr<ContainerReporter> reporter_;
  std::optional<MetricsPort> metrics_;
};

// The plugin's threads: slots and container starts.
class PluginSide {
 public:
  PluginSide(const Options&, AgentLink&, ApiSide&);
  ~PluginSide();

 private:
  PluginHandlers handlers();
  ContainerStarter::Sources sources(const Options&);
  Outcome<std::optional<api::SlotFiles>> allocated(ContainerSlot);
  RuntimeCapability known_runtime() const;
  void granted(const api::SliceRequest&, const api::Slice&);

  AgentLink& agent_;
  ApiSide& api_;
  std::unique_ptr<PodResources> pod_resources_;
  ContainerStarter starter_;
  os::Mutex mutex_;
  SlotUses uses_ GUARDED_BY(mutex_);
  std::unique_ptr<PluginRegistrar> registrar_;  // Last: its threads use the others.
};

// Runs the loop until a signal comes. Returns the exit status.
int serve(os::Loop&, const os::Fd& signals);

}  // namespace carve::kubelet

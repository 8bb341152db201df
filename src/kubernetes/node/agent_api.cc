#include "kubernetes/node/agent_api.h"

#include <fmt/format.h>

#include "client/agent_client.h"

namespace carve::kubernetes::node {
namespace {

constexpr std::chrono::seconds patience{5};

class SocketAgentApi final : public AgentApi {
 public:
  explicit SocketAgentApi(const std::string& socket) : agent_(socket, {.patience = patience}) {}

  Answer<api::AgentReport> report() override {
    auto report = agent_.report();
    // The client's message advises the user to start an agent by hand, which is wrong on a node of a cluster.
    if (!report && report.error().type == "carve:no-agent")
      report.error().detail = fmt::format(
          "no agent responds at {}; see its log: container agent of DaemonSet carve-agent, or carved.service",
          agent_.socket());
    return report;
  }
  Answer<api::Node> change_node(const api::NodeChange& change) override { return agent_.change_node(change); }
  Answer<api::Slice> grant(const api::SliceRequest& request) override { return agent_.grant(request); }
  Answer<api::Slice> change(const std::string& slice, const api::SliceChange& change) override {
    return agent_.change(slice, change);
  }
  Answer<api::Slice> end_when_empty(const std::string& slice) override {
    return agent_.end_when_empty(slice);
  }
  Answer<api::Nothing> add_container(const std::string& slice,
                                     const api::ContainerStarted& started) override {
    return agent_.add_container(slice, started);
  }
  Answer<api::Nothing> set_pods(const std::string& slice, const api::ClaimPods& pods) override {
    return agent_.set_pods(slice, pods);
  }
  Answer<api::SlotFiles> slot_files(ContainerSlot slot) override { return agent_.slot_files(slot); }
  Answer<api::Nothing> withdraw_slot(ContainerSlot slot) override { return agent_.withdraw_slot(slot); }
  Answer<std::string> metrics(api::MetricsFormat format) override { return agent_.metrics(format); }
  Answer<std::string> view(const std::string& target) override { return agent_.view(target); }

 private:
  const client::AgentClient agent_;
};

}  // namespace

std::unique_ptr<AgentApi> AgentApi::at(const std::string& socket) {
  return std::make_unique<SocketAgentApi>(socket);
}

}  // namespace carve::kubernetes::node

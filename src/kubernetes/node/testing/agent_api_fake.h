// An agent for tests, which grants every request unless it is set to reject it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kubernetes/node/agent_api.h"

namespace carve::kubernetes::node {

class AgentApiFake final : public AgentApi {
 public:
  AgentApiFake() {
    state.node.bookkeeper = Bookkeeper::kubernetes;
    state.node.policy.effective = Policy::fixed_share;
    api::Device& device = state.devices.emplace_back();
    device.uuid = uuid;
    device.name = "NVIDIA A10";
    device.usable_bytes = 22731ull << 20;
  }

  Answer<api::AgentReport> report() override {
    if (is_gone) return tl::unexpected(no_agent());
    return state;
  }
  Answer<api::Slice> grant(const api::SliceRequest& request) override {
    asked.push_back(request);
    if (is_gone) return tl::unexpected(no_agent());
    if (!refusals.empty()) {
      const api::Problem refusal = refusals.front();
      refusals.erase(refusals.begin());
      return tl::unexpected(refusal);
    }
    api::Slice slice;
    slice.name = fmt::format("slice-{}", asked.size());
    slice.slot = request.slot;
    slice.holder = request.holder;
    slice.labels = request.labels;
    state.slices.push_back(slice);
    return slice;
  }
  Answer<api::Nothing> set_pods(const std::string& slice, const api::ClaimPods& pods) override {
    if (is_gone) return tl::unexpected(no_agent());
    for (api::Slice& each : state.slices)
      if (each.name == slice) each.pods = pods.pods;
    return api::Nothing{};
  }
  Answer<api::SlotFiles> slot_files(ContainerSlot) override { return api::SlotFiles{}; }
  Answer<api::Nothing> withdraw_slot(ContainerSlot slot) override {
    withdrawn.push_back(text(slot));
    return api::Nothing{};
  }
  Answer<api::Slice> end_when_empty(const std::string& slice) override {
    released.push_back(slice);
    return api::Slice{};
  }
  Answer<api::Slice> change(const std::string&, const api::SliceChange&) override { return api::Slice{}; }
  Answer<api::Nothing> add_container(const std::string& slice,
                                     const api::ContainerStarted& started) override {
    containers[slice] = started;
    return api::Nothing{};
  }
  Answer<std::string> metrics(api::MetricsFormat) override {
    if (is_gone) return tl::unexpected(no_agent());
    return std::string("carve_device_slices{device=\"0\"} 1\n");
  }
  Answer<std::string> view(const std::string& target) override {
    if (is_gone) return tl::unexpected(no_agent());
    return fmt::format(R"({{"target":"{}"}})", target);
  }
  Answer<api::Node> change_node(const api::NodeChange& change) override {
    changes.push_back(change);
    return state.node;
  }

  static api::Problem no_agent() { return {.type = "carve:no-agent", .status = 503, .detail = "no agent"}; }

  static constexpr const char* uuid = "GPU-00000000-0000-0000-0000-000000000001";
  api::AgentReport state;
  bool is_gone = false;
  std::vector<api::Problem> refusals;  // Responses to the next grants.
  std::vector<api::SliceRequest> asked;
  std::vector<std::string> withdrawn, released;
  std::map<std::string, api::ContainerStarted> containers;  // By slice.
  std::vector<api::NodeChange> changes;
};

}  // namespace carve::kubernetes::node

// The calls from this program to the agent (client::AgentClient), as an interface that tests replace. The
// calls block, so the loop's thread must not make them.
#pragma once

#include <memory>
#include <string>

#include "core/container_slot.h"
#include "wire/api/agent_report.h"
#include "wire/api/exposition.h"
#include "wire/api/problem.h"

namespace carve::kubernetes::node {

class AgentApi {
 public:
  template <class T>
  using Answer = Result<T, api::Problem>;

  // Returns the API of the agent at this socket. Thread-safe. A call without a response within 5 s fails.
  static std::unique_ptr<AgentApi> at(const std::string& socket);
  virtual ~AgentApi() = default;

  // These calls work like those of the same name in client::AgentClient.
  virtual Answer<api::AgentReport> report() = 0;
  virtual Answer<api::Node> change_node(const api::NodeChange&) = 0;
  virtual Answer<api::Slice> grant(const api::SliceRequest&) = 0;
  virtual Answer<api::Slice> change(const std::string& slice, const api::SliceChange&) = 0;
  virtual Answer<api::Slice> end_when_empty(const std::string& slice) = 0;
  virtual Answer<api::Nothing> add_container(const std::string& slice, const api::ContainerStarted&) = 0;
  virtual Answer<api::Nothing> set_pods(const std::string& slice, const api::ClaimPods&) = 0;
  virtual Answer<api::SlotFiles> slot_files(ContainerSlot) = 0;
  virtual Answer<api::Nothing> withdraw_slot(ContainerSlot) = 0;
  virtual Answer<std::string> metrics(api::MetricsFormat) = 0;
  virtual Answer<std::string> view(const std::string& target) = 0;
};

}  // namespace carve::kubernetes::node

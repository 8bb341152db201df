// The agent (carved), as this program calls it. Calls block their thread, so the loop's thread makes none.
#pragma once

#include <memory>
#include <string>

#include "core/container_slot.h"
#include "kubelet/rules/advertisement.h"
#include "wire/api/problem.h"

namespace carve::kubelet {

class AgentLink {
 public:
  template <class T>
  using Answer = Result<T, api::Problem>;

  // The agent at this socket. May be called in several threads at once; a call has its answer within 5 s, or
  // fails.
  static std::unique_ptr<AgentLink> at(const std::string& socket);
  virtual ~AgentLink() = default;

  virtual Answer<AgentReport> report() = 0;
  virtual Answer<api::Slice> grant(const api::SliceRequest&) = 0;
  virtual Answer<api::SlotFiles> files_of(ContainerSlot) = 0;
  // Removes the CDI file of a slot.
  virtual Answer<api::Nothing> withdraw(ContainerSlot) = 0;
  // Ends the slice with its last process.
  virtual Answer<api::Slice> release(const std::string& slice) = 0;
  virtual Answer<api::Slice> update(const std::string& slice, const api::SliceChange&) = 0;
  virtual Answer<api::Nothing> add_container(const std::string& slice, const api::ContainerStarted&) = 0;
  // The agent's figures, in the text format of Prometheus.
  virtual Answer<std::string> metrics() = 0;
  virtual Answer<api::Node> change(const api::NodeChange&) = 0;
};

}  // namespace carve::kubelet

// The agent's API as functions, one for each route (wire/api/FORMAT.md). This is the only client of the API;
// the paths of routes appear in no other file.
//
// Like Client, a call blocks its thread, any number of threads may call concurrently, and every failure is
// one Problem with a message.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"
#include "core/container_slot.h"
#include "ledger/usage_record.h"
#include "wire/api/agent_report.h"
#include "wire/api/audit.h"
#include "wire/api/device.h"
#include "wire/api/doctor.h"
#include "wire/api/event.h"
#include "wire/api/exposition.h"
#include "wire/api/identity.h"
#include "wire/api/node.h"
#include "wire/api/plan.h"
#include "wire/api/problem.h"
#include "wire/api/slice.h"
#include "wire/api/slice_life.h"

namespace carve::client {

// Which slices a list contains.
enum class Slices : uint8_t { living, living_and_ended };

// Returns the path of a GET for api::ProcessSlice, for callers with their own connection. `start` is field 22
// of /proc/PID/stat.
std::string process_slice_path(int pid, uint64_t start);

class AgentClient {
 public:
  explicit AgentClient(std::string socket, Settings settings = {}) : client_(std::move(socket), settings) {}

  const std::string& socket() const { return client_.socket(); }

  // The next calls are about the node.
  Answer<api::Version> version() const;
  Answer<api::Node> node() const;
  // Changes the node and returns it. Only root and the agent's user may change it.
  Answer<api::Node> change_node(const api::NodeChange& change) const;
  Answer<api::Identity> whoami() const;
  // Returns the newest requests that acted; for operators, those of all callers.
  Answer<api::AuditList> audit() const;
  // Returns the limits that apply to the caller; for operators, all limits.
  Answer<api::LimitList> limits() const;
  // Set or remove a limit. Only operators may call these. A key is that of key_of() in node/limits/kept_limits.h.
  Answer<api::Limit> change_limit(const api::LimitChange& change) const;
  Answer<api::Limit> remove_limit(std::string_view key) const;
  Answer<api::DeviceList> devices() const;
  Answer<api::Diagnosis> doctor() const;
  // Returns the moves that would empty this many more devices, 1 to 16. No slice is moved.
  Answer<api::ConsolidationPlan> consolidation(unsigned devices) const;
  // Returns a trace of the slices that ran in the last 1 to 60 s, in Chrome's trace event format.
  Answer<std::string> trace(unsigned seconds) const;
  // Returns the figures of devices and slices.
  Answer<std::string> metrics(api::MetricsFormat) const;
  // Returns the text of GET `target`, a path with its query.
  Answer<std::string> view(const std::string& target) const;
  // Returns the state of the agent from four calls. If `stops` is set, it is called between two calls, and if
  // it returns true, the poll ends with a problem.
  Answer<api::AgentReport> report(const std::function<bool()>& stops = nullptr) const;

  // The next calls are about slices. Returns slices without their processes, history and events.
  Answer<api::SliceList> slices(Slices which = Slices::living) const;
  Answer<api::Slice> slice(std::string_view name) const;
  // Grants a slice. A request with an id or a holder may be repeated.
  Answer<api::Slice> grant(const api::SliceRequest& request) const;
  // Returns where the request would be placed. Grants nothing.
  Answer<api::Explanation> explain(const api::SliceRequest& request) const;
  // Changes the terms of the slice and returns the slice.
  Answer<api::Slice> change(std::string_view name, const api::SliceChange& change) const;
  // Ends all processes of the slice. The slice ends with its last process.
  Answer<api::Slice> end(std::string_view name) const;
  // Lets the slice end without ending a process: with its last process, or now if it has none.
  Answer<api::Slice> end_when_empty(std::string_view name) const;
  // Sets the slice's time limit, or removes it if it has 0 s. Returns the limit.
  Answer<api::TimeLimit> limit_time(std::string_view name, const api::TimeLimit& limit) const;
  Answer<api::TimeLimit> time_limit(std::string_view name) const;
  // Resumes a slice that the audit froze.
  Answer<api::Slice> thaw(std::string_view name) const;

  // The next calls are for programs of slices. Makes this process the supervisor of the slice, which a slice
  // without a cgroup needs.
  Answer<api::Nothing> supervise(std::string_view name, const api::Supervision& supervision = {}) const;
  // Makes this process the slice's program.
  Answer<api::Entered> enter(std::string_view name, const api::EnterRequest& request) const;
  // Makes the cgroup of the container's first process the cgroup of the slice. Requires root.
  Answer<api::Nothing> add_container(std::string_view name, const api::ContainerStarted& container) const;
  // Sets the pods that may use the slice's claim. Requires root.
  Answer<api::Nothing> set_pods(std::string_view name, const api::ClaimPods& pods) const;
  // Returns the mounts and device nodes that a container of the slot needs.
  Answer<api::SlotFiles> slot_files(ContainerSlot slot) const;
  // Removes the slot's CDI file.
  Answer<api::Nothing> withdraw_slot(ContainerSlot slot) const;

  // The next calls are about records. Returns the newest 1,000 events, oldest first.
  Answer<api::EventList> events() const;
  // Calls `act` for each event after `last_id`, like Client::watch().
  WatchEnd watch_events(const std::string& last_id, const std::function<void(const StreamEvent&)>& act) const;
  // Returns at most 1,000 usage records with larger ids, in ascending order.
  Answer<ledger::UsagePage> usage_after(uint64_t id) const;
  // Returns the usage records with these ids, at most 500.
  Answer<ledger::UsagePage> usage_of(const std::vector<uint64_t>& ids) const;

 private:
  Client client_;
};

}  // namespace carve::client

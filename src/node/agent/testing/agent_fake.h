// A fake agent whose slices, devices and responses are set by a test. It records each call that would change
// something as a text.
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "node/agent/agent.h"

namespace carve::node {

struct AgentFake final : Agent {
  std::vector<SliceView> living, ended;
  std::vector<DeviceView> has_devices;
  NodeView has_node;
  EventLog log{70};
  api::LimitList has_limits;
  std::vector<ledger::UsageRecord> usage;
  std::vector<TraceSpan> spans;
  place::Answer answer;
  std::map<pid_t, SliceId> inside;  // Slices by process.
  std::optional<Failure> refusal;   // If set, the response to each change.
  std::vector<std::string> calls;
  std::optional<Request> granted;  // The last request of grant().
  EnterRequest entered;
  std::vector<std::optional<AttachPoint>> attached_through;
  bool inspects_first = false;       // If set, processes' commands must be inspected first.
  std::function<void()> inspected;   // Then set; to be called after the inspection.
  bool looks_first = false;          // If set, the next attach() must inspect the process first.
  std::function<void()> look_again;  // Then set; to be called after the inspection.

  Outcome<SliceView> grant(const Request& request, const os::ProcessId&, const Viewer&) override {
    granted = request;
    if (auto done = called("grant " + request.name); !done) return tl::unexpected(done.error());
    SliceView view;
    view.record.slice.name = request.name;
    view.record.slice.owner = request.owner;
    return view;
  }
  place::Answer explain(const Request&, const Viewer&) const override { return answer; }
  ConsolidationView plan_consolidation(unsigned, const Viewer&) const override { return {}; }
  Outcome<Entry> enter(SliceId id, os::Peer, const EnterRequest& request) override {
    entered = request;
    if (auto done = called(fmt::format("enter {}", id)); !done) return tl::unexpected(done.error());
    return Entry{.environment = {{"CARVE_SOCKET", has_node.socket}}, .cgroup = true};
  }
  Outcome<void> supervise(SliceId id, os::Peer, const api::Supervision& supervision) override {
    return called(fmt::format("supervise {}{}", id, supervision.keeps ? " and keep it" : ""));
  }
  Outcome<void> limit_time(SliceId id, const api::TimeLimit& limit, const std::string& by) override {
    return called(fmt::format("limit time of {}: {} {} by {}", id, limit.seconds, limit.grace_seconds, by));
  }
  Outcome<api::TimeLimit> time_limit_of(SliceId) const override {
    return api::TimeLimit{.seconds = 60, .left_seconds = 5};
  }
  Outcome<void> add_container(SliceId id, pid_t init, const std::string& container) override {
    return called(fmt::format("add container {} {} {}", id, init, container));
  }
  Outcome<void> refuse_container(SliceId id, pid_t init, const std::string& message) override {
    return called(fmt::format("refuse container {} {}: {}", id, init, message));
  }
  Outcome<void> set_claim_pods(SliceId id, std::vector<ClaimPod> pods) override {
    std::string uids;
    for (const ClaimPod& pod : pods) uids += " " + pod.uid;
    return called(fmt::format("set pods of {}:{}", id, uids));
  }
  Outcome<SliceView> update(SliceId id, const TermsUpdate& asked, const std::string& by) override {
    return changed(id, fmt::format("{} {} memory {} share {} by {}", asked.is_dry_run ? "check" : "update",
                                   id, asked.memory.value_or(Bytes{}).count,
                                   asked.share.value_or(Share{}).basis_points, by));
  }
  Outcome<void> set_policy(Policy policy, const std::string& by) override {
    return called(fmt::format("set policy {} by {}", text(policy), by));
  }
  Outcome<void> set_label(const std::string& key, const std::optional<std::string>& value,
                          const std::string& by) override {
    return called(fmt::format("set label {}={} by {}", key, value.value_or("-"), by));
  }
  Outcome<api::Limit> set_limit(const api::LimitChange& change, const std::string& by) override {
    if (auto done = called(fmt::format("set limit of {} by {}", change.limit.user, by)); !done)
      return tl::unexpected(done.error());
    return change.limit;
  }
  Outcome<api::Limit> remove_limit(const std::string& key, const std::string& by) override {
    if (auto done = called(fmt::format("remove limit {} by {}", key, by)); !done)
      return tl::unexpected(done.error());
    return api::Limit{};
  }
  api::LimitList limits() const override { return has_limits; }
  api::LimitList limits_of(uint32_t uid, const std::string&) const override {
    api::LimitList out;
    for (const api::LimitView& view : has_limits.items)
      if (view.limit.uid == uid) out.items.push_back(view);
    return out;
  }
  Outcome<SliceView> stop(SliceId id, const std::string& why) override {
    return changed(id, fmt::format("stop {}: {}", id, why));
  }
  Outcome<SliceView> release(SliceId id, const std::string& why) override {
    return changed(id, fmt::format("release {}: {}", id, why));
  }
  void withdraw(ContainerSlot slot) override { calls.push_back("withdraw " + text(slot)); }
  api::SlotFiles files_of(ContainerSlot slot) const override {
    return {.mounts = {{"/attach/" + text(slot), "/run/carve", false}}, .device_nodes = {"/dev/nvidia0"}};
  }
  Outcome<SliceView> thaw(SliceId id) override { return changed(id, fmt::format("thaw {}", id)); }
  std::optional<shm::AttachReply> attach(const os::Peer&, const std::optional<AttachPoint>& through,
                                         const shm::AttachRequest&, std::vector<os::Fd>&,
                                         const std::function<void()>& again) override {
    attached_through.push_back(through);
    if (std::exchange(looks_first, false)) {
      look_again = again;
      return std::nullopt;
    }
    return shm::AttachReply{};
  }

  bool inspect_processes(const std::string&, const std::function<void()>& done) override {
    if (inspects_first) inspected = done;
    return inspects_first;
  }

  std::vector<SliceView> slices(const SliceQuery& query) const override {
    std::vector<SliceView> out;
    for (const auto* list : {&living, &ended})
      for (const SliceView& s : *list)
        if ((list == &living || query.ended) && (!query.name || s.name() == *query.name)) out.push_back(s);
    return out;
  }
  std::optional<SliceView> slice_of(pid_t pid) const override {
    const auto found = inside.find(pid);
    return found == inside.end() ? std::nullopt : std::optional(living.at(found->second - 1));
  }
  std::vector<DeviceView> devices() const override { return has_devices; }
  Outcome<void> set_memory_unit(MemoryUnit unit, WhenHeld, const std::string&) override {
    has_node.memory_unit = {unit, unit, {}};
    return {};
  }
  Outcome<void> refuse_grants(const std::string& message, const std::string&) override {
    has_node.grants_refused = message;
    return {};
  }
  NodeView node() const override { return has_node; }
  EventLog& events() override { return log; }
  Outcome<std::vector<ledger::UsageRecord>> usage_after(uint64_t id, size_t most) const override {
    std::vector<ledger::UsageRecord> out;
    for (const ledger::UsageRecord& record : usage)
      if (record.id > id && out.size() < most) out.push_back(record);
    return out;
  }
  Outcome<std::vector<ledger::UsageRecord>> usage_of(const std::vector<uint64_t>& ids) const override {
    std::vector<ledger::UsageRecord> out;
    for (const ledger::UsageRecord& record : usage)
      if (std::find(ids.begin(), ids.end(), record.id) != ids.end()) out.push_back(record);
    return out;
  }
  std::vector<TraceSpan> trace(int64_t) const override { return spans; }

 private:
  Outcome<void> called(std::string call) {
    calls.push_back(std::move(call));
    if (refusal) return tl::unexpected(*refusal);
    return {};
  }
  Outcome<SliceView> changed(SliceId id, std::string call) {
    if (auto done = called(std::move(call)); !done) return tl::unexpected(done.error());
    return living.at(id - 1);
  }
};

// Adds a free device of 24 GiB.
inline DeviceView& add_device(AgentFake& agent, unsigned index) {
  DeviceView& d = agent.has_devices.emplace_back();
  d.device.index = index;
  d.device.uuid.bytes[0] = static_cast<uint8_t>(index + 1);
  d.device.name = "NVIDIA A10";
  d.device.native = d.free = {24ull << 30};
  return d;
}

// Adds a live slice of 1 GiB on the first device.
inline SliceView& add_slice(AgentFake& agent, const std::string& name, uint32_t owner) {
  DeviceView& on = agent.has_devices.at(0);
  SliceView& s = agent.living.emplace_back();
  s.record.id = agent.living.size() + agent.ended.size();
  s.record.slice.name = name;
  s.record.slice.owner = owner;
  s.record.slice.isolation = Isolation::memory;
  s.record.slice.parts.push_back({on.device.uuid, {1 << 30}, {}, {}, {24ull << 30}});
  s.parts.emplace_back();
  on.slices.push_back(s.record.id);
  return s;
}

}  // namespace carve::node

#include "client/agent_client.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "wire/api/percent.h"

namespace carve::client {
namespace {

constexpr const char* slices_path = "/v1/slices";

std::string slice_path(std::string_view name, std::string_view verb = {}) {
  return fmt::format("{}/{}{}{}", slices_path, api::percent_encoded(name), verb.empty() ? "" : "/", verb);
}

std::string slot_path(ContainerSlot slot) { return fmt::format("/v1/slots/{}", text(slot)); }

}  // namespace

std::string process_slice_path(int pid, uint64_t start) {
  return fmt::format("/v1/processes/{}?start={}", pid, start);
}

Answer<api::Version> AgentClient::version() const { return client_.get<api::Version>("/v1/version"); }
Answer<api::Node> AgentClient::node() const { return client_.get<api::Node>("/v1/node"); }
Answer<api::Node> AgentClient::change_node(const api::NodeChange& change) const {
  return client_.patch<api::Node>("/v1/node", change);
}
Answer<api::Identity> AgentClient::whoami() const { return client_.get<api::Identity>("/v1/whoami"); }
Answer<api::AuditList> AgentClient::audit() const { return client_.get<api::AuditList>("/v1/audit"); }
Answer<api::LimitList> AgentClient::limits() const { return client_.get<api::LimitList>("/v1/limits"); }
Answer<api::Limit> AgentClient::change_limit(const api::LimitChange& change) const {
  return client_.patch<api::Limit>("/v1/limits", change);
}
Answer<api::Limit> AgentClient::remove_limit(std::string_view key) const {
  return client_.remove<api::Limit>("/v1/limits/" + api::percent_encoded(key));
}
Answer<api::DeviceList> AgentClient::devices() const { return client_.get<api::DeviceList>("/v1/devices"); }
Answer<api::Diagnosis> AgentClient::doctor() const { return client_.get<api::Diagnosis>("/v1/doctor"); }
Answer<api::ConsolidationPlan> AgentClient::consolidation(unsigned devices) const {
  return client_.get<api::ConsolidationPlan>(fmt::format("/v1/consolidation?devices={}", devices));
}
Answer<std::string> AgentClient::trace(unsigned seconds) const {
  return client_.text(fmt::format("/v1/trace?seconds={}", seconds));
}
Answer<std::string> AgentClient::metrics(api::MetricsFormat format) const {
  return client_.text("/metrics", api::metrics_accept(format));
}
Answer<std::string> AgentClient::view(const std::string& target) const { return client_.text(target); }

Answer<api::AgentReport> AgentClient::report(const std::function<bool()>& stops) const {
  const auto stopped = [&] { return stops && stops(); };
  const auto end = [] {
    return tl::unexpected(api::Problem{.title = "stopped", .detail = "this program is shutting down"});
  };
  auto now = version();
  if (!now) return tl::unexpected(std::move(now.error()));
  if (stopped()) return end();
  auto settings = node();
  if (!settings) return tl::unexpected(std::move(settings.error()));
  if (stopped()) return end();
  auto list = devices();
  if (!list) return tl::unexpected(std::move(list.error()));
  if (stopped()) return end();
  auto living = slices();
  if (!living) return tl::unexpected(std::move(living.error()));
  return api::AgentReport{.version = std::move(*now),
                          .node = std::move(*settings),
                          .devices = std::move(list->devices),
                          .links = std::move(list->links),
                          .slices = std::move(living->slices)};
}

Answer<api::SliceList> AgentClient::slices(Slices which) const {
  return client_.get<api::SliceList>(which == Slices::living ? std::string(slices_path)
                                                             : fmt::format("{}?all=true", slices_path));
}
Answer<api::Slice> AgentClient::slice(std::string_view name) const {
  return client_.get<api::Slice>(slice_path(name));
}
Answer<api::Slice> AgentClient::grant(const api::SliceRequest& request) const {
  return client_.post<api::Slice>(slices_path, request);
}
Answer<api::Explanation> AgentClient::explain(const api::SliceRequest& request) const {
  return client_.post<api::Explanation>("/v1/explain", request);
}
Answer<api::Slice> AgentClient::change(std::string_view name, const api::SliceChange& change) const {
  return client_.patch<api::Slice>(slice_path(name), change);
}
Answer<api::Slice> AgentClient::end(std::string_view name) const {
  return client_.remove<api::Slice>(slice_path(name));
}
Answer<api::Slice> AgentClient::end_when_empty(std::string_view name) const {
  return client_.remove<api::Slice>(slice_path(name) + "?when_empty=true");
}
Answer<api::TimeLimit> AgentClient::limit_time(std::string_view name, const api::TimeLimit& limit) const {
  return client_.post<api::TimeLimit>(slice_path(name, "time-limit"), limit);
}
Answer<api::TimeLimit> AgentClient::time_limit(std::string_view name) const {
  return client_.get<api::TimeLimit>(slice_path(name, "time-limit"));
}
Answer<api::Slice> AgentClient::thaw(std::string_view name) const {
  return client_.post<api::Slice>(slice_path(name, "thaw"), api::Nothing{});
}

Answer<api::Nothing> AgentClient::supervise(std::string_view name,
                                            const api::Supervision& supervision) const {
  return client_.post<api::Nothing>(slice_path(name, "supervise"), supervision);
}
Answer<api::Entered> AgentClient::enter(std::string_view name, const api::EnterRequest& request) const {
  return client_.post<api::Entered>(slice_path(name, "enter"), request);
}
Answer<api::Nothing> AgentClient::add_container(std::string_view name,
                                                const api::ContainerStarted& container) const {
  return client_.post<api::Nothing>(slice_path(name, "container"), container);
}
Answer<api::Nothing> AgentClient::set_pods(std::string_view name, const api::ClaimPods& pods) const {
  return client_.post<api::Nothing>(slice_path(name, "pods"), pods);
}
Answer<api::SlotFiles> AgentClient::slot_files(ContainerSlot slot) const {
  return client_.get<api::SlotFiles>(slot_path(slot));
}
Answer<api::Nothing> AgentClient::withdraw_slot(ContainerSlot slot) const {
  return client_.remove<api::Nothing>(slot_path(slot));
}

Answer<api::EventList> AgentClient::events() const { return client_.get<api::EventList>("/v1/events"); }
WatchEnd AgentClient::watch_events(const std::string& last_id,
                                   const std::function<void(const StreamEvent&)>& act) const {
  return client_.watch("/v1/events?watch=true", last_id, act);
}
Answer<ledger::UsagePage> AgentClient::usage_after(uint64_t id) const {
  return client_.get<ledger::UsagePage>(fmt::format("/v1/usage?after={}", id));
}
Answer<ledger::UsagePage> AgentClient::usage_of(const std::vector<uint64_t>& ids) const {
  return client_.get<ledger::UsagePage>(fmt::format("/v1/usage?ids={}", fmt::join(ids, ",")));
}

}  // namespace carve::client

// Data that the routes show in addition to the objects, prepared by a test.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controller/api/api_call.h"

namespace carve::controller {

struct ViewsFake : Views, NodeActions {
  api::ControllerVersion version() const override { return {}; }
  std::vector<NodeObservationPointer> nodes() const override {
    std::vector<NodeObservationPointer> out;
    for (const NodeObservation& node : known) out.push_back(std::make_shared<const NodeObservation>(node));
    return out;
  }
  LogReader logs(const Object&, const LogQuery&) const override {
    return [] { return std::string(); };
  }
  http::EventStream follow_logs(const Object&, const LogQuery&) override { return {}; }
  Outcome<std::vector<Revision>> revisions(const std::string&) const override {
    return std::vector<Revision>();
  }
  std::optional<uint32_t> uid_of(const std::string& account) const override {
    return account == "research" ? std::optional(2000u) : std::nullopt;
  }
  std::string user_name(uint32_t uid) const override {
    return uid == 0 ? "root" : fmt::format("user{}", uid);
  }
  std::optional<JobPosition> job_position(const std::string&) const override { return position; }
  size_t waiting_jobs() const override { return waiting; }
  std::optional<JobHours> job_hours(const std::string&) const override { return hours; }
  std::string start_problem(uint32_t uid) const override {
    return uid == refused_uid ? "no program of it" : "";
  }
  std::string container_problem() const override { return ""; }
  std::vector<std::string> limit_warnings(const objects::ServiceSpec&) const override { return {}; }
  http::Response bill(BillQuery query, bill::Tariffs, BillForm form) override {
    bills.emplace_back(std::move(query), form);
    return {200, "application/json", "{}"};
  }
  http::Response history(HistoryQuery query) override {
    histories.push_back(std::move(query));
    return {200, "application/json", "{}"};
  }
  std::string metrics(api::MetricsFormat, const http::Caller&) const override { return ""; }
  int64_t now_ns() const override { return now; }
  Outcome<api::AuditList> audit_entries(size_t) const override { return audit; }
  void poll() override { ++polls; }
  void end_slices(const std::string& node) override { ended.push_back(node); }
  Outcome<std::vector<std::string>> slices_in_units(const std::string&) override { return in_units; }
  Outcome<AgentAnswer> ask_agent(const std::string& node, const AgentCall& call) override {
    calls.push_back(fmt::format("{} {} {}", node, call.method, call.target));
    bodies.push_back(call.body);
    return answer(call);
  }

  std::vector<NodeObservation> known;
  api::AuditList audit;
  int64_t now = 1'800'000'000'000'000'000;
  std::optional<JobPosition> position;  // Returned for every job.
  size_t waiting = 0;
  std::optional<JobHours> hours;  // Returned for every job.
  std::vector<std::pair<BillQuery, BillForm>> bills;
  std::vector<HistoryQuery> histories;
  std::optional<uint32_t> refused_uid;  // This user's programs cannot be started.
  unsigned polls = 0;
  std::vector<std::string> ended, in_units;
  std::vector<std::string> calls,
      bodies;  // Requests to agents, such as "n1 GET /v1/slices", and their bodies.
  std::function<Outcome<AgentAnswer>(const AgentCall&)> answer = [](const AgentCall&) {
    return AgentAnswer{200, "application/json", "{}"};
  };
};

}  // namespace carve::controller

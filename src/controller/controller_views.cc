// The controller's data for the API's routes (Api in controller_start.h): logs, revisions, slices, bills and
// metrics.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "client/agent_client.h"
#include "controller/controller_metrics.h"
#include "controller/controller_start.h"
#include "controller/runtime/container_start.h"
#include "controller/runtime/limit_warnings.h"
#include "os/clock.h"
#include "os/user.h"
#include "runner/log_files.h"

namespace carve::controller {

constexpr size_t max_pod_log_bytes = 1 << 20;  // The newest lines of each pod.

namespace {

// Returns a reader of the logs that the kubelets keep of the object's pods.
LogReader pod_logs(ApiCaller& api, const Object& object, const LogQuery& query) {
  std::vector<std::string> pods;
  for (const ObjectProgram& program : programs_of(object))
    if (selects(query, program)) pods.push_back(program.name);
  std::string options = query.tail ? fmt::format("&tailLines={}", *query.tail) : "";
  if (query.since_ns != 0) options += "&sinceTime=" + os::rfc3339(query.since_ns, os::Decimals::milliseconds);
  if (query.previous) options += "&previous=true";
  if (query.has_times) options += "&timestamps=true";
  const std::string path = fmt::format("/api/v1/namespaces/{}/pods", object.key.namespace_);
  return [&api, pods = std::move(pods), options, path]() -> Outcome<std::string> {
    std::string out;
    for (const std::string& pod : pods) {
      const kubernetes::ApiAnswer answer =
          api.call({.target = fmt::format("{}/{}/log?limitBytes={}{}", path, pod, max_pod_log_bytes, options),
                    .accept = "*/*"});
      if (answer.status != 200)
        return failure(FailureKind::unavailable, "the log of pod {}: {}", pod, answer.problem);
      const std::string prefix = pods.size() > 1 ? pod + " " : "";
      std::istringstream lines(answer.body);
      for (std::string line; std::getline(lines, line);) out += fmt::format("{}{}\n", prefix, line);
    }
    return out;
  };
}

}  // namespace

LogReader Api::logs(const Object& object, const LogQuery& query) const {
  if (cluster_ != nullptr) return pod_logs(cluster_->api(), object, query);
  struct Log {
    std::string directory, prefix;
  };
  std::vector<Log> logs;
  for (const ObjectProgram& program : programs_of(object))
    if (selects(query, program)) logs.push_back({machine_.directory_of(program.name), program.name + " "});
  if (logs.empty() && query.replica) {
    const Failure missing{FailureKind::not_found,
                          fmt::format("{} has no {} {}", text(object.key),
                                      query.role.empty() ? "program" : query.role, *query.replica)};
    return [missing]() -> Outcome<std::string> { return tl::unexpected(missing); };
  }
  const runner::LogSelection selection{
      .previous = query.previous,
      .tail = query.tail,
      .since = query.since_ns == 0 ? "" : os::rfc3339(query.since_ns, os::Decimals::nanoseconds)};
  return [logs = std::move(logs), selection, plain = query.plain,
          has_times = query.has_times]() -> Outcome<std::string> {
    std::string out;
    for (const Log& log : logs)
      for (const runner::LogLine& line : runner::read_log(log.directory, runner::log_folder_name, selection))
        if (!plain || line.stream != runner::LogStream::system)
          out += fmt::format("{}{}\n", logs.size() > 1 ? log.prefix : "",
                             has_times ? runner::timed_text(line) : line.text);
    return out;
  };
}

http::EventStream Api::follow_logs(const Object& object, const LogQuery& query) {
  if (cluster_ != nullptr)
    return {.first = {{.id = "", .data = "logs of pods cannot be followed here; use kubectl logs --follow"},
                      {.id = "", .data = "", .type = std::string(objects::log_end_event)}},
            .subscribe = [](http::Stream& stream) {
              stream.end();
              return std::shared_ptr<void>();
            }};
  return log_streams_.begin(object, query);
}

Outcome<std::vector<Revision>> Api::revisions(const std::string& uid) const {
  if (cluster_ != nullptr) {
    std::vector<Revision> of_cluster;
    for (ClusterRevision& r : cluster_->revisions(uid))
      of_cluster.push_back({.number = r.number,
                            .created_ns = r.created_ns,
                            .spec = std::move(r.object_spec),
                            .form = std::move(r.form)});
    return of_cluster;
  }
  auto records = store_.revisions(uid);
  if (!records) return tl::unexpected(records.error());
  std::vector<Revision> out;
  for (RevisionRecord& r : *records)
    out.push_back({.number = r.revision,
                   .created_ns = r.created_ns,
                   .spec = std::move(r.object_spec),
                   .form = std::move(r.spec)});
  return out;
}

NodeObservationPointer Api::node_named(const std::string& name) const {
  for (NodeObservationPointer& node : nodes_.seen())
    if (node->record.name == name) return std::move(node);
  return nullptr;
}

Outcome<std::vector<std::string>> Api::slices_in_units(const std::string& name) {
  const NodeObservationPointer node = node_named(name);
  if (node == nullptr) return failure(FailureKind::not_found, "there is no node {}", name);
  const client::AgentClient agent(node->record.socket, {.patience = std::chrono::seconds(1)});
  const auto list = agent.slices();
  if (!list) return failure(FailureKind::unavailable, "node {}: {}", name, list.error().detail);
  std::vector<std::string> out;
  for (const api::Slice& slice : list->slices)
    if (slice.memory_units.count != 0) out.push_back(slice.name);
  return out;
}

Outcome<AgentAnswer> Api::ask_agent(const std::string& name, const AgentCall& call) {
  const NodeObservationPointer node = node_named(name);
  if (node == nullptr) return failure(FailureKind::not_found, "there is no node {}", name);
  return agent_calls_.ask(*node, call, os::utc_ns());
}

std::string Api::container_problem() const {
  if (access(container_engine, X_OK) != 0)
    return fmt::format("{}: {}; install podman with apt-get install podman", container_engine,
                       strerror(errno));
  // The container engine reads the slices' CDI devices from a folder that only root can write.
  return geteuid() == 0 ? "" : "only a controller that runs as root can start containers";
}

std::vector<std::string> Api::limit_warnings(const objects::ServiceSpec& spec) const {
  if (cluster_ != nullptr) return {};
  return controller::limit_warnings(spec, machine_.limit_problems());
}

std::optional<uint32_t> Api::uid_of(const std::string& account) const { return os::user_id(account); }
std::string Api::user_name(uint32_t uid) const { return os::user_name(uid); }

Outcome<api::AuditList> Api::audit_entries(size_t most) const {
  const auto records = store_.newest_audit(most);
  if (!records) return tl::unexpected(records.error());
  api::AuditList out;
  for (const AuditRecord& record : *records) {
    const size_t blank = record.change.find(' ');
    out.items.push_back({.time_ns = static_cast<uint64_t>(record.at_ns),
                         .caller = record.caller,
                         .verb = record.change.substr(0, blank),
                         .object = blank == std::string::npos ? "" : record.change.substr(blank + 1),
                         .status = record.status,
                         .message = ""});
  }
  return out;
}

std::optional<JobPosition> Api::job_position(const std::string& uid) const {
  return job_positions_.find(uid);
}
size_t Api::waiting_jobs() const { return job_positions_.size(); }
http::Response Api::bill(BillQuery query, bill::Tariffs tariffs, BillForm form) {
  return {.content =
              http::LaterContent{.begin = [this, query = std::move(query), tariffs = std::move(tariffs),
                                           form](http::LaterAnswer& later) {
                return billing_.ask(query, tariffs, form,
                                    [&later](http::Response response) { later.answer(std::move(response)); });
              }}};
}
http::Response Api::history(HistoryQuery query) {
  return {.content = http::LaterContent{.begin = [this, query = std::move(query)](http::LaterAnswer& later) {
            return history_.ask(query,
                                [&later](http::Response response) { later.answer(std::move(response)); });
          }}};
}
std::string Api::metrics(api::MetricsFormat format, const http::Caller& caller) const {
  // As in an invoice, an account's usage is shown only to the account and to operators. The uids that use an
  // account are unknown here, so other users of this machine see none.
  const auto is_hidden = [&caller](const std::string& account) {
    const std::string* const own = caller.token_account();
    return !caller.may_operate() && (own == nullptr || *own != account);
  };
  ControllerFigures figures{.version = version_.version,
                            .endpoints = machine_.figures(),
                            .workloads = objects_.workloads(),
                            .queues = objects_.list(objects::Kind::queue),
                            .pools = objects_.list(objects::Kind::pool),
                            .budgets = objects_.list(objects::Kind::budget),
                            .waits = job_positions_.waits.queues(),
                            .gpu_hours = billing_.gpu_hours(),
                            .waiting_jobs = job_positions_.size(),
                            .decision_ns = job_positions_.decision_ns(),
                            .longest_turn_ns = loop_.turns().longest_ns.load(),
                            .now_ns = now_ns()};
  std::erase_if(figures.gpu_hours, [&](const GpuHours::Sum& sum) { return is_hidden(sum.account); });
  return metrics_text(figures, restarts_, format);
}
int64_t Api::now_ns() const { return os::utc_ns(); }

}  // namespace carve::controller

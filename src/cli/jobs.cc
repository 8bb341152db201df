// `carve get|describe queues|jobs|rayclusters`, `carve cancel`, and waiting for a job.
#include "cli/jobs.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/bytes.h"
#include "base/share.h"
#include "objects/job_object.h"
#include "objects/queue_object.h"
#include "objects/ray_cluster_object.h"

namespace carve::cli {
namespace {

constexpr std::chrono::milliseconds job_interval{100};
constexpr std::chrono::seconds controller_patience{30};  // Time for the controller to restart.

const std::vector<std::string> heading_of_queues = {"NAME",    "GPU",     "POOL",  "WEIGHT",
                                                    "WAITING", "RUNNING", "SLICES"};
const std::vector<std::string> heading_of_jobs = {"NAME",     "ENGINE", "QUEUE", "PHASE",
                                                  "POSITION", "GPU",    "SLICES"};
const std::vector<std::string> heading_of_clusters = {"NAME",    "QUEUE", "PHASE",
                                                      "WORKERS", "GPU",   "DASHBOARD"};

std::vector<std::string> row_of(const objects::Queue& queue) {
  return {harmless(queue.metadata.name),
          harmless(text(queue.spec.gpu)),
          or_dash(queue.spec.pool),
          fmt::format("{}", queue.spec.weight),
          fmt::format("{}", queue.status.waiting),
          fmt::format("{}", queue.status.running),
          fmt::format("{}", queue.status.slices)};
}

std::vector<std::string> row_of(const objects::Job& job) {
  const objects::JobStatus& s = job.status;
  return {harmless(job.metadata.name),
          harmless(text(job.spec.engine)),
          harmless(job.spec.queue),
          or_dash(text(s.phase)),
          s.position == 0 ? "-" : fmt::format("{}", s.position),
          or_dash(s.gpu),
          fmt::format("{}", s.slices)};
}

std::vector<std::string> row_of(const objects::RayCluster& cluster) {
  const objects::JobStatus& s = cluster.status;
  const auto running = std::ranges::count_if(s.pods, [](const auto& pod) {
    return pod.role == PodRole::worker && pod.state == objects::PodState::running;
  });
  return {harmless(cluster.metadata.name),
          harmless(cluster.spec.queue),
          or_dash(text(s.phase)),
          fmt::format("{}/{}", running, s.slices),
          or_dash(s.gpu),
          or_dash(s.dashboard)};
}

void wide_part(const objects::RayCluster& cluster, std::vector<std::string>& row) {
  row.push_back(or_dash(cluster.metadata.account));
  row.push_back(or_dash(cluster.status.submitted_at));
  row.push_back(or_dash(cluster.status.reason));
}
void wide_part(const objects::Queue& queue, std::vector<std::string>& row) {
  row.push_back(queue.spec.max_running == 0 ? "-" : fmt::format("{}", queue.spec.max_running));
  row.push_back(queue.spec.max_slices == 0 ? "-" : fmt::format("{}", queue.spec.max_slices));
}
void wide_part(const objects::Job& job, std::vector<std::string>& row) {
  row.push_back(or_dash(job.metadata.account));
  row.push_back(or_dash(job.status.submitted_at));
  row.push_back(or_dash(job.status.reason));
}

template <class T>
Result<ObjectCells, std::string> cells_of(const std::string& json) {
  const auto object = api::read<T>(json, api::Reading::lenient);
  if (!object) return tl::unexpected(object.error());
  ObjectCells cells{row_of(*object), {}};
  wide_part(*object, cells.wide);
  return cells;
}

void detail(const char* name, const std::string& value) { fmt::print("{:<12} {}\n", name, or_dash(value)); }

void describe(const objects::Queue& queue) {
  const objects::QueueSpec& spec = queue.spec;
  detail("name", queue.metadata.name);
  detail("gpu", text(spec.gpu));
  detail("pool", spec.pool);
  detail("weight", fmt::format("{}", spec.weight));
  if (spec.quota)
    detail("quota", spec.quota->devices != 0
                        ? fmt::format("{} devices", spec.quota->devices)
                        : fmt::format("{}, {}", spec.quota->memory, spec.quota->compute));
  const auto limit = [](uint32_t most) {
    return most == 0 ? std::string("no limit") : fmt::format("{}", most);
  };
  detail("max running", limit(spec.max_running));
  detail("max slices", limit(spec.max_slices));
  detail("strict", spec.strict ? "yes" : "no");
  detail("backfill", spec.backfill ? "yes" : "no");
  detail("billing", text(spec.billing));
  detail("groups", fmt::format("{}", fmt::join(spec.compute_groups, ", ")));
  detail("waiting", fmt::format("{}", queue.status.waiting));
  detail("running", fmt::format("{} with {} slices: {}, {} % of one device", queue.status.running,
                                queue.status.slices, std::string_view(text(Bytes{queue.status.memory_bytes})),
                                queue.status.compute_bp / 100));
}

void describe_hours(const objects::JobStatus& s) {
  if (s.gpu_hours.empty()) return;
  detail("gpu hours", s.unpriced_seconds == "0.000000"
                          ? s.gpu_hours
                          : fmt::format("{}, and {} s without a price", s.gpu_hours, s.unpriced_seconds));
}

// Prints the status fields that jobs and clusters share, from the phase to the end.
void describe_times(const objects::JobStatus& s) {
  detail("phase", text(s.phase));
  if (s.position != 0) detail("position", fmt::format("{}", s.position));
  if (!s.reason.empty()) detail("reason", s.reason);
  detail("submitted", s.submitted_at);
  detail("admitted", s.admitted_at);
}

void describe_pods(const objects::JobStatus& s);

void describe(const objects::RayCluster& cluster) {
  const objects::JobStatus& s = cluster.status;
  detail("name", cluster.metadata.name);
  detail("queue", cluster.spec.queue);
  detail("group", cluster.spec.compute_group);
  detail("account", cluster.metadata.account);
  describe_times(s);
  detail("gpu", s.gpu.empty() ? "" : fmt::format("{} slices: {}", s.slices, s.gpu));
  describe_hours(s);
  detail("dashboard", s.dashboard);
  detail("token", s.dashboard_token);
  for (const auto& [key, value] : cluster.spec.parameters) detail("parameter", key + "=" + value);
  describe_pods(s);
}

void describe(const objects::Job& job) {
  const objects::JobStatus& s = job.status;
  detail("name", job.metadata.name);
  detail("queue", job.spec.queue);
  detail("group", job.spec.compute_group);
  detail("engine", text(job.spec.engine));
  detail("account", job.metadata.account);
  describe_times(s);
  detail("finished", s.finished_at);
  if (!s.dashboard.empty()) detail("dashboard", s.dashboard);
  if (!s.dashboard_token.empty()) detail("token", s.dashboard_token);
  if (s.exit_status) detail("exit status", fmt::format("{}", *s.exit_status));
  detail("gpu",
         s.gpu.empty() ? "" : fmt::format("{} slice{} of {}", s.slices, s.slices == 1 ? "" : "s", s.gpu));
  describe_hours(s);
  detail("command", cut(harmless(fmt::format("{}", fmt::join(job.spec.run.command, " "))), 100));
  for (const auto& [key, value] : job.spec.parameters) detail("parameter", key + "=" + value);
  describe_pods(s);
}

void describe_pods(const objects::JobStatus& s) {
  for (const objects::DerivedParameter& d : s.derived)
    detail("derived", fmt::format("{}={} ({})", d.key, d.value, d.reason));
  for (const std::string& warning : s.warnings) detail("warning", warning);
  std::vector<std::vector<std::string>> rows;
  for (const objects::PodStatus& pod : s.pods)
    rows.push_back({text(pod.role), fmt::format("{}", pod.index), text(pod.state), or_dash(pod.slice),
                    or_dash(pod.node), pod.devices.empty() ? "-" : pod.devices.front(),
                    fmt::format("{}", pod.attempt), or_dash(pod.exit)});
  if (!rows.empty())
    fmt::print("\n{}", table({"ROLE", "INDEX", "STATE", "SLICE", "NODE", "DEVICE", "ATTEMPT", "EXIT"}, rows));
}

}  // namespace

ObjectCells job_heading(objects::Kind kind) {
  if (kind == objects::Kind::queue) return {heading_of_queues, {"MAX RUNNING", "MAX SLICES"}};
  const bool is_cluster = kind == objects::Kind::ray_cluster;
  return {is_cluster ? heading_of_clusters : heading_of_jobs, {"ACCOUNT", "SUBMITTED", "REASON"}};
}

Result<ObjectCells, std::string> job_cells(objects::Kind kind, const std::string& json) {
  if (kind == objects::Kind::queue) return cells_of<objects::Queue>(json);
  if (kind == objects::Kind::ray_cluster) return cells_of<objects::RayCluster>(json);
  return cells_of<objects::Job>(json);
}

void describe_queue_or_job(Context& context, const ObjectName& object) {
  const std::string target = object_path(object);
  if (object.kind == objects::Kind::queue)
    answered(context, context.controller().get<objects::Queue>(target), [](const auto& q) { describe(q); });
  else if (object.kind == objects::Kind::ray_cluster)
    answered(context, context.controller().get<objects::RayCluster>(target),
             [](const auto& c) { describe(c); });
  else
    answered(context, context.controller().get<objects::Job>(target), [](const auto& j) { describe(j); });
}

namespace {

// Returns the job; waits if the controller is being restarted.
client::Answer<objects::Job> patient_job(const client::Client& controller, const ObjectName& name) {
  const auto deadline = std::chrono::steady_clock::now() + controller_patience;
  while (true) {
    auto job = controller.get<objects::Job>(object_path(name));
    const bool is_away =
        !job && (job.error().type == "carve:no-agent" || job.error().type == "carve:no-response");
    if (!is_away || std::chrono::steady_clock::now() >= deadline) return job;
    std::this_thread::sleep_for(job_interval);
  }
}

int exit_status_of(const objects::JobStatus& status) {
  if (status.phase == JobPhase::succeeded) return 0;
  const uint32_t own = status.exit_status.value_or(0);
  return own == 0 ? failed_status : static_cast<int>(own);
}

}  // namespace

void wait_for_job(Context& context, const ObjectName& name) {
  const client::Client controller = context.controller();
  size_t shown = 0;  // Number of lines. A restarted stream begins with the first line.
  std::string reason;
  while (true) {
    const auto job = patient_job(controller, name);
    if (!job) return answered(context, job, [](const auto&) {});
    const objects::JobStatus& status = job->status;
    if (status.phase == JobPhase::queued) {
      if (!status.reason.empty() && status.reason != reason)
        fmt::print(stderr, "{} waits: {}\n", name.text(), harmless(status.reason));
      reason = status.reason;
      std::this_thread::sleep_for(job_interval);
      continue;
    }
    const char* role = job->spec.engine == JobEngine::custom ? "task" : "driver";
    size_t line = 0;
    bool is_complete = false;
    const client::WatchEnd ended =
        controller.watch(object_path(name, "logs", fmt::format("role={}&follow=true&plain=true", role)), "",
                         [&](const auto& event) {
                           if (event.type == objects::log_end_event) is_complete = true;
                           if (is_complete || ++line <= shown) return;
                           shown = line;
                           fmt::print("{}\n", event.data);
                         });
    const auto now = patient_job(controller, name);
    if (!now) return answered(context, now, [](const auto&) {});
    // If the stream ended before the log did, for example because this program read too slowly, the log is
    // read again. Lines that were printed are skipped.
    if (now->status.finished_at.empty() || (ended.opened && !is_complete)) continue;
    const objects::JobStatus& end = now->status;
    context.status = exit_status_of(end);
    if (end.phase != JobPhase::succeeded)
      fmt::print(
          stderr,
          "carve: {0}: {1}{2}{3}; carve describe {0} shows its pods, and carve logs {0} their output\n",
          name.text(), text(end.phase), end.reason.empty() ? "" : ": ", harmless(end.reason));
    return;
  }
}

namespace {

template <class Object>
void wait_until_runs(Context& context, const ObjectName& name, unsigned timeout_seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(timeout_seconds);
  std::string last;
  for (;; std::this_thread::sleep_for(job_interval)) {
    const auto job = context.controller().get<Object>(object_path(name));
    if (!job) return answered(context, job, [](const auto&) {});
    const objects::JobStatus& status = job->status;
    const std::string line = fmt::format("{} is {}{}{}", name.text(), text(status.phase),
                                         status.reason.empty() ? "" : ": ", harmless(status.reason));
    if (line != last) fmt::print(stderr, "{}\n", line);
    last = line;
    if (status.phase == JobPhase::running || status.phase == JobPhase::succeeded) return;
    const bool has_ended = !status.finished_at.empty();
    if (!has_ended && std::chrono::steady_clock::now() < deadline) continue;
    fmt::print(stderr, "carve: {}{}; carve describe {} shows its pods\n", line,
               has_ended ? "" : fmt::format(" after {} s", timeout_seconds), name.text());
    context.status = failed_status;
    return;
  }
}

}  // namespace

void wait_until_job_runs(Context& context, const ObjectName& name, unsigned timeout_seconds) {
  if (name.kind == objects::Kind::ray_cluster)
    return wait_until_runs<objects::RayCluster>(context, name, timeout_seconds);
  wait_until_runs<objects::Job>(context, name, timeout_seconds);
}

void add_cancel(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("cancel", "End jobs: stop their programs and end their slices");
  auto names = std::make_shared<std::vector<std::string>>();
  auto name_space = std::make_shared<std::string>("default");
  verb->add_option("JOB", *names, "The jobs, as NAME or job/NAME")->required();
  verb->add_option("-n,--namespace", *name_space, "Namespace of the objects")->capture_default_str();
  verb->footer("  carve cancel custom-42 spark-45");
  verb->callback([&context, names, name_space] {
    for (const std::string& name : *names) {
      const bool has_kind = name.find('/') != std::string::npos;
      const auto job = required_object(context, {has_kind ? name : "job/" + name}, *name_space);
      if (!job) continue;
      if (job->kind != objects::Kind::job) {
        fmt::print(stderr, "carve: {0}: only jobs can be cancelled; use carve delete {0}\n", job->text());
        context.status = usage_status;
        continue;
      }
      answered(context, context.controller().post<objects::Job>(object_path(*job, "cancel"), api::Nothing{}),
               [&](const auto&) { fmt::print("{} cancelled\n", job->text()); });
    }
  });
}

}  // namespace carve::cli

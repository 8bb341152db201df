#include "controller/kubernetes/kueue_status.h"

#include <gmock/gmock.h>

namespace carve::controller {
namespace {

using api::Json;
using testing::HasSubstr;

constexpr int64_t now_ns = 1'800'000'000'000'000'000;

Object object(objects::Kind kind) {
  Object out;
  out.key = {.kind = kind, .name = "j"};
  out.uid = "u";
  out.generation = 3;
  if (kind == objects::Kind::job)
    out.spec = objects::JobSpec{.queue = "train", .run = {.command = {"a"}, .image = "i"}};
  else
    out.spec = objects::QueueSpec();
  return out;
}

struct JobRow {
  const char* what;
  const char* job;       // Null if there is none.
  const char* workload;  // Its conditions; null if there is none.
  const char* pod;       // Its status; null if there is none.
  JobPhase phase;
  const char* reason;
  const char* finished_at = "";
  int exit_status = -1;  // -1 if there is none.
};

constexpr const char* suspended = R"({"spec":{"suspend":true}})";
constexpr const char* resumed = R"({"spec":{"suspend":false}})";
constexpr const char* complete =
    R"({"spec":{"suspend":false},"status":{"conditions":[{"type":"Complete","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"}]}})";
constexpr const char* failed =
    R"({"spec":{"suspend":false},"status":{"conditions":[{"type":"Failed","status":"True","message":"Job has failed indexes",
        "lastTransitionTime":"2026-01-02T03:04:05Z"}]}})";
constexpr const char* pending =
    R"([{"type":"QuotaReserved","status":"False","message":"insufficient unused quota, 20 more needed"}])";
constexpr const char* admitted =
    R"([{"type":"QuotaReserved","status":"True"},{"type":"Admitted","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}])";

constexpr JobRow job_rows[] = {
    {"before its Job is made", nullptr, nullptr, nullptr, JobPhase::queued, "waits for Kueue"},
    {"before Kueue has seen it", suspended, nullptr, nullptr, JobPhase::queued, "waits for Kueue"},
    {"while it waits", suspended, pending, nullptr, JobPhase::queued,
     "insufficient unused quota, 20 more needed"},
    {"without a pod", resumed, admitted, nullptr, JobPhase::starting, ""},
    {"while its pod finds no node", resumed, admitted,
     R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","message":"no node has 4 GiB"}]})",
     JobPhase::starting, "no node has 4 GiB"},
    {"while its image is pulled in vain", resumed, admitted,
     R"({"phase":"Pending","containerStatuses":[{"state":{"waiting":{"reason":"ErrImagePull","message":"no such image"}}}]})",
     JobPhase::starting, "no such image"},
    {"while it runs", resumed, admitted, R"({"phase":"Running"})", JobPhase::running, ""},
    {"after its success", complete, admitted, R"({"phase":"Succeeded"})", JobPhase::succeeded, "",
     "2026-01-02T03:04:05Z", 0},
    {"after its failure", failed, admitted,
     R"({"phase":"Failed","containerStatuses":[{"state":{"terminated":{"exitCode":3}}}]})", JobPhase::failed,
     "Job has failed indexes", "2026-01-02T03:04:05Z", 3},
    {"after a failure whose pod is gone", failed, admitted, nullptr, JobPhase::failed,
     "Job has failed indexes", "2026-01-02T03:04:05Z"},
    {"with members of other types", R"({"spec":7,"status":{"conditions":{"a":1}}})", R"("x")", R"([1])",
     JobPhase::starting, ""},
};

TEST(JobStatus, has_the_phase_and_the_reason_of_the_observed_objects) {
  for (const JobRow& row : job_rows) {
    const Object custom = object(objects::Kind::job);
    const Json job = row.job ? Json::parse(row.job) : Json();
    const Json workload =
        row.workload ? Json{{"status", {{"conditions", Json::parse(row.workload)}}}} : Json();
    const Json pod = row.pod ? Json{{"metadata", {{"name", "p"}}}, {"status", Json::parse(row.pod)}} : Json();
    JobView view{.object = custom, .position = 4};
    if (row.job) view.job = &job;
    if (row.workload) view.workload = &workload;
    if (row.pod) view.pods.push_back(&pod);
    const objects::JobStatus status = batch_job_status(view, now_ns);
    EXPECT_EQ(status.phase, row.phase) << row.what;
    EXPECT_EQ(status.reason, row.reason) << row.what;
    EXPECT_EQ(status.finished_at, row.finished_at) << row.what;
    EXPECT_EQ(status.exit_status ? static_cast<int>(*status.exit_status) : -1, row.exit_status) << row.what;
    EXPECT_EQ(status.position, row.phase == JobPhase::queued ? 4u : 0u) << row.what;
    EXPECT_EQ(status.pods.size(), row.pod ? 1u : 0u) << row.what;
    EXPECT_EQ(job_condition(view, status).status, "True") << row.what;
    EXPECT_EQ(status.observed_generation, 3u);
  }
}

TEST(JobStatus, shows_the_newest_pod_of_each_task) {
  const Object custom = object(objects::Kind::job);
  const Json job = Json::parse(resumed);
  const auto pod = [](const char* name, const char* index, const char* failures, const char* phase) {
    return Json::parse(fmt::format(
        R"({{"metadata":{{"name":"{}","annotations":{{"batch.kubernetes.io/job-completion-index":"{}",
            "batch.kubernetes.io/job-index-failure-count":"{}"}}}},"spec":{{"nodeName":"n1"}},"status":{{"phase":"{}"}}}})",
        name, index, failures, phase));
  };
  const Json all[] = {pod("b", "1", "0", "Pending"), pod("a-0", "0", "0", "Failed"),
                      pod("a-1", "0", "1", "Running")};
  JobView view{.object = custom, .job = &job};
  for (const Json& one : all) view.pods.push_back(&one);
  const objects::JobStatus status = batch_job_status(view, now_ns);
  ASSERT_EQ(status.pods.size(), 2u);
  EXPECT_EQ(status.pods[0].slice, "a-1");
  EXPECT_EQ(status.pods[0].attempt, 1u);
  EXPECT_EQ(text(status.pods[0].state), "Running");
  EXPECT_EQ(text(status.pods[1].state), "Granted");
  EXPECT_EQ(status.pods[1].node, "n1");
}

TEST(JobStatus, of_a_cancelled_job_is_final_when_its_job_is_gone) {
  Object custom = object(objects::Kind::job);
  auto spec = custom.spec.as<objects::JobSpec>();
  spec.cancelled = true;
  custom.spec = spec;
  const Json job = Json::parse(resumed);
  const auto ending = batch_job_status({.object = custom, .job = &job}, now_ns);
  EXPECT_EQ(ending.phase, JobPhase::cancelled);
  EXPECT_EQ(ending.finished_at, "");
  const auto ended = batch_job_status({.object = custom}, now_ns);
  EXPECT_EQ(ended.finished_at, "2027-01-15T08:00:00Z");
  EXPECT_FALSE(ended.exit_status);
}

TEST(JobStatus, that_is_final_does_not_change) {
  Object custom = object(objects::Kind::job);
  const Json done = Json::parse(complete), again = Json::parse(resumed);
  const objects::JobStatus before = batch_job_status({.object = custom, .job = &done}, now_ns);
  custom.status = before;
  EXPECT_EQ(api::write(batch_job_status({.object = custom, .job = &again}, now_ns + 1)), api::write(before));
  custom.is_ending = true;
  EXPECT_EQ(batch_job_status({.object = custom}, now_ns).phase, JobPhase::deleting);
}

TEST(JobStatus, names_a_problem_in_its_reason_and_its_condition) {
  const Object custom = object(objects::Kind::job);
  const JobView view{.object = custom, .problem = {"NoSuchQueue", "there is no queue 'train'"}};
  const objects::JobStatus status = batch_job_status(view, now_ns);
  EXPECT_EQ(status.reason, "there is no queue 'train'");
  EXPECT_EQ(job_condition(view, status).status, "False");
  EXPECT_EQ(job_condition(view, status).reason, "NoSuchQueue");
}

TEST(QueueStatus, has_the_numbers_of_the_cluster_queue) {
  const Object custom = object(objects::Kind::queue);
  const Json made = Json::parse(R"({"status":{"pendingWorkloads":3,"admittedWorkloads":2,
      "conditions":[{"type":"Active","status":"True","reason":"Ready","message":"Can admit new workloads"}],
      "flavorsUsage":[{"name":"carve","resources":[{"name":"carve.dev/memory","total":"2097152k"},
        {"name":"carve.dev/compute","total":"60"}]},{"name":"carve-slices","resources":[{"name":"pods","total":"2"}]}]}})");
  const QueueView view{.object = custom, .cluster_queue = &made, .slices = 2, .warnings = {"w"}};
  const objects::QueueStatus status = queue_status(view);
  EXPECT_EQ(api::write(status),
            api::write(objects::QueueStatus{
                .waiting = 3, .running = 2, .slices = 2, .memory_bytes = 2'097'152'000, .compute_bp = 6000}));
  EXPECT_EQ(queue_condition(view).status, "True");
  EXPECT_EQ(queue_condition(view).message, "Can admit new workloads; w");
  EXPECT_EQ(queue_condition({.object = custom}).reason, "Waiting");
  EXPECT_EQ(queue_condition({.object = custom, .problem = {"KueueMissing", "m"}}).reason, "KueueMissing");
  const Json odd = Json::parse(R"({"status":{"pendingWorkloads":"x","flavorsUsage":[{"resources":7},8]}})");
  EXPECT_EQ(queue_status({.object = custom, .cluster_queue = &odd}).waiting, 0u);
  EXPECT_THAT(queue_condition({.object = custom, .cluster_queue = &odd}).status, "False");
}

TEST(Waiting, is_a_workload_without_quota_that_may_get_it) {
  const auto waits = [](const char* text) { return is_waiting(Json::parse(text)); };
  EXPECT_TRUE(waits("{}"));
  EXPECT_TRUE(waits(R"({"status":{"conditions":[{"type":"QuotaReserved","status":"False"}]}})"));
  EXPECT_FALSE(waits(R"({"status":{"conditions":[{"type":"QuotaReserved","status":"True"}]}})"));
  EXPECT_FALSE(waits(R"({"status":{"conditions":[{"type":"Finished","status":"True"}]}})"));
  EXPECT_FALSE(waits(R"({"spec":{"active":false}})"));
}

}  // namespace
}  // namespace carve::controller

#include "controller/kubernetes/kueue_objects.h"

#include <gmock/gmock.h>

#include "controller/kubernetes/batch_jobs.h"
#include "controller/kubernetes/made_kinds.h"

namespace carve::controller {
namespace {

using api::Json;
using testing::ElementsAre;
using testing::HasSubstr;

Object queue(objects::QueueSpec spec) {
  Object out;
  out.key = {.kind = objects::Kind::queue, .name = "train"};
  out.uid = "q";
  out.generation = 2;
  out.spec = std::move(spec);
  return out;
}

Object job(objects::JobSpec spec) {
  Object out;
  out.key = {.kind = objects::Kind::job, .namespace_ = "team", .name = "j"};
  out.uid = "j";
  out.account = "research";
  out.spec = std::move(spec);
  return out;
}

objects::JobSpec training() {
  return {.queue = "train",
          .parameters = {{"serverless.custom.job.gpu.enabled", "true"},
                         {"serverless.custom.job.task.gpus", "1"},
                         {"emr.serverless.mgpu.core", "30"},
                         {"emr.serverless.mgpu.memory", "1000"}},
          .run = {.command = {"train"}, .image = "r/train:1"},
          .tasks = 2};
}

std::vector<std::string> names(const std::vector<Json>& all) {
  std::vector<std::string> out;
  for (const Json& one : all) out.push_back(path_of(one));
  return out;
}

// The messages of the errors.
template <class T>
std::string errors_of(const Result<T, api::FieldErrors>& result) {
  std::string out;
  if (!result)
    for (const api::FieldError& error : result.error()) out += error.message + "\n";
  return out;
}

TEST(QueueObjects, have_a_quota_in_the_resources_of_the_pods) {
  const auto made = queue_objects(queue({.gpu = QueueGpu::mgpu,
                                         .pool = "a10",
                                         .quota = objects::QueueQuota{.memory = "40GiB", .compute = "250%"},
                                         .weight = 3,
                                         .max_slices = 8}),
                                  {.namespaces = {"default", "team"}, .priorities = {-5, 0, 7}});
  ASSERT_TRUE(made) << errors_of(made);
  EXPECT_THAT(names(made->objects),
              ElementsAre("/apis/kueue.x-k8s.io/v1beta2/resourceflavors/carve-a10",
                          "/apis/kueue.x-k8s.io/v1beta2/resourceflavors/carve-slices",
                          "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/train",
                          "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/localqueues/train",
                          "/apis/kueue.x-k8s.io/v1beta2/namespaces/team/localqueues/train",
                          "/apis/kueue.x-k8s.io/v1beta2/workloadpriorityclasses/carve-minus-5",
                          "/apis/kueue.x-k8s.io/v1beta2/workloadpriorityclasses/carve-7"));
  EXPECT_EQ(made->objects[0]["spec"], Json::parse(R"({"nodeLabels":{"carve.dev/pool":"a10"}})"));
  EXPECT_EQ(made->objects[2]["spec"], Json::parse(R"({
    "cohortName": "carve-a10",
    "namespaceSelector": {},
    "queueingStrategy": "StrictFIFO",
    "fairSharing": {"weight": "3"},
    "preemption": {"reclaimWithinCohort": "Never", "withinClusterQueue": "Never"},
    "resourceGroups": [
      {"coveredResources": ["carve.dev/memory", "carve.dev/compute"],
       "flavors": [{"name": "carve-a10", "resources": [
         {"name": "carve.dev/memory", "nominalQuota": "42949672960"},
         {"name": "carve.dev/compute", "nominalQuota": "250"}]}]},
      {"coveredResources": ["pods"],
       "flavors": [{"name": "carve-slices", "resources": [
         {"name": "pods", "nominalQuota": "8", "borrowingLimit": "0", "lendingLimit": "0"}]}]}]})"));
  EXPECT_EQ(made->objects[2]["metadata"]["ownerReferences"][0]["controller"], true);
  EXPECT_EQ(made->objects[0]["metadata"]["ownerReferences"][0]["controller"], false);
  EXPECT_EQ(made->objects[5]["value"], -5);
  EXPECT_TRUE(made->warnings.empty());
}

TEST(QueueObjects, count_whole_devices_in_devices) {
  const auto made = queue_objects(
      queue({.gpu = QueueGpu::gpu, .quota = objects::QueueQuota{.devices = 4}, .backfill = true}), {});
  ASSERT_TRUE(made) << errors_of(made);
  const Json& spec = made->objects[1]["spec"];
  EXPECT_EQ(spec["queueingStrategy"], "BestEffortFIFO");
  EXPECT_EQ(spec["cohortName"], "carve");
  EXPECT_EQ(spec["resourceGroups"][0]["flavors"][0]["resources"],
            Json::parse(R"([{"name":"carve.dev/devices","nominalQuota":"4"}])"));
  const auto none = queue_objects(queue({.gpu = QueueGpu::none}), {});
  EXPECT_FALSE(none->objects[1]["spec"].contains("resourceGroups"));
}

TEST(QueueObjects, report_what_kueue_cannot_express) {
  EXPECT_THAT(errors_of(queue_objects(queue({.quota = objects::QueueQuota{.devices = 2}}), {})),
              HasSubstr("spec.quota.devices: a queue of parts of devices is counted in memory and compute"));
  EXPECT_THAT(
      errors_of(queue_objects(
          queue({.gpu = QueueGpu::gpu, .quota = objects::QueueQuota{.memory = "1GiB", .compute = "9%"}}),
          {})),
      HasSubstr("spec.quota: a queue of whole devices is counted in devices"));
  EXPECT_THAT(queue_objects(queue({.max_running = 3}), {})->warnings,
              ElementsAre(HasSubstr("spec.maxRunning 3 has no effect")));
}

TEST(QueueObjects, of_other_queues_have_the_same_shared_objects) {
  const auto shared = [](const char* name) {
    Object one = queue({.quota = objects::QueueQuota{.memory = "1GiB", .compute = "9%"}});
    one.key.name = one.uid = name;
    Json out = queue_objects(one, {.namespaces = {}, .priorities = {7}})->objects[0];
    out["metadata"].erase("ownerReferences");
    return out;
  };
  EXPECT_EQ(shared("a"), shared("b"));
}

TEST(QueueObjects, lend_what_is_in_no_quota_through_a_cohort) {
  constexpr DeviceAmounts capacity{.memory_bytes = 80 << 10, .compute_percent = 800};
  Object parts = queue({.quota = objects::QueueQuota{.memory = "10KiB", .compute = "150%"}});
  Object devices = queue({.gpu = QueueGpu::gpu, .quota = objects::QueueQuota{.devices = 2}});
  devices.uid = "d";
  const Json made = cohort_object("a10", {&parts, &devices}, capacity);
  EXPECT_EQ(path_of(made), "/apis/kueue.x-k8s.io/v1beta2/cohorts/carve-a10");
  EXPECT_EQ(made["metadata"]["ownerReferences"].size(), 2u);
  // 8 devices of 10 KiB, without 10 KiB and 150 %, and without 2 devices.
  EXPECT_EQ(made["spec"], Json::parse(R"({"resourceGroups":[
      {"coveredResources":["carve.dev/memory","carve.dev/compute","carve.dev/devices"],
       "flavors":[{"name":"carve-a10","resources":[{"name":"carve.dev/memory","nominalQuota":"51200"},
         {"name":"carve.dev/compute","nominalQuota":"450"},{"name":"carve.dev/devices","nominalQuota":"4"}]}]}]})"));
  const auto mark = [](const Json& one) { return one["metadata"]["annotations"][applied_annotation]; };
  EXPECT_EQ(mark(cohort_object("a10", {&parts, &devices}, capacity)), mark(made));
  EXPECT_NE(mark(cohort_object("a10", {&parts}, capacity)), mark(made));
  const Json empty = cohort_object("", {&parts}, {});
  EXPECT_EQ(empty["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"], "0");
}

TEST(ClusterCapacity, is_that_of_the_ready_nodes_of_a_pool) {
  const auto node = [](const char* uid, const char* pool, const std::string& document) {
    kubernetes::ObjectMeta out{.name = uid, .uid = uid, .document = document};
    if (*pool) out.labels[pool_label] = pool;
    return out;
  };
  const std::string ready =
      R"({"status":{"allocatable":{"carve.dev/memory":"2k","carve.dev/compute":"200"},"conditions":[{"type":"Ready","status":"True"}]}})";
  const std::string cordoned = R"({"spec":{"unschedulable":true},)" + ready.substr(1);
  ClusterCapacity capacity;
  EXPECT_TRUE(capacity.put(node("a", "", ready)));
  EXPECT_FALSE(capacity.put(node("a", "", ready)));
  EXPECT_TRUE(capacity.put(node("b", "a10", ready)));
  capacity.put(node("c", "a10", cordoned));
  for (const char* odd :
       {"", "[]", R"({"status":7})", R"({"status":{"allocatable":{"carve.dev/memory":7}}})"})
    capacity.put(node(odd, "", odd));
  EXPECT_EQ(capacity.of(""), (DeviceAmounts{.memory_bytes = 2000, .compute_percent = 200}));
  EXPECT_EQ(capacity.of("a10"), capacity.of(""));
  EXPECT_TRUE(capacity.put(node("c", "a10", ready)));
  EXPECT_EQ(capacity.of("a10").compute_percent, 400u);
  EXPECT_TRUE(capacity.remove(node("b", "", "")));
  EXPECT_TRUE(capacity.replace({}));
  EXPECT_EQ(capacity.of(""), DeviceAmounts());
}

TEST(JobObjects, are_one_suspended_job_in_its_queue) {
  objects::JobSpec spec = training();
  spec.priority = 7;
  const auto made = job_objects(job(spec), queue({}));
  ASSERT_TRUE(made) << errors_of(made);
  ASSERT_EQ(made->objects.size(), 1u);
  const Json& one = made->objects[0];
  EXPECT_EQ(path_of(one), "/apis/batch/v1/namespaces/team/jobs/j");
  EXPECT_EQ(one["metadata"]["labels"], Json::parse(R"({"app.kubernetes.io/managed-by":"carve",
      "kueue.x-k8s.io/queue-name":"train","kueue.x-k8s.io/priority-class":"carve-7"})"));
  EXPECT_EQ(one["spec"]["suspend"], true);
  EXPECT_EQ(one["spec"]["completions"], 2);
  EXPECT_FALSE(one["spec"].contains("ttlSecondsAfterFinished")) << "a removed Job would run again";
  const Json& pods = one["spec"]["template"];
  EXPECT_EQ(pods["metadata"]["labels"],
            Json::parse(R"({"app.kubernetes.io/managed-by":"carve","carve.dev/account":"research"})"));
  EXPECT_EQ(pods["metadata"]["annotations"]["carve.dev/policy"], "fixed-share");
  const Json& task = pods["spec"]["containers"][0];
  EXPECT_EQ(task["image"], "r/train:1");
  EXPECT_EQ(task["resources"]["limits"],
            Json::parse(R"({"carve.dev/memory":"1000Mi","carve.dev/compute":30})"));
}

TEST(JobObjects, report_what_the_cluster_and_the_queue_reject) {
  objects::JobSpec spec = training();
  spec.run.image.clear();
  EXPECT_THAT(errors_of(job_objects(job(spec), queue({}))),
              HasSubstr("spec.run.image: is required, because Kubernetes"));
  spec = training();
  spec.compute_group = "other";
  EXPECT_THAT(errors_of(job_objects(job(spec), queue({}))), HasSubstr("has no compute group 'other'"));
  EXPECT_NE(errors_of(job_objects(job(training()), queue({.gpu = QueueGpu::none}))), "");
}

TEST(JobObjects, have_a_mark_of_their_programs) {
  objects::JobSpec spec = training();
  const std::string before = programs_mark(spec);
  spec.cancelled = true;
  spec.ttl_seconds_after_finished = 5;
  EXPECT_EQ(programs_mark(spec), before);
  spec.run.command = {"other"};
  EXPECT_NE(programs_mark(spec), before);
}

}  // namespace
}  // namespace carve::controller

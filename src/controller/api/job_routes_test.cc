#include "controller/api/job_routes.h"

#include <gmock/gmock.h>

#include "controller/api/controller_routes.h"
#include "controller/api/testing/routes_fake.h"
#include "controller/api/testing/views_fake.h"
#include "controller/nodes/testing/node_objects.h"

namespace carve::controller {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr uint32_t job_operators[] = {0};

// The API with a queue "q".
struct JobRoutes : testing::Test {
  ViewsFake views;
  JournalFake journal;
  JournaledRegistry objects{journal, {}, 0};
  TokenBook tokens{journal, {}};
  ControllerRoutes routes{{.views = views,
                           .audit = [](const AuditLine&) {},
                           .objects = objects,
                           .tokens = tokens,
                           .node_actions = &views}};

  JobRoutes() { ask(201, "POST", "/v1/queues", queue("{}")); }

  std::string ask(unsigned status, const std::string& method, const std::string& target,
                  const std::string& text = "", uint32_t uid = 0) {
    const auto response =
        routes.answer(request_of(method, target, text), http::Caller::user(uid, {5, 1}, job_operators));
    const std::string body = std::get<std::string>(response.content);
    EXPECT_EQ(response.status, status) << method << " " << target << ": " << body;
    return body;
  }
  static std::string queue(const std::string& spec) {
    return R"({"apiVersion":"carve.dev/v1","kind":"Queue","metadata":{"name":"q"},"spec":)" + spec + "}";
  }
  static std::string job(const std::string& name, const std::string& more = "") {
    return fmt::format(
        R"({{"apiVersion":"carve.dev/v1","kind":"Job","metadata":{{"name":"{}"}},"spec":{{"queue":"q",
        "run":{{"command":["a"],"env":{{"PASSWORD":"p1"}}}},"parameters":{{"k":"p2"}}{}}}}})",
        name, more);
  }
};

TEST_F(JobRoutes, a_job_has_an_image_exactly_if_programs_run_in_pods) {
  const std::string with_image = R"({"apiVersion":"carve.dev/v1","kind":"Job","metadata":{"name":"i"},
      "spec":{"queue":"q","run":{"image":"r/train:1","command":["a"]}}})";
  EXPECT_THAT(ask(422, "POST", "/v1/jobs", with_image),
              HasSubstr("spec.run.image: 'r/train:1': a job must run a local program; leave the image out"));
  EXPECT_THAT(ask(200, "POST", "/v1/render", with_image), HasSubstr("r/train:1"));
  ControllerRoutes in_pods{{.views = views,
                            .audit = [](const AuditLine&) {},
                            .objects = objects,
                            .tokens = tokens,
                            .node_actions = &views,
                            .runs_pods = true}};
  const auto posted = [&](const std::string& document) {
    const auto response = in_pods.answer(request_of("POST", "/v1/jobs", document),
                                         http::Caller::user(0, {5, 1}, job_operators));
    return fmt::format("{} {}", response.status, std::get<std::string>(response.content));
  };
  EXPECT_THAT(posted(job("without")),
              testing::AllOf(HasSubstr("422"), HasSubstr("spec.run.image: is required, because Kubernetes")));
  EXPECT_THAT(posted(with_image), HasSubstr("201"));
}

TEST_F(JobRoutes, only_operators_may_change_queues_and_their_gpu_is_immutable) {
  ask(403, "POST", "/v1/queues", queue(R"({"weight":2})"), 1000);
  ask(403, "DELETE", "/v1/queues/q", "", 1000);
  ask(200, "PATCH", "/v1/queues/q", R"({"spec":{"weight":2}})");
  EXPECT_THAT(ask(409, "PATCH", "/v1/queues/q", R"({"spec":{"gpu":"gpu"}})"),
              HasSubstr("queue q is an mGPU queue, which cannot be changed; create another queue"));
  EXPECT_THAT(ask(409, "POST", "/v1/documents", queue(R"({"gpu":"none"})")), HasSubstr("carve:immutable"));
  EXPECT_THAT(ask(422, "POST", "/v1/queues", queue(R"({"pool":"p"})")), HasSubstr("there is no pool 'p'"));
}

TEST_F(JobRoutes, a_job_without_a_name_gets_one_that_no_other_job_had_before) {
  ask(201, "POST", "/v1/jobs", job(""), 1000);
  const auto first = objects.list(objects::Kind::job).front();
  EXPECT_EQ(first->key.name, fmt::format("custom-{}", first->version));
  EXPECT_EQ(first->owner_uid, 1000u);
  EXPECT_EQ(first->account, "user1000");
  ASSERT_TRUE(objects.remove(first->key));
  ask(201, "POST", "/v1/jobs", job(""), 1000);
  EXPECT_NE(objects.list(objects::Kind::job).front()->key.name, first->key.name);
}

TEST_F(JobRoutes, a_job_whose_programs_could_not_be_started_is_rejected) {
  views.refused_uid = 1000;
  EXPECT_THAT(ask(409, "POST", "/v1/jobs", job("a"), 1000), HasSubstr("no program of it"));
  ask(201, "POST", "/v1/jobs", job("a"), 1001);
}

TEST_F(JobRoutes, a_dry_run_shows_where_the_slices_of_a_new_job_would_be_placed) {
  ASSERT_TRUE(objects.add({.key = {objects::Kind::node, "default", "n1"},
                           .spec = objects::NodeSpec{},
                           .status = two_devices_of_16_gib()}));
  const auto checked = [&](unsigned tasks) {
    const std::string document = fmt::format(
        R"({{"apiVersion":"carve.dev/v1","kind":"Job","metadata":{{"name":"a"}},"spec":{{"queue":"q","tasks":{},
        "run":{{"command":["a"]}},"parameters":{{"emr.serverless.mgpu.core":"60","emr.serverless.mgpu.memory":"8192","serverless.custom.job.task.gpus":"1","serverless.custom.job.gpu.enabled":"true"}}}}}})",
        tasks);
    const auto list =
        api::read<api::AppliedList>(ask(200, "POST", "/v1/jobs?dryRun=true", document), api::Reading::strict);
    EXPECT_TRUE(list) << list.error();
    return list->items.at(0).placement;
  };
  const auto both = checked(2);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].node, "n1");
  EXPECT_NE(both[0].devices, both[1].devices) << "60 % of a device each";
  EXPECT_THAT(both[1].memory_bytes, testing::ElementsAre(uint64_t{8} << 30));
  ASSERT_TRUE(objects.update({objects::Kind::node, "default", "n1"}, [](Object& node) -> Outcome<void> {
    objects::NodeStatus status = two_devices_of_16_gib();
    status.devices[1].free_share_bp = 1000;
    node.status = status;
    return {};
  }));
  const auto one = checked(2);
  ASSERT_EQ(one.size(), 2u);
  EXPECT_THAT(one[0].devices, testing::ElementsAre(0u));
  EXPECT_EQ(one[1].node, "");
  EXPECT_THAT(one[1].message, HasSubstr("60%"));
  EXPECT_TRUE(objects.list(objects::Kind::job).empty()) << "nothing was stored";
  ask(201, "POST", "/v1/jobs", job("b"));
  EXPECT_EQ(ask(200, "POST", "/v1/jobs?dryRun=true", job("b")).find("n1"), std::string::npos)
      << "a job that exists needs no new place";
}

TEST_F(JobRoutes, a_job_name_is_unique_in_all_namespaces) {
  const auto in = [](const std::string& space, std::string document) {
    return document.replace(document.find(R"("metadata":{)"), 12,
                            R"("metadata":{"namespace":")" + space + R"(",)");
  };
  ask(201, "POST", "/v1/jobs", job("a"), 1000);
  EXPECT_THAT(ask(409, "POST", "/v1/jobs", in("team", job("a")), 2000),
              HasSubstr("namespace default already has the job a, whose slices would have the same names; "
                        "use another name"));
  EXPECT_THAT(
      ask(400, "POST", "/v1/jobs", in("x", job("b")) + "\n---\n" + in("y", job("b"))),
      HasSubstr(
          "two documents have the name b, so their slices would have the same names; use different names"));
  const auto service_in = [&](const char* space) {
    return in(space, R"({"apiVersion":"carve.dev/v1","kind":"Service","metadata":{"name":"s"},)"
                     R"("spec":{"run":{"command":["a"]}}})");
  };
  EXPECT_THAT(ask(400, "POST", "/v1/documents", service_in("x") + "\n---\n" + service_in("y")),
              HasSubstr("two documents have the name s"));
}

TEST_F(JobRoutes, a_device_list_that_differs_from_the_slices_devices_is_rejected_with_its_field) {
  const auto cluster = [](const char* list) {
    return fmt::format(
        R"({{"apiVersion":"carve.dev/v1","kind":"RayCluster","metadata":{{"name":"c"}},"spec":{{"queue":"q",)"
        R"("workers":[{{"mgpuCore":30,"mgpuMemory":4096}}],"engineHome":"/ray",)"
        R"("env":{{"CUDA_VISIBLE_DEVICES":"{}"}}}}}})",
        list);
  };
  for (const char* list : {"1", "", "-1", "0,1", "GPU-1"})
    EXPECT_THAT(ask(422, "POST", "/v1/documents", cluster(list)),
                HasSubstr(R"("field":"spec.env.CUDA_VISIBLE_DEVICES")"))
        << list;
  ask(201, "POST", "/v1/documents", cluster("0"));
}

// A user may have given a job the name that the next unnamed job would get.
TEST_F(JobRoutes, a_job_without_a_name_never_replaces_another_one) {
  for (uint64_t next = objects.version() + 2; next < 6; ++next)
    ask(201, "POST", "/v1/jobs", job(fmt::format("custom-{}", next + 3)), 1000);
  for (int i = 0; i < 6; ++i) {
    const size_t before = objects.list(objects::Kind::job).size();
    ask(201, "POST", "/v1/jobs", job("", R"(,"priority":1)"), 2000);
    EXPECT_EQ(objects.list(objects::Kind::job).size(), before + 1);
  }
  const size_t before = objects.list(objects::Kind::job).size();
  ask(201, "POST", "/v1/jobs", job("") + "\n---\n" + job(""), 2000);
  EXPECT_EQ(objects.list(objects::Kind::job).size(), before + 2);
  for (const auto& one : objects.list(objects::Kind::job))
    EXPECT_TRUE(one->owner_uid != 1000 || job_spec(*one).priority == 0) << "the user's job is unchanged";
}

TEST_F(JobRoutes, a_job_belongs_to_its_user_and_is_immutable) {
  ask(201, "POST", "/v1/jobs", job("a"), 1000);
  EXPECT_THAT(ask(409, "POST", "/v1/jobs", job("a", R"(,"priority":1)"), 1000),
              HasSubstr("job a was already submitted and is immutable; delete that job, or submit the "
                        "new one with another name"));
  EXPECT_THAT(ask(201, "POST", "/v1/jobs", job("a"), 1000), HasSubstr("unchanged"));
  for (const char* secret : {"p1", "p2"}) {
    EXPECT_THAT(ask(200, "GET", "/v1/jobs/a", "", 1000), HasSubstr(secret));
    EXPECT_THAT(ask(200, "GET", "/v1/jobs/a", "", 2000), Not(HasSubstr(secret)));
    EXPECT_THAT(ask(200, "GET", "/v1/jobs", "", 2000), Not(HasSubstr(secret)));
  }
  ask(403, "GET", "/v1/jobs/a/logs", "", 2000);
  EXPECT_THAT(ask(400, "GET", "/v1/jobs/a/logs?role=driver", "", 1000),
              HasSubstr("role 'driver': the programs of job a have the role task"));
  ask(403, "POST", "/v1/jobs/a/cancel", "", 2000);
  ask(403, "DELETE", "/v1/jobs/a", "", 2000);
  EXPECT_THAT(ask(409, "DELETE", "/v1/queues/q"), HasSubstr("queue q has 1 unfinished job; cancel them"));
  EXPECT_THAT(ask(200, "POST", "/v1/jobs/a/cancel", "", 1000), HasSubstr(R"("cancelled":true)"));
  EXPECT_TRUE(job_spec(*objects.find({objects::Kind::job, "default", "a"})).cancelled);
}

TEST_F(JobRoutes, labels_and_annotations_of_an_applied_object_can_change_without_its_spec) {
  const std::string kinds[][3] = {
      {"jobs", "Job", R"({"queue":"q","run":{"command":["a"],"env":{"A":"p1"}}})"},
      {"rayclusters", "RayCluster",
       R"({"queue":"q","workers":[{"mgpuCore":30,"mgpuMemory":4096}],"engineHome":"/ray"})"},
      {"queues", "Queue", R"({"weight":2})"},
      {"tariffs", "Tariff", R"({"currency":"EUR","from":"2026-01-01","pricePerGpuHour":"1"})"},
      {"budgets", "Budget", R"({"account":"a","gpuHours":"1"})"}};
  for (const auto& [plural, kind, spec] : kinds) {
    const auto document = [&](const std::string& metadata) {
      return fmt::format(
          R"({{"apiVersion":"carve.dev/v1","kind":"{}","metadata":{{"name":"c{}"{}}},"spec":{}}})", kind,
          plural, metadata, spec);
    };
    const std::string path = fmt::format("/v1/{}/c{}", plural, plural);
    ask(201, "POST", "/v1/documents", document(R"(,"labels":{"team":"a","old":"1"})"));
    const std::string changed = document(R"(,"labels":{"team":"b"},"annotations":{"note":"n"})");
    EXPECT_THAT(ask(201, "POST", "/v1/documents", changed), HasSubstr("configured"));
    EXPECT_THAT(ask(201, "POST", "/v1/documents", changed), HasSubstr("unchanged"));
    EXPECT_THAT(ask(200, "GET", path),
                testing::AllOf(HasSubstr(R"("labels":{"team":"b"})"),
                               HasSubstr(R"("annotations":{"note":"n"})"), HasSubstr(R"("generation":1)")));
    EXPECT_THAT(ask(200, "PATCH", path, R"({"metadata":{"labels":{"team":null,"zone":"z"}}})"),
                HasSubstr(R"("labels":{"zone":"z"})"));
    EXPECT_THAT(ask(200, "PUT", path, changed), HasSubstr(R"("labels":{"team":"b"})"));
    ask(403, "PATCH", path, R"({"metadata":{"labels":{"zone":"z"}}})", 1000);
    ask(403, "POST", "/v1/documents", document(R"(,"labels":{"team":"c"})"), 1000);
  }
}

TEST_F(JobRoutes, changes_of_immutable_fields_of_a_job_are_rejected_with_their_paths) {
  ask(201, "POST", "/v1/jobs", job("a"), 1000);
  EXPECT_THAT(ask(409, "POST", "/v1/jobs", job("a", R"(,"priority":1)"), 1000),
              HasSubstr("spec.priority: 1: job a was already submitted and is immutable"));
  EXPECT_THAT(ask(409, "PATCH", "/v1/jobs/a", R"({"spec":{"run":{"command":["b"]}}})", 1000),
              HasSubstr(R"(spec.run.command[0]: \"b\": job a was already submitted)"));
  EXPECT_THAT(ask(403, "POST", "/v1/jobs", job("a", R"(,"priority":1)"), 2000),
              testing::AllOf(HasSubstr("job a belongs to another user"), Not(HasSubstr("priority"))));
  EXPECT_THAT(ask(409, "PATCH", "/v1/jobs/a", R"({"metadata":{"account":"b"}})", 0),
              HasSubstr("metadata.account: 'b': account 'user1000' pays for job a, and this cannot be "
                        "changed; leave the account out, or delete the object and apply it again"));
}

TEST_F(JobRoutes, a_cluster_is_stored_once_and_only_its_user_sees_its_token) {
  const auto cluster = [](const char* name, int memory) {
    return fmt::format(
        R"({{"apiVersion":"carve.dev/v1","kind":"RayCluster","metadata":{{"name":"{}"}},"spec":{{"queue":"q",)"
        R"("workers":[{{"mgpuCore":30,"mgpuMemory":{}}}],"engineHome":"/ray","env":{{"A":"p1"}}}}}})",
        name, memory);
  };
  EXPECT_THAT(ask(422, "POST", "/v1/rayclusters", cluster("c", 0), 1000),
              HasSubstr("spec.workers[0].mgpuCore is set but spec.workers[0].mgpuMemory is not: set both"));
  ask(201, "POST", "/v1/rayclusters", cluster("c", 4096), 1000);
  EXPECT_THAT(ask(201, "POST", "/v1/documents", cluster("c", 4096), 1000), HasSubstr("unchanged"));
  EXPECT_THAT(
      ask(409, "POST", "/v1/documents", cluster("c", 8192), 1000),
      HasSubstr("spec.workers[0].mgpuMemory: 8192: only spec.workers[].replicas and spec.priority of "
                "raycluster c can be changed; delete the cluster and apply the document again, or use "
                "another name"));
  EXPECT_THAT(ask(409, "POST", "/v1/jobs", job("c"), 1000), HasSubstr("raycluster c already has this name"));
  ask(201, "POST", "/v1/jobs", job("a"), 1000);
  EXPECT_THAT(ask(409, "POST", "/v1/rayclusters", cluster("a", 4096), 1000),
              HasSubstr("job a already has this name"));
  ASSERT_TRUE(
      objects.update({objects::Kind::ray_cluster, "default", "c"}, [](Object& object) -> Outcome<void> {
        object.status = objects::JobStatus{.phase = JobPhase::running, .dashboard_token = "p2"};
        return {};
      }));
  views.hours = JobHours{.gpu_hours = "1.500000"};
  for (const char* secret : {"p1", "p2"}) {
    EXPECT_THAT(ask(200, "GET", "/v1/rayclusters/c", "", 1000), HasSubstr(secret));
    EXPECT_THAT(ask(200, "GET", "/v1/rayclusters", "", 2000), Not(HasSubstr(secret)));
  }
  EXPECT_THAT(ask(200, "GET", "/v1/rayclusters/c", "", 2000), HasSubstr(R"("gpuHours":"1.500000")"));
  ask(403, "DELETE", "/v1/rayclusters/c", "", 2000);
  ask(200, "DELETE", "/v1/rayclusters/c", "", 1000);
}

TEST_F(JobRoutes, a_cluster_may_change_only_its_numbers_of_workers_and_its_priority) {
  const auto cluster = [](const std::string& workers, const std::string& more = "") {
    return R"({"apiVersion":"carve.dev/v1","kind":"RayCluster","metadata":{"name":"c"},"spec":{"queue":"q",)"
           R"("engineHome":"/ray","env":{"A":"p1"},"workers":[)" +
           workers + "]" + more + "}}";
  };
  const std::string one = R"({"replicas":1,"mgpuCore":30,"mgpuMemory":4096})";
  const std::string three = R"({"replicas":3,"mgpuCore":30,"mgpuMemory":4096})";
  ask(201, "POST", "/v1/rayclusters", cluster(one), 1000);
  EXPECT_THAT(ask(201, "POST", "/v1/rayclusters", cluster(three, R"(,"priority":2)"), 1000),
              HasSubstr("configured"));
  EXPECT_THAT(ask(200, "GET", "/v1/rayclusters/c", "", 1000), HasSubstr(R"("gpu":"4 GiB, 30%","slices":3)"))
      << "the job is waiting and now needs three";
  EXPECT_THAT(ask(200, "PATCH", "/v1/rayclusters/c", R"({"spec":{"workers":[)" + one + "]}}", 1000),
              HasSubstr(R"("replicas":1)"));
  ask(200, "PUT", "/v1/rayclusters/c", cluster(three), 1000);
  EXPECT_THAT(ask(409, "POST", "/v1/rayclusters", cluster(one + "," + three), 1000),
              HasSubstr("spec.workers: only spec.workers[].replicas"));
  EXPECT_THAT(ask(409, "POST", "/v1/rayclusters", cluster(one, R"(,"computeGroup":"x")"), 1000),
              HasSubstr(R"(spec.computeGroup: \"x\": only spec.workers[].replicas)"));
  EXPECT_THAT(
      ask(422, "POST", "/v1/rayclusters", cluster(R"({"replicas":0,"mgpuCore":30,"mgpuMemory":4096})"), 1000),
      HasSubstr("spec.workers[0].replicas: must be at least 1"));
  ask(200, "PATCH", "/v1/queues/q", R"({"spec":{"maxSlices":3}})");
  EXPECT_THAT(
      ask(422, "POST", "/v1/rayclusters", cluster(R"({"replicas":4,"mgpuCore":30,"mgpuMemory":4096})"), 1000),
      HasSubstr("the job has 4 slices, but queue q can have at most 3 in total; request fewer"));
  const std::string foreign = ask(403, "POST", "/v1/rayclusters", cluster(one), 2000);
  EXPECT_THAT(foreign, HasSubstr("belongs to another user"));
  views.position = JobPosition{.position = 1, .reason = "2 more workers wait: b is first in the queue"};
  EXPECT_THAT(ask(200, "GET", "/v1/rayclusters/c"), HasSubstr("2 more workers wait"));
}

TEST_F(JobRoutes, a_job_is_rejected_with_all_messages) {
  EXPECT_THAT(ask(422, "POST", "/v1/jobs", job("a", R"(,"computeGroup":"x","tasks":0)")),
              testing::AllOf(HasSubstr("queue q has no compute group 'x'; its compute groups are default"),
                             HasSubstr("spec.tasks: 0 is not a whole number from 1 to 1024")));
  views.waiting = workload::max_waiting_jobs;
  EXPECT_THAT(ask(429, "POST", "/v1/jobs", job("a")),
              HasSubstr("10000 jobs are already waiting, which is the limit"));
  views.waiting = workload::max_waiting_jobs - 1;
  ask(429, "POST", "/v1/jobs", job("a") + "\n---\n" + job("b"));
  ask(201, "POST", "/v1/jobs", job("a"));
}

TEST_F(JobRoutes, documents_of_one_request_may_refer_to_each_other) {
  const std::string pool = R"({"apiVersion":"carve.dev/v1","kind":"Pool","metadata":{"name":"p"},"spec":{}})";
  const auto queue_r = [](const char* gpu) {
    return fmt::format(R"({{"apiVersion":"carve.dev/v1","kind":"Queue","metadata":{{"name":"r"}},)"
                       R"("spec":{{"pool":"p","gpu":"{}"}}}})",
                       gpu);
  };
  std::string of_r = job("a");
  of_r.replace(of_r.find(R"("queue":"q")"), 11, R"("queue":"r")");
  const std::string between = "\n---\n";
  EXPECT_THAT(ask(422, "POST", "/v1/documents", queue_r("mgpu") + between + of_r),
              HasSubstr("spec.pool: there is no pool 'p'"));
  ask(201, "POST", "/v1/documents", pool + between + queue_r("gpu") + between + of_r);
  EXPECT_EQ(job_spec(*objects.find({objects::Kind::job, "default", "a"})).queue, "r");
  ask(403, "POST", "/v1/documents", queue_r("gpu") + between + of_r, 1000);
}

TEST_F(JobRoutes, an_engine_must_have_its_home_folder) {
  EXPECT_THAT(ask(422, "POST", "/v1/jobs", job("a", R"(,"engine":"spark")")),
              HasSubstr("spec.engineHome: is required; set it to Spark's folder, such as /opt/spark"));
  EXPECT_THAT(ask(422, "POST", "/v1/jobs", job("a", R"(,"engine":"ray")")),
              HasSubstr("spec.engineHome: is required; set it to the folder of the program ray"));
  ask(200, "POST", "/v1/render", job("a", R"(,"engine":"ray")"));
  EXPECT_THAT(ask(201, "POST", "/v1/jobs", job("a", R"(,"engine":"spark","engineHome":"/spark")")),
              HasSubstr("created"));
}

TEST_F(JobRoutes, a_waiting_job_is_shown_with_its_queue_position) {
  ask(201, "POST", "/v1/jobs", job("a"));
  views.position = JobPosition{.position = 3, .reason = "b is first in the queue"};
  for (const char* target : {"/v1/jobs", "/v1/jobs/a"})
    EXPECT_THAT(ask(200, "GET", target), HasSubstr(R"("position":3,"reason":"b is first in the queue")"));
}

TEST_F(JobRoutes, parameters_are_parsed_from_their_text) {
  EXPECT_THAT(ask(200, "POST", "/v1/parameters", "'a': 'b', # c\nset d = e; f=g"),
              HasSubstr(R"("parameters":{"a":"b","d":"e","f":"g"})"));
  EXPECT_THAT(ask(422, "POST", "/v1/parameters", "a\nb"), HasSubstr("line 2: 'b' is not a parameter"));
}

}  // namespace
}  // namespace carve::controller

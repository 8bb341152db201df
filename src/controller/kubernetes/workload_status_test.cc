#include "controller/kubernetes/workload_status.h"

#include <gmock/gmock.h>

#include "controller/kubernetes/workload_objects.h"
#include "render/manifests.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

using api::Json;
using objects::WorkloadPhase;

Object service(objects::ServiceSpec spec) {
  Object out;
  out.key.name = "web";
  out.uid = "u";
  out.generation = 3;
  out.account = "research";
  out.spec = std::move(spec);
  return out;
}
Object service() {
  return service({.replicas = 2, .run = {.command = {"serve"}, .image = "i"}, .port = 8000});
}

Json deployment(const Object& object, const std::string& status, const std::string& mark = "") {
  return Json{{"metadata",
               {{"generation", 5u},
                {"annotations", {{applied_annotation, mark.empty() ? applied_mark(object) : mark}}}}},
              {"spec", {{"replicas", 2u}}},
              {"status", Json::parse(status)}};
}

Json pod(const std::string& status) {
  return {{"metadata", {{"name", "web-1"}}}, {"spec", {{"nodeName", "n1"}}}, {"status", Json::parse(status)}};
}

struct Row {
  const char* what;
  const char* deployment;  // Its status; null if there is none.
  const char* pod;         // Null if there is none.
  WorkloadPhase phase;
  const char* reason;  // That of the condition Progressing.
};

constexpr const char* ready =
    R"({"observedGeneration":5,"replicas":2,"readyReplicas":2,"availableReplicas":2,"updatedReplicas":2})";
constexpr const char* none = R"({"observedGeneration":5,"replicas":2,"updatedReplicas":2})";
const Row rows[] = {
    {"there is no Deployment yet", nullptr, nullptr, WorkloadPhase::waiting, "Progressing"},
    {"all replicas are ready", ready, nullptr, WorkloadPhase::running, "Progressing"},
    {"its status is older than its spec",
     R"({"observedGeneration":4,"replicas":2,"readyReplicas":2,"availableReplicas":2,"updatedReplicas":2})",
     nullptr, WorkloadPhase::updating, "Progressing"},
    {"old replicas serve during an update",
     R"({"observedGeneration":5,"replicas":3,"readyReplicas":2,"availableReplicas":2,"updatedReplicas":1})",
     nullptr, WorkloadPhase::updating, "Progressing"},
    {"no node has room", none,
     R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","message":"0/3 nodes: memory"}]})",
     WorkloadPhase::waiting, "NoCapacity"},
    {"the image cannot be pulled", none,
     R"({"phase":"Pending","containerStatuses":[{"state":{"waiting":{"reason":"ImagePullBackOff","message":"no"}}}]})",
     WorkloadPhase::image_pull_failed, "ImagePullBackOff"},
    {"the program ends again and again", none,
     R"({"phase":"Running","containerStatuses":[{"restartCount":4,"state":{"waiting":{"reason":"CrashLoopBackOff"}},)"
     R"("lastState":{"terminated":{"exitCode":3}}}]})",
     WorkloadPhase::crash_loop_back_off, "CrashLoopBackOff"},
    {"nothing became available in time",
     R"({"observedGeneration":5,"replicas":2,"updatedReplicas":2,"conditions":[{"type":"Progressing","status":"False",)"
     R"("reason":"ProgressDeadlineExceeded","message":"late"}]})",
     nullptr, WorkloadPhase::waiting, "ProgressDeadlineExceeded"},
    {"members have wrong types", R"({"observedGeneration":"5","replicas":-2,"conditions":7})",
     R"({"conditions":{"a":1},"containerStatuses":[1,{"state":[]}]})", WorkloadPhase::waiting, "Progressing"},
};

TEST(WorkloadStatus, has_the_phase_and_the_reason_of_the_observed_objects) {
  for (const Row& row : rows) {
    const Object object = service();
    const Json made = row.deployment == nullptr ? Json() : deployment(object, row.deployment);
    const Json one = row.pod == nullptr ? Json() : pod(row.pod);
    WorkloadView view{.object = object, .deployment = row.deployment == nullptr ? nullptr : &made};
    if (row.pod != nullptr) view.pods.push_back(&one);
    const auto status = workload_status(view, 1'000'000'000);
    EXPECT_EQ(text(status.phase), carve::text(row.phase)) << row.what;
    ASSERT_GE(status.conditions.size(), 2u) << row.what;
    EXPECT_EQ(status.conditions[1].reason, row.reason) << row.what;
  }
}

TEST(WorkloadStatus, counts_restarts_and_shows_the_last_exit) {
  const Object object = service();
  const Json one = pod(rows[6].pod);
  const auto status = workload_status({.object = object, .pods = {&one}, .revision = 4}, 0);
  ASSERT_EQ(status.replica_list.size(), 1u);
  EXPECT_EQ(status.restarts, 4u);
  EXPECT_EQ(status.replica_list[0].last_exit, "exit status 3");
  EXPECT_EQ(status.replica_list[0].node, "n1");
  EXPECT_EQ(status.replica_list[0].revision, 4u);
  EXPECT_EQ(status.selector, "app.kubernetes.io/name=web,app.kubernetes.io/managed-by=carve");
}

TEST(WorkloadStatus, keeps_the_time_of_a_condition_that_does_not_change) {
  Object object = service();
  object.status = workload_status({.object = object}, 1'000'000'000);
  const auto later = workload_status({.object = object}, 9'000'000'000);
  EXPECT_EQ(api::write(later), object.status.json());
}

TEST(WorkloadObjects, are_the_rendered_manifests_with_an_owner) {
  const Object object = service();
  const auto owned = owned_objects(object);
  ASSERT_TRUE(owned);
  objects::Metadata metadata = metadata_of(object);
  metadata.account.clear();
  const auto rendered = render::objects_of(metadata, object.spec.as<objects::ServiceSpec>());
  ASSERT_TRUE(rendered);
  ASSERT_EQ(owned->objects.size(), rendered->objects.size());
  for (size_t i = 0; i < owned->objects.size(); ++i) {
    Json applied = owned->objects[i];
    EXPECT_EQ(applied["metadata"]["ownerReferences"][0]["uid"], "u");
    EXPECT_EQ(applied["metadata"]["namespace"], "default");
    for (Json* at :
         {&applied["metadata"], i == 0 ? &applied["spec"]["template"]["metadata"] : &applied["metadata"]}) {
      for (const char* key : {"ownerReferences", "namespace", "annotations"}) at->erase(key);
      if (!at->contains("labels")) continue;
      (*at)["labels"].erase(managed_by_label);
      (*at)["labels"].erase("carve.dev/account");
      if ((*at)["labels"].empty()) at->erase("labels");
    }
    EXPECT_EQ(nlohmann::json::parse(applied.dump()), nlohmann::json::parse(rendered->objects[i].dump()));
  }
}

TEST(WorkloadObjects, have_a_mark_that_changes_with_the_document_only) {
  Object object = service();
  const std::string mark = applied_mark(object);
  object.status = workload_status({.object = object}, 7);
  object.version = 99;
  EXPECT_EQ(applied_mark(object), mark);
  object.labels["a"] = "b";
  EXPECT_NE(applied_mark(object), mark);
  object.labels.clear();
  object.generation = 4;
  EXPECT_NE(applied_mark(object), mark);
}

TEST(WorkloadObjects, replace_their_pods_after_a_restart) {
  objects::ServiceSpec spec = service().spec.as<objects::ServiceSpec>();
  spec.restarted_at = "2026-01-01T00:00:00Z";
  const auto owned = owned_objects(service(spec));
  ASSERT_TRUE(owned);
  EXPECT_EQ(
      owned->objects[0]["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"],
      spec.restarted_at);
}

TEST(WorkloadObjects, need_an_image) {
  objects::ServiceSpec spec = service().spec.as<objects::ServiceSpec>();
  spec.run.image.clear();
  const auto owned = owned_objects(service(spec));
  ASSERT_FALSE(owned);
  EXPECT_EQ(owned.error().front().field, "spec.run.image");
}

}  // namespace
}  // namespace carve::controller

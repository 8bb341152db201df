#include "controller/kubernetes/cluster_reconciler.h"

#include <gmock/gmock.h>

#include "controller/kubernetes/testing/cluster_scenario.h"
#include "controller/kubernetes/workload_objects.h"

namespace carve::controller {
namespace {

using kubernetes::ApiFault;
using kubernetes::second_ns;
using testing::HasSubstr;
using FaultKind = ApiFault::Kind;
using json = nlohmann::json;

// Returns whether the cluster is what the document describes.
void expect_settled(const ClusterScenario& scenario, const std::string& name, unsigned replicas,
                    const std::string& command, const std::string& why = "") {
  const json* deployment = scenario.deployment(name);
  ASSERT_NE(deployment, nullptr) << why;
  EXPECT_EQ((*deployment)["spec"]["replicas"], replicas) << why;
  EXPECT_EQ((*deployment)["spec"]["template"]["spec"]["containers"][0]["command"][0], command) << why;
  EXPECT_EQ(scenario.status(name, "phase"), "Running") << why;
  EXPECT_EQ(scenario.status(name, "readyReplicas"), replicas) << why;
  EXPECT_EQ(scenario.status(name, "observedGeneration"), (*scenario.custom(name))["metadata"]["generation"])
      << why;
  EXPECT_NE(scenario.server.find(cluster_services, "default", name), nullptr) << why;
}

TEST(ClusterReconciler, makes_the_objects_of_a_service_with_their_owner) {
  ClusterScenario scenario;
  const auto replica = scenario.replica("a");
  scenario.apply("web", ClusterScenario::spec(2, "serve"));
  scenario.run_for(10 * second_ns);
  expect_settled(scenario, "web", 2, "serve");
  const json& metadata = (*scenario.deployment("web"))["metadata"];
  EXPECT_EQ(metadata["ownerReferences"][0]["uid"], (*scenario.custom("web"))["metadata"]["uid"]);
  EXPECT_EQ(metadata["labels"][managed_by_label], managed_by_carve);
  EXPECT_EQ(scenario.status("web", "endpoint"), "http://web.default.svc:8000");
  EXPECT_EQ(scenario.status("web", "revision"), 1);
}

TEST(ClusterReconciler, sends_nothing_while_nothing_changes) {
  ClusterScenario scenario;
  const auto replica = scenario.replica("a");
  scenario.apply("web", ClusterScenario::spec(2, "serve"));
  scenario.run_for(10 * second_ns);
  const size_t before = scenario.writes();
  scenario.run_for(120 * second_ns);
  EXPECT_EQ(scenario.writes(), before);
}

TEST(ClusterReconciler, rolls_nothing_when_it_restarts) {
  ClusterScenario scenario;
  auto replica = scenario.replica("a");
  scenario.apply("web", ClusterScenario::spec(2, "serve"));
  scenario.run_for(10 * second_ns);
  const json deployment = *scenario.deployment("web"), custom = *scenario.custom("web");
  const size_t before = scenario.writes();
  replica = scenario.replica("b");
  scenario.run_for(20 * second_ns);
  EXPECT_TRUE(replica->lease->is_held());
  EXPECT_EQ(scenario.writes(), before);
  EXPECT_EQ(*scenario.deployment("web"), deployment);
  EXPECT_EQ(*scenario.custom("web"), custom);
}

TEST(ClusterReconciler, follows_changes_and_keeps_revisions) {
  ClusterScenario scenario;
  const auto replica = scenario.replica("a");
  for (unsigned i = 1; i <= 13; ++i) {
    scenario.apply("web", ClusterScenario::spec(2, fmt::format("serve-{}", i)));
    scenario.run_for(5 * second_ns);
    expect_settled(scenario, "web", 2, fmt::format("serve-{}", i));
  }
  scenario.apply("web", ClusterScenario::spec(3, "serve-13"));
  scenario.run_for(5 * second_ns);
  expect_settled(scenario, "web", 3, "serve-13");
  const auto revisions = replica->reconciler->revisions((*scenario.custom("web"))["metadata"]["uid"]);
  ASSERT_EQ(revisions.size(), ClusterReconciler::max_revisions);
  EXPECT_EQ(revisions.back().number, 13u) << "the number of replicas is not part of a revision";
  EXPECT_EQ(scenario.server.all(controller_revisions).size(), ClusterReconciler::max_revisions);
}

TEST(ClusterReconciler, deletes_an_object_that_the_document_no_longer_has) {
  ClusterScenario scenario;
  const auto replica = scenario.replica("a");
  scenario.apply("web", ClusterScenario::spec(1, "serve"));
  scenario.run_for(5 * second_ns);
  json spec = ClusterScenario::spec(1, "serve");
  spec.erase("port");
  scenario.apply("web", spec);
  scenario.run_for(5 * second_ns);
  EXPECT_EQ(scenario.server.find(cluster_services, "default", "web"), nullptr);
  EXPECT_NE(scenario.deployment("web"), nullptr);
}

TEST(ClusterReconciler, leaves_the_objects_of_others_alone) {
  ClusterScenario scenario;
  const json other = {{"metadata", {{"name", "web"}, {"namespace", "default"}}}, {"spec", {{"replicas", 7}}}};
  scenario.server.put(deployments, other);
  const auto replica = scenario.replica("a");
  scenario.apply("web", ClusterScenario::spec(1, "serve"));
  scenario.run_for(20 * second_ns);
  EXPECT_EQ((*scenario.deployment("web"))["spec"]["replicas"], 7);
  EXPECT_EQ(scenario.status("web", "conditions")[1]["reason"], "NameTaken");
  scenario.server.remove(deployments, "default", "web");
  scenario.run_for(40 * second_ns);
  expect_settled(scenario, "web", 1, "serve");
}

TEST(ClusterReconciler, reports_a_conflict_of_fields_and_does_not_force_it) {
  ClusterScenario scenario;
  const auto replica = scenario.replica("a");
  scenario.apply("web", ClusterScenario::spec(1, "serve"));
  scenario.run_for(5 * second_ns);
  scenario.server.add_fault({.method = "PATCH", .target = "/deployments/web", .status = 409, .times = 3});
  scenario.apply("web", ClusterScenario::spec(2, "serve"));
  scenario.run_for(2 * second_ns);
  EXPECT_EQ(scenario.status("web", "conditions")[1]["reason"], "FieldConflict");
  scenario.run_for(60 * second_ns);
  expect_settled(scenario, "web", 2, "serve");
  for (const std::string& request : scenario.server.requests())
    EXPECT_EQ(request.find("force"), std::string::npos);
}

TEST(ClusterReconciler, reports_an_invalid_document_and_a_kind_that_it_does_not_run) {
  ClusterScenario scenario;
  const auto replica = scenario.replica("a");
  scenario.apply("web", {{"run", {{"image", "i"}}}, {"gpu", {{"memory", "1 parsec"}}}});
  scenario.server.put("/apis/carve.dev/v1/pools",
                      {{"metadata", {{"name", "train"}}}, {"spec", json::object()}});
  scenario.run_for(10 * second_ns);
  EXPECT_THAT(scenario.status("web", "conditions")[0]["message"].get<std::string>(),
              HasSubstr("spec.gpu.memory: '1 parsec'"));
  EXPECT_EQ(scenario.deployment("web"), nullptr);
  EXPECT_EQ(replica->objects.count(objects::Kind::service), 0u);
  const json* pool = scenario.server.find("/apis/carve.dev/v1/pools", "", "train");
  EXPECT_EQ((*pool)["status"]["conditions"][0]["reason"], "NotSupported");
  scenario.apply("web", ClusterScenario::spec(1, "serve"));
  scenario.run_for(10 * second_ns);
  expect_settled(scenario, "web", 1, "serve");
}

// Kills replicas, loses answers and changes documents in seeded orders. Afterwards the cluster is what the
// documents describe, and never did two replicas write in the same term.
TEST(ClusterReconciler, reaches_the_documents_under_faults) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    ClusterScenario scenario{.seed = seed * 100};
    std::mt19937_64 random(seed);
    auto a = scenario.replica("a"), b = scenario.replica("b");
    unsigned made = 0;
    std::map<std::string, std::pair<unsigned, std::string>> wanted;
    for (unsigned step = 0; step < 40; ++step) {
      const std::string name = fmt::format("web-{}", random() % 3);
      switch (random() % 8) {
        case 0:
          scenario.server.remove(custom_services, "default", name);
          wanted.erase(name);
          break;
        case 1: (random() % 2 ? a : b) = scenario.replica(fmt::format("r{}", made++)); break;
        case 2: scenario.server.compact(); break;
        case 3: scenario.server.end_watches(); break;
        case 4: {
          constexpr FaultKind kinds[] = {FaultKind::lose_request, FaultKind::lose_answer, FaultKind::hang,
                                         FaultKind::status,       FaultKind::error_event, FaultKind::cut_line,
                                         FaultKind::duplicate};
          constexpr unsigned statuses[] = {409, 410, 429, 500, 503};
          scenario.server.add_fault({.kind = kinds[random() % 7],
                                     .status = statuses[random() % 5],
                                     .times = static_cast<unsigned>(1 + random() % 3)});
          break;
        }
        default: {
          const unsigned replicas = static_cast<unsigned>(random() % 4);
          const std::string command = fmt::format("serve-{}", random() % 3);
          scenario.apply(name, ClusterScenario::spec(replicas, command));
          wanted[name] = {replicas, command};
        }
      }
      scenario.run_for(static_cast<kubernetes::Nanoseconds>(random() % 8) * second_ns / 4);
      EXPECT_FALSE(a->lease->is_held() && b->lease->is_held()) << seed;
    }
    scenario.server.clear_faults();
    scenario.server.release_late();
    scenario.run_for(120 * second_ns);
    for (const auto& [name, of] : wanted)
      expect_settled(scenario, name, of.first, of.second, fmt::format("seed {}", seed));
    EXPECT_EQ(scenario.server.all(deployments).size(), wanted.size()) << seed;
    EXPECT_EQ(a->objects.count(objects::Kind::service), wanted.size()) << seed;
    EXPECT_EQ(b->objects.count(objects::Kind::service), wanted.size()) << seed;
  }
}

}  // namespace
}  // namespace carve::controller

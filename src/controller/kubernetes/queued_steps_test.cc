#include <gmock/gmock.h>

#include "controller/kubernetes/testing/kueue_scenario.h"

namespace carve::controller {
namespace {

using kubernetes::second_ns;
using testing::HasSubstr;
using json = nlohmann::json;

const json quota = {{"quota", {{"memory", "40GiB"}, {"compute", "250%"}}}};

// A queue and two of its jobs, of which it admits one.
struct QueuedSteps : testing::Test {
  KueueScenario cluster;
  std::unique_ptr<ClusterReplica> replica = cluster.replica("a");

  void begin() {
    cluster.install_kueue();
    cluster.put_queue("train", quota);
    cluster.put_job("first");
    cluster.run_for(5 * second_ns);
    cluster.put_job("second");
    cluster.run_for(15 * second_ns);
  }
};

TEST_F(QueuedSteps, a_queue_admits_one_job_and_the_second_waits_for_it) {
  begin();
  ASSERT_NE(cluster.made(cluster_queue, "train"), nullptr);
  EXPECT_EQ((*cluster.made(local_queue, "train"))["spec"]["clusterQueue"], "train");
  EXPECT_EQ((*cluster.made(batch_job, "first"))["spec"]["suspend"], false);
  EXPECT_EQ((*cluster.made(batch_job, "second"))["spec"]["suspend"], true);
  EXPECT_EQ(cluster.job_status("first", "phase"), "Starting");
  EXPECT_EQ(cluster.job_status("first", "position"), 0);
  EXPECT_EQ(cluster.job_status("second", "phase"), "Queued");
  EXPECT_EQ(cluster.job_status("second", "position"), 1);
  EXPECT_EQ(cluster.job_status("second", "reason"), "insufficient unused quota");
  EXPECT_EQ(cluster.queue_status("train", "waiting"), 1);
  EXPECT_EQ(cluster.queue_status("train", "running"), 1);
  EXPECT_EQ(cluster.queue_status("train", "conditions")[0]["status"], "True");
  cluster.end_job("first", "Complete");
  cluster.run_for(5 * second_ns);
  EXPECT_EQ(cluster.job_status("first", "phase"), "Succeeded");
  EXPECT_EQ(cluster.job_status("first", "exitStatus"), 0);
  EXPECT_EQ(cluster.job_status("second", "phase"), "Starting");
  EXPECT_EQ(cluster.job_status("second", "position"), 0);
}

TEST_F(QueuedSteps, nothing_is_sent_while_nothing_changes_and_after_a_restart) {
  begin();
  const size_t before = cluster.writes();
  cluster.run_for(120 * second_ns);
  EXPECT_EQ(cluster.writes(), before);
  replica = cluster.replica("b");
  cluster.run_for(30 * second_ns);
  EXPECT_TRUE(replica->lease->is_held());
  EXPECT_EQ(cluster.writes(), before);
}

TEST_F(QueuedSteps, without_kueue_the_conditions_name_it_and_services_run) {
  cluster.put_queue("train", quota);
  cluster.put_job("first");
  cluster.apply("web", ClusterScenario::spec(1, "serve"));
  cluster.run_for(10 * second_ns);
  EXPECT_EQ(cluster.status("web", "phase"), "Running");
  EXPECT_EQ(cluster.queue_status("train", "conditions")[0]["reason"], "KueueMissing");
  EXPECT_EQ(cluster.job_status("first", "conditions")[0]["reason"], "KueueMissing");
  EXPECT_THAT(cluster.job_status("first", "reason").get<std::string>(),
              HasSubstr("kubectl apply --server-side"));
  EXPECT_TRUE(cluster.all(batch_job).empty());
  cluster.install_kueue();
  cluster.run_for(40 * second_ns);
  EXPECT_EQ(cluster.job_status("first", "phase"), "Starting");
  EXPECT_EQ(cluster.job_status("first", "conditions")[0]["status"], "True");
}

TEST_F(QueuedSteps, a_kueue_that_is_removed_and_comes_back_is_noticed) {
  begin();
  cluster.remove_kueue();
  cluster.run_for(70 * second_ns);
  EXPECT_EQ(cluster.queue_status("train", "conditions")[0]["reason"], "KueueMissing");
  EXPECT_EQ(cluster.job_status("second", "conditions")[0]["reason"], "KueueMissing");
  cluster.server.clear_faults();
  cluster.install_kueue();
  cluster.run_for(70 * second_ns);
  EXPECT_EQ(cluster.job_status("first", "phase"), "Starting");
  EXPECT_EQ(cluster.job_status("second", "position"), 1);
}

TEST_F(QueuedSteps, a_job_waits_for_its_queue) {
  cluster.install_kueue();
  cluster.put_job("first");
  cluster.run_for(5 * second_ns);
  EXPECT_EQ(cluster.job_status("first", "conditions")[0]["reason"], "NoSuchQueue");
  cluster.put_queue("train", quota);
  cluster.run_for(10 * second_ns);
  EXPECT_EQ(cluster.job_status("first", "phase"), "Starting");
}

TEST_F(QueuedSteps, a_higher_priority_passes_and_positions_follow) {
  begin();
  cluster.put_job("third", {{"priority", 5}}, "team");
  cluster.run_for(5 * second_ns);
  EXPECT_EQ((*cluster.made(priority_class, "carve-5"))["value"], 5);
  EXPECT_EQ((*cluster.made(local_queue, "train", "team"))["spec"]["clusterQueue"], "train");
  EXPECT_EQ((*cluster.job("third", "team"))["status"]["position"], 1);
  EXPECT_EQ(cluster.job_status("second", "position"), 2);
}

TEST_F(QueuedSteps, a_cancelled_job_ends_and_its_place_is_given_to_the_next) {
  begin();
  cluster.put_job("first", {{"cancelled", true}, {"ttlSecondsAfterFinished", 60}});
  cluster.run_for(5 * second_ns);
  EXPECT_EQ(cluster.made(batch_job, "first"), nullptr);
  EXPECT_EQ(cluster.job_status("first", "phase"), "Cancelled");
  EXPECT_NE(cluster.job_status("first", "finishedAt"), "");
  EXPECT_EQ(cluster.job_status("second", "phase"), "Starting");
  cluster.run_for(70 * second_ns);
  EXPECT_EQ(cluster.job("first"), nullptr);
}

TEST_F(QueuedSteps, a_changed_program_is_reported_and_the_job_keeps_running) {
  begin();
  const json before = *cluster.made(batch_job, "first");
  cluster.put_job("first", {{"run", {{"image", "other"}, {"command", {"train"}}}}});
  cluster.run_for(5 * second_ns);
  EXPECT_EQ(cluster.job_status("first", "conditions")[0]["reason"], "Immutable");
  EXPECT_EQ(cluster.job_status("first", "phase"), "Starting");
  EXPECT_EQ(*cluster.made(batch_job, "first"), before);
}

TEST_F(QueuedSteps, a_finished_job_is_not_run_again_and_is_removed_after_its_time) {
  cluster.slots = 2;
  begin();
  cluster.put_job("third", {{"ttlSecondsAfterFinished", 60}});
  cluster.run_for(5 * second_ns);
  cluster.end_job("first", "Complete");
  cluster.end_job("second", "Failed");
  cluster.run_for(5 * second_ns);
  EXPECT_EQ(cluster.job_status("second", "phase"), "Failed");
  EXPECT_EQ(cluster.job_status("second", "reason"), "as the test wants");
  cluster.end_job("third", "Complete");
  cluster.run_for(5 * second_ns);
  EXPECT_EQ(cluster.job_status("third", "phase"), "Succeeded");
  cluster.run_for(45 * second_ns);
  EXPECT_NE(cluster.job("third"), nullptr) << "its minute is not over";
  cluster.server.remove(path_of(made_kind(batch_job)), "default", "first");
  cluster.run_for(30 * second_ns);
  EXPECT_EQ(cluster.job("third"), nullptr);
  EXPECT_EQ(cluster.made(batch_job, "third"), nullptr);
  EXPECT_EQ(cluster.made(batch_job, "first"), nullptr);
  EXPECT_EQ(cluster.job_status("first", "phase"), "Succeeded");
}

TEST_F(QueuedSteps, shared_objects_have_all_queues_as_owners_and_go_with_the_last) {
  begin();
  cluster.put_queue("other", quota);
  cluster.run_for(10 * second_ns);
  EXPECT_EQ((*cluster.made(resource_flavor, "carve"))["metadata"]["ownerReferences"].size(), 2u);
  const size_t before = cluster.writes();
  cluster.run_for(60 * second_ns);
  EXPECT_EQ(cluster.writes(), before) << "the owners do not take it from each other";
  cluster.server.remove(KueueScenario::custom_queues, "", "other");
  cluster.run_for(10 * second_ns);
  EXPECT_EQ((*cluster.made(resource_flavor, "carve"))["metadata"]["ownerReferences"].size(), 1u);
  cluster.server.remove(KueueScenario::custom_queues, "", "train");
  cluster.run_for(10 * second_ns);
  EXPECT_TRUE(cluster.all(resource_flavor).empty());
  EXPECT_TRUE(cluster.all(cluster_queue).empty());
}

TEST_F(QueuedSteps, the_cohort_follows_the_nodes_and_the_quotas) {
  const auto lent = [this] {
    const json* cohort = cluster.made(kueue_cohort, "carve");
    return cohort == nullptr
               ? json()
               : (*cohort)["spec"]["resourceGroups"][0]["flavors"][0]["resources"][1]["nominalQuota"];
  };
  json node = {{"metadata", {{"name", "n1"}}},
               {"status", {{"allocatable", {{"carve.dev/memory", "80Gi"}, {"carve.dev/compute", "800"}}}}}};
  node["status"]["conditions"] = json::array();
  node["status"]["conditions"].push_back({{"type", "Ready"}, {"status", "True"}});
  cluster.server.put("/api/v1/nodes", node);
  begin();
  EXPECT_EQ(lent(), "550");
  cluster.put_queue("other", {{"quota", {{"memory", "1GiB"}, {"compute", "100%"}}}});
  cluster.run_for(5 * second_ns);
  EXPECT_EQ(lent(), "450");
  cluster.server.remove(KueueScenario::custom_queues, "", "other");
  cluster.run_for(5 * second_ns);
  EXPECT_EQ(lent(), "550");
  cluster.server.remove("/api/v1/nodes", "", "n1");
  cluster.run_for(5 * second_ns);
  EXPECT_EQ(lent(), "0");
}

TEST_F(QueuedSteps, a_changed_quota_is_applied) {
  begin();
  cluster.put_queue("train", {{"quota", {{"memory", "1GiB"}, {"compute", "100%"}}}});
  cluster.run_for(5 * second_ns);
  const json& groups = (*cluster.made(cluster_queue, "train"))["spec"]["resourceGroups"];
  EXPECT_EQ(groups[0]["flavors"][0]["resources"][1]["nominalQuota"], "100");
}

TEST_F(QueuedSteps, a_shared_object_that_is_being_deleted_gets_no_new_owner) {
  cluster.server.put(path_of(made_kind(resource_flavor)),
                     {{"metadata",
                       {{"name", "carve"},
                        {"labels", {{managed_by_label, managed_by_carve}}},
                        {"deletionTimestamp", "2026-01-01T00:00:00Z"}}}});
  begin();
  EXPECT_EQ(cluster.queue_status("train", "conditions")[0]["reason"], "Terminating");
  EXPECT_FALSE((*cluster.made(resource_flavor, "carve"))["metadata"].contains("ownerReferences"));
  cluster.server.remove(path_of(made_kind(resource_flavor)), "", "carve");
  cluster.run_for(40 * second_ns);
  EXPECT_EQ(cluster.queue_status("train", "conditions")[0]["status"], "True");
  EXPECT_EQ(cluster.job_status("first", "phase"), "Starting");
}

TEST_F(QueuedSteps, engines_with_an_operator_are_not_run) {
  cluster.install_kueue();
  cluster.put_queue("train", quota);
  cluster.put_job("first", {{"engine", "spark"}});
  cluster.run_for(10 * second_ns);
  const json condition = cluster.job_status("first", "conditions")[0];
  EXPECT_EQ(condition["reason"], "NotSupported");
  EXPECT_THAT(condition["message"].get<std::string>(), HasSubstr("'carve render'"));
}

// Loses and repeats answers in seeded orders. Afterwards every job has exactly one Job, and one of them runs.
TEST(QueuedStepsUnderFaults, reach_the_documents) {
  using FaultKind = kubernetes::ApiFault::Kind;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    KueueScenario cluster;
    cluster.seed = seed * 100;
    std::mt19937_64 random(seed);
    auto a = cluster.replica("a"), b = cluster.replica("b");
    cluster.install_kueue();
    cluster.put_queue("train", quota);
    std::set<std::string> wanted;
    for (unsigned step = 0; step < 30; ++step) {
      const std::string name = fmt::format("job-{}", random() % 4);
      switch (random() % 6) {
        case 0:
          cluster.server.remove(KueueScenario::custom_jobs, "default", name);
          wanted.erase(name);
          break;
        case 1: (random() % 2 ? a : b) = cluster.replica(fmt::format("r{}", step)); break;
        case 2: cluster.server.end_watches(); break;
        case 3: {
          constexpr FaultKind kinds[] = {FaultKind::lose_request, FaultKind::lose_answer, FaultKind::hang,
                                         FaultKind::status, FaultKind::cut_line};
          constexpr unsigned statuses[] = {409, 410, 429, 500};
          cluster.server.add_fault(
              {.kind = kinds[random() % 5], .status = statuses[random() % 4], .times = 2});
          break;
        }
        default: cluster.put_job(name); wanted.insert(name);
      }
      cluster.run_for(static_cast<kubernetes::Nanoseconds>(random() % 8) * second_ns / 4);
    }
    cluster.server.clear_faults();
    cluster.run_for(150 * second_ns);
    EXPECT_EQ(cluster.all(batch_job).size(), wanted.size()) << seed;
    unsigned waiting = 0;
    for (const std::string& name : wanted) {
      const json phase = cluster.job_status(name, "phase");
      EXPECT_TRUE(phase == "Starting" || phase == "Queued") << seed << " " << phase;
      if (phase == "Queued") waiting |= 1u << cluster.job_status(name, "position").get<unsigned>();
    }
    // The positions are 1, 2, ... without a gap.
    EXPECT_EQ(waiting, wanted.size() < 2 ? 0 : (1u << wanted.size()) - 2) << seed;
  }
}

}  // namespace
}  // namespace carve::controller

#include "controller/services/service_reconciler.h"

#include <gmock/gmock.h>

#include <random>
#include <set>

#include "controller/services/testing/service_stage.h"
#include "objects/node_object.h"

namespace carve::controller {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Deletes the service in every state between its creation and the execution of its program. The device is
// free within a few turns, long before the grace period of 30 s is over.
TEST(ServiceReconciler, skips_the_grace_period_of_a_service_deleted_before_its_program_was_executed) {
  for (const bool begins : {false, true})
    for (const int turns_before : {0, 1, 2, 3, 4})
      for (const int turns_until_executed : {0, 1, 3}) {
        ServiceStage s;
        s.machine.delays_programs = true;
        s.machine.begins = begins;
        s.apply(sample_spec(1));
        for (int i = 0; i < turns_before; ++i) s.reconciler->reconcile(s.machine.now);
        s.remove();
        for (int i = 0; i < turns_until_executed; ++i) s.reconciler->reconcile(s.machine.now);
        s.machine.delays_programs = false;
        s.machine.execute_all();
        s.settle(8);
        EXPECT_THAT(s.slices(), IsEmpty()) << turns_before << " " << turns_until_executed << " " << begins;
        EXPECT_FALSE(s.objects->find(s.key)) << turns_before << " " << turns_until_executed << " " << begins;
      }
}

TEST(ServiceReconciler, requests_no_new_slice_for_a_deleted_service) {
  ServiceStage s;
  s.machine.nodes.clear();
  s.apply(sample_spec(1));
  s.reconciler->reconcile(s.machine.now);
  s.machine.nodes = {"n1"};
  s.remove();
  s.settle(4);
  EXPECT_THAT(s.machine.granted_by, IsEmpty());
  EXPECT_FALSE(s.objects->find(s.key));
}

TEST(ServiceReconciler, logs_a_problem_of_the_proxy_once_while_it_lasts) {
  ServiceStage stage;
  stage.apply(sample_spec(1));
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) {
    stage.machine.broken_proxy = "haproxy is not installed";
    stage.settle();
    stage.machine.broken_proxy.clear();
    stage.settle();
  }
  const std::string log = testing::internal::GetCapturedStderr();
  const size_t first = log.find("haproxy is not installed"), last = log.rfind("haproxy is not installed");
  EXPECT_NE(first, last) << log;
  EXPECT_EQ(log.find("haproxy is not installed", first + 1), last) << log;
}

TEST(ServiceReconciler, gives_a_program_whose_port_was_taken_another_port_at_its_next_start) {
  ServiceStage s;
  s.apply(sample_spec(1));
  s.settle();
  const auto& start = s.machine.starts.begin()->second;
  const auto before = static_cast<uint32_t>(std::stoul(start.env.at("PORT")));
  s.machine.foreign_ports = {before};
  s.machine.end_program(s.machine.programs.begin()->first, 1);
  s.settle();
  const auto after = static_cast<uint32_t>(std::stoul(start.env.at("PORT")));
  EXPECT_NE(after, before);
  EXPECT_EQ(s.machine.servers.size(), 1u);
  EXPECT_EQ(s.status().ready_replicas, 1u);
}

TEST(ServiceReconciler, starts_each_replica_once_in_its_slice_and_publishes_it_when_ready) {
  ServiceStage s;
  s.apply(sample_spec(2));
  s.settle();
  EXPECT_THAT(s.slices(), ElementsAre("a-1-0", "a-1-1"));
  EXPECT_EQ(s.machine.servers.size(), 2u);
  EXPECT_EQ(text(s.status().phase), "Running");
  EXPECT_EQ(s.status().ready_replicas, 2u);
  EXPECT_EQ(s.status().endpoint, "http://127.0.0.1:18000");
  EXPECT_EQ(s.status().memory_text, "4 GiB");
  for (const auto& [slice, program] : s.machine.programs) EXPECT_EQ(program.seen.attempt, 1u) << slice;
}

TEST(ServiceReconciler, restarts_no_program_when_the_controller_restarts) {
  ServiceStage s;
  s.apply(sample_spec(2));
  s.settle();
  const auto servers = s.machine.servers;
  for (int i = 0; i < 5; ++i) {
    s.restart();
    s.settle(3);
    EXPECT_EQ(s.machine.servers, servers) << "a ready replica is served at every moment";
  }
  for (const auto& [slice, program] : s.machine.programs) EXPECT_EQ(program.seen.attempt, 1u) << slice;
}

TEST(ServiceReconciler, reports_in_the_status_a_replica_that_is_stopped_first_for_lack_of_capacity) {
  ServiceStage s;
  s.machine.capacity = 1;
  s.apply(sample_spec(1));
  s.settle();
  s.apply(sample_spec(1, "other"));
  std::set<std::string> messages;
  for (unsigned turns = 0; turns < 40; ++turns) {
    s.machine.now += workload::second_ns / 10;
    s.reconciler->reconcile(s.machine.now);
    for (const objects::Condition& condition : s.status().conditions) messages.insert(condition.message);
  }
  EXPECT_THAT(messages, Contains("no device has the capacity; replica 0 of revision 1 is stopped first"));
}

TEST(ServiceReconciler, names_the_memory_quota_in_the_exit_of_an_attempt_if_it_refused_an_allocation) {
  ServiceStage s;
  s.apply(sample_spec(1));
  s.settle();
  s.machine.live["a-1-0"].refused_at = s.machine.now;
  s.machine.end_program("a-1-0", 3);
  s.reconciler->reconcile(s.machine.now);
  EXPECT_THAT(s.status().replica_list.at(0).last_exit,
              HasSubstr("exit status 3; an allocation was refused by its GPU memory quota of 4 GiB"));
  s.settle();
  s.machine.end_program("a-1-0", 5);
  s.reconciler->reconcile(s.machine.now);
  EXPECT_EQ(s.status().replica_list.at(0).last_exit, "exit status 5")
      << "the quota rejected only the first attempt";
}

TEST(ServiceReconciler, scales_a_service_with_its_load_and_keeps_its_spec) {
  ServiceStage s;
  objects::ServiceSpec wanted = sample_spec(1);
  wanted.autoscale =
      objects::Autoscale{.min = 1, .max = 3, .metric = objects::AutoscaleMetric::qps, .target = 10};
  s.apply(wanted);
  s.settle();
  EXPECT_EQ(s.status().desired_replicas, 1u);
  for (int i = 1; i <= 60; ++i) {
    s.machine.carried = {.requests = static_cast<uint64_t>(i) * 25, .in_flight = 0};
    s.settle(1);
  }
  EXPECT_EQ(s.status().desired_replicas, 3u);
  EXPECT_EQ(s.machine.servers.size(), 3u);
  EXPECT_EQ(text(s.status().phase), "Running");
  EXPECT_THAT(s.objects->find(s.key)->spec.json(), HasSubstr("\"replicas\":1,"));
  s.restart();
  s.settle(5);
  EXPECT_EQ(s.machine.servers.size(), 3u) << "the next controller continues with the number";
  wanted.autoscale.reset();
  s.apply(wanted);
  s.settle();
  EXPECT_THAT(s.slices(), ElementsAre("a-1-0"));
}

TEST(ServiceReconciler, changes_the_size_of_running_slices_in_place) {
  ServiceStage s;
  s.apply(sample_spec(2));
  s.settle();
  s.apply(sample_spec(2, "serve", "6GiB"));
  s.settle(5);
  EXPECT_THAT(s.slices(), ElementsAre("a-1-0", "a-1-1"));
  EXPECT_EQ(s.machine.live["a-1-0"].memory_bytes, 6ull << 30);
  EXPECT_EQ(s.status().revision, 1u);
  EXPECT_EQ(s.status().memory_text, "6 GiB");
  EXPECT_THAT(s.status().conditions.at(1).message, HasSubstr("in place"));
  const std::string resized_at = s.status().updated_at;
  s.apply(sample_spec(2, "serve-v2", "6GiB"));
  s.settle();
  EXPECT_EQ(s.status().conditions.at(1).message, "") << "a rollout is not a change in place";
  EXPECT_LT(resized_at, s.status().updated_at);
}

TEST(ServiceReconciler, starts_a_rollout_if_the_device_lacks_the_new_size) {
  ServiceStage s;
  s.apply(sample_spec(2));
  s.settle();
  s.machine.refuses_resize = true;
  s.apply(sample_spec(2, "serve", "6GiB"));
  s.settle();
  EXPECT_THAT(s.slices(), ElementsAre("a-2-0", "a-2-1"));
  EXPECT_EQ(s.status().revision, 2u);
}

TEST(ServiceReconciler, keeps_the_serving_replica_if_an_update_fits_nowhere) {
  for (const uint32_t max_surge : {1, 0}) {
    ServiceStage s;
    s.machine.capacity = 1;
    objects::ServiceSpec wanted = sample_spec(1);
    wanted.update = {.max_surge = max_surge, .max_unavailable = 1 - max_surge};
    s.apply(wanted);
    s.settle();
    s.machine.refuses_resize = s.machine.fits_nowhere = true;
    wanted.gpu->memory = "12GiB";
    s.apply(wanted);
    s.settle(120);
    EXPECT_THAT(s.slices(), ElementsAre("a-1-0"));
    EXPECT_EQ(s.status().ready_replicas, 1u);
    EXPECT_EQ(s.status().conditions.at(1).reason, "NoCapacity");
    EXPECT_THAT(s.status().conditions.at(1).message, HasSubstr("so the old replicas keep running"));
    s.machine.fits_nowhere = false;
    s.settle(120);
    EXPECT_THAT(s.slices(), ElementsAre("a-2-0"));
  }
}

TEST(ServiceReconciler, keeps_a_fixed_port_in_every_revision) {
  ServiceStage s;
  objects::ServiceSpec wanted = sample_spec(1);
  wanted.target_port = 8000;
  s.apply(wanted);
  s.settle();
  EXPECT_EQ(s.machine.starts.at("a-1-0").env.at("PORT"), "8000");
  wanted.run.command = {"other"};
  s.apply(wanted);
  s.settle(120);
  EXPECT_THAT(s.slices(), ElementsAre("a-2-0"));
  EXPECT_EQ(s.machine.starts.at("a-2-0").env.at("PORT"), "8000");
  s.machine.foreign_ports.insert(8000);
  s.machine.end_program("a-2-0", 3);
  s.settle(4);
  EXPECT_THAT(s.status().conditions.at(2).message, HasSubstr("spec.targetPort: 8000: another program uses"));
  s.machine.foreign_ports.clear();
  s.settle(120);
  EXPECT_EQ(s.status().ready_replicas, 1u);
}

TEST(ServiceReconciler, keeps_the_names_of_replicas_of_a_stateful_set) {
  ServiceStage s;
  objects::ServiceSpec wanted = sample_spec(2);
  wanted.update = {.max_surge = 0, .max_unavailable = 1};
  s.apply(wanted);
  ASSERT_TRUE(s.objects->update(s.key, [](Object& o) -> Outcome<void> {
    o.annotations["carve.dev/replica-names"] = "ordinal";
    return {};
  }));
  s.settle();
  EXPECT_THAT(s.slices(), ElementsAre("a-0", "a-1"));
  EXPECT_EQ(s.machine.starts.at("a-1").env.at("HOSTNAME"), "a-1");
  wanted.run.command = {"other"};
  s.apply(wanted);
  s.settle(240);
  EXPECT_THAT(s.slices(), ElementsAre("a-0", "a-1"));
  EXPECT_EQ(s.status().replica_list.at(0).revision, 2u);
  EXPECT_EQ(s.status().updated_replicas, 2u);
}

TEST(ServiceReconciler, reports_in_the_status_why_a_service_is_not_running) {
  ServiceStage s;
  s.apply(sample_spec(1));
  s.settle();
  s.machine.end_program("a-1-0", 3);
  s.reconciler->reconcile(s.machine.now);
  EXPECT_EQ(text(s.status().phase), "CrashLoopBackOff");
  EXPECT_THAT(s.status().conditions.at(1).message, HasSubstr("will be started again: exit status 3"));
  s.machine.now += 2 * workload::second_ns;
  s.reconciler->reconcile(s.machine.now);
  s.machine.open_ports.clear();
  s.settle(4);
  EXPECT_EQ(text(s.status().phase), "Waiting");
  EXPECT_EQ(s.status().conditions.at(1).reason, "NotReady");
  EXPECT_THAT(s.status().conditions.at(1).message, HasSubstr("the program must listen on $PORT"));
  s.remove();
  s.reconciler->reconcile(s.machine.now);
  EXPECT_EQ(text(s.status().phase), "Deleting");
}

TEST(ServiceReconciler, keeps_a_serving_service_available_while_it_scales) {
  ServiceStage s;
  s.apply(sample_spec(1));
  s.settle();
  s.apply(sample_spec(3));
  for (int i = 0; i < 20; ++i) {
    s.settle(1);
    EXPECT_EQ(s.status().conditions.at(0).status, "True") << "turn " << i;
  }
}

TEST(ServiceReconciler, serves_as_many_replicas_as_desired_during_a_rollout) {
  ServiceStage s;
  s.apply(sample_spec(3));
  s.settle();
  s.apply(sample_spec(3, "serve-v2"));
  for (int i = 0; i < 100; ++i) {
    s.settle(1);
    EXPECT_GE(s.machine.servers.size(), 3u) << "turn " << i;
    EXPECT_LE(s.machine.live.size(), 4u) << "one more than desired";
  }
  EXPECT_THAT(s.slices(), ElementsAre("a-2-0", "a-2-1", "a-2-2"));
  EXPECT_EQ(text(s.status().phase), "Running");
}

TEST(ServiceReconciler, reports_a_lack_of_capacity_and_keeps_the_replicas) {
  ServiceStage s;
  s.machine.capacity = 1;
  s.apply(sample_spec(2));
  s.settle();
  EXPECT_THAT(s.slices(), ElementsAre("a-1-0"));
  EXPECT_EQ(text(s.status().phase), "Waiting");
  EXPECT_EQ(s.status().ready_replicas, 1u);
  s.machine.capacity = 2;
  s.settle(120);
  EXPECT_EQ(text(s.status().phase), "Running");
}

TEST(ServiceReconciler, lets_a_replica_wait_for_cores_and_reports_the_amounts) {
  ServiceStage s;
  ASSERT_TRUE(s.objects->add(
      {.key = {objects::Kind::node, "default", "n1"}, .status = objects::NodeStatus{.cpu_milli = 4000}}));
  objects::ServiceSpec wanted = sample_spec(2);
  wanted.cpu.request = "3";
  s.apply(wanted);
  s.settle();
  EXPECT_THAT(s.slices(), ElementsAre("a-1-0"));
  EXPECT_EQ(s.status().conditions[1].message,
            "node n1: a replica requests 3 cores, but only 1 of 4 are free");
  ASSERT_TRUE(s.objects->update({objects::Kind::node, "default", "n1"}, [](Object& node) -> Outcome<void> {
    node.status = objects::NodeStatus{.cpu_milli = 6000};
    return {};
  }));
  s.settle(120);
  EXPECT_THAT(s.slices(), ElementsAre("a-1-0", "a-1-1"));
}

TEST(ServiceReconciler, ends_programs_and_slices_of_a_deleted_service) {
  ServiceStage s;
  s.apply(sample_spec(2));
  s.settle();
  s.remove();
  s.settle();
  EXPECT_THAT(s.slices(), IsEmpty());
  EXPECT_THAT(s.machine.programs, IsEmpty());
  EXPECT_THAT(s.machine.servers, IsEmpty());
  EXPECT_EQ(s.objects->find(s.key), nullptr);
  s.apply(sample_spec(1));  // Its slices have the same names as the previous ones.
  s.settle();
  EXPECT_EQ(text(s.status().phase), "Running");
}

TEST(ServiceReconciler, repeats_with_the_same_id_the_request_for_a_slice_that_may_have_been_granted) {
  ServiceStage s;
  s.machine.nodes = {"n1", "n2"};
  s.machine.loses_answers = true;
  s.apply(sample_spec(1));
  s.settle(10);
  EXPECT_EQ(s.machine.granted_by.size(), 1u) << "each request has the same id";
  s.restart();
  s.settle(10);
  s.machine.loses_answers = false;
  s.settle();
  EXPECT_EQ(s.machine.granted_by.size(), 1u);
  EXPECT_THAT(s.slices(), ElementsAre("a-1-0"));
  EXPECT_EQ(s.machine.programs["a-1-0"].seen.attempt, 1u);
  EXPECT_EQ(text(s.status().phase), "Running");
}

TEST(ServiceReconciler, moves_the_replicas_of_a_drained_node_and_keeps_the_others) {
  ServiceStage s;
  s.apply(sample_spec(1));
  s.settle();
  s.machine.nodes = {"n2"};
  s.apply(sample_spec(2));
  s.settle();
  ASSERT_EQ(s.machine.node_of["a-1-0"], "n1");
  s.machine.capacity = 2;
  ASSERT_TRUE(s.objects->add(
      {.key = {objects::Kind::node, "default", "n1"}, .spec = objects::NodeSpec{.draining = true}}));
  s.machine.silent_nodes = {"n2"};
  s.settle(3);
  EXPECT_EQ(s.status().conditions.at(1).message,
            "node n1 is drained; replica 0 stays there: node n2 is silent");
  s.machine.silent_nodes.clear();
  for (int i = 0; i < 20; ++i) {
    s.settle(1);
    EXPECT_EQ(s.machine.servers.size(), 2u) << "turn " << i;
  }
  EXPECT_THAT(s.slices(), ElementsAre("a-1-0", "a-1-1"));
  EXPECT_EQ(s.status().conditions.at(1).message,
            "node n1 is drained; replica 0 stays there: no device has the capacity");
  s.restart();
  s.machine.capacity = 3;
  for (int i = 0; i < 120; ++i) {
    s.settle(1);
    EXPECT_GE(s.machine.servers.size(), 2u) << "turn " << i;
  }
  EXPECT_THAT(s.slices(), ElementsAre("a-1-1", "a-1-64"));
  EXPECT_EQ(s.machine.node_of["a-1-64"], "n2");
  EXPECT_EQ(s.machine.programs["a-1-1"].seen.attempt, 1u);
  EXPECT_EQ(text(s.status().phase), "Running");
  EXPECT_EQ(s.status().revision, 1u);
}

// Kills the controller repeatedly at a random call, with or without the call's effect, while the service is
// changed. At the end the state is the desired one, and no slice or program was created twice.
TEST(ServiceReconciler, reaches_the_desired_state_if_killed_between_any_two_steps) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    ServiceStage s;
    std::mt19937 random(seed);
    s.apply(sample_spec(2));
    for (int change = 0; change < 6; ++change) {
      s.apply(sample_spec(1 + random() % 3, fmt::format("serve-{}", random() % 3),
                          random() % 2 ? "4GiB" : "6GiB"));
      for (int kills = 0; kills < 3; ++kills) {
        s.machine.calls_left = static_cast<int>(random() % 12);
        s.machine.last_has_effect = random() % 2 == 0;
        try {
          s.settle(20);
        } catch (const Killed&) {}
        s.machine.calls_left = -1;
        s.restart();
      }
    }
    s.apply(sample_spec(2, "last"));
    s.settle(150);
    EXPECT_EQ(text(s.status().phase), "Running") << "seed " << seed;
    EXPECT_EQ(s.machine.live.size(), 2u) << "seed " << seed;
    EXPECT_EQ(s.machine.servers.size(), 2u) << "seed " << seed;
    EXPECT_THAT(s.machine.started_twice, IsEmpty()) << "seed " << seed;
    EXPECT_THAT(s.machine.granted_twice, IsEmpty()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace carve::controller

#include <gmock/gmock.h>

#include "controller/services/testing/service_stage.h"
#include "objects/node_object.h"

namespace carve::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ServiceReconciler, reports_in_the_status_an_endpoint_whose_port_another_program_uses) {
  ServiceStage stage;
  stage.machine.taken_port = "endpoint default:a: HAProxy cannot listen at 127.0.0.1:18000";
  stage.apply(sample_spec(1));
  stage.settle();
  const auto problem = [&] {
    for (const objects::Condition& condition : stage.status().conditions)
      if (condition.type == "Degraded") return condition.message;
    return std::string();
  };
  EXPECT_EQ(problem(), stage.machine.taken_port);
  stage.machine.taken_port.clear();
  stage.settle();
  EXPECT_EQ(problem(), "");
}

TEST(ServiceReconciler, never_serves_the_listener_of_another_program_and_reports_it_in_the_status) {
  ServiceStage s;
  s.machine.foreign_ports = {20000};
  s.apply(sample_spec(1));
  s.settle(3);
  const uint32_t first = static_cast<uint32_t>(std::stoul(s.machine.starts.begin()->second.env.at("PORT")));
  EXPECT_NE(first, 20000u) << "a port that is in use is not chosen";
  s.settle();
  ASSERT_EQ(s.machine.servers.size(), 1u);
  // Another program now listens on the port, so the replica's program must have ended, but its end is not
  // known yet.
  s.machine.foreign_ports = {first};
  s.settle(2);
  EXPECT_TRUE(s.machine.servers.empty()) << "the first probe that finds it withdraws the replica";
  s.settle(8);
  EXPECT_TRUE(s.machine.servers.empty());
  EXPECT_EQ(s.status().ready_replicas, 0u);
  const auto conditions = s.status().conditions;
  const auto found = std::ranges::find(conditions, "Degraded", &objects::Condition::type);
  ASSERT_NE(found, conditions.end());
  EXPECT_THAT(found->message, HasSubstr("is used by another program"));
}

TEST(ServiceReconciler, restarts_a_program_that_ends_and_shows_its_exit) {
  ServiceStage s;
  s.apply(sample_spec(1));
  s.settle();
  s.machine.end_program("a-1-0", 3);
  s.reconciler->reconcile(s.machine.now);
  EXPECT_THAT(s.machine.servers, IsEmpty()) << "it is withdrawn immediately";
  EXPECT_EQ(text(s.status().replica_list.at(0).state), "CrashLoopBackOff");
  EXPECT_EQ(s.status().replica_list.at(0).last_exit, "exit status 3");
  s.settle();
  EXPECT_EQ(s.machine.programs["a-1-0"].seen.attempt, 2u);
  EXPECT_EQ(s.status().restarts, 1u);
  EXPECT_EQ(text(s.status().phase), "Running");
  EXPECT_EQ(s.status().replica_list.at(0).last_exit, "exit status 3") << "from the previous attempt";
}

TEST(ServiceReconciler, does_not_count_a_program_as_ready_before_its_supervisor_executes_it) {
  ServiceStage s;
  objects::ServiceSpec portless = sample_spec(1);
  portless.port.reset();
  s.apply(portless);
  s.settle();
  EXPECT_EQ(s.status().ready_replicas, 1u);
  auto& program = s.machine.programs["a-1-0"].seen;
  program.is_waiting = true;
  s.machine.now += 60 * workload::second_ns;
  s.reconciler->reconcile(s.machine.now);
  EXPECT_EQ(s.status().ready_replicas, 0u);
  EXPECT_EQ(text(s.status().replica_list.at(0).state), "Starting");
  program.is_waiting = false;
  program.started_at = s.machine.now;
  s.settle();
  EXPECT_EQ(s.status().ready_replicas, 1u);
}

TEST(ServiceReconciler, withdraws_a_program_from_the_endpoint_in_the_turn_that_sees_its_process_end) {
  ServiceStage s;
  s.apply(sample_spec(1));
  s.settle();
  ASSERT_EQ(s.machine.servers.count("a-1-0"), 1u);
  auto& program = s.machine.programs["a-1-0"].seen;
  program.is_ending = true;  // Its supervisor still runs, and another program answers at the port.
  s.reconciler->reconcile(s.machine.now);
  EXPECT_THAT(s.machine.servers, IsEmpty());
  EXPECT_EQ(s.status().ready_replicas, 0u);
  s.settle();
  EXPECT_THAT(s.machine.servers, IsEmpty());
  program.is_ending = false;
  s.machine.end_program("a-1-0", 137);
  s.settle();
  EXPECT_EQ(s.status().ready_replicas, 1u);
  EXPECT_THAT(s.machine.started_twice, IsEmpty());
}

TEST(ServiceReconciler, replaces_a_slice_that_a_user_ended) {
  ServiceStage s;
  s.apply(sample_spec(2));
  s.settle();
  ASSERT_TRUE(s.machine.end_slice("n1", "a-1-1"));
  s.settle();
  EXPECT_THAT(s.slices(), ElementsAre("a-1-0", "a-1-1"));
  EXPECT_EQ(text(s.status().phase), "Running");
}

TEST(ServiceReconciler, stops_serving_a_replica_whose_slice_was_taken) {
  ServiceStage s;
  s.apply(sample_spec(2));
  s.settle();
  s.apply(sample_spec(1));  // The slice is not granted again.
  ASSERT_TRUE(s.machine.end_slice("n1", "a-1-1"));
  s.settle();
  EXPECT_EQ(s.machine.servers.size(), 1u) << "another program may use its port";
}

TEST(ServiceReconciler, keeps_the_endpoint_if_the_agent_is_silent_when_the_controller_starts) {
  ServiceStage s;
  s.apply(sample_spec(2));
  s.settle();
  const auto servers = s.machine.servers;
  s.machine.silent_nodes = {"n1"};
  s.restart();
  for (int i = 0; i < 10; ++i) {
    s.settle(1);
    EXPECT_EQ(s.machine.servers, servers) << "turn " << i;
  }
}

TEST(ServiceReconciler, does_not_let_a_silent_agent_delay_replicas_on_other_nodes) {
  ServiceStage s;
  s.machine.nodes = {"n1"};
  s.apply(sample_spec(1));
  s.settle();
  s.machine.nodes = {"n2"};
  s.apply(sample_spec(2));
  s.settle();
  ASSERT_EQ(s.machine.node_of["a-1-1"], "n2");
  s.machine.silent_nodes = {"n1"};
  s.machine.end_program("a-1-0", 1);
  s.machine.end_program("a-1-1", 1);
  s.settle(1);
  EXPECT_THAT(s.machine.servers, IsEmpty()) << "an ended program is not served on any node";
  s.settle();
  EXPECT_EQ(s.machine.programs["a-1-0"].seen.attempt, 1u) << "no program enters a slice of a silent agent";
  EXPECT_EQ(s.machine.programs["a-1-1"].seen.attempt, 2u);
  s.machine.silent_nodes.clear();
  s.settle();
  EXPECT_EQ(text(s.status().phase), "Running");
}

}  // namespace
}  // namespace carve::controller

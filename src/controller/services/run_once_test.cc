#include <gmock/gmock.h>

#include "controller/services/testing/service_stage.h"

namespace carve::controller {
namespace {

using testing::AllOf;
using testing::Each;
using testing::IsEmpty;
using testing::Not;

// The program's files and its owner are kept, so that its log can be read and no program counts as lost.
TEST(RunOnce, the_log_of_a_run_once_program_is_kept_until_the_service_runs_again) {
  ServiceStage s;
  auto spec = sample_spec(1);
  spec.restart_policy = RestartPolicy::never;
  s.apply(spec);
  s.settle();
  s.machine.end_program("a-1-0", 3);
  s.settle();
  const auto is_kept = [&] {
    return s.status().replica_list.size() == 1 && s.status().replica_list[0].slice == "a-1-0" &&
           s.status().replica_list[0].state == objects::ReplicaState::failed &&
           s.status().replica_list[0].last_exit == "exit status 3" && s.machine.programs.contains("a-1-0");
  };
  EXPECT_THAT(s.slices(), IsEmpty());
  EXPECT_TRUE(is_kept());
  s.restart();
  s.settle();
  EXPECT_TRUE(is_kept());
  EXPECT_TRUE(s.reconciler->has_record("a-1-0"));
  EXPECT_EQ(s.status().replicas, 0u);

  spec.stopped = false;
  s.apply(spec);
  s.settle();
  EXPECT_EQ(s.machine.programs.at("a-1-0").seen.attempt, 1u) << "it starts again";
  EXPECT_EQ(text(s.status().phase), "Running");
  EXPECT_EQ(s.status().replica_list.size(), 1u);
  s.machine.end_program("a-1-0", 0);
  s.settle();
  EXPECT_EQ(text(s.status().replica_list.at(0).state), "Succeeded");

  s.machine.starts.clear();
  spec.stopped = true;
  spec.run.command = {"another"};
  s.apply(spec);
  s.reconciler->reconcile(s.machine.now);
  EXPECT_NE(text(s.status().phase), "Succeeded") << "the end of another program is not the end of this one";
  s.settle();
  EXPECT_EQ(s.machine.starts.at("a-2-0").command, std::vector<std::string>{"another"});
  EXPECT_FALSE(s.machine.programs.contains("a-1-0"));
  s.remove();
  s.settle();
  EXPECT_FALSE(s.objects->find(s.key));
  EXPECT_FALSE(s.machine.programs.contains("a-1-0"));
}

// Otherwise a controller that is killed between two writes would not know how the programs ended.
TEST(RunOnce, the_end_is_stored_together_with_the_stop) {
  ServiceStage s;
  auto spec = sample_spec(1);
  spec.restart_policy = RestartPolicy::never;
  s.apply(spec);
  s.settle();
  std::vector<std::string> ends;  // The end stored with each version of the stopped service.
  s.objects->subscribe([&] {
    const auto object = s.objects->find(s.key);
    if (object->spec.as<objects::ServiceSpec>().stopped)
      ends.push_back(object->status.as<objects::ServiceStatus>().ended);
  });
  s.machine.end_program("a-1-0", 3);
  s.settle();
  EXPECT_THAT(ends, AllOf(Not(IsEmpty()), Each("exit status 3")));
}

// Kills the controller at each call during a service's end, its next run and its deletion.
TEST(RunOnce, a_run_once_service_keeps_one_log_if_killed_between_any_two_steps) {
  for (const bool has_effect : {false, true})
    for (int kill_at = 0; kill_at < 12; ++kill_at) {
      ServiceStage s;
      const auto settle_after_kill = [&] {
        s.machine.calls_left = kill_at;
        s.machine.last_has_effect = has_effect;
        try {
          s.settle(20);
        } catch (const Killed&) {}
        s.machine.calls_left = -1;
        s.restart();
        s.settle();
      };
      auto spec = sample_spec(1);
      spec.restart_policy = RestartPolicy::never;
      s.apply(spec);
      s.settle();
      s.machine.end_program("a-1-0", 3);
      settle_after_kill();
      EXPECT_THAT(s.slices(), IsEmpty()) << kill_at;
      ASSERT_EQ(s.status().replica_list.size(), 1u) << kill_at;
      EXPECT_EQ(s.status().replica_list[0].last_exit, "exit status 3") << kill_at;
      EXPECT_EQ(s.status().ended, "exit status 3") << kill_at;
      EXPECT_EQ(text(s.status().phase), "Failed") << kill_at;

      spec.run.command = {"another"};
      spec.stopped = true;
      s.apply(spec);
      settle_after_kill();
      EXPECT_EQ(s.machine.programs.size(), 1u) << kill_at;
      EXPECT_EQ(text(s.status().phase), "Running") << kill_at;
      EXPECT_THAT(s.machine.started_twice, IsEmpty()) << kill_at;

      s.machine.end_program("a-2-0", 0);
      s.settle();
      s.remove();
      settle_after_kill();
      EXPECT_FALSE(s.objects->find(s.key)) << kill_at;
      EXPECT_THAT(s.machine.programs, IsEmpty()) << kill_at;
    }
}

}  // namespace
}  // namespace carve::controller

#include "controller/jobs/job_reconciler.h"

#include <gmock/gmock.h>

#include "controller/nodes/testing/node_objects.h"
#include "controller/services/testing/effects_fake.h"
#include "controller/services/testing/store_stage.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A controller with a database, its machine, and a clock. The node has two devices of 16 GiB.
struct JobStage : StoreStage {
  EffectsFake machine;
  JobPositions positions;
  std::optional<JobReconciler> reconciler;

  JobStage() {
    machine.now = 1'700'000'000 * workload::second_ns;
    restart();
    add({.key = {objects::Kind::node, "default", "n1"}, .uid = "n1", .status = two_devices_of_16_gib()});
    add({.key = queue_key("q"), .uid = "q", .spec = objects::QueueSpec()});
  }

  void add(Object object) { ASSERT_TRUE(objects->add(std::move(object))); }
  void restart() {
    reconciler.reset();
    open();
    reconciler.emplace(*objects, std::move(*JobRecords::read(*store)), machine, positions, "/scripts");
  }

  void submit(const std::string& name, uint32_t tasks, uint32_t retries = 0) {
    objects::JobSpec spec{.queue = "q",
                          .parameters = {{"serverless.custom.job.gpu.enabled", "true"},
                                         {"serverless.custom.job.task.gpus", "1"},
                                         {"emr.serverless.mgpu.core", "30"},
                                         {"emr.serverless.mgpu.memory", "4096"}},
                          .run = {.command = {"train"}},
                          .tasks = tasks,
                          .retries = retries};
    add({.key = key(name), .account = "root", .uid = "1-" + name, .created_ns = machine.now, .spec = spec});
  }
  static ObjectKey key(const std::string& name) { return {objects::Kind::job, "default", name}; }
  objects::JobStatus status(const std::string& name) {
    const auto object = objects->find(key(name));
    return object ? *api::read<objects::JobStatus>(object->status.json(), api::Reading::lenient)
                  : objects::JobStatus{};
  }
  void turn(int turns = 1) {
    for (int i = 0; i < turns; ++i) {
      reconciler->reconcile(machine.now);
      machine.now += workload::second_ns / 10;
    }
  }
  // Ends every running program.
  void exit_all(uint32_t exit_status) {
    for (auto& [name, program] : machine.programs) machine.end_program(name, exit_status);
  }
  void cancel(const std::string& name) {
    ASSERT_TRUE(objects->update(key(name), [](Object& object) -> Outcome<void> {
      auto spec = job_spec(object);
      spec.cancelled = true;
      object.spec = spec;
      return {};
    }));
  }
};

TEST(JobReconciler, runs_each_task_once_in_its_slice_and_ends_the_slices) {
  JobStage s;
  s.submit("a", 2);
  s.turn(4);
  EXPECT_EQ(text(s.status("a").phase), "Running");
  EXPECT_THAT(s.machine.live, testing::SizeIs(2));
  const ProgramStart& start = s.machine.starts.at("a-task-1");
  EXPECT_THAT(start.command, ElementsAre("train"));
  EXPECT_EQ(start.env.at("CARVE_TASK_INDEX"), "1");
  EXPECT_EQ(start.env.at("CARVE_TASK_COUNT"), "2");
  EXPECT_EQ(start.node, "n1");
  s.exit_all(0);
  s.turn(4);
  EXPECT_EQ(text(s.status("a").phase), "Succeeded");
  EXPECT_EQ(s.status("a").exit_status, 0u);
  EXPECT_THAT(s.machine.live, IsEmpty());
  EXPECT_THAT(s.machine.started_twice, IsEmpty());
}

TEST(JobReconciler, returns_a_job_to_its_queue_if_a_node_rejects_one_of_its_slices) {
  JobStage s;
  s.machine.capacity = 2;  // The forecast does not include this limit.
  s.submit("a", 3);
  s.turn(6);
  EXPECT_EQ(text(s.status("a").phase), "Queued");
  EXPECT_EQ(s.status("a").reason, "no device has the capacity");
  EXPECT_THAT(s.machine.live, IsEmpty());
  EXPECT_THAT(s.machine.starts, IsEmpty());
  s.machine.capacity = 3;
  s.turn(60);
  EXPECT_EQ(text(s.status("a").phase), "Running");
  EXPECT_THAT(s.machine.live, testing::SizeIs(3));
}

TEST(JobReconciler, reports_the_position_of_each_waiting_job_and_what_the_devices_lack) {
  JobStage s;
  s.machine.device = two_devices_of_16_gib().devices[0].uuid;
  s.submit("r", 3);  // 30 % each: three fit on a device.
  s.turn(4);
  s.submit("a", 4);
  s.submit("b", 1);
  s.turn(2);
  const auto head = s.positions.find("1-a"), behind = s.positions.find("1-b");
  ASSERT_TRUE(head && behind);
  EXPECT_EQ(head->position, 1u);
  EXPECT_THAT(head->reason, HasSubstr("slice 4 of 4: node n1: "));
  EXPECT_EQ(behind->position, 2u);
  EXPECT_EQ(behind->reason, "a is first in the queue");
  s.cancel("a");
  s.turn(6);
  EXPECT_EQ(text(s.status("a").phase), "Cancelled");
  EXPECT_EQ(text(s.status("b").phase), "Running");
  EXPECT_EQ(s.positions.size(), 0u);
}

TEST(JobReconciler, lets_jobs_pass_a_job_that_fits_on_no_empty_device) {
  JobStage s;
  ASSERT_TRUE(s.objects->remove({objects::Kind::node, "default", "n1"}));
  s.submit("large", 7);  // Accepted because no device is known; only six fit.
  s.submit("b", 1);
  s.turn(3);
  s.add({.key = {objects::Kind::node, "default", "n1"}, .uid = "n1", .status = two_devices_of_16_gib()});
  s.turn(6);
  EXPECT_EQ(text(s.status("b").phase), "Running");
  ASSERT_TRUE(s.positions.find("1-large"));
  EXPECT_THAT(s.positions.find("1-large")->reason,
              HasSubstr("all devices together have room for only 6 of the job's 7"));
  // A node that is added later has room for it.
  objects::NodeStatus second = two_devices_of_16_gib();
  for (auto& device : second.devices) device.uuid.back() += 4;
  s.machine.nodes.push_back("n2");
  s.add({.key = {objects::Kind::node, "default", "n2"}, .uid = "n2", .status = second});
  s.turn(20);
  EXPECT_EQ(text(s.status("large").phase), "Running");
}

TEST(JobReconciler, shows_a_deleted_job_in_the_phase_deleting) {
  JobStage s;
  s.submit("a", 1);
  s.turn(4);
  s.machine.delays_programs = true;  // SIGTERM has no effect.
  s.machine.delayed["a-task-0"] = s.machine.programs["a-task-0"].seen;
  ASSERT_TRUE(s.objects->update(JobStage::key("a"), [](Object& object) -> Outcome<void> {
    object.is_ending = true;
    return {};
  }));
  s.turn(2);
  EXPECT_EQ(text(s.status("a").phase), "Deleting");
  s.turn(12);
  EXPECT_FALSE(s.objects->find(JobStage::key("a"))) << "killed after its grace period";
}

TEST(JobReconciler, restarts_a_failed_task_and_ends_the_others_if_it_fails_too_often) {
  JobStage s;
  s.submit("a", 2, 1);
  s.turn(4);
  s.machine.end_program("a-task-0", 3);
  s.turn(20);
  EXPECT_EQ(s.machine.programs.at("a-task-0").seen.attempt, 2u);
  EXPECT_EQ(s.machine.programs.at("a-task-1").seen.attempt, 1u);
  s.machine.end_program("a-task-0", 4);
  s.turn(20);
  EXPECT_EQ(text(s.status("a").phase), "Failed");
  EXPECT_EQ(s.status("a").exit_status, 4u);
  EXPECT_EQ(s.status("a").reason, "task 0: exit status 4");
  EXPECT_THAT(s.machine.live, IsEmpty());
}

TEST(JobReconciler, returns_a_job_to_its_queue_if_its_node_is_drained) {
  JobStage s;
  s.submit("a", 2);
  s.turn(4);
  s.machine.end_program("a-task-0", 0);
  s.turn(2);
  const ObjectKey node{objects::Kind::node, "default", "n1"};
  const auto set_draining = [&](bool draining) {
    ASSERT_TRUE(s.objects->update(node, [&](Object& object) -> Outcome<void> {
      object.spec = objects::NodeSpec{.schedulable = !draining, .draining = draining};
      return {};
    }));
  };
  set_draining(true);
  s.turn(20);
  EXPECT_EQ(text(s.status("a").phase), "Queued");
  EXPECT_THAT(s.machine.live, IsEmpty());
  set_draining(false);
  s.turn(40);
  EXPECT_EQ(text(s.status("a").phase), "Running");
  EXPECT_EQ(s.machine.programs.at("a-task-0").seen.attempt, 1u) << "the task had succeeded before";
  EXPECT_EQ(s.machine.programs.at("a-task-1").seen.attempt, 2u);
  s.exit_all(0);
  s.turn(6);
  EXPECT_EQ(text(s.status("a").phase), "Succeeded");
}

TEST(JobReconciler, fails_a_job_whose_program_cannot_be_started_with_the_reason) {
  JobStage s;
  s.machine.refuses_start = "this machine has no user with the uid 7";
  s.submit("a", 1, 1);
  s.turn(40);
  EXPECT_EQ(text(s.status("a").phase), "Failed");
  EXPECT_EQ(s.status("a").reason, s.machine.refuses_start);
  EXPECT_THAT(s.machine.live, IsEmpty());
}

TEST(JobReconciler, fails_the_task_whose_slice_a_user_ended) {
  JobStage s;
  s.submit("a", 1);
  s.turn(4);
  s.machine.live.clear();
  s.turn(6);
  EXPECT_EQ(text(s.status("a").phase), "Failed");
  EXPECT_EQ(s.status("a").exit_status, 137u);
}

TEST(JobReconciler, repeats_the_request_for_a_slice_whose_response_was_lost) {
  JobStage s;
  s.machine.loses_answers = true;
  s.submit("a", 2);
  s.turn(3);
  s.machine.loses_answers = false;
  s.turn(6);
  EXPECT_EQ(text(s.status("a").phase), "Running");
  EXPECT_THAT(s.machine.granted_twice, IsEmpty());
  EXPECT_THAT(s.machine.live, testing::SizeIs(2));
}

// The controller is killed before or after the effect of each of its calls, and always reaches the same end
// state.
TEST(JobReconciler, reaches_the_same_state_if_killed_at_any_call) {
  for (const bool has_effect : {false, true})
    for (int calls = 0; calls < 14; ++calls) {
      SCOPED_TRACE(fmt::format("killed after {} calls, effect {}", calls, has_effect));
      JobStage s;
      s.submit("a", 2, 1);
      s.submit("b", 1);
      s.machine.calls_left = calls;
      s.machine.last_has_effect = has_effect;
      bool killed = false;
      for (int i = 0; i < 100; ++i) {
        try {
          s.turn();
        } catch (const Killed&) {
          killed = true;
          s.machine.calls_left = -1;
          s.restart();
        }
        if (i == 60) s.exit_all(0);
      }
      EXPECT_TRUE(killed || calls > 8);
      for (const char* job : {"a", "b"}) {
        EXPECT_EQ(text(s.status(job).phase), "Succeeded") << job;
        for (const objects::PodStatus& pod : s.status(job).pods)
          EXPECT_EQ(s.machine.programs.at(pod.program).seen.attempt, 1u);
      }
      EXPECT_THAT(s.machine.live, IsEmpty());
      EXPECT_THAT(s.machine.started_twice, IsEmpty());
      EXPECT_THAT(s.machine.granted_twice, IsEmpty());
    }
}

TEST(JobReconciler, keeps_a_cluster_whose_slices_differ_in_size_until_it_is_deleted) {
  JobStage s;
  const ObjectKey key{objects::Kind::ray_cluster, "default", "c"};
  const objects::RayClusterSpec spec{.queue = "q",
                                     .workers = {{.replicas = 1, .mgpu_core = 30, .mgpu_memory = 4096},
                                                 {.replicas = 1, .mgpu_core = 50, .mgpu_memory = 8192}},
                                     .engine_home = "/ray/bin"};
  s.add({.key = key, .account = "root", .uid = "1-c", .created_ns = s.machine.now, .spec = spec});
  s.turn(4);
  const auto status = [&] {
    return *api::read<objects::JobStatus>(s.objects->find(key)->status.json(), api::Reading::lenient);
  };
  EXPECT_EQ(text(status().phase), "Running");
  EXPECT_EQ(status().dashboard, "http://127.0.0.1:20000");
  EXPECT_EQ(status().dashboard_token, "secret-1");
  EXPECT_EQ(s.machine.live.at("c-worker-0").memory_bytes, (4096_MiB).count);
  EXPECT_EQ(s.machine.live.at("c-worker-1").memory_bytes, (8192_MiB).count);
  EXPECT_EQ(s.machine.live.at("c-worker-1").share_bp, 5000u);
  s.restart();
  s.machine.end_program("c-worker-1", 0);  // Even exit status 0 does not end the cluster.
  s.turn(4);
  EXPECT_EQ(text(status().phase), "Starting");
  EXPECT_THAT(status().reason, testing::MatchesRegex("worker 1 ended: .*; it will be restarted"));
  s.turn(20);
  EXPECT_EQ(text(status().phase), "Running");
  EXPECT_EQ(status().reason, "");
  EXPECT_EQ(s.machine.programs.at("c-worker-1").seen.attempt, 2u);
  EXPECT_EQ(s.machine.programs.at("c-worker-0").seen.attempt, 1u);
  EXPECT_THAT(s.machine.live, testing::SizeIs(2));
  ASSERT_TRUE(s.objects->update(key, [](Object& object) -> Outcome<void> {
    object.is_ending = true;
    return {};
  }));
  s.turn(10);
  EXPECT_FALSE(s.objects->find(key));
  EXPECT_THAT(s.machine.live, IsEmpty());
  EXPECT_THAT(s.machine.started_twice, IsEmpty());
}

// A cluster with a group of small and a group of large workers; the shares allow three small workers per
// device.
struct ClusterStage : JobStage {
  const ObjectKey cluster{objects::Kind::ray_cluster, "default", "c"};

  explicit ClusterStage(uint32_t small, uint32_t large) {
    add({.key = cluster,
         .account = "root",
         .uid = "1-c",
         .created_ns = machine.now,
         .spec = spec(small, large)});
  }
  static objects::RayClusterSpec spec(uint32_t small, uint32_t large) {
    return {.queue = "q",
            .workers = {{.replicas = small, .mgpu_core = 30, .mgpu_memory = 2048},
                        {.replicas = large, .mgpu_core = 50, .mgpu_memory = 4096}},
            .engine_home = "/ray/bin"};
  }
  void scale(uint32_t small, uint32_t large) {
    ASSERT_TRUE(objects->update(cluster, [&](Object& object) -> Outcome<void> {
      object.spec = spec(small, large);
      return {};
    }));
  }
  objects::JobStatus cluster_status() {
    return *api::read<objects::JobStatus>(objects->find(cluster)->status.json(), api::Reading::lenient);
  }
  std::vector<std::string> slices() const {
    std::vector<std::string> out;
    for (const auto& [name, slice] : machine.live) out.push_back(name);
    return out;
  }
  uint32_t attempt(const std::string& program) const { return machine.programs.at(program).seen.attempt; }
};

TEST(JobReconciler, adds_and_removes_workers_of_a_cluster_while_the_others_keep_running) {
  ClusterStage s(1, 1);
  s.turn(4);
  EXPECT_THAT(s.slices(), ElementsAre("c-worker-0", "c-worker-1"));
  s.scale(3, 1);
  s.turn(6);
  EXPECT_THAT(s.slices(), ElementsAre("c-worker-0", "c-worker-1", "c-worker-2", "c-worker-4"));
  EXPECT_EQ(s.machine.live.at("c-worker-4").memory_bytes, (2048_MiB).count);
  EXPECT_EQ(text(s.cluster_status().phase), "Running");
  EXPECT_EQ(s.cluster_status().gpu, "3 of 2 GiB, 30%; 1 of 4 GiB, 50%");
  s.scale(1, 2);
  s.turn(8);
  EXPECT_THAT(s.slices(), ElementsAre("c-worker-0", "c-worker-1", "c-worker-3"));
  EXPECT_EQ(s.machine.live.at("c-worker-3").memory_bytes, (4096_MiB).count);
  EXPECT_EQ(text(s.cluster_status().phase), "Running");
  EXPECT_THAT(s.cluster_status().pods, testing::SizeIs(4));
  EXPECT_FALSE(s.machine.programs.contains("c-worker-2")) << "the worker is dropped with its log";
  for (const char* program : {"c-head-0", "c-worker-0", "c-worker-1"}) EXPECT_EQ(s.attempt(program), 1u);
  s.restart();
  s.turn(4);
  EXPECT_THAT(s.slices(), testing::SizeIs(3));
  EXPECT_THAT(s.machine.started_twice, IsEmpty());
  EXPECT_THAT(s.machine.granted_twice, IsEmpty());
}

TEST(JobReconciler, queues_further_workers_of_a_cluster_together) {
  ClusterStage s(1, 1);
  s.turn(4);
  s.scale(8, 1);  // The forecast does not count the machine's slices and has room for six.
  s.turn(4);
  EXPECT_THAT(s.slices(), testing::SizeIs(2)) << "none of the seven workers is admitted";
  EXPECT_EQ(text(s.cluster_status().phase), "Running");
  EXPECT_EQ(s.cluster_status().slices, 9u);
  const auto position = s.positions.find("1-c");
  ASSERT_TRUE(position);
  EXPECT_EQ(position->position, 1u);
  EXPECT_THAT(position->reason, HasSubstr("7 more workers wait: slice 7 of 7: node n1: "));
  s.submit("a", 1);
  s.turn(4);
  EXPECT_EQ(s.positions.find("1-a")->reason, "c is first in the queue");
  s.restart();
  s.scale(2, 1);
  s.turn(6);
  EXPECT_THAT(s.slices(), ElementsAre("a-task-0", "c-worker-0", "c-worker-1", "c-worker-2"));
  EXPECT_EQ(s.positions.size(), 0u);
}

TEST(JobReconciler, returns_all_further_workers_if_a_node_rejects_one_of_them) {
  ClusterStage s(1, 1);
  s.turn(4);
  s.machine.capacity = 3;  // The forecast does not include this limit.
  s.scale(3, 1);
  s.turn(5);
  EXPECT_THAT(s.slices(), ElementsAre("c-worker-0", "c-worker-1"));
  EXPECT_THAT(s.positions.find("1-c")->reason, "2 more workers wait: no device has the capacity");
  EXPECT_EQ(text(s.cluster_status().phase), "Running");
  s.machine.capacity = 4;
  s.turn(80);
  EXPECT_THAT(s.slices(), testing::SizeIs(4));
  EXPECT_EQ(s.attempt("c-worker-0"), 1u);
  EXPECT_THAT(s.machine.started_twice, IsEmpty());
}

// The controller is killed at each of its calls while the cluster gets more workers and then fewer.
TEST(JobReconciler, reaches_the_same_state_if_killed_while_a_cluster_changes) {
  for (const bool has_effect : {false, true})
    for (int calls = 0; calls < 16; ++calls) {
      SCOPED_TRACE(fmt::format("killed after {} calls, effect {}", calls, has_effect));
      ClusterStage s(1, 1);
      s.turn(4);
      s.machine.calls_left = calls;
      s.machine.last_has_effect = has_effect;
      s.scale(3, 1);
      for (int i = 0; i < 120; ++i) {
        try {
          s.turn();
        } catch (const Killed&) {
          s.machine.calls_left = -1;
          s.restart();
        }
        if (i == 60) {
          EXPECT_THAT(s.slices(), testing::SizeIs(4));
          s.scale(1, 1);
        }
      }
      EXPECT_THAT(s.slices(), ElementsAre("c-worker-0", "c-worker-1"));
      EXPECT_EQ(text(s.cluster_status().phase), "Running");
      EXPECT_THAT(s.machine.started_twice, IsEmpty());
      EXPECT_THAT(s.machine.granted_twice, IsEmpty());
    }
}

TEST(JobReconciler, removes_a_finished_job_and_its_programs_after_its_time_to_live) {
  JobStage s;
  s.submit("a", 1);
  s.turn(4);
  s.exit_all(0);
  s.turn(4);
  EXPECT_TRUE(s.objects->find(JobStage::key("a")));
  s.machine.now += 7 * 86'400 * workload::second_ns;
  s.turn(2);
  EXPECT_FALSE(s.objects->find(JobStage::key("a")));
  EXPECT_THAT(s.machine.programs, IsEmpty());
}

}  // namespace
}  // namespace carve::controller

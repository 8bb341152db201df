#include "workload/job.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace carve::workload {
namespace {

using Kind = JobAction::Kind;
constexpr Ns tick = second_ns / 10;

std::string text(PodId id) {
  constexpr const char* roles[] = {"driver", "executor", "head", "worker", "task"};
  return fmt::format("{}-{}", roles[static_cast<size_t>(id.role)], id.index);
}

std::string text(const std::vector<JobAction>& list) {
  constexpr const char* kinds[] = {"create", "start",   "terminate", "kill",  "end",
                                   "forget", "requeue", "finish",    "remove"};
  constexpr const char* ends[] = {"succeeded", "failed", "lost", "deadline", "cancelled"};
  std::string out;
  for (const JobAction& action : list) {
    out += out.empty() ? "" : ", ";
    out += kinds[static_cast<size_t>(action.kind)];
    if (action.kind < Kind::requeue) out += " " + text(action.pod);
    if (action.kind == Kind::start && action.attempt > 1) out += fmt::format(" ({})", action.attempt);
    if (action.kind == Kind::finish) out += fmt::format(" {}", ends[static_cast<size_t>(action.end)]);
  }
  return out;
}

Job tasks(uint32_t count, unsigned retries = 0) {
  Job job;
  job.name = "train";
  for (uint32_t i = 0; i < count; ++i) job.pods.push_back({.id = {PodRole::task, i}});
  job.retries = retries;
  return job;
}

Job spark(uint32_t executors, unsigned retries = 0) {
  Job job;
  job.name = "spark-1";
  job.pods.push_back({.id = {PodRole::driver, 0}, .needs_slice = false});
  for (uint32_t i = 0; i < executors; ++i) job.pods.push_back({.id = {PodRole::executor, i}});
  job.retries = retries;
  return job;
}

// The machines that run one job.
struct Machines {
  JobObserved observed;
  size_t capacity = 1000;
  bool ignores_sigterm = false;
  bool removed = false;
  std::map<PodId, unsigned> starts;

  Pod& pod(PodId id) {
    for (Pod& pod : observed.pods)
      if (pod.id == id) return pod;
    observed.pods.push_back({.id = id});
    return observed.pods.back();
  }

  size_t slices() const { return static_cast<size_t>(std::ranges::count_if(observed.pods, &Pod::has_slice)); }

  void exit(PodId id, int status, Ns now) {
    Pod& p = pod(id);
    p.program = status < 0 ? PodProgram::lost : PodProgram::exited;
    p.program_since = now;
    p.failures += status != 0;
    p.terminated_at.reset();
  }

  void carry_out(const Job& job, const JobAction& action, Ns now) {
    switch (action.kind) {
      case Kind::create_slice:
        ASSERT_FALSE(pod(action.pod).has_slice) << "slice granted twice";
        if (slices() >= capacity) {
          observed.refusal = {now, observed.refusal ? observed.refusal->times + 1 : 1};
        } else {
          pod(action.pod).has_slice = true;
          observed.refusal.reset();
        }
        break;
      case Kind::start: {
        Pod& p = pod(action.pod);
        ASSERT_NE(p.program, PodProgram::running) << "started twice";
        const auto spec = std::ranges::find(job.pods, action.pod, &PodSpec::id);
        ASSERT_TRUE(p.has_slice || !spec->needs_slice);
        p.program = PodProgram::running, p.program_since = now, p.attempt = action.attempt;
        ++starts[action.pod];
        break;
      }
      case Kind::terminate:
        ASSERT_FALSE(pod(action.pod).terminated_at);
        pod(action.pod).terminated_at = now;
        break;
      case Kind::kill: exit(action.pod, 137, now); break;
      case Kind::end_slice:
        ASSERT_NE(pod(action.pod).program, PodProgram::running);
        pod(action.pod).has_slice = false;
        break;
      case Kind::forget:
        ASSERT_FALSE(pod(action.pod).has_slice);
        std::erase_if(observed.pods, [&](const Pod& p) { return p.id == action.pod; });
        break;
      case Kind::requeue:
        ASSERT_EQ(slices(), 0u);
        observed.admitted_at.reset(), observed.refusal.reset();
        break;
      case Kind::finish:
        ASSERT_FALSE(observed.finished);
        observed.finished = {action.end, now};
        break;
      case Kind::remove: removed = true; break;
    }
  }

  // Lets one tick pass, in which programs with SIGTERM end.
  void pass(Ns now) {
    for (Pod& p : observed.pods)
      if (p.program == PodProgram::running && p.terminated_at && !ignores_sigterm) exit(p.id, 143, now);
  }
};

std::string run(Machines& machines, const Job& job, int from, int to) {
  std::string log;
  for (int t = from; t <= to; ++t) {
    machines.pass(t * tick);
    const auto list = actions(job, machines.observed, t * tick);
    if (!list.empty()) log += fmt::format("{}: {}\n", t, text(list));
    for (const JobAction& action : list) machines.carry_out(job, action, t * tick);
  }
  return log;
}

Job cluster(uint32_t workers) {
  Job job;
  job.name = "c";
  job.pods.push_back({.id = {PodRole::head, 0}, .needs_slice = false});
  for (uint32_t i = 0; i < workers; ++i) job.pods.push_back({.id = {PodRole::worker, i}});
  job.stays = true;
  return job;
}

TEST(Job, that_stays_restarts_only_a_failed_worker_but_all_pods_with_its_head) {
  Machines machines;
  Job job = cluster(2);
  ASSERT_TRUE(validated(job));
  machines.observed.admitted_at = 0;
  EXPECT_EQ(run(machines, job, 0, 9),
            "0: create worker-0, create worker-1\n1: start head-0, start worker-0, start worker-1\n");
  EXPECT_EQ(phase(job, machines.observed), JobPhase::running);
  machines.exit({PodRole::worker, 1}, 1, 10 * tick);
  EXPECT_EQ(phase(job, machines.observed), JobPhase::starting);
  EXPECT_EQ(run(machines, job, 10, 29), "20: start worker-1 (2)\n");
  machines.exit({PodRole::head, 0}, 137, 30 * tick);
  EXPECT_EQ(run(machines, job, 30, 99),
            "30: terminate worker-0, terminate worker-1\n"
            "40: start head-0 (2)\n41: start worker-0 (3)\n51: start worker-1 (4)\n");
  EXPECT_EQ(phase(job, machines.observed), JobPhase::running);
  EXPECT_EQ(machines.slices(), 2u);
}

TEST(Job, that_stays_adds_and_removes_workers_while_the_others_keep_running) {
  Machines machines;
  machines.observed.admitted_at = 0;
  run(machines, cluster(2), 0, 5);
  EXPECT_EQ(run(machines, cluster(3), 6, 20), "6: create worker-2\n7: start worker-2\n");
  EXPECT_EQ(phase(cluster(3), machines.observed), JobPhase::running);
  EXPECT_EQ(run(machines, cluster(1), 21, 40),
            "21: terminate worker-1, terminate worker-2\n22: end worker-1, end worker-2\n"
            "23: forget worker-1, forget worker-2\n");
  EXPECT_EQ(phase(cluster(1), machines.observed), JobPhase::running);
  EXPECT_EQ(machines.slices(), 1u);
  EXPECT_EQ(run(machines, cluster(2), 41, 60), "41: create worker-1\n42: start worker-1\n")
      << "the worker is new and was not started before";
  EXPECT_EQ(machines.starts.at({PodRole::head, 0}), 1u);
  EXPECT_EQ(machines.starts.at({PodRole::worker, 0}), 1u);
}

TEST(Job, that_stays_kills_a_removed_worker_if_it_ignores_sigterm) {
  Machines machines;
  machines.observed.admitted_at = 0;
  machines.ignores_sigterm = true;
  run(machines, cluster(2), 0, 5);
  EXPECT_EQ(run(machines, cluster(1), 10, 30),
            "10: terminate worker-1\n15: kill worker-1\n16: end worker-1\n17: forget worker-1\n");
  Job ended = cluster(1);
  run(machines, cluster(2), 31, 40);
  ended.cancelled = true;
  run(machines, ended, 41, 60);  // The removed worker is stopped together with the others.
  EXPECT_EQ(machines.slices(), 0u);
}

TEST(Job, that_stays_never_ends_until_it_is_cancelled) {
  Machines machines;
  Job job = cluster(1);
  job.deadline = second_ns;
  machines.observed.admitted_at = 0;
  run(machines, job, 0, 5);
  for (int round = 1; round <= 20; ++round) {
    machines.exit({PodRole::worker, 0}, 1, round * 1000 * tick);
    run(machines, job, round * 1000, round * 1000 + 700);
    EXPECT_EQ(phase(job, machines.observed), JobPhase::running) << round;
  }
  EXPECT_EQ(machines.starts.at({PodRole::worker, 0}), 21u);
  job.cancelled = true;
  job.ttl = 0;
  run(machines, job, 30'000, 30'020);
  EXPECT_EQ(phase(job, machines.observed), JobPhase::cancelled);
  EXPECT_EQ(machines.slices(), 0u);
  EXPECT_TRUE(machines.removed);
}

TEST(Job, restarts_a_failed_task_but_not_the_other_one) {
  Machines machines;
  const Job job = tasks(2, 1);
  EXPECT_EQ(run(machines, job, 0, 5), "");
  EXPECT_EQ(phase(job, machines.observed), JobPhase::queued);
  machines.observed.admitted_at = 0;
  EXPECT_EQ(phase(job, machines.observed), JobPhase::starting);
  EXPECT_EQ(run(machines, job, 10, 20), "10: create task-0, create task-1\n11: start task-0, start task-1\n");
  EXPECT_EQ(phase(job, machines.observed), JobPhase::running);
  machines.exit({PodRole::task, 0}, 1, 20 * tick);
  EXPECT_EQ(run(machines, job, 21, 40), "30: start task-0 (2)\n");
  machines.exit({PodRole::task, 1}, 0, 40 * tick);
  EXPECT_EQ(run(machines, job, 41, 50), "41: end task-1\n") << "its slice is not billed any longer";
  machines.exit({PodRole::task, 0}, 0, 50 * tick);
  EXPECT_EQ(run(machines, job, 51, 60), "51: finish succeeded\n52: end task-0\n");
  EXPECT_EQ(phase(job, machines.observed), JobPhase::succeeded);
  EXPECT_EQ(run(machines, job, 6'048'050, 6'048'050), "");
  EXPECT_EQ(run(machines, job, 6'048'051, 6'048'051), "6048051: remove\n") << "7 days after its end";
}

TEST(Job, fails_and_stops_the_other_tasks_if_a_task_fails_too_often) {
  Machines machines;
  machines.observed.admitted_at = 0;
  const Job job = tasks(2);
  run(machines, job, 0, 1);
  machines.exit({PodRole::task, 0}, 3, tick);
  EXPECT_EQ(run(machines, job, 2, 9),
            "2: finish failed\n"
            "3: end task-0, terminate task-1\n"
            "4: end task-1\n");
  EXPECT_EQ(phase(job, machines.observed), JobPhase::failed);
}

TEST(Job, restarts_all_pods_if_its_driver_fails) {
  Machines machines;
  machines.observed.admitted_at = 0;
  const Job job = spark(2, 1);
  EXPECT_EQ(run(machines, job, 0, 5),
            "0: create executor-0, create executor-1\n"
            "1: start driver-0, start executor-0, start executor-1\n");
  machines.exit({PodRole::executor, 1}, 1, 5 * tick);
  EXPECT_EQ(run(machines, job, 6, 9), "6: end executor-1\n")
      << "the end of an executor is left to the driver";
  machines.exit({PodRole::driver, 0}, 1, 10 * tick);
  EXPECT_EQ(run(machines, job, 11, 30),
            "11: terminate executor-0, create executor-1\n"
            "20: start driver-0 (2), start executor-0 (2), start executor-1 (2)\n");
  machines.exit({PodRole::driver, 0}, 0, 40 * tick);
  EXPECT_EQ(run(machines, job, 41, 50),
            "41: finish succeeded\n"
            "42: terminate executor-0, terminate executor-1\n"
            "43: end executor-0, end executor-1\n");
}

TEST(Job, stops_a_driver_that_has_no_executors_left) {
  Machines machines;
  machines.observed.admitted_at = 0;
  const Job job = spark(2);
  run(machines, job, 0, 5);
  machines.exit({PodRole::executor, 0}, 1, 5 * tick);
  machines.exit({PodRole::executor, 1}, 1, 5 * tick);
  EXPECT_EQ(run(machines, job, 6, 9),
            "6: terminate driver-0, end executor-0, end executor-1\n"
            "7: finish failed\n");
  EXPECT_EQ(phase(job, machines.observed), JobPhase::failed);
}

TEST(Job, counts_a_stopped_driver_as_failed_even_if_its_end_was_not_seen) {
  Machines machines;
  machines.observed.admitted_at = 0;
  machines.ignores_sigterm = true;
  Job job = tasks(0);
  job.pods = {{.id = {PodRole::driver, 0}, .needs_slice = false},
              {.id = {PodRole::head, 0}, .needs_slice = false}};
  run(machines, job, 0, 3);
  machines.exit({PodRole::head, 0}, 137, 5 * tick);
  run(machines, job, 5, 6);
  Pod& driver = machines.pod({PodRole::driver, 0});
  ASSERT_TRUE(driver.terminated_at);
  driver.program = PodProgram::lost;
  driver.failures = 1;
  run(machines, job, 7, 10);
  EXPECT_EQ(phase(job, machines.observed), JobPhase::failed);
}

TEST(Job, stops_a_driver_that_has_no_head_left) {
  Machines machines;
  machines.observed.admitted_at = 0;
  Job job = spark(1);
  job.pods.push_back({.id = {PodRole::head, 0}, .needs_slice = false});
  run(machines, job, 0, 5);
  machines.exit({PodRole::head, 0}, 137, 5 * tick);
  EXPECT_EQ(run(machines, job, 6, 8),
            "6: terminate driver-0\n"
            "7: finish failed\n"
            "8: terminate executor-0\n");
}

TEST(Job, is_stopped_before_it_returns_to_its_queue) {
  Machines machines;
  machines.observed.admitted_at = 0;
  const Job job = tasks(2);
  run(machines, job, 0, 1);
  machines.exit({PodRole::task, 0}, 0, tick);
  machines.observed.returns = true;
  EXPECT_EQ(run(machines, job, 2, 4),
            "2: terminate task-1\n"
            "3: end task-0, end task-1\n"
            "4: requeue\n");
}

TEST(Job, releases_its_slices_and_requeues_unless_it_gets_all_of_them) {
  Machines machines;
  machines.observed.admitted_at = 0;
  machines.capacity = 2;
  const Job job = tasks(3);
  EXPECT_EQ(run(machines, job, 0, 9),
            "0: create task-0, create task-1, create task-2\n"
            "1: end task-0, end task-1\n"
            "2: requeue\n");
  EXPECT_EQ(phase(job, machines.observed), JobPhase::queued);
}

TEST(Job, ends_by_deadline_cancellation_and_lost_programs) {
  struct Row {
    const char* what;
    void (*change)(Job&, Machines&);
    const char* log;
    JobPhase phase;
  } const rows[] = {
      {"the deadline counts from the admission", [](Job& j, Machines&) { j.deadline = 20 * tick; },
       "20: finish deadline\n21: terminate task-0\n22: end task-0\n", JobPhase::failed},
      {"cancelled", [](Job& j, Machines&) { j.cancelled = true; },
       "10: finish cancelled\n11: terminate task-0\n12: end task-0\n", JobPhase::cancelled},
      {"cancelled while it waits", [](Job& j, Machines& m) { j.cancelled = true, m.observed = {}; },
       "10: finish cancelled\n", JobPhase::cancelled},
      {"SIGKILL after 500 ms", [](Job& j, Machines& m) { j.cancelled = true, m.ignores_sigterm = true; },
       "10: finish cancelled\n11: terminate task-0\n16: kill task-0\n17: end task-0\n", JobPhase::cancelled},
      {"lost",
       [](Job&, Machines& m) {
         m.exit({PodRole::task, 0}, -1, 9 * tick);
       },
       "10: finish lost\n11: end task-0\n", JobPhase::lost},
      {"lost, with a retry",
       [](Job& j, Machines& m) {
         j.retries = 1, m.exit({PodRole::task, 0}, -1, 9 * tick);
       },
       "19: start task-0 (2)\n", JobPhase::running},
      {"lost with its slice",
       [](Job& j, Machines& m) {
         j.retries = 1, m.exit({PodRole::task, 0}, -1, 9 * tick);
         m.pod({PodRole::task, 0}).has_slice = false;
       },
       "10: create task-0\n19: start task-0 (2)\n", JobPhase::running},
      {"a result before the deadline stays",
       [](Job& j, Machines& m) {
         j.deadline = 10 * tick, m.exit({PodRole::task, 0}, 0, 9 * tick);
       },
       "10: finish succeeded\n11: end task-0\n", JobPhase::succeeded},
  };
  for (const Row& row : rows) {
    Machines machines;
    machines.observed.admitted_at = 0;
    Job job = tasks(1);
    run(machines, job, 0, 1);
    row.change(job, machines);
    EXPECT_EQ(run(machines, job, 10, 30), row.log) << row.what;
    EXPECT_EQ(phase(job, machines.observed), row.phase) << row.what;
  }
}

TEST(Job, that_cannot_be_run_is_rejected) {
  const auto message = [](Job job) {
    const auto result = validated(std::move(job));
    return result ? std::string() : result.error().message;
  };
  EXPECT_EQ(message(tasks(3, 100)), "");
  EXPECT_EQ(message(spark(3)), "");
  EXPECT_EQ(message(tasks(0)), "0 drivers and 0 tasks: a job must have either one driver or tasks");
  EXPECT_EQ(message(tasks(1025)), "1025 pods are requested; a job can have at most 1024");
  EXPECT_EQ(message(tasks(1, 101)), "retries 101: must be 0 to 100");
  Job both = spark(1);
  both.pods.push_back({.id = {PodRole::task, 0}});
  EXPECT_EQ(message(both), "1 drivers and 1 tasks: a job must have either one driver or tasks");
  Job twice = tasks(1);
  twice.pods.push_back(twice.pods[0]);
  EXPECT_EQ(message(twice), "two pods have the same role and index 0");
  Job negative = tasks(1);
  negative.deadline = -1;
  EXPECT_NE(message(negative), "");
  for (const char* name : {"", "-a", "a-", "A", "a_b"}) {
    Job job = tasks(1);
    job.name = name;
    EXPECT_NE(message(job), "") << name;
  }
}

// A history with one seed. Programs fail or are lost, slices are rejected, the job is cancelled or reaches
// its deadline, and the controller is killed between any two actions.
class History {
 public:
  explicit History(unsigned seed) : dice_(seed) {
    job_ = dice_() % 2 == 0 ? tasks(1 + dice_() % 5, dice_() % 4) : spark(dice_() % 5, dice_() % 4);
    if (dice_() % 4 == 0) job_.deadline = (1 + dice_() % 900) * tick;
    machines_.ignores_sigterm = dice_() % 4 == 0;
    machines_.capacity = dice_() % 7;
  }

  bool ends() {
    for (int i = 0; i < 20'000; ++i) {
      now_ += tick;
      if (!machines_.observed.admitted_at && dice_() % 10 == 0) machines_.observed.admitted_at = now_;
      if (dice_() % 60 == 0) machines_.capacity = job_.pods.size();
      if (dice_() % 3000 == 0) job_.cancelled = true;
      disturb();
      tick_once(!machines_.observed.finished && dice_() % 4 == 0);
      if (testing::Test::HasFatalFailure()) return false;
      if (machines_.observed.finished && now_ >= machines_.observed.finished->at + second_ns) return true;
    }
    return false;
  }

  void check_end() {
    ASSERT_EQ(machines_.slices(), 0u) << "every slice is released within 1 s";
    for (const Pod& pod : machines_.observed.pods) ASSERT_NE(pod.program, PodProgram::running);
    for (const auto& [id, count] : machines_.starts) ASSERT_LE(count, job_.retries + 1) << text(id);
    const auto left = actions(job_, machines_.observed, machines_.observed.finished->at + job_.ttl);
    ASSERT_EQ(text(left), "remove");
    ++ends_[phase(job_, machines_.observed)];
  }

  static std::map<JobPhase, unsigned> ends_;

 private:
  void disturb() {
    for (Pod& pod : machines_.observed.pods) {
      if (pod.program != PodProgram::running || dice_() % 60 != 0) continue;
      const int statuses[] = {0, 0, 0, 1, -1};
      machines_.exit(pod.id, statuses[dice_() % 5], now_);
      if (pod.program == PodProgram::lost && dice_() % 2 == 0) pod.has_slice = false;
    }
  }

  void tick_once(bool killed) {
    machines_.pass(now_);
    const auto list = actions(job_, machines_.observed, now_);
    const size_t done = killed ? dice_() % (list.size() + 1) : list.size();
    for (size_t i = 0; i < done; ++i) {
      if (list[i].kind == Kind::start && list[i].attempt == 1) {
        const auto is_without_slice = [&](const PodSpec& spec) {
          const Pod& pod = machines_.pod(spec.id);
          return spec.needs_slice && !pod.has_slice && pod.attempt == 0;
        };
        ASSERT_FALSE(std::ranges::any_of(job_.pods, is_without_slice)) << "all slices or none";
      }
      machines_.carry_out(job_, list[i], now_);
      if (testing::Test::HasFatalFailure()) return;
    }
  }

  std::mt19937 dice_;
  Machines machines_;
  Job job_;
  Ns now_ = 0;
};
std::map<JobPhase, unsigned> History::ends_;

TEST(Job, has_one_end_and_releases_every_slice_in_any_history) {
  for (unsigned seed = 0; seed < 4000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    History history(seed);
    ASSERT_TRUE(history.ends());
    history.check_end();
    if (HasFatalFailure()) return;
  }
  // Checks that the histories covered all ends.
  for (const JobPhase end : {JobPhase::succeeded, JobPhase::failed, JobPhase::cancelled, JobPhase::lost})
    EXPECT_GT(History::ends_[end], 100u) << static_cast<int>(end);
}

}  // namespace
}  // namespace carve::workload

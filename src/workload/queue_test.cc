#include "workload/queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace carve::workload {
namespace {

using Kind = QueueAction::Kind;
using Reason = QueueAction::Reason;

// A pool of equal devices, each with 16 GiB and all of its compute. Slices are placed on the first device
// that fits.
class Pool : public Capacity {
 public:
  explicit Pool(size_t devices) : free_(devices, {16_GiB, whole_device.basis_points}) {}

  bool take(uint64_t job, const JobNeed& need) override {
    std::vector<Amount> left = free_;
    std::vector<Part> parts;
    const Amount amount = first_amount(need);
    for (size_t device = 0; device < left.size(); ++device)
      while (parts.size() < slice_count(need) && left[device].memory >= amount.memory &&
             left[device].compute_bp >= amount.compute_bp) {
        left[device] = minus(left[device], amount);
        parts.push_back({device, amount});
      }
    if (parts.size() < slice_count(need)) return false;
    free_ = left;
    held_[job] = parts;
    return true;
  }

  bool take_same(uint64_t job, const Capacity& other) override {
    std::vector<Amount> left = free_;
    const std::vector<Part>& parts = dynamic_cast<const Pool&>(other).held_.at(job);
    for (const Part& part : parts) {
      Amount& device = left[part.device];
      if (device.memory < part.amount.memory || device.compute_bp < part.amount.compute_bp) return false;
      device = minus(device, part.amount);
    }
    free_ = left;
    held_[job] = parts;
    return true;
  }

  void release(uint64_t job) override {
    for (const Part& part : held_.at(job)) {
      free_[part.device].memory.count += part.amount.memory.count;
      free_[part.device].compute_bp += part.amount.compute_bp;
    }
    held_.erase(job);
  }

  std::unique_ptr<Capacity> copy() const override { return std::make_unique<Pool>(*this); }

  Amount total() const {
    return {Bytes{free_.size() * (16_GiB).count}, free_.size() * whole_device.basis_points};
  }

 private:
  struct Part {
    size_t device;
    Amount amount;
  };
  static Amount minus(const Amount& a, const Amount& b) {
    return {Bytes{a.memory.count - b.memory.count}, a.compute_bp - b.compute_bp};
  }

  std::vector<Amount> free_;
  std::map<uint64_t, std::vector<Part>> held_;
};

SliceGroup group(uint32_t slices, Bytes memory, Share share) {
  return {.slices = slices, .amounts = {.memory_bytes = memory.count, .share_bp = share.basis_points}};
}

// A job of `slices` slices that each take all of a device.
JobNeed whole(uint32_t slices, Ns deadline = 0) {
  return {.groups = {group(slices, 16_GiB, whole_device)}, .deadline = deadline};
}

Queue queue(const char* name) { return {.name = name}; }

std::string text(const QueueDecision& decision) {
  constexpr const char* reasons[] = {"capacity", "quota", "max_running", "max_slices", "behind", "budget"};
  std::string out;
  for (const QueueAction& action : decision.actions)
    out += fmt::format("{}{}{} ", action.kind == Kind::refuse ? "!" : "", action.job,
                       action.reason == Reason::backfill ? "b" : "");
  out += "|";
  for (const WaitingPosition& w : decision.waiting)
    out += fmt::format(" {}:{} {}", w.position, w.job, reasons[static_cast<size_t>(w.reason)]);
  return out;
}

TEST(Queue, decides_each_case_over_four_devices) {
  constexpr Ns s = second_ns;
  const Queue a = queue("a"), b = queue("b");
  Queue filled = a, few = a, small = a, quota_a = a, heavy = b;
  filled.backfill = true, few.max_running = 1, small.max_slices = 3, heavy.weight = 2;
  quota_a.quota = Amount{32_GiB, 20'000};
  struct Row {
    const char* what;
    std::vector<Queue> queues;
    std::vector<RunningJob> running;
    std::vector<WaitingJob> waiting;
    std::string expected;
  } const rows[] = {
      {"first come, first served", {a}, {}, {{1, "a", 0, whole(1)}, {2, "a", 0, whole(1)}}, "1 2 |"},
      {"a higher priority is first",
       {a},
       {},
       {{1, "a", 0, whole(3)}, {2, "a", 5, whole(2)}},
       "2 | 1:1 capacity"},
      {"a job gets all its slices or none", {a}, {}, {{1, "a", 0, whole(5)}}, "| 1:1 capacity"},
      {"no later job overtakes the head",
       {a},
       {{9, "a", whole(2)}},
       {{1, "a", 0, whole(3)}, {2, "a", 0, whole(1)}},
       "| 1:1 capacity 2:2 behind"},
      {"more slices for a running job count as slices but not as a job",
       {few},
       {{9, "a", whole(1)}},
       {{.id = 1, .queue = "a", .need = whole(2), .is_growth = true}, {2, "a", 0, whole(1)}},
       "1 | 1:2 max_running"},
      {"more slices for a running job wait like a job",
       {small},
       {{9, "a", whole(2)}},
       {{.id = 1, .queue = "a", .need = whole(2), .is_growth = true}, {2, "a", 0, whole(1)}},
       "| 1:1 max_slices 2:2 behind"},
      {"backfill: the job ends before the head can start",
       {filled},
       {{9, "a", whole(2, 100 * s), 0}},
       {{1, "a", 0, whole(4)}, {2, "a", 0, whole(1, 90 * s)}, {3, "a", 0, whole(1, 91 * s)}},
       "2b | 1:1 capacity 2:3 behind"},
      {"backfill: the job fits next to the head",
       {filled},
       {{9, "a", whole(2, 100 * s), 0}},
       {{1, "a", 0, whole(3)}, {2, "a", 0, whole(1)}, {3, "a", 0, whole(1)}},
       "2b | 1:1 capacity 2:3 behind"},
      {"no backfill next to a running job without a deadline",
       {filled},
       {{9, "a", whole(2), 0}},
       {{1, "a", 0, whole(3)}, {2, "a", 0, whole(1, s)}},
       "| 1:1 capacity 2:2 behind"},
      {"max_running",
       {few},
       {{9, "a", whole(1)}},
       {{1, "a", 0, whole(1)}, {2, "a", 0, whole(1)}},
       "| 1:1 max_running 2:2 behind"},
      {"max_slices", {small}, {{9, "a", whole(2)}}, {{1, "a", 0, whole(2)}}, "| 1:1 max_slices"},
      {"a job that its queue can never admit is rejected",
       {small},
       {},
       {{1, "a", 0, whole(4)}, {2, "a", 0, whole(1)}},
       "!1 2 |"},
      {"a held account does not block the others",
       {a},
       {},
       {{1, "a", 0, whole(1), true}, {2, "a", 0, whole(1)}},
       "2 | 1:1 budget"},
      {"the queue with the lower dominant share is next",
       {a, b},
       {{9, "a", whole(1)}},
       {{1, "a", 0, whole(2)}, {2, "b", 0, whole(2)}},
       "2 | 1:1 capacity"},
      {"the earlier job is next at equal shares",
       {a, b},
       {},
       {{1, "b", 0, whole(3)}, {2, "a", 0, whole(3)}},
       "1 | 1:2 capacity"},
      {"a weight divides the share",
       {a, heavy},
       {{8, "a", whole(1)}, {9, "b", whole(1)}},
       {{1, "a", 0, whole(2)}, {2, "b", 0, whole(2)}},
       "2 | 1:1 capacity"},
      {"a head within its quota is first",
       {quota_a, b},
       {{9, "a", whole(1)}},
       {{1, "b", 0, whole(3)}, {2, "a", 0, whole(1)}},
       "2 | 1:1 capacity"},
      {"no job beyond its quota overtakes a head that waits within its own",
       {quota_a, b},
       {{9, "b", whole(3)}},
       {{1, "b", 0, whole(1)}, {2, "a", 0, whole(2)}},
       "| 1:2 capacity 1:1 quota"},
      {"an unused quota may be used", {quota_a, b}, {}, {{1, "b", 0, whole(4)}}, "1 |"},
      {"an unknown queue", {a}, {}, {{1, "z", 0, whole(1)}}, "|"},
  };
  for (const Row& row : rows) {
    Pool pool(4);
    for (const RunningJob& job : row.running) ASSERT_TRUE(pool.take(job.id, job.need));
    EXPECT_EQ(text(decide(row.queues, row.waiting, row.running, pool.total(), pool, 10 * s)), row.expected)
        << row.what;
  }
}

TEST(Queue, uses_the_larger_of_memory_and_compute_as_dominant_share) {
  // The paper's example: users with a high demand for memory and users with a high demand for compute get
  // equal dominant shares.
  Pool pool(9);
  const JobNeed memory{.groups = {group(1, 4_GiB, {500})}}, compute{.groups = {group(1, 1_GiB, {3000})}};
  std::vector<WaitingJob> waiting;
  for (uint64_t id = 0; id < 200; ++id)
    waiting.push_back({id, id % 2 == 0 ? "a" : "b", 0, id % 2 == 0 ? memory : compute});
  const auto list = actions(std::vector{queue("a"), queue("b")}, waiting, {}, pool.total(), pool, 0);
  // A job of a uses 4/144 of the memory, a job of b 0.3/9 of the compute, so there are 6 jobs of a for 5 of
  // b.
  ASSERT_GE(list.size(), 33u);
  const auto of_a = std::count_if(list.begin(), list.begin() + 33,
                                  [](const QueueAction& action) { return action.job % 2 == 0; });
  EXPECT_NEAR(static_cast<double>(of_a), 18, 1);
}

TEST(Queue, rejects_a_job_that_it_can_never_admit_with_a_message) {
  const auto message = [](Queue q, JobNeed need, size_t waiting = 0) {
    const auto good = check(q, need, waiting);
    return good ? std::string() : good.error().message;
  };
  Queue gpu = queue("q"), none = queue("q"), small = queue("q");
  gpu.gpu = QueueGpu::gpu, none.gpu = QueueGpu::none, small.max_slices = 2;
  EXPECT_EQ(message(queue("q"), whole(1)), "");
  EXPECT_EQ(message(gpu, whole(1)),
            "queue q provides whole GPUs, but the job requests slices; choose another queue");
  EXPECT_EQ(message(none, whole(1)),
            "queue q provides no GPU, but the job requests slices; choose another queue");
  EXPECT_EQ(message(none, {}), "");
  EXPECT_EQ(message(queue("q"), {}), "");
  EXPECT_EQ(message(small, whole(3)),
            "the job has 3 slices, but queue q can have at most 2 in total; request fewer");
  EXPECT_EQ(message(queue("q"), whole(0)),
            "the job has 0 slices; it must have 1 to 1024, or none if it requests no GPU");
  EXPECT_NE(message(queue("q"), whole(1025)), "");
  EXPECT_NE(message(queue("q"), {.groups = {group(1, {}, {10001})}}), "");
  EXPECT_NE(message(queue("q"), whole(1, -1)), "");
  EXPECT_EQ(message(queue("q"), whole(1), 9999), "");
  EXPECT_EQ(check(queue("q"), whole(1), 10'000).error().kind, FailureKind::insufficient_capacity);
  EXPECT_EQ(message(queue("q"), whole(1), 10'000),
            "10000 jobs are already waiting, which is the limit; submit again later");

  EXPECT_TRUE(validated(queue("q")));
  EXPECT_FALSE(validated(queue("Q")));
  for (const uint32_t weight : {0u, 1001u}) {
    Queue q = queue("q");
    q.weight = weight;
    EXPECT_EQ(validated(q).error().message, fmt::format("weight {}: must be 1 to 1000", weight));
  }
  none.quota = Amount{};
  EXPECT_EQ(validated(none).error().message, "queue q provides no GPU: leave out the quota");
}

// Counts the calls of the placement engine.
class CountingPool final : public Pool {
 public:
  explicit CountingPool(size_t devices) : Pool(devices) {}
  bool take(uint64_t job, const JobNeed& need) override {
    ++takes;
    return Pool::take(job, need);
  }
  size_t takes = 0;
};

TEST(Queue, needs_one_placement_per_admission_and_blocked_queue_for_10000_waiting_jobs) {
  CountingPool pool(8);
  std::vector<Queue> queues;
  for (size_t i = 0; i < max_queues; ++i) queues.push_back({.name = fmt::format("q{}", i)});
  std::vector<WaitingJob> waiting;
  for (uint64_t id = 0; id < max_waiting_jobs; ++id)
    waiting.push_back({.id = id, .queue = queues[id % max_queues].name, .need = whole(1)});
  const QueueDecision decision = decide(queues, waiting, {}, pool.total(), pool, 0);
  EXPECT_EQ(decision.actions.size(), 8u);
  EXPECT_EQ(decision.waiting.size(), max_waiting_jobs - 8);
  EXPECT_EQ(pool.takes, 8 + max_queues);
}

TEST(Queue, compares_amounts_beyond_64_bits) {
  Pool pool(1);
  Queue heavy = queue("b");
  heavy.weight = max_queue_weight;
  const JobNeed huge{.groups = {group(1024, {UINT64_MAX}, whole_device)}};
  const std::vector<RunningJob> running{{8, "a", huge}, {9, "b", huge}};
  const std::vector<WaitingJob> waiting{{1, "a", 0, whole(1)}, {2, "b", 0, whole(1)}};
  EXPECT_EQ(text(decide(std::vector{queue("a"), heavy}, waiting, running, {Bytes{UINT64_MAX}, UINT64_MAX},
                        pool, 0)),
            "2 | 1:1 capacity");
}

// A history with one seed. Jobs of several queues arrive, are admitted, and end at or before their deadlines.
class History {
 public:
  explicit History(unsigned seed) : dice_(seed), devices_(1 + dice_() % 6), pool_(devices_) {
    for (unsigned i = 0; i <= dice_() % 4; ++i) {
      Queue q{.name = fmt::format("q{}", i), .weight = static_cast<uint32_t>(1 + dice_() % 3)};
      q.max_running = dice_() % 3 == 0 ? 1 + dice_() % 4 : 0;
      q.max_slices = dice_() % 3 == 0 ? 1 + dice_() % 8 : 0;
      q.backfill = dice_() % 2 == 0;
      if (dice_() % 2 == 0) q.quota = Amount{Bytes{dice_() % 4 * (16_GiB).count}, dice_() % 4 * 10'000};
      queues_.push_back(q);
    }
  }

  void arrive() {
    const Queue& q = queues_[dice_() % queues_.size()];
    const uint32_t slices = 1 + static_cast<uint32_t>(dice_() % devices_);
    const Bytes memory{(1 + dice_() % 16) << 30};
    JobNeed need{.groups = {group(slices, memory, {static_cast<uint32_t>(1 + dice_() % 10'000)})}};
    need.deadline = dice_() % 4 == 0 ? 0 : static_cast<Ns>(1 + dice_() % 50) * second_ns;
    waiting_.push_back(
        {++last_id_, q.name, queues_.size() == 1 ? 0 : static_cast<int32_t>(dice_() % 2), need});
  }

  void second() {
    now_ += second_ns;
    std::erase_if(running_, [&](const RunningJob& job) {
      if (job.need.deadline != 0 ? now_ < job.admitted_at + job.need.deadline && dice_() % 40 != 0
                                 : dice_() % 20 != 0)
        return false;
      pool_.release(job.id);
      return true;
    });
    const QueueDecision decision = decide(queues_, waiting_, running_, pool_.total(), pool_, now_);
    for (const QueueAction& action : decision.actions) {
      carry_out(action);
      if (testing::Test::HasFatalFailure()) return;
    }
    check_limits();
    ASSERT_EQ(decision.waiting.size(), waiting_.size());
    promise(decision);
  }

  bool is_done() const { return waiting_.empty(); }

  unsigned admitted = 0, backfilled = 0, refused = 0, kept = 0;

 private:
  void carry_out(const QueueAction& action) {
    const auto job = std::ranges::find(waiting_, action.job, &WaitingJob::id);
    ASSERT_NE(job, waiting_.end()) << "admitted twice";
    if (action.kind == Kind::refuse) {
      ++refused;
    } else {
      for (const WaitingJob& other : waiting_)
        ASSERT_FALSE(action.reason == Reason::head && has_passed(*job, other)) << other.id << " was passed";
      ++admitted, backfilled += action.reason == Reason::backfill;
      if (const auto promised = promised_.find(job->id); promised != promised_.end()) {
        ASSERT_LE(now_, promised->second) << "the head was delayed";
        ++kept;
      }
      running_.push_back({job->id, job->queue, job->need, now_});
    }
    waiting_.erase(job);
  }

  static bool has_passed(const WaitingJob& job, const WaitingJob& other) {
    return other.queue == job.queue &&
           std::pair{-other.priority, other.id} < std::pair{-job.priority, job.id};
  }

  void check_limits() {
    for (const Queue& q : queues_) {
      uint64_t jobs = 0, slices = 0;
      for (const RunningJob& job : running_)
        if (job.queue == q.name) ++jobs, slices += slice_count(job.need);
      ASSERT_TRUE(q.max_running == 0 || jobs <= q.max_running);
      ASSERT_TRUE(q.max_slices == 0 || slices <= q.max_slices);
    }
  }

  // If there is only one queue, a head that waits for capacity starts when the deadlines of the running jobs
  // allow it, unless a job of a higher priority arrives.
  void promise(const QueueDecision& decision) {
    promised_.clear();
    if (queues_.size() != 1 || queues_[0].max_running != 0 || queues_[0].max_slices != 0) return;
    for (const WaitingPosition& w : decision.waiting) {
      if (w.position != 1) continue;
      const auto then = pool_.copy();
      std::vector<std::pair<Ns, uint64_t>> ends;
      for (const RunningJob& job : running_)
        if (job.need.deadline != 0) ends.emplace_back(job.admitted_at + job.need.deadline, job.id);
      std::ranges::sort(ends);
      const JobNeed& need = std::ranges::find(waiting_, w.job, &WaitingJob::id)->need;
      for (const auto& [end, id] : ends) {
        then->release(id);
        if (!then->take(w.job, need)) continue;
        const auto before = first_promise_.try_emplace(w.job, end).first;
        // Jobs that were admitted by backfill in the meantime have not delayed the promised start.
        ASSERT_LE(end, before->second);
        promised_[w.job] = before->second;
        return;
      }
    }
  }

  std::mt19937 dice_;
  size_t devices_;
  Pool pool_;
  std::vector<Queue> queues_;
  std::vector<WaitingJob> waiting_;
  std::vector<RunningJob> running_;
  std::map<uint64_t, Ns> promised_, first_promise_;
  uint64_t last_id_ = 0;
  Ns now_ = 0;
};

TEST(Queue, keeps_its_order_and_limits_and_admits_every_job_in_any_history) {
  unsigned admitted = 0, backfilled = 0, refused = 0, kept = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    History history(seed);
    for (int i = 0; i < 60; ++i) {
      if (i < 20) history.arrive();
      history.second();
      if (HasFatalFailure()) return;
    }
    for (int i = 0; i < 20'000 && !history.is_done(); ++i) {
      history.second();
      if (HasFatalFailure()) return;
    }
    ASSERT_TRUE(history.is_done());
    admitted += history.admitted, backfilled += history.backfilled, refused += history.refused,
        kept += history.kept;
  }
  // Checks that the histories covered all cases.
  EXPECT_GT(admitted, 20'000u);
  EXPECT_GT(backfilled, 500u);
  EXPECT_GT(refused, 500u);
  EXPECT_GT(kept, 200u);
}

TEST(JobNeed, keeps_the_index_of_a_slice_if_a_group_grows) {
  const JobNeed need{.groups = {group(2, 4_GiB, {3000}), group(1, 8_GiB, {5000})}};
  EXPECT_EQ(slice_index(need, 0, 1), 2u);
  EXPECT_EQ(slice_index(need, 1, 0), 1u);
  EXPECT_EQ(amounts_of_slice(need, 1), need.groups[1].amounts);
  EXPECT_EQ(amounts_of_slice(need, 4), need.groups[0].amounts);
  EXPECT_EQ(group_counts(need), (std::vector<uint32_t>{2, 1}));
  const JobNeed more = with_counts(need, {0, 3});
  EXPECT_EQ(slice_count(more), 3u);
  EXPECT_EQ(more.groups, (std::vector{group(3, 8_GiB, {5000})}));
  EXPECT_EQ(group_counts(with_counts(need, {5, 2})), (std::vector<uint32_t>{5, 2}));
  EXPECT_EQ(slice_index(whole(3), 0, 2), 2u) << "equal slices are combined";
}

TEST(JobNeed, counts_each_device_of_a_slice_for_the_quota) {
  const Amounts whole_devices{.devices = 2, .exclusive = true};
  EXPECT_EQ(amount_on(whole_devices, 1, 22_GiB), (Amount{22_GiB, 10'000}));
  const Amounts unequal{.devices = 0,
                        .parts = {{.memory_bytes = (8_GiB).count, .share_bp = 3000}, {.memory_bp = 2500}}};
  EXPECT_EQ(amount_on(unequal, 0, 16_GiB), (Amount{8_GiB, 3000}));
  EXPECT_EQ(amount_on(unequal, 1, 16_GiB), (Amount{4_GiB, 0}));
  EXPECT_EQ(amount_on({.total_memory_bytes = (6_GiB).count, .devices = 3}, 2, {}), (Amount{2_GiB, 0}));
  EXPECT_EQ(gpu_of({}), QueueGpu::none);
  EXPECT_EQ(gpu_of({.groups = {{.slices = 1, .amounts = whole_devices}}}), QueueGpu::gpu);
  EXPECT_EQ(gpu_of({.groups = {{.slices = 1, .amounts = unequal}}}), QueueGpu::mgpu);
  EXPECT_EQ(first_amount({}), Amount{});

  // The quota of 20 GiB has room for one slice with parts of 8 and 4 GiB, but not for two.
  Pool pool(8);
  Queue limited = queue("a"), other = queue("b");
  limited.quota = Amount{20_GiB, 80'000};
  const JobNeed need{.groups = {{.slices = 1, .amounts = unequal}}, .device_memory = 16_GiB};
  const std::vector<WaitingJob> waiting{{1, "a", 0, need}, {2, "a", 0, need}, {3, "b", 0, whole(1)}};
  EXPECT_EQ(text(decide(std::vector{limited, other}, waiting, {}, pool.total(), pool, 0)), "1 3 2 |");
}

}  // namespace
}  // namespace carve::workload

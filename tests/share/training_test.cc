// Measures the pace of a program that is limited by its host, such as training in PyTorch. One thread
// launches the forward pass and the optimizer, and another thread launches the backward pass, in turns and in
// one stream. The host is ahead of the device in some parts of a step and behind it in others. During its
// leases the program must keep its native pace. All figures are ratios in virtual time.
#include <gtest/gtest.h>

#include <semaphore>
#include <thread>

#include "paced_world.h"

namespace carve::share {
namespace {

// The launches of one thread. Every `nth` kernel is a long one.
struct Part {
  unsigned launches;
  Ns host;  // The program's own work before each launch.
  unsigned nth;
  Ns longer, shorter;
  Ns prepares = 0;  // The program's own work before the first launch.
};
struct Step {
  const char* name;
  Part forward, backward, optimizer;
  Ns turn = 70 * us;  // Time from the end of a thread's part until the other thread runs.
};

const Step light{.name = "light",
                 .forward = {60, 6 * us, 4, 20 * us, 3 * us},
                 .backward = {90, 6 * us, 4, 20 * us, 4 * us},
                 .optimizer = {40, 6 * us, 1, 8 * us, 8 * us}};
const Step even{.name = "even",
                .forward = {30, 16 * us, 5, 25 * us, 8 * us},
                .backward = {50, 9 * us, 4, 25 * us, 7 * us},
                .optimizer = {18, 16 * us, 2, 70 * us, 15 * us, 250 * us}};
// The host is 1.5 ms ahead at the end of the optimizer. The device works on that while the host is behind.
const Step far_ahead{.name = "far_ahead",
                     .forward = {60, 10 * us, 1, 3 * us, 3 * us},
                     .backward = {90, 5 * us, 1, 4 * us, 4 * us},
                     .optimizer = {10, 6 * us, 1, 150 * us, 150 * us}};

class Trainer {
 public:
  Trainer(PacedWorld& world, const Step& step) : world_(world), step_(step) {}
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer() {
    ends_ = true;
    backward_.release();
  }

  // Trains for this time, synchronising every five steps, and returns the steps per second.
  double run(Ns duration) {
    const Ns from = world_.now();
    unsigned steps = 0;
    for (; world_.now() < from + duration; steps += 5) {
      for (int i = 0; i < 5; ++i) {
        launch(step_.forward, 0);
        backward_.release();
        forward_.acquire();
        world_.pass(step_.turn);
        launch(step_.optimizer, 200);
      }
      EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    }
    return steps * 1e9 / static_cast<double>(world_.now() - from);
  }

 private:
  void launch(const Part& part, unsigned first) {
    world_.pass(part.prepares);
    for (unsigned i = 0; i < part.launches; ++i) {
      world_.pass(part.host);
      Ns length = i % part.nth == part.nth - 1 ? part.longer : part.shorter;
      void* arguments[] = {&length};
      // The same function in several shapes.
      const auto function = reinterpret_cast<CUfunction>(uint64_t{first + i / 4 + 1} << 8);
      cuLaunchKernel(function, first + i + 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr);
    }
  }
  void run_backward() {
    for (;;) {
      backward_.acquire();
      if (ends_) return;
      world_.pass(step_.turn);
      launch(step_.backward, 100);
      forward_.release();
    }
  }

  PacedWorld& world_;
  const Step step_;
  std::binary_semaphore backward_{0}, forward_{0};
  bool ends_ = false;
  std::jthread other_{[this] { run_backward(); }};
};

Entitlement share(Policy policy, uint32_t percent) { return {.policy = policy, .share = {percent * 100}}; }

struct Outcome {
  double pace = 0;                    // Percent of the native pace.
  double charged = 0, neighbour = 0;  // Percent of the time.
  double fences = 0, sleeps = 0;      // Per launch.
  unsigned guesses = 0;               // Kernels without an estimate.
  double device = 0;                  // Percent of the time during which it ran kernels.
  double polls = 0;                   // Per second.
  uint64_t intrusions = 0;            // See PacedWorld::Counts.
};
Outcome train(const Step& step, const Entitlement& own, std::optional<Entitlement> neighbour = {},
              Ns wake_latency = Costs{}.wake, bool is_timer_regular = false) {
  Costs costs;
  if (wake_latency != 0) costs.wake = wake_latency;
  PacedWorld world(costs);
  world.is_timer_regular = is_timer_regular;
  world.wake_latency = wake_latency;
  Trainer trainer(world, step);
  trainer.run(100 * ms);
  const double native = trainer.run(200 * ms);
  world.arbitrate(own, neighbour);
  trainer.run(500 * ms);
  const PacedWorld::Counts before = world.counts;
  const Ns from = world.now(), charged = world.counters().charged;
  const Ns of_neighbour = neighbour ? world.counters_of_neighbour().charged : 0;
  Outcome out;
  out.pace = 100 * trainer.run(1 * second) / native;
  const auto launches = static_cast<double>(world.counts.launches - before.launches);
  const auto passed = static_cast<double>(world.now() - from);
  out.charged = 100 * static_cast<double>(world.counters().charged - charged) / passed;
  if (neighbour)
    out.neighbour = 100 * static_cast<double>(world.counters_of_neighbour().charged - of_neighbour) / passed;
  out.fences = static_cast<double>(world.counts.fences - before.fences) / launches;
  out.sleeps = static_cast<double>(world.counts.sleeps - before.sleeps) / launches;
  out.device = 100 * static_cast<double>(world.counts.kernels - before.kernels) / passed;
  out.polls = 1e9 * static_cast<double>(world.counts.polls - before.polls) / passed;
  out.intrusions = world.counts.intrusions;
  for (const unsigned thread : {0u, 1u})
    for (const auto& set : world.thread(thread).estimate)
      for (const guest::Estimate& e : set) out.guesses += e.key != 0 && e.measured == 0;
  return out;
}

class Training : public testing::TestWithParam<const Step*> {};

TEST_P(Training, runs_at_its_native_pace_within_a_lease_that_does_not_end) {
  const Outcome whole = train(*GetParam(), share(Policy::fixed_share, 100));
  EXPECT_GE(whole.pace, 97);
  EXPECT_LE(whole.fences, 0.16);
  EXPECT_LE(whole.sleeps, 0.01);
  EXPECT_EQ(whole.guesses, 0u);
}

TEST_P(Training, has_its_share_of_the_native_pace_without_a_neighbour) {
  for (const uint32_t percent : {60u, 20u}) {
    const Outcome alone = train(*GetParam(), share(Policy::fixed_share, percent));
    EXPECT_GE(alone.pace, 0.9 * percent) << percent;
    EXPECT_NEAR(alone.charged, percent, 0.5);
    EXPECT_EQ(alone.guesses, 0u);
  }
}

TEST_P(Training, has_its_share_of_the_native_pace_with_a_busy_neighbour) {
  for (const Policy policy : {Policy::fixed_share, Policy::guaranteed_burst_share}) {
    const Outcome contended = train(*GetParam(), share(policy, 60), share(policy, 40));
    EXPECT_GE(contended.pace, GetParam() == &far_ahead ? 52 : 56) << text(policy);
    EXPECT_NEAR(contended.charged, 60, 0.7) << text(policy);
    EXPECT_NEAR(contended.neighbour, 40, 0.7) << text(policy);
    EXPECT_EQ(contended.intrusions, 0u) << text(policy);
  }
}

TEST_P(Training, gains_from_a_wake_before_its_gate_opens) {
  const Entitlement own = share(Policy::fixed_share, 60), other = share(Policy::fixed_share, 40);
  const Outcome early = train(*GetParam(), own, other), late = train(*GetParam(), own, other, 0);
  RecordProperty("early", std::to_string(early.pace + early.neighbour));
  RecordProperty("late", std::to_string(late.pace + late.neighbour));
  EXPECT_GE(early.pace + early.neighbour, late.pace + late.neighbour);
}

INSTANTIATE_TEST_SUITE_P(Steps, Training, testing::Values(&light, &even, &far_ahead),
                         [](const auto& p) { return p.param->name; });

// Each turn of a thread begins with a pause in which the host launches nothing.
TEST(Pauses, cost_a_guaranteed_slice_little_of_its_share) {
  const struct {
    Ns turn;
    double pace;
    Ns wake_latency;
    bool is_timer_regular;
  } cases[] = {{300 * us, 57, 0, true},
               {600 * us, 55, 0, true},
               {300 * us, 57, Costs{}.wake, false},
               {600 * us, 53, Costs{}.wake, false}};
  for (const auto& [turn, pace, wake_latency, is_timer_regular] : cases) {
    Step step = light;
    step.turn = turn;
    const Outcome contended =
        train(step, share(Policy::guaranteed_burst_share, 60), share(Policy::guaranteed_burst_share, 40),
              wake_latency, is_timer_regular);
    EXPECT_GE(contended.pace, pace) << turn;
    EXPECT_GE(contended.neighbour, 39) << turn;
  }
}

TEST(Pauses, cost_a_fixed_share_little_next_to_a_guaranteed_one) {
  for (const Ns turn : {600 * us, 900 * us, 1500 * us}) {
    Step step = light;
    step.turn = turn;
    const Outcome contended = train(step, share(Policy::fixed_share, 60),
                                    share(Policy::guaranteed_burst_share, 40), Costs{}.wake, true);
    EXPECT_GE(contended.pace, 57) << turn;
    EXPECT_GE(contended.neighbour, 39) << turn;
  }
}

// Parameters: the threads' wake latency (0 for unknown), and whether the timer is late by the same time at
// each poll.
class Paused : public testing::TestWithParam<std::tuple<Ns, bool>> {};

TEST_P(Paused, keeps_its_guaranteed_share_of_the_native_pace) {
  const auto [wake_latency, is_timer_regular] = GetParam();
  const Entitlement own = share(Policy::guaranteed_burst_share, 60);
  for (const Ns turn : {0 * us, 200 * us, 400 * us, 600 * us, 900 * us, 1500 * us}) {
    Step step = light;
    step.turn = turn;
    const Outcome contended =
        train(step, own, share(Policy::guaranteed_burst_share, 40), wake_latency, is_timer_regular);
    EXPECT_GE(contended.pace, 57) << turn;
    EXPECT_GE(contended.neighbour, 39) << turn;
    EXPECT_LE(contended.polls, 1650) << turn;
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, Paused,
                         testing::Combine(testing::Values(0, 70 * us, 150 * us), testing::Bool()));

}  // namespace
}  // namespace carve::share

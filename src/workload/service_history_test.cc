// Seeded histories of a service. In all of them, the desired state is reached within the limits.
#include <random>

#include "workload/testing/service_machines.h"

namespace carve::workload {
namespace {

using Reason = ServiceAction::Reason;

// A history with one seed, which has updates, scaling, crashes, lost slices, full devices, and a controller
// that is killed between any two actions. Then the disturbances end, and the desired state must be reached.
class History {
 public:
  explicit History(unsigned seed) : dice_(seed) {
    service_ = web(1 + dice_() % 4);
    service_.has_port = dice_() % 3 != 0;
    machines_.ignores_sigterm = dice_() % 8 == 0;
    change_rollout();
  }

  void disturbed_second() {
    if (dice_() % 40 == 0) change();
    if (dice_() % 20 == 0) machines_.capacity = dice_() % 7;
    for (Replica& replica : machines_.observed.replicas)
      if (dice_() % 25 == 0 && replica.program == ProgramState::running)
        machines_.exit(replica, now_), ++crashes;
    if (dice_() % 50 == 0 && !machines_.observed.replicas.empty()) {  // A slice is lost with its device.
      machines_.observed.replicas.erase(machines_.observed.replicas.begin());
      machines_.observed.refusal.reset();
    }
    second(dice_() % 4 == 0);
  }

  bool settles() {
    machines_.capacity = std::max<size_t>(service_.replicas, 1);
    for (int i = 0; i < 2000; ++i) {
      if (status(service_, machines_.observed, now_).phase ==
          (service_.replicas == 0 ? ServicePhase::stopped : ServicePhase::running))
        return true;
      second(false);
      if (testing::Test::HasFatalFailure()) return false;
    }
    return false;
  }

  void check_end() {
    ASSERT_EQ(machines_.observed.replicas.size(), service_.replicas);
    for (uint32_t index = 0; index < service_.replicas; ++index) {
      const Replica* replica = machines_.find({service_.revision, index});
      ASSERT_NE(replica, nullptr);
      ASSERT_EQ(replica->endpoint == EndpointState::serving, service_.has_port);
    }
    now_ += second_ns;
    const auto list = actions(service_, machines_.observed, now_);
    ASSERT_TRUE(list.empty() || text(list).starts_with("complete")) << text(list);
  }

  unsigned crashes = 0, kills = 0, updates = 0, refusals = 0;

 private:
  void change_rollout() {
    service_.rollout.max_surge = dice_() % 3;
    service_.rollout.max_unavailable = dice_() % 2 + (service_.rollout.max_surge == 0);
  }

  void change() {
    if (dice_() % 2 == 0) {
      service_.replicas = dice_() % 5;
      return;
    }
    ++service_.revision, ++updates;
    service_.revised_at = now_;
    change_rollout();
  }

  unsigned available() const { return status(service_, machines_.observed, now_).available; }

  // Checks the limits of a rollout: when it creates a slice, it has at most replicas + max_surge slices, and
  // it retires an available replica only if enough others are available.
  void check(const ServiceAction& action, unsigned before) {
    const Rollout& rollout = service_.rollout;
    if (action.kind == Kind::create_slice) {
      ASSERT_LE(machines_.observed.replicas.size(), service_.replicas + rollout.max_surge);
      ASSERT_EQ(action.replica.revision, service_.revision);
    }
    if (action.kind == Kind::publish) {
      ASSERT_FALSE(machines_.find(action.replica)->retired_at);
    }
    if (action.kind != Kind::retire || available() == before) return;
    if (action.reason == Reason::may_be_unavailable) {
      ASSERT_GE(available() + rollout.max_unavailable, service_.replicas);
    } else if (action.reason == Reason::no_surge_capacity) {
      ASSERT_GE(available() + 1, service_.replicas);
    } else if (action.reason != Reason::scaled_down) {
      const auto serves = [&](const Replica& r) {
        return ordinal(r.id) == ordinal(action.replica) && !r.retired_at &&
               r.program == ProgramState::running;
      };
      ASSERT_TRUE(std::ranges::any_of(machines_.observed.replicas, serves)) << "index without a replica";
    }
  }

  void second(bool killed) {
    now_ += second_ns;
    machines_.pass(now_);
    const auto list = actions(service_, machines_.observed, now_);
    ASSERT_EQ(list, actions(service_, machines_.observed, now_));
    const size_t done = killed ? dice_() % (list.size() + 1) : list.size();
    kills += killed;
    for (size_t i = 0; i < done; ++i) {
      const bool refused_before = machines_.observed.refusal.has_value();
      const unsigned before = available();
      machines_.carry_out(list[i], now_);
      check(list[i], before);
      refusals += !refused_before && machines_.observed.refusal;
      if (testing::Test::HasFatalFailure()) return;
    }
  }

  std::mt19937 dice_;
  Machines machines_;
  Service service_;
  Ns now_ = 0;
};

TEST(ServiceHistory, reaches_the_desired_state_within_the_limits) {
  unsigned crashes = 0, kills = 0, updates = 0, refusals = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    History history(seed);
    for (int i = 0; i < 150; ++i) {
      history.disturbed_second();
      if (HasFatalFailure()) return;
    }
    ASSERT_TRUE(history.settles());
    history.check_end();
    if (HasFatalFailure()) return;
    crashes += history.crashes, kills += history.kills, updates += history.updates,
        refusals += history.refusals;
  }
  // Checks that the histories covered all cases.
  EXPECT_GT(crashes, 5'000u);
  EXPECT_GT(kills, 50'000u);
  EXPECT_GT(updates, 2'000u);
  EXPECT_GT(refusals, 1'000u);
}

}  // namespace
}  // namespace carve::workload

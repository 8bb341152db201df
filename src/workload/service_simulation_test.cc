// Seeded schedules of faults over one service: the document changes, the controller is killed between any two
// of its steps, programs end, agents stop, their answers are lost or late, nodes are drained, and slices are
// taken away. After each step no replica has two slices or two programs. When the faults are over, the state
// matches the document. CARVE_LONG=1 runs 100,000 schedules.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "workload/testing/simulated_controller.h"

namespace carve::workload {
namespace {

struct FaultCounts {
  uint64_t kills = 0, ends = 0, stops = 0, taken = 0, changes = 0, drains = 0;

  void add(const FaultCounts& more) {
    kills += more.kills;
    ends += more.ends;
    stops += more.stops;
    taken += more.taken;
    changes += more.changes;
    drains += more.drains;
  }
};

class FaultSchedule {
 public:
  explicit FaultSchedule(unsigned seed) : world_(seed) { controller_.emplace(world_); }

  void run(unsigned seconds) {
    for (unsigned i = 0; i < seconds && world_.violation.empty(); ++i) {
      disturb();
      second(world_.chance(2) ? 1 + world_.dice() % 8 : 0);
    }
  }

  // Ends the faults except one drained node, and returns whether the service comes to rest on the others.
  bool settles() {
    world_.faults = false;
    for (SimulatedAgent& agent : world_.agents) agent = set_up(std::move(agent));
    SimulatedAgent& drained = world_.agents[world_.dice() % world_.agents.size()];
    drained.is_drained = world_.dice() % 2 == 0;
    for (int i = 0, calm = 0; i < 600 && world_.violation.empty(); ++i) {
      second(0);
      const ServicePhase phase = status(controller_->desired(), controller_->observed(), world_.now).phase;
      const bool rests =
          phase == (world_.document.replicas == 0 ? ServicePhase::stopped : ServicePhase::running);
      calm = rests ? calm + 1 : 0;
      if (calm == 3) return !drained.is_drained || drained.slices.empty();
    }
    return false;
  }

  // Returns the remaining slices, running programs, served replicas and records.
  std::string state() const {
    std::multiset<std::string> slices, programs, served, records;
    for (const SimulatedAgent& agent : world_.agents)
      for (const auto& [id, request] : agent.slices) slices.insert(name(id));
    for (const auto& [id, program] : world_.programs)
      if (program.state == ProgramState::running) programs.insert(name(id));
    for (const auto& [id, state] : world_.endpoint) served.insert(name(id));
    for (const auto& [id, record] : world_.records) records.insert(name(id));
    return fmt::format("slices{} programs{} served{} records{}", fmt::join(slices, ""),
                       fmt::join(programs, ""), fmt::join(served, ""), fmt::join(records, ""));
  }

  // Returns the state of a service that never met a fault.
  std::string undisturbed_state() const {
    std::string all;
    for (uint32_t index = 0; index < world_.document.replicas; ++index) all += name({world_.revision, index});
    return fmt::format("slices{} programs{} served{} records{}", all, all, world_.has_port ? all : "", all);
  }

  const std::string& violation() const { return world_.violation; }
  FaultCounts counts;

 private:
  // A replica that moved has another index than one that was never disturbed, but the same ordinal.
  static std::string name(ReplicaId id) { return fmt::format(" {}-{}", id.revision, ordinal(id)); }

  SimulatedAgent set_up(SimulatedAgent agent) {
    agent.capacity = 20;
    agent.answers = true;
    agent.is_drained = false;
    return agent;
  }

  void disturb() {
    if (world_.chance(15)) change_document();
    for (SimulatedAgent& agent : world_.agents) {
      if (world_.chance(20)) stop_or_start(agent);
      if (world_.chance(20)) agent.capacity = world_.dice() % 5;
      if (world_.chance(30)) {
        agent.is_drained = !agent.is_drained;
        counts.drains += agent.is_drained;
      }
      if (world_.chance(80) && !agent.slices.empty())
        world_.take_slice(agent, agent.slices.begin()->first), ++counts.taken;
    }
    for (auto& [id, program] : world_.programs)
      if (program.state == ProgramState::running && world_.chance(30)) world_.end_program(id), ++counts.ends;
  }

  void stop_or_start(SimulatedAgent& agent) {
    agent.answers = !agent.answers;
    counts.stops += !agent.answers;
    if (world_.dice() % 2 == 0) agent.late.clear();  // It was killed, not held up.
  }

  void change_document() {
    ++counts.changes;
    SimulatedDocument& document = world_.document;
    switch (world_.dice() % 4) {
      case 0: document.spec = ++last_spec_; break;
      case 1: document.spec = 1 + world_.dice() % last_spec_; break;  // Changes back.
      case 2: document.replicas = world_.dice() % 5; break;
      default:
        document.rollout.max_surge = world_.dice() % 3;
        document.rollout.max_unavailable = world_.dice() % 2 + (document.rollout.max_surge == 0);
    }
  }

  // One second passes, in which the controller takes one turn, or is killed in it.
  void second(unsigned steps) {
    world_.now += second_ns;
    std::erase_if(world_.endpoint, [](const auto& e) { return e.second == EndpointState::draining; });
    for (SimulatedAgent& agent : world_.agents)
      if (agent.answers && !world_.chance(2)) world_.carry_out_late(agent);
    auto late = std::exchange(world_.late_supervisors, {});
    for (const SimulatedSupervisor& supervisor : late)
      if (world_.chance(2))
        world_.late_supervisors.push_back(supervisor);
      else
        world_.supervise(supervisor.id, supervisor.attempt);
    for (const auto& [id, record] : world_.records)
      if (record.terminated_at && !world_.chance(2)) world_.end_program(id);
    try {
      controller_->turn(steps);
    } catch (const ControllerKilled&) {
      ++counts.kills;
      controller_.emplace(world_);
    }
    world_.check();
  }

  SimulatedWorld world_;
  std::optional<SimulatedController> controller_;
  unsigned last_spec_ = 1;
};

TEST(ServiceSimulation, whatever_is_killed_when_nothing_exists_twice_and_the_end_is_the_desired_one) {
  const char* long_form = getenv("CARVE_LONG");
  const unsigned schedules = long_form != nullptr && *long_form != '\0' ? 100'000 : 2'000;
  FaultCounts all;
  for (unsigned seed = 0; seed < schedules; ++seed) {
    FaultSchedule schedule(seed);
    schedule.run(120);
    ASSERT_EQ(schedule.violation(), "") << "seed " << seed;
    ASSERT_TRUE(schedule.settles()) << "seed " << seed << ": " << schedule.violation() << schedule.state();
    ASSERT_EQ(schedule.state(), schedule.undisturbed_state()) << "seed " << seed;
    all.add(schedule.counts);
  }
  fmt::print(
      "{} schedules: {} kills, {} ended programs, {} stopped agents, {} slices taken, {} changes, "
      "{} drained nodes\n",
      schedules, all.kills, all.ends, all.stops, all.taken, all.changes, all.drains);
  // The schedules reach all faults.
  EXPECT_GT(all.kills, 10 * schedules);
  EXPECT_GT(all.ends, 3 * schedules);
  EXPECT_GT(all.stops, 5 * schedules);
  EXPECT_GT(all.taken, schedules);
  EXPECT_GT(all.changes, 5 * schedules);
  EXPECT_GT(all.drains, 3 * schedules);
}

}  // namespace
}  // namespace carve::workload

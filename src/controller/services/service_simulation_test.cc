// Runs the service reconciler on one service through seeded schedules of faults: the document changes, the
// controller is killed between any two of its steps, programs end, agents stop, their answers are lost or
// late, nodes are drained, and slices are taken away. After each step no replica may have two slices or two
// programs. When the faults are over, the state must match the document. CARVE_LONG=1 runs 100,000 schedules.
// With sanitizers a schedule takes about 40 times as long, so a tenth of them is run.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "controller/services/service_reconciler.h"
#include "controller/services/testing/simulated_machine.h"
#include "objects/node_object.h"
#include "os/log.h"

namespace carve::controller {
namespace {

const ObjectKey service_key{objects::Kind::service, "default", "a"};

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
  explicit FaultSchedule(unsigned seed) : world_(seed) {
    document_ = {.replicas = 2,
                 .gpu = objects::Gpu{.memory = "4GiB"},
                 .run = {.command = {"serve-1"}},
                 .termination_grace_period_seconds = 5};
    if (world_.has_port) document_.port = 8000;
    start_controller();
    EXPECT_TRUE(registry_->add({.key = service_key, .account = "root", .uid = "u", .spec = document_}));
    for (size_t i = 0; i < world_.agents.size(); ++i)
      EXPECT_TRUE(registry_->add({.key = {objects::Kind::node, "default", SimulatedMachine::node_name(i)},
                                  .spec = objects::NodeSpec{}}));
  }

  void run(unsigned seconds) {
    for (unsigned i = 0; i < seconds && world_.violation.empty(); ++i) {
      disturb();
      second(world_.chance(2) ? 1 + world_.dice() % 8 : 0);
    }
  }

  // Ends all faults except one drained node, and returns whether the service settles on the other nodes.
  bool settles() {
    world_.faults = false;
    for (size_t i = 0; i < world_.agents.size(); ++i) {
      world_.agents[i].capacity = 20;
      world_.agents[i].answers = true;
      drain(i, false);
    }
    const size_t last = world_.dice() % world_.agents.size();
    drain(last, world_.dice() % 2 == 0);
    const SimulatedAgent& drained = world_.agents[last];
    for (int i = 0, calm = 0; i < 600 && world_.violation.empty(); ++i) {
      second(0);
      const auto& status = registry_->find(service_key)->status.as<objects::ServiceStatus>();
      const bool rests = status.phase == (document_.replicas == 0 ? objects::WorkloadPhase::stopped
                                                                  : objects::WorkloadPhase::running);
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
    for (const auto& [id, record] : machine_.replicas) records.insert(name(id));
    return fmt::format("slices{} programs{} served{} records{}", fmt::join(slices, ""),
                       fmt::join(programs, ""), fmt::join(served, ""), fmt::join(records, ""));
  }

  // Returns the state of a service that had no faults.
  std::string undisturbed_state() const {
    std::string all;
    for (uint32_t index = 0; index < document_.replicas; ++index)
      all += name({machine_.workloads.at("u").revision, index});
    return fmt::format("slices{} programs{} served{} records{}", all, all, world_.has_port ? all : "", all);
  }

  const std::string& violation() const { return world_.violation; }
  FaultCounts counts;

 private:
  // A replica that moved has a different index than one that was never disturbed, but the same ordinal.
  static std::string name(ReplicaId id) { return fmt::format(" {}-{}", id.revision, workload::ordinal(id)); }

  // Starts a controller with what the previous one wrote.
  void start_controller() {
    reconciler_.reset();
    std::vector<Object> objects;
    uint64_t version = 0;
    for (const auto& [key, object] : machine_.objects) {
      objects.push_back(object);
      version = std::max(version, object.version);
    }
    registry_.emplace(machine_, std::move(objects), version);
    std::vector<WorkloadRecord> workloads;
    std::vector<RevisionRecord> revisions;
    std::vector<ReplicaRecord> replicas;
    for (const auto& [uid, record] : machine_.workloads) workloads.push_back(record);
    for (const auto& [number, record] : machine_.revisions) revisions.push_back(record);
    for (const auto& [id, record] : machine_.replicas) replicas.push_back(record);
    reconciler_.emplace(*registry_, WorkloadRecords(machine_, workloads, revisions, replicas), machine_);
  }

  void drain(size_t agent, bool is_drained) {
    world_.agents[agent].is_drained = is_drained;
    const auto changed =
        registry_->update({objects::Kind::node, "default", SimulatedMachine::node_name(agent)},
                          [&](Object& node) -> Outcome<void> {
                            node.spec = objects::NodeSpec{.draining = is_drained};
                            return {};
                          });
    EXPECT_TRUE(changed);
  }

  void disturb() {
    if (world_.chance(15)) change_document();
    for (size_t i = 0; i < world_.agents.size(); ++i) {
      SimulatedAgent& agent = world_.agents[i];
      if (world_.chance(20)) stop_or_start(agent);
      if (world_.chance(20)) agent.capacity = world_.dice() % 5;
      if (world_.chance(30)) {
        drain(i, !agent.is_drained);
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
    if (world_.dice() % 2 == 0) agent.late.clear();  // The agent was killed, not delayed.
  }

  void change_document() {
    ++counts.changes;
    const auto program = [](unsigned number) {
      return std::vector<std::string>{fmt::format("serve-{}", number)};
    };
    switch (world_.dice() % 4) {
      case 0: document_.run.command = program(++last_program_); break;
      case 1:
        document_.run.command = program(1 + world_.dice() % last_program_);
        break;  // May return to an earlier program.
      case 2: document_.replicas = world_.dice() % 5; break;
      default:
        document_.update.max_surge = world_.dice() % 3;
        document_.update.max_unavailable = world_.dice() % 2 + (document_.update.max_surge == 0);
    }
    const auto changed = registry_->update(service_key, [&](Object& object) -> Outcome<void> {
      return object.spec = document_, Outcome<void>();
    });
    EXPECT_TRUE(changed);
  }

  // Simulates one second, in which the controller takes one turn or is killed in it.
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
    for (const auto& [id, record] : machine_.replicas)
      if (record.terminated_ns != 0 && !world_.chance(2)) world_.end_program(id);
    machine_.limit_steps(steps);
    try {
      reconciler_->reconcile(world_.now);
    } catch (const ControllerKilled&) {
      ++counts.kills;
      start_controller();
    }
    machine_.limit_steps(0);  // Users' changes are not interrupted.
    world_.check();
  }

  SimulatedWorld world_;
  SimulatedMachine machine_{world_};
  objects::ServiceSpec document_;
  unsigned last_program_ = 1;
  std::optional<JournaledRegistry> registry_;
  std::optional<ServiceReconciler> reconciler_;
};

TEST(ServiceSimulation, creates_nothing_twice_and_reaches_the_desired_state_under_any_faults) {
  os::log::set_level("error");
  const char* long_form = getenv("CARVE_LONG");
  const bool is_long = long_form != nullptr && *long_form != '\0';
#ifdef CARVE_SANITIZED
  const unsigned schedules = is_long ? 10'000 : 200;
#else
  const unsigned schedules = is_long ? 100'000 : 2'000;
#endif
  FaultCounts all;
  for (unsigned seed = 0; seed < schedules; ++seed) {
    FaultSchedule schedule(seed);
    schedule.run(120);
    ASSERT_EQ(schedule.violation(), "") << "seed " << seed;
    ASSERT_TRUE(schedule.settles()) << "seed " << seed << ": " << schedule.violation() << schedule.state();
    ASSERT_EQ(schedule.state(), schedule.undisturbed_state()) << "seed " << seed;
    all.add(schedule.counts);
  }
  os::log::set_level("info");
  fmt::print(
      "{} schedules: {} kills, {} ended programs, {} stopped agents, {} slices taken, {} changes, "
      "{} drained nodes\n",
      schedules, all.kills, all.ends, all.stops, all.taken, all.changes, all.drains);
  // The schedules must reach all faults.
  EXPECT_GT(all.kills, 10 * schedules);
  EXPECT_GT(all.ends, 3 * schedules);
  EXPECT_GT(all.stops, 5 * schedules);
  EXPECT_GT(all.taken, schedules);
  EXPECT_GT(all.changes, 5 * schedules);
  EXPECT_GT(all.drains, 3 * schedules);
}

}  // namespace
}  // namespace carve::controller

#include "controller/service_thread.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <filesystem>

#include "controller/objects/testing/journals.h"
#include "controller/runtime/testing/launched_programs.h"
#include "core/invariant.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

// A controller without nodes, whose periodic turns are longer than a test.
struct ServiceThreadTest : testing::Test {
  ServiceThreadTest() {
    char name[] = "/tmp/carve-thread-XXXXXX";
    state = mkdtemp(name);
    std::filesystem::create_directory(state.string() + programs_folder);
    auto launcher = Launcher::begin(supervise_program(), state.string() + programs_folder);
    invariant(launcher.has_value(), "carve-supervise is built");
    store.emplace(std::move(ControllerStore::open(state / "controller.db", 1)->store));
    journal.restore(objects);
    machine.emplace(std::vector<MachineEffects::Node>(),
                    MachineEffects::NodeRules{
                        .nodes_to_ask = [](const auto&, const auto&) { return std::vector<std::string>(); },
                        .isolation_of = [](const auto&) { return std::nullopt; },
                        .forecast = [this] { return SliceForecast(*objects); }},
                    std::move(*launcher), state);
    thread.emplace(
        *objects, std::move(*WorkloadRecords::read(*store)),
        [this](Effects& effects) {
          return JobReconciler(*objects, std::move(*JobRecords::read(*store)), effects, positions,
                               "/scripts");
        },
        *machine, events, os::second,
        TurnIntervals{
            .min_ns = never, .max_ns = never, .max_busy_ns = never, .after_end_ns = os::millisecond});
  }
  ~ServiceThreadTest() override {
    thread.reset();
    if (const pid_t program = pid(); program > 0) kill(program, SIGKILL);
    is_soon([&] { return seen().phase() != runner::ProgramPhase::running; });
    machine.reset();  // Closes the socket, and the launcher ends.
    while (waitpid(-1, nullptr, 0) > 0) {}
    is_soon([&] {
      std::error_code another_was_first;
      std::filesystem::remove_all(state, another_was_first);
      return !std::filesystem::exists(state);
    });
  }

  runner::SeenProgram seen() const {
    return runner::read_program(state.string() + programs_folder + "/a-1-0").value_or(runner::SeenProgram{});
  }
  pid_t pid() const { return seen().state.program_pid; }
  objects::ServiceStatus status() {
    const auto object = objects->find(key);
    return object ? *api::read<objects::ServiceStatus>(object->status.json(), api::Reading::lenient)
                  : objects::ServiceStatus();
  }

  static constexpr int64_t never = 3600 * os::second;
  const ObjectKey key{objects::Kind::service, "default", "a"};
  std::filesystem::path state;
  KeepingJournal journal;
  std::optional<ControllerStore> store;
  std::optional<JournaledRegistry> objects;
  std::optional<MachineEffects> machine;
  JobPositions positions;
  EventInbox events;
  std::optional<ServiceThread> thread;
};

TEST_F(ServiceThreadTest, reconciles_when_a_program_ends) {
  const objects::ServiceSpec spec{.replicas = 1, .run = {.command = {"sleep", "1000"}, .workdir = "/"}};
  ASSERT_TRUE(
      objects->add({.key = key, .account = "root", .uid = "u1", .owner_uid = geteuid(), .spec = spec}));
  ASSERT_TRUE(is_soon([&] {
    machine->wake();
    return status().ready_replicas == 1;
  })) << api::write(status());
  usleep(100'000);  // Lets the previous turns end and the wait of an hour begin.
  ASSERT_GT(pid(), 0);
  kill(pid(), SIGKILL);
  EXPECT_TRUE(is_soon([&] { return status().phase == objects::WorkloadPhase::crash_loop_back_off; }))
      << api::write(status());
  EXPECT_EQ(status().ready_replicas, 0u);
}

}  // namespace
}  // namespace carve::controller

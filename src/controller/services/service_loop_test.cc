#include "controller/services/service_loop.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <random>
#include <set>

#include "controller/objects/testing/journals.h"
#include "controller/services/testing/effects_fake.h"
#include "wire/api/json.h"
#include "wire/objects/node_object.h"

namespace carve::controller {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using workload::ProgramState;

// A controller over a database in memory-like files, its machine, and a clock.
struct Stage {
  std::filesystem::path folder;
  KeepingJournal journal;  // The registry's objects: a restart keeps them.
  EffectsFake machine;
  std::optional<ControllerStore> store;
  std::optional<ObjectRegistry> objects;
  std::optional<ServiceLoop> loop;
  const ObjectKey key{objects::Kind::service, "default", "a"};

  Stage() {
    char name[] = "/tmp/carve-services-XXXXXX";
    folder = mkdtemp(name);
    machine.now = 1'700'000'000 * workload::second_ns;
    restart();
  }
  ~Stage() { std::filesystem::remove_all(folder); }

  // What a new controller finds: the database and the machine.
  void restart() {
    loop.reset();
    objects.reset();
    store.reset();
    store.emplace(std::move(ControllerStore::open(folder / "controller.db", 1)->store));
    journal.restore(objects);
    loop.emplace(*objects, std::move(*WorkloadRecords::read(*store)), machine);
  }
  void apply(const objects::ServiceSpec& spec) {
    if (!objects->find(key))
      ASSERT_TRUE(objects->add({.key = key, .account = "root", .uid = "u1", .spec = api::write(spec)}));
    else
      ASSERT_TRUE(objects->update(
          key, [&](Object& o) -> Outcome<void> { return o.spec = api::write(spec), Outcome<void>(); }));
  }
  void remove() {
    ASSERT_TRUE(
        objects->update(key, [](Object& o) -> Outcome<void> { return o.is_ending = true, Outcome<void>(); }));
  }
  // Turns until nothing changes for a while; the clock advances by a second a turn.
  void settle(int turns = 60) {
    for (int i = 0; i < turns; ++i) {
      loop->turn(machine.now);
      machine.now += workload::second_ns;
    }
  }
  objects::ServiceStatus status() {
    const auto object = objects->find(key);
    return object ? *api::read<objects::ServiceStatus>(object->status, api::Reading::lenient)
                  : objects::ServiceStatus{};
  }
  std::vector<std::string> slices() {
    std::vector<std::string> out;
    for (const auto& [name, slice] : machine.live) out.push_back(name);
    return out;
  }
};

objects::ServiceSpec spec(uint32_t replicas, std::string command = "serve", std::string memory = "4GiB") {
  return {.replicas = replicas,
          .gpu = objects::Gpu{.memory = std::move(memory), .share = "20%"},
          .run = {.command = {std::move(command)}},
          .port = 8000};
}

TEST(ServiceLoop, an_endpoint_whose_port_another_program_holds_is_in_the_status) {
  Stage stage;
  stage.machine.taken_port = "endpoint default:a: HAProxy cannot listen at 127.0.0.1:18000";
  stage.apply(spec(1));
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

TEST(ServiceLoop, a_listener_of_another_program_is_never_served_and_is_in_the_status) {
  Stage s;
  s.machine.foreign_ports = {20000};
  s.apply(spec(1));
  s.settle(3);
  const uint32_t first = static_cast<uint32_t>(std::stoul(s.machine.starts.begin()->second.env.at("PORT")));
  EXPECT_NE(first, 20000u) << "a port that is in use is not chosen";
  s.settle();
  ASSERT_EQ(s.machine.servers.size(), 1u);
  // Another program listens there now: the replica's must have ended, and its end is not known yet.
  s.machine.foreign_ports = {first};
  s.settle(2);
  EXPECT_TRUE(s.machine.servers.empty()) << "withdrawn at the first probe that finds it";
  s.settle(8);
  EXPECT_TRUE(s.machine.servers.empty());
  EXPECT_EQ(s.status().ready_replicas, 0u);
  const auto conditions = s.status().conditions;
  const auto found = std::ranges::find(conditions, "Degraded", &objects::Condition::type);
  ASSERT_NE(found, conditions.end());
  EXPECT_THAT(found->message, HasSubstr("is used by another program"));
}

TEST(ServiceLoop, a_program_whose_port_was_taken_gets_another_at_its_next_start) {
  Stage s;
  s.apply(spec(1));
  s.settle();
  const auto& start = s.machine.starts.begin()->second;
  const auto before = static_cast<uint32_t>(std::stoul(start.env.at("PORT")));
  s.machine.foreign_ports = {before};
  s.machine.end_program(s.machine.programs.begin()->first, 1);
  s.settle();
  const auto after = static_cast<uint32_t>(std::stoul(start.env.at("PORT")));
  EXPECT_NE(after, before);
  EXPECT_EQ(s.machine.servers.size(), 1u);
  EXPECT_EQ(s.status().ready_replicas, 1u);
}

TEST(ServiceLoop, starts_each_replica_once_in_its_slice_and_publishes_it_when_it_is_ready) {
  Stage s;
  s.apply(spec(2));
  s.settle();
  EXPECT_THAT(s.slices(), ElementsAre("a-1-0", "a-1-1"));
  EXPECT_EQ(s.machine.servers.size(), 2u);
  EXPECT_EQ(s.status().phase, "Running");
  EXPECT_EQ(s.status().ready_replicas, 2u);
  EXPECT_EQ(s.status().endpoint, "http://127.0.0.1:18000");
  EXPECT_EQ(s.status().memory_text, "4 GiB");
  for (const auto& [slice, program] : s.machine.programs) EXPECT_EQ(program.seen.attempt, 1u) << slice;
}

TEST(ServiceLoop, a_restart_of_the_controller_restarts_no_program) {
  Stage s;
  s.apply(spec(2));
  s.settle();
  const auto servers = s.machine.servers;
  for (int i = 0; i < 5; ++i) {
    s.restart();
    s.settle(3);
    EXPECT_EQ(s.machine.servers, servers) << "a ready replica is served at every moment";
  }
  for (const auto& [slice, program] : s.machine.programs) EXPECT_EQ(program.seen.attempt, 1u) << slice;
}

TEST(ServiceLoop, a_program_that_ends_is_started_again_and_its_exit_is_shown) {
  Stage s;
  s.apply(spec(1));
  s.settle();
  s.machine.end_program("a-1-0", 3);
  s.loop->turn(s.machine.now);
  EXPECT_THAT(s.machine.servers, IsEmpty()) << "it is withdrawn at once";
  EXPECT_EQ(s.status().replica_list.at(0).state, "CrashLoopBackOff");
  EXPECT_EQ(s.status().replica_list.at(0).last_exit, "exit status 3");
  s.settle();
  EXPECT_EQ(s.machine.programs["a-1-0"].seen.attempt, 2u);
  EXPECT_EQ(s.status().restarts, 1u);
  EXPECT_EQ(s.status().phase, "Running");
  EXPECT_EQ(s.status().replica_list.at(0).last_exit, "exit status 3") << "of the attempt before";
}

TEST(ServiceLoop, a_replica_that_is_stopped_first_for_lack_of_capacity_is_in_the_status) {
  Stage s;
  s.machine.capacity = 1;
  s.apply(spec(1));
  s.settle();
  s.apply(spec(1, "other"));
  std::set<std::string> messages;
  for (unsigned turns = 0; turns < 40; ++turns) {
    s.machine.now += workload::second_ns / 10;
    s.loop->turn(s.machine.now);
    for (const objects::Condition& condition : s.status().conditions) messages.insert(condition.message);
  }
  EXPECT_THAT(messages, Contains("no device has the capacity; replica 0 of revision 1 is stopped first"));
}

TEST(ServiceLoop, a_program_that_its_supervisor_has_not_executed_is_not_ready) {
  Stage s;
  objects::ServiceSpec portless = spec(1);
  portless.port.reset();
  s.apply(portless);
  s.settle();
  EXPECT_EQ(s.status().ready_replicas, 1u);
  auto& program = s.machine.programs["a-1-0"].seen;
  program.is_waiting = true;
  s.machine.now += 60 * workload::second_ns;
  s.loop->turn(s.machine.now);
  EXPECT_EQ(s.status().ready_replicas, 0u);
  EXPECT_EQ(s.status().replica_list.at(0).state, "Starting");
  program.is_waiting = false;
  program.started_at = s.machine.now;
  s.settle();
  EXPECT_EQ(s.status().ready_replicas, 1u);
}

TEST(ServiceLoop, a_refusal_by_the_memory_quota_is_named_in_the_exit_of_its_attempt) {
  Stage s;
  s.apply(spec(1));
  s.settle();
  s.machine.live["a-1-0"].refused_at = s.machine.now;
  s.machine.end_program("a-1-0", 3);
  s.loop->turn(s.machine.now);
  EXPECT_THAT(s.status().replica_list.at(0).last_exit,
              HasSubstr("exit status 3; its GPU memory quota of 4 GiB refused memory"));
  s.settle();
  s.machine.end_program("a-1-0", 5);
  s.loop->turn(s.machine.now);
  EXPECT_EQ(s.status().replica_list.at(0).last_exit, "exit status 5") << "the quota refused the first one";
}

TEST(ServiceLoop, a_service_scales_by_its_load_and_its_spec_stays) {
  Stage s;
  objects::ServiceSpec wanted = spec(1);
  wanted.autoscale = objects::Autoscale{.min = 1, .max = 3, .metric = "qps", .target = 10};
  s.apply(wanted);
  s.settle();
  EXPECT_EQ(s.status().desired_replicas, 1u);
  for (int i = 1; i <= 60; ++i) {
    s.machine.carried = {.requests = static_cast<uint64_t>(i) * 25, .in_flight = 0};
    s.settle(1);
  }
  EXPECT_EQ(s.status().desired_replicas, 3u);
  EXPECT_EQ(s.machine.servers.size(), 3u);
  EXPECT_EQ(s.status().phase, "Running");
  EXPECT_THAT(s.objects->find(s.key)->spec, HasSubstr("\"replicas\":1,"));
  s.restart();
  s.settle(5);
  EXPECT_EQ(s.machine.servers.size(), 3u) << "the next controller goes on with the number";
  wanted.autoscale.reset();
  s.apply(wanted);
  s.settle();
  EXPECT_THAT(s.slices(), ElementsAre("a-1-0"));
}

TEST(ServiceLoop, a_change_of_size_is_made_in_the_running_slices) {
  Stage s;
  s.apply(spec(2));
  s.settle();
  s.apply(spec(2, "serve", "6GiB"));
  s.settle(5);
  EXPECT_THAT(s.slices(), ElementsAre("a-1-0", "a-1-1"));
  EXPECT_EQ(s.machine.live["a-1-0"].memory_bytes, 6ull << 30);
  EXPECT_EQ(s.status().revision, 1u);
  EXPECT_EQ(s.status().memory_text, "6 GiB");
  EXPECT_THAT(s.status().conditions.at(1).message, HasSubstr("in place"));
  const std::string resized_at = s.status().updated_at;
  s.apply(spec(2, "serve-v2", "6GiB"));
  s.settle();
  EXPECT_EQ(s.status().conditions.at(1).message, "") << "a rollout is no change in place";
  EXPECT_LT(resized_at, s.status().updated_at);
}

TEST(ServiceLoop, a_size_that_the_device_does_not_have_is_a_rollout) {
  Stage s;
  s.apply(spec(2));
  s.settle();
  s.machine.refuses_resize = true;
  s.apply(spec(2, "serve", "6GiB"));
  s.settle();
  EXPECT_THAT(s.slices(), ElementsAre("a-2-0", "a-2-1"));
  EXPECT_EQ(s.status().revision, 2u);
}

TEST(ServiceLoop, a_rollout_keeps_as_many_replicas_served_as_are_desired) {
  Stage s;
  s.apply(spec(3));
  s.settle();
  s.apply(spec(3, "serve-v2"));
  for (int i = 0; i < 100; ++i) {
    s.settle(1);
    EXPECT_GE(s.machine.servers.size(), 3u) << "turn " << i;
    EXPECT_LE(s.machine.live.size(), 4u) << "one more than desired";
  }
  EXPECT_THAT(s.slices(), ElementsAre("a-2-0", "a-2-1", "a-2-2"));
  EXPECT_EQ(s.status().phase, "Running");
}

TEST(ServiceLoop, a_service_without_capacity_says_so_and_keeps_what_it_has) {
  Stage s;
  s.machine.capacity = 1;
  s.apply(spec(2));
  s.settle();
  EXPECT_THAT(s.slices(), ElementsAre("a-1-0"));
  EXPECT_EQ(s.status().phase, "Waiting");
  EXPECT_EQ(s.status().ready_replicas, 1u);
  s.machine.capacity = 2;
  s.settle(120);
  EXPECT_EQ(s.status().phase, "Running");
}

TEST(ServiceLoop, a_replica_that_finds_no_cores_waits_and_says_with_which_figures) {
  Stage s;
  ASSERT_TRUE(s.objects->add({.key = {objects::Kind::node, "default", "n1"},
                              .status = api::write(objects::NodeStatus{.cpu_milli = 4000})}));
  objects::ServiceSpec wanted = spec(2);
  wanted.cpu.request = "3";
  s.apply(wanted);
  s.settle();
  EXPECT_THAT(s.slices(), ElementsAre("a-1-0"));
  EXPECT_EQ(s.status().conditions[1].message, "node n1: a replica requests 3 cores, and 1 of 4 are free");
  ASSERT_TRUE(s.objects->update({objects::Kind::node, "default", "n1"}, [](Object& node) -> Outcome<void> {
    node.status = api::write(objects::NodeStatus{.cpu_milli = 6000});
    return {};
  }));
  s.settle(120);
  EXPECT_THAT(s.slices(), ElementsAre("a-1-0", "a-1-1"));
}

TEST(ServiceLoop, a_deleted_service_ends_its_programs_and_slices) {
  Stage s;
  s.apply(spec(2));
  s.settle();
  s.remove();
  s.settle();
  EXPECT_THAT(s.slices(), IsEmpty());
  EXPECT_THAT(s.machine.programs, IsEmpty());
  EXPECT_THAT(s.machine.servers, IsEmpty());
  EXPECT_EQ(s.objects->find(s.key), nullptr);
  s.apply(spec(1));  // Its slices have the names of the former ones.
  s.settle();
  EXPECT_EQ(s.status().phase, "Running");
}

TEST(ServiceLoop, a_slice_that_a_user_ended_is_replaced) {
  Stage s;
  s.apply(spec(2));
  s.settle();
  ASSERT_TRUE(s.machine.end_slice("n1", "a-1-1"));
  s.settle();
  EXPECT_THAT(s.slices(), ElementsAre("a-1-0", "a-1-1"));
  EXPECT_EQ(s.status().phase, "Running");
}

TEST(ServiceLoop, a_replica_whose_slice_was_taken_is_served_no_longer) {
  Stage s;
  s.apply(spec(2));
  s.settle();
  s.apply(spec(1));  // The slice is not granted again.
  ASSERT_TRUE(s.machine.end_slice("n1", "a-1-1"));
  s.settle();
  EXPECT_EQ(s.machine.servers.size(), 1u) << "its port may be another program's";
}

TEST(ServiceLoop, a_slice_that_may_have_been_granted_is_requested_again_under_its_identity) {
  Stage s;
  s.machine.nodes = {"n1", "n2"};
  s.machine.loses_answers = true;
  s.apply(spec(1));
  s.settle(10);
  EXPECT_EQ(s.machine.granted_by.size(), 1u) << "each request is the same one";
  s.restart();
  s.settle(10);
  s.machine.loses_answers = false;
  s.settle();
  EXPECT_EQ(s.machine.granted_by.size(), 1u);
  EXPECT_THAT(s.slices(), ElementsAre("a-1-0"));
  EXPECT_EQ(s.machine.programs["a-1-0"].seen.attempt, 1u);
  EXPECT_EQ(s.status().phase, "Running");
}

TEST(ServiceLoop, a_drained_node_gives_its_replicas_to_another_node_and_the_others_stay) {
  Stage s;
  s.apply(spec(1));
  s.settle();
  s.machine.nodes = {"n2"};
  s.apply(spec(2));
  s.settle();
  ASSERT_EQ(s.machine.node_of["a-1-0"], "n1");
  s.machine.capacity = 2;
  ASSERT_TRUE(s.objects->add({.key = {objects::Kind::node, "default", "n1"},
                              .spec = api::write(objects::NodeSpec{.draining = true})}));
  s.machine.silent_nodes = {"n2"};
  s.settle(3);
  EXPECT_EQ(s.status().conditions.at(1).message,
            "node n1 is drained; replica 0 stays there: node n2 is silent");
  s.machine.silent_nodes.clear();
  for (int i = 0; i < 20; ++i) {
    s.settle(1);
    EXPECT_EQ(s.machine.servers.size(), 2u) << "turn " << i;
  }
  EXPECT_THAT(s.slices(), ElementsAre("a-1-0", "a-1-1"));
  EXPECT_EQ(s.status().conditions.at(1).message,
            "node n1 is drained; replica 0 stays there: no device has the capacity");
  s.restart();
  s.machine.capacity = 3;
  for (int i = 0; i < 120; ++i) {
    s.settle(1);
    EXPECT_GE(s.machine.servers.size(), 2u) << "turn " << i;
  }
  EXPECT_THAT(s.slices(), ElementsAre("a-1-1", "a-1-64"));
  EXPECT_EQ(s.machine.node_of["a-1-64"], "n2");
  EXPECT_EQ(s.machine.programs["a-1-1"].seen.attempt, 1u);
  EXPECT_EQ(s.status().phase, "Running");
  EXPECT_EQ(s.status().revision, 1u);
}

TEST(ServiceLoop, a_controller_that_starts_beside_a_silent_agent_keeps_the_endpoint) {
  Stage s;
  s.apply(spec(2));
  s.settle();
  const auto servers = s.machine.servers;
  s.machine.silent_nodes = {"n1"};
  s.restart();
  for (int i = 0; i < 10; ++i) {
    s.settle(1);
    EXPECT_EQ(s.machine.servers, servers) << "turn " << i;
  }
}

TEST(ServiceLoop, a_silent_agent_holds_up_the_replicas_of_no_other_node) {
  Stage s;
  s.machine.nodes = {"n1"};
  s.apply(spec(1));
  s.settle();
  s.machine.nodes = {"n2"};
  s.apply(spec(2));
  s.settle();
  ASSERT_EQ(s.machine.node_of["a-1-1"], "n2");
  s.machine.silent_nodes = {"n1"};
  s.machine.end_program("a-1-0", 1);
  s.machine.end_program("a-1-1", 1);
  s.settle(1);
  EXPECT_THAT(s.machine.servers, IsEmpty()) << "an ended program is served at no node";
  s.settle();
  EXPECT_EQ(s.machine.programs["a-1-0"].seen.attempt, 1u) << "no program enters a slice of a silent agent";
  EXPECT_EQ(s.machine.programs["a-1-1"].seen.attempt, 2u);
  s.machine.silent_nodes.clear();
  s.settle();
  EXPECT_EQ(s.status().phase, "Running");
}

// Kills the controller at a random call, with or without the call's effect, again and again while the service
// is changed. At the end the state is the desired one, and no slice and no program was made twice.
TEST(ServiceLoop, killed_between_any_two_steps_it_ends_in_the_desired_state) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    Stage s;
    std::mt19937 random(seed);
    s.apply(spec(2));
    for (int change = 0; change < 6; ++change) {
      s.apply(spec(1 + random() % 3, fmt::format("serve-{}", random() % 3), random() % 2 ? "4GiB" : "6GiB"));
      for (int kills = 0; kills < 3; ++kills) {
        s.machine.calls_left = static_cast<int>(random() % 12);
        s.machine.last_has_effect = random() % 2 == 0;
        try {
          s.settle(20);
        } catch (const Killed&) {}
        s.machine.calls_left = -1;
        s.restart();
      }
    }
    s.apply(spec(2, "last"));
    s.settle(150);
    EXPECT_EQ(s.status().phase, "Running") << "seed " << seed;
    EXPECT_EQ(s.machine.live.size(), 2u) << "seed " << seed;
    EXPECT_EQ(s.machine.servers.size(), 2u) << "seed " << seed;
    EXPECT_THAT(s.machine.started_twice, IsEmpty()) << "seed " << seed;
    EXPECT_THAT(s.machine.granted_twice, IsEmpty()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace carve::controller

#include "workload/service.h"

#include <gtest/gtest.h>

#include "workload/testing/service_machines.h"

namespace carve::workload {
namespace {

using Reason = ServiceAction::Reason;

// Runs the controller's loop from second `from` to second `to`, and returns the actions with the second of
// each.
std::string run(Machines& machines, const Service& service, int from, int to) {
  std::string log;
  for (int t = from; t <= to; ++t) {
    machines.pass(t * second_ns);
    const auto list = actions(service, machines.observed, t * second_ns);
    if (!list.empty()) log += fmt::format("{}: {}\n", t, text(list));
    for (const ServiceAction& action : list) machines.carry_out(action, t * second_ns);
  }
  return log;
}

TEST(Service, that_runs_once_is_finished_when_all_programs_have_ended) {
  Machines machines;
  Service service = web(2);
  service.has_port = false;
  service.restart_policy = RestartPolicy::on_failure;
  run(machines, service, 0, 5);
  machines.exit(*machines.find({1, 0}), 5 * second_ns, ProgramEnd::succeeded);
  machines.exit(*machines.find({1, 1}), 5 * second_ns, ProgramEnd::failed);
  EXPECT_EQ(status(service, machines.observed, 5 * second_ns).crash_looping, 1u);
  EXPECT_EQ(run(machines, service, 5, 7), "6: start 1-1\n") << "only the failed program is started again";
  machines.exit(*machines.find({1, 1}), 7 * second_ns, ProgramEnd::succeeded);
  EXPECT_EQ(text(actions(service, machines.observed, 100 * second_ns)), "finish 1");
  EXPECT_EQ(status(service, machines.observed, 100 * second_ns).crash_looping, 0u);
  service.replicas = 0;  // The controller stopped it.
  EXPECT_EQ(run(machines, service, 101, 105),
            "101: retire 1-1, retire 1-0\n102: end 1-0, end 1-1\n103: complete 1\n");
}

TEST(Service, that_never_restarts_is_finished_after_a_failure_but_restarts_lost_programs) {
  Machines machines;
  Service service = web(1);
  service.restart_policy = RestartPolicy::never;
  run(machines, service, 0, 5);
  machines.exit(*machines.find({1, 0}), 5 * second_ns, ProgramEnd::lost);
  EXPECT_EQ(run(machines, service, 6, 6), "6: withdraw 1-0, start 1-0\n");
  machines.exit(*machines.find({1, 0}), 7 * second_ns, ProgramEnd::failed);
  EXPECT_EQ(text(actions(service, machines.observed, 8 * second_ns)), "finish 1");
  service.revision = 2;
  EXPECT_EQ(text(actions(service, machines.observed, 8 * second_ns)), "create 2-0")
      << "a new revision runs again";
  service.restart_policy = RestartPolicy::always;
  service.revision = 1;
  EXPECT_EQ(text(actions(service, machines.observed, 100 * second_ns)), "start 1-0");
}

TEST(Service, is_started_restarted_after_a_crash_updated_and_stopped) {
  Machines machines;
  Service service = web(2);
  EXPECT_EQ(run(machines, service, 0, 20),
            "0: create 1-0, create 1-1\n"
            "1: start 1-0, start 1-1\n"
            "2: publish 1-0, publish 1-1\n"
            "7: complete 1\n");
  EXPECT_EQ(status(service, machines.observed, 20 * second_ns).phase, ServicePhase::running);

  // The program of replica 1 exits twice and is restarted after 1 s, then after 2 s.
  machines.exit(*machines.find({1, 1}), 20 * second_ns);
  EXPECT_EQ(status(service, machines.observed, 20 * second_ns).crash_looping, 1u);
  EXPECT_EQ(status(service, machines.observed, 20 * second_ns).phase, ServicePhase::waiting);
  EXPECT_EQ(run(machines, service, 20, 22), "20: withdraw 1-1\n21: start 1-1\n22: publish 1-1\n");
  machines.exit(*machines.find({1, 1}), 22 * second_ns);
  EXPECT_EQ(run(machines, service, 22, 40), "22: withdraw 1-1\n24: start 1-1\n25: publish 1-1\n");

  // An update replaces one replica after the other. The new replica is ready for 5 s before the old one is
  // retired.
  service = web(2, 2);
  service.revised_at = 100 * second_ns;
  EXPECT_EQ(run(machines, service, 100, 140),
            "100: create 2-0\n"
            "101: start 2-0\n"
            "102: publish 2-0\n"
            "107: retire 1-0\n"
            "108: withdraw 1-0\n"
            "109: terminate 1-0\n"
            "110: end 1-0\n"
            "111: create 2-1\n"
            "112: start 2-1\n"
            "113: publish 2-1\n"
            "118: retire 1-1\n"
            "119: withdraw 1-1\n"
            "120: terminate 1-1\n"
            "121: end 1-1\n"
            "122: complete 2\n");
  EXPECT_EQ(status(service, machines.observed, 140 * second_ns).phase, ServicePhase::running);

  service.replicas = 0;
  EXPECT_EQ(run(machines, service, 200, 210),
            "200: retire 2-1, retire 2-0\n"
            "201: withdraw 2-0, withdraw 2-1\n"
            "202: terminate 2-0, terminate 2-1\n"
            "203: end 2-0, end 2-1\n");
  EXPECT_EQ(status(service, machines.observed, 210 * second_ns).phase, ServicePhase::stopped);
}

TEST(Service, repeats_sigterm_until_the_program_was_executed) {
  Service service = web(0);
  ServiceObserved observed{.replicas = {{.id = {1, 0},
                                         .program = ProgramState::running,
                                         .program_since = second_ns,
                                         .retired_at = second_ns,
                                         .is_starting = true}}};
  EXPECT_EQ(text(actions(service, observed, 2 * second_ns)), "terminate 1-0");
  EXPECT_EQ(text(actions(service, observed, 3 * second_ns)), "terminate 1-0");
  observed.replicas[0].is_starting = false;
  EXPECT_EQ(text(actions(service, observed, 4 * second_ns)), "terminate 1-0");
  observed.replicas[0].terminated_at = 4 * second_ns;
  EXPECT_EQ(text(actions(service, observed, 5 * second_ns)), "");
  EXPECT_EQ(text(actions(service, observed, 4 * second_ns + service.grace)), "kill 1-0");
  // A program that is never executed is killed when the grace period since its retirement is over.
  observed.replicas[0].terminated_at.reset();
  observed.replicas[0].is_starting = true;
  EXPECT_EQ(text(actions(service, observed, second_ns + service.grace)), "kill 1-0");
}

TEST(Service, does_not_start_a_replica_in_the_pass_that_retires_it) {
  ServiceObserved observed{.replicas = {{.id = {1, 0}}}};
  EXPECT_EQ(text(actions(web(0), observed, second_ns)), "retire 1-0");
  observed.replicas[0].program = ProgramState::exited;
  EXPECT_EQ(text(actions(web(0), observed, 100 * second_ns)), "retire 1-0");
}

TEST(Service, doubles_the_back_off_to_60_s_and_resets_it_after_10_minutes) {
  Machines machines;
  const Service service = web(1);
  run(machines, service, 0, 10);
  int now = 10;
  for (const int delay : {1, 2, 4, 8, 16, 32, 60, 60}) {
    machines.exit(machines.observed.replicas[0], now * second_ns);
    const std::string log = run(machines, service, now + 1, now + delay);
    EXPECT_TRUE(log.ends_with(fmt::format("{}: start 1-0\n", now + delay)) ||
                log.ends_with(fmt::format("{}: withdraw 1-0, start 1-0\n", now + delay)))
        << delay << " s: " << log;
    now += delay + 1;
    run(machines, service, now, now);
  }
  now += 600;
  machines.exit(machines.observed.replicas[0], now * second_ns);
  EXPECT_EQ(machines.observed.replicas[0].failures, 1u);
  EXPECT_EQ(backoff_ns(0), 0);
  EXPECT_EQ(backoff_ns(UINT32_MAX), max_backoff_ns);
  EXPECT_EQ(failures_after(UINT32_MAX, 0), UINT32_MAX);
  EXPECT_EQ(between(3, 5), 2);
  EXPECT_EQ(between(5, 3), 0);
  EXPECT_EQ(between(INT64_MIN, INT64_MAX), INT64_MAX) << "the times may be forged";
  EXPECT_EQ(after(INT64_MAX, 1), INT64_MAX);
}

TEST(Service, stops_one_old_replica_first_if_there_is_no_capacity_for_the_surge) {
  Machines machines;
  machines.capacity = 2;
  run(machines, web(2), 0, 20);
  Service service = web(2, 2);
  service.revised_at = 20 * second_ns;
  EXPECT_EQ(run(machines, service, 20, 25),
            "20: create 2-0\n"
            "21: retire 1-0, create 2-0\n"
            "22: withdraw 1-0\n"
            "23: terminate 1-0, create 2-0\n"
            "24: end 1-0\n"
            "25: create 2-0, create 2-1\n");
  run(machines, service, 26, 80);
  EXPECT_EQ(status(service, machines.observed, 80 * second_ns).phase, ServicePhase::running);
  EXPECT_EQ(machines.observed.replicas.size(), 2u);
}

TEST(Service, keeps_the_old_replicas_until_a_good_revision_replaces_a_broken_one) {
  Machines machines;
  run(machines, web(2), 0, 20);
  Service broken = web(2, 2);
  broken.revised_at = 20 * second_ns;
  int now = 20;
  for (; now <= 700; ++now) {
    run(machines, broken, now, now);
    if (Replica* replica = machines.find({2, 0}); replica && replica->program == ProgramState::running)
      machines.exit(*replica, now * second_ns);
  }
  EXPECT_TRUE(machines.find({1, 0}) && machines.find({1, 1}));
  EXPECT_EQ(machines.observed.replicas.size(), 3u);
  const ServiceStatus stuck = status(broken, machines.observed, now * second_ns);
  EXPECT_FALSE(stuck.progressing);
  EXPECT_EQ(stuck.phase, ServicePhase::failed);
  EXPECT_EQ(stuck.available, 2u);
  EXPECT_TRUE(status(broken, machines.observed, 619 * second_ns).progressing);

  Service good = web(2, 3);
  good.revised_at = now * second_ns;
  EXPECT_EQ(run(machines, good, now, now), fmt::format("{}: retire 2-0\n", now));
  run(machines, good, now + 1, now + 60);
  EXPECT_EQ(status(good, machines.observed, (now + 60) * second_ns).phase, ServicePhase::running);
}

TEST(Service, decides_each_case_of_one_pass) {
  constexpr Ns s = second_ns;
  const auto up = [](uint32_t revision, uint32_t index) {
    return Replica{.id = {revision, index},
                   .program = ProgramState::running,
                   .probe = {.ready_since = 0},
                   .endpoint = EndpointState::serving};
  };
  const auto down = [](uint32_t revision, uint32_t index) {
    return Replica{
        .id = {revision, index}, .program = ProgramState::exited, .program_since = 99 * s, .failures = 3};
  };
  const auto retired = [&](EndpointState endpoint, Ns since, std::optional<Ns> terminated = {}) {
    Replica replica = up(1, 2);
    replica.endpoint = endpoint;
    replica.retired_at = since;
    replica.terminated_at = terminated;
    return replica;
  };
  Service three = web(3, 2), recreate = web(2, 2), unavailable = web(3, 2);
  recreate.rollout = {.max_surge = 0, .max_unavailable = 2};
  unavailable.rollout = {.max_surge = 0, .max_unavailable = 1};
  struct Row {
    const char* what;
    Service service;
    std::vector<Replica> replicas;
    std::string expected;
  } const rows[] = {
      {"scaling down takes the highest index",
       web(1),
       {up(1, 0), up(1, 1), up(1, 2)},
       "retire 1-2, retire 1-1"},
      {"scaling down during an update", web(1, 2), {up(1, 0), up(1, 1), up(2, 1)}, "retire 1-1, retire 2-1"},
      {"scaling up during an update begins with the index without a replica",
       three,
       {up(1, 0), up(1, 1)},
       "create 2-2, create 2-0"},
      {"at most one slice beyond the replicas", three, {up(1, 0), up(1, 1), up(1, 2)}, "create 2-0"},
      {"retired replicas count until their slices have ended",
       three,
       {up(1, 0), up(1, 1), retired(EndpointState::draining, 99 * s), up(2, 0)},
       "retire 1-0"},
      {"a replica that is not available does not replace an old one",
       web(2, 2),
       {up(1, 0), up(1, 1), down(2, 0)},
       ""},
      {"an old replica that has ended stays while the new one starts",
       web(1, 2),
       {down(1, 0), down(2, 0)},
       ""},
      {"of two old replicas of one index, the available one stays",
       web(1, 3),
       {down(1, 0), up(2, 0)},
       "retire 1-0"},
      {"of two old replicas that have ended, the older stays",
       web(1, 3),
       {down(1, 0), down(2, 0)},
       "retire 2-0"},
      {"max_unavailable 1 without a surge", unavailable, {up(1, 0), up(1, 1), up(1, 2)}, "retire 1-0"},
      {"max_unavailable 1 retires the replica that has ended first",
       unavailable,
       {up(1, 0), down(1, 1), up(1, 2)},
       "retire 1-1"},
      {"max_unavailable 1 is used up by the new one", unavailable, {up(1, 1), up(1, 2), down(2, 0)}, ""},
      {"max_unavailable 2 retires both replicas", recreate, {up(1, 0), up(1, 1)}, "retire 1-0, retire 1-1"},
      {"a drain takes at most the grace period", web(0), {retired(EndpointState::draining, 71 * s)}, ""},
      {"SIGTERM follows the drain", web(0), {retired(EndpointState::draining, 70 * s)}, "terminate 1-2"},
      {"SIGTERM is sent once", web(0), {retired(EndpointState::absent, 9 * s, 71 * s)}, ""},
      {"SIGKILL after the grace period", web(0), {retired(EndpointState::absent, 9 * s, 70 * s)}, "kill 1-2"},
      {"a slice name is free only after its slice has ended",
       web(3),
       {up(1, 0), up(1, 1), retired(EndpointState::draining, 99 * s)},
       ""},
      {"a program that waits for its back-off is not started", web(1), {down(1, 0)}, ""},
  };
  for (const Row& row : rows)
    EXPECT_EQ(text(actions(row.service, {row.replicas, {}, row.service.revision}, 100 * s)), row.expected)
        << row.what;
}

TEST(Service, decides_each_case_on_a_drained_node) {
  constexpr Ns s = second_ns;
  const auto up = [](uint32_t index, bool must_move = false) {
    return Replica{.id = {1, index},
                   .program = ProgramState::running,
                   .probe = {.ready_since = 0},
                   .endpoint = EndpointState::serving,
                   .must_move = must_move};
  };
  const auto moving = [&](uint32_t index) { return up(index, true); };
  const auto down = [](uint32_t index, bool must_move = false) {
    return Replica{.id = {1, index},
                   .program = ProgramState::exited,
                   .program_since = 99 * s,
                   .failures = 3,
                   .must_move = must_move};
  };
  Service no_surge = web(2), next = web(2, 2);
  no_surge.rollout = {.max_surge = 0, .max_unavailable = 1};
  const Refusal refused{.revision = 1, .at = 100 * s};
  struct Row {
    const char* what;
    Service service;
    ServiceObserved observed;
    std::string expected;
  } const rows[] = {
      {"first a successor", web(2), {{moving(0), up(1)}, {}, 1}, "create 1-64"},
      {"one replica moves after the other", web(2), {{moving(0), moving(1)}, {}, 1}, "create 1-64"},
      {"the only replica of a service moves too", web(1), {{moving(0)}, {}, 1}, "create 1-64"},
      {"a replica moves even if a rollout has no surge",
       no_surge,
       {{moving(0), up(1)}, {}, 1},
       "create 1-64"},
      {"the successor has the other index of the ordinal", web(1), {{moving(64)}, {}, 1}, "create 1-0"},
      {"a requested successor is not created again", web(1), {{moving(0)}, {}, 1, {{1, 64}}}, ""},
      {"a replica stays while its successor is not available",
       web(2),
       {{moving(0), up(1), down(64)}, {}, 1},
       ""},
      {"a replica is retired when its successor is available",
       web(2),
       {{moving(0), up(1), up(64)}, {}, 1},
       "retire 1-0"},
      {"a replica stays if its successor finds no capacity", web(2), {{moving(0), up(1)}, refused, 1}, ""},
      {"a replica that is not ready waits for its successor's slice",
       web(1),
       {{down(0, true)}, {}, 1},
       "create 1-64"},
      {"a replica that is not ready is retired once its successor has a slice",
       web(1),
       {{down(0, true), down(64)}, {}, 1},
       "retire 1-0"},
      {"both nodes are drained", web(1), {{moving(0), down(64, true)}, {}, 1}, "retire 1-64"},
      {"the node is uncordoned", web(1), {{up(0), down(64)}, {}, 1}, "retire 1-64"},
      {"the service is scaled down", web(1), {{up(0), moving(1), up(65)}, {}, 1}, "retire 1-1, retire 1-65"},
      {"a rollout replaces a replica that must move", next, {{moving(0), up(1)}, {}, 1}, "create 2-0"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(text(actions(row.service, row.observed, 100 * s)), row.expected) << row.what;

  const ServiceStatus stays = status(web(2), {{moving(0), up(1)}, refused, 1}, 100 * s);
  EXPECT_EQ(stays.phase, ServicePhase::updating);
  EXPECT_EQ(stays.available, 2u);
  EXPECT_TRUE(stays.lacks_capacity);
  const ServiceStatus back = status(web(2), {{up(0), up(1)}, refused, 1}, 100 * s);
  EXPECT_EQ(back.phase, ServicePhase::running);
  EXPECT_FALSE(back.lacks_capacity) << "the rejected slice is no longer desired";
}

TEST(Service, moves_only_the_replicas_of_a_drained_node) {
  Machines machines;
  const Service service = web(2);
  run(machines, service, 0, 20);
  machines.find({1, 1})->must_move = true;
  EXPECT_EQ(run(machines, service, 20, 40),
            "20: create 1-65\n"
            "21: start 1-65\n"
            "22: publish 1-65\n"
            "27: retire 1-1\n"
            "28: withdraw 1-1\n"
            "29: terminate 1-1\n"
            "30: end 1-1\n");
  EXPECT_EQ(status(service, machines.observed, 40 * second_ns).phase, ServicePhase::running);
  EXPECT_EQ(run(machines, web(3), 40, 41), "40: create 1-2\n41: start 1-2\n");
}

TEST(Service, names_the_rule_in_the_reason_of_an_action) {
  Service service = web(1, 2);
  Replica old{.id = {1, 0}, .program = ProgramState::running, .probe = {.ready_since = 0}};
  old.endpoint = EndpointState::serving;
  const auto list =
      actions(service, {{old}, Refusal{.revision = 2, .at = 100 * second_ns}, 1}, 100 * second_ns);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0], (ServiceAction{Kind::retire, {1, 0}, Reason::no_surge_capacity}));
}

TEST(Service, keeps_an_old_replica_if_its_end_makes_no_room) {
  const Service surge = web(2, 2);
  Service no_surge = web(2, 2);
  no_surge.rollout = {.max_surge = 0, .max_unavailable = 2};
  const auto old = [](uint32_t index) {
    return Replica{.id = {1, index},
                   .program = ProgramState::running,
                   .probe = {.ready_since = 0},
                   .endpoint = EndpointState::serving};
  };
  const Ns now = 100 * second_ns;
  const auto retired = [&](const Service& service, std::function<bool(std::span<const ReplicaId>)> fits) {
    ServiceObserved observed{{old(0), old(1)}, Refusal{.revision = 2, .at = now}, 1};
    observed.fits_without = std::move(fits);
    return text(actions(service, observed, now));
  };
  for (const Service& service : {surge, no_surge})
    EXPECT_EQ(retired(service, [](std::span<const ReplicaId>) { return false; }), "");
  EXPECT_EQ(retired(surge, [](std::span<const ReplicaId> ended) { return ended.front().index == 1; }),
            "retire 1-1")
      << "the replica whose end makes room";
  const auto both = [](std::span<const ReplicaId> ended) { return ended.size() == 2; };
  EXPECT_EQ(retired(surge, both), "") << "only one may stop";
  EXPECT_EQ(retired(no_surge, both), "retire 1-0, retire 1-1") << "two may stop, and both are needed";
}

TEST(Service, becomes_ready_after_one_probe_and_not_ready_after_three_failures) {
  Probe probe = probe_succeeded({}, 7);
  EXPECT_EQ(probe.ready_since, 7);
  probe = probe_failed(probe_failed(probe));
  EXPECT_EQ(probe.ready_since, 7) << "two failures in a row are not enough";
  EXPECT_EQ(probe_succeeded(probe, 9), (Probe{0, 7}));
  EXPECT_EQ(probe_failed(probe).ready_since, std::nullopt);
  EXPECT_EQ(probe_failed(probe_failed(probe)).failures, probe_failures);

  Service batch = web(1);
  batch.has_port = false;  // Ready after 1 s, available 5 s later, and never published.
  ServiceObserved observed{{{.id = {1, 0}, .program = ProgramState::running}}, {}, 0};
  EXPECT_EQ(status(batch, observed, second_ns - 1).ready, 0u);
  EXPECT_EQ(status(batch, observed, second_ns).ready, 1u);
  EXPECT_EQ(text(actions(batch, observed, 6 * second_ns - 1)), "");
  EXPECT_EQ(text(actions(batch, observed, 6 * second_ns)), "complete 1");
}

TEST(Service, that_is_invalid_is_rejected) {
  const auto message = [](auto change) {
    Service service = web(1);
    change(service);
    const auto result = validated(service);
    return result ? std::string() : result.error().message;
  };
  EXPECT_EQ(message([](Service&) {}), "");
  EXPECT_EQ(message([](Service& s) { s.name = std::string(48, 'a'); }), "");
  for (const char* name : {"", "-a", "a-", "A", "a_b", "a/b"})
    EXPECT_NE(message([&](Service& s) { s.name = name; }), "") << name;
  EXPECT_NE(message([](Service& s) { s.name = std::string(49, 'a'); }), "");
  EXPECT_EQ(message([](Service& s) { s.replicas = 65; }),
            "65 replicas are requested; a service can have at most 64");
  EXPECT_EQ(message([](Service& s) { s.rollout = {.max_surge = 0}; }),
            "maxSurge 0 and maxUnavailable 0: no replica can be replaced; set one of them to 1 or more");
  EXPECT_NE(message([](Service& s) { s.rollout.max_surge = 65; }), "");
  EXPECT_NE(message([](Service& s) { s.rollout.progress_deadline = 0; }), "");
  EXPECT_NE(message([](Service& s) { s.grace = -1; }), "");
  Service longest = web(1, UINT32_MAX);
  longest.name = std::string(max_service_name_bytes, 'a');
  EXPECT_LE(slice_name(longest, {longest.revision, 2 * max_replicas - 1}).size(), 63u);
}

}  // namespace
}  // namespace carve::workload

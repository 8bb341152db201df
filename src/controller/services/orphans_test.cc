#include "controller/services/orphans.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "controller/services/service_reconciler.h"
#include "controller/services/testing/effects_fake.h"
#include "controller/services/testing/store_stage.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

using objects::EventReason;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Ns grace = 60 * workload::second_ns;

// A controller whose database can be lost, or reset to an older state.
struct LossStage : StoreStage {
  EffectsFake machine;
  std::optional<ServiceReconciler> reconciler;
  EventInbox events;
  std::optional<Orphans> orphans;
  const ObjectKey key{objects::Kind::service, "default", "a"};

  LossStage() {
    machine.now = 1'700'000'000 * workload::second_ns;
    restart();
  }

  void end() {
    orphans.reset();
    reconciler.reset();
    close();
  }
  void restart() {
    end();
    open();
    reconciler.emplace(*objects, std::move(*WorkloadRecords::read(*store)), machine);
    orphans.emplace(
        *objects, machine, events,
        Orphans::Loops{
            .has_record = [this](const auto& name) { return reconciler->has_record(name); },
            .adopt = [this](const auto& name,
                            const auto& owner) { return reconciler->adopt(name, owner, machine.now); }},
        grace);
    reconciler->set_taken([this](const auto& name) { return orphans->has(name); });
  }
  void lose_records() {
    end();
    std::filesystem::remove(database());
  }
  void lose_all() {
    lose_records();
    journal = KeepingJournal();
  }
  void apply(const std::string& uid, const std::string& command = "serve", uint32_t replicas = 2) {
    const objects::ServiceSpec spec{.replicas = replicas,
                                    .gpu = objects::Gpu{.memory = "4GiB", .share = "20%"},
                                    .run = {.command = {command}},
                                    .port = 8000};
    ASSERT_TRUE(objects->add({.key = key, .account = "root", .uid = uid, .spec = spec}));
  }
  void settle(int turns = 60) {
    for (int i = 0; i < turns; ++i) {
      orphans->turn(machine.now);
      reconciler->reconcile(machine.now);
      machine.now += workload::second_ns;
    }
  }
  std::vector<std::string> living() {
    std::vector<std::string> out;
    for (const auto& [name, slice] : machine.live) out.push_back(name);
    return out;
  }
  std::multiset<EventReason> reasons() {
    std::multiset<EventReason> out;
    for (const auto& entry : events.take()) {
      EXPECT_EQ(entry.object, key);
      out.insert(entry.event.reason);
    }
    return out;
  }
  std::map<std::string, Ns> starts() {
    std::map<std::string, Ns> out;
    for (const auto& [name, program] : machine.programs) out[name] = program.seen.started_at;
    return out;
  }
};

TEST(Orphans, get_their_lost_records_back_without_a_restart_of_the_program) {
  LossStage s;
  s.apply("u1");
  s.settle();
  const auto starts = s.starts();
  s.lose_records();
  s.restart();
  s.settle();
  EXPECT_EQ(s.starts(), starts);
  EXPECT_EQ(s.machine.read_owners, 2u);  // Only the owners of programs without a record.
  EXPECT_THAT(s.living(), ElementsAre("a-1-0", "a-1-1"));
  EXPECT_THAT(s.reasons(), ElementsAre(EventReason::orphan_adopted, EventReason::orphan_adopted));
  EXPECT_EQ(s.machine.servers.size(), 2u);
  s.restart();
  s.settle();
  EXPECT_THAT(s.reasons(), IsEmpty());
}

// A node may grant any slice that is requested from it, so the owner is stored before the request.
TEST(Orphans, are_not_adopted_if_their_slice_was_rejected) {
  LossStage s;
  s.machine.capacity = 1;
  s.apply("u1");
  s.settle(200);
  EXPECT_THAT(s.reasons(), IsEmpty());
  EXPECT_EQ(s.machine.kept_owners.size(), 1u);
  s.machine.capacity = 2;
  s.settle(200);
  EXPECT_THAT(s.living(), ElementsAre("a-1-0", "a-1-1"));
  EXPECT_THAT(s.reasons(), IsEmpty());
}

TEST(Orphans, without_an_owner_keep_running_only_for_the_grace_period) {
  LossStage s;
  s.apply("u1");
  s.settle();
  s.lose_all();
  s.restart();
  s.settle(59);
  EXPECT_THAT(s.living(), ElementsAre("a-1-0", "a-1-1"));
  EXPECT_THAT(s.reasons(), IsEmpty());
  s.settle(20);
  EXPECT_THAT(s.living(), IsEmpty());
  EXPECT_THAT(s.machine.programs, IsEmpty());
  EXPECT_THAT(s.machine.kept_owners, IsEmpty());
  EXPECT_THAT(s.reasons(), ElementsAre(EventReason::orphan_ended, EventReason::orphan_ended));
}

TEST(Orphans, are_adopted_by_a_service_that_is_submitted_again) {
  LossStage s;
  s.apply("u1");
  s.settle();
  const auto starts = s.starts();
  s.lose_all();
  s.restart();
  s.settle(5);
  s.apply("u2");
  s.settle();
  EXPECT_EQ(s.starts(), starts);
  EXPECT_THAT(s.living(), ElementsAre("a-1-0", "a-1-1"));
  EXPECT_EQ(s.machine.kept_owners.at("a-1-0").uid, "u2");
}

TEST(Orphans, are_ended_immediately_if_a_service_with_another_spec_needs_their_names) {
  LossStage s;
  s.apply("u1");
  s.settle();
  s.lose_all();
  s.restart();
  s.settle(5);
  s.apply("u2", "another");
  s.settle(30);
  EXPECT_THAT(s.living(), ElementsAre("a-1-0", "a-1-1"));
  EXPECT_THAT(s.machine.starts.at("a-1-0").command, ElementsAre("another"));
  EXPECT_THAT(s.machine.started_twice, IsEmpty());
  EXPECT_THAT(s.machine.granted_twice, IsEmpty());
  EXPECT_EQ(s.machine.servers.size(), 2u);
}

TEST(Orphans, of_another_user_are_not_adopted) {
  LossStage s;
  s.apply("u1");
  s.settle();
  s.lose_all();
  for (auto& [name, owner] : s.machine.kept_owners) owner.owner_uid = 1000;
  s.restart();
  s.apply("u2");
  s.settle();
  EXPECT_EQ(s.reasons().count(EventReason::orphan_adopted), 0u);
  EXPECT_THAT(s.living(), ElementsAre("a-1-0", "a-1-1")) << "the new programs";
}

TEST(Orphans, on_a_silent_node_lose_their_slice_when_the_node_responds) {
  LossStage s;
  s.apply("u1", "serve", 1);
  s.settle();
  s.lose_all();
  s.restart();
  s.machine.silent_nodes = {"n1"};
  s.settle(100);
  EXPECT_THAT(s.living(), ElementsAre("a-1-0"));
  EXPECT_TRUE(s.machine.kept_owners.contains("a-1-0"));
  s.machine.silent_nodes.clear();
  s.settle(20);
  EXPECT_THAT(s.living(), IsEmpty());
  EXPECT_THAT(s.machine.kept_owners, IsEmpty());
}

// A slice with the same name that another user created is not touched.
TEST(Orphans, do_not_include_the_slice_of_another_workload) {
  LossStage s;
  s.apply("u1", "serve", 1);
  s.settle();
  s.lose_all();
  s.machine.live.at("a-1-0").workload = "b";
  s.restart();
  s.settle(100);
  EXPECT_THAT(s.living(), ElementsAre("a-1-0"));
  EXPECT_THAT(s.machine.kept_owners, IsEmpty());
}

}  // namespace
}  // namespace carve::controller

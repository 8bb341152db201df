#include "node/pages/state_file.h"

#include <gtest/gtest.h>

namespace carve::node {
namespace {

TEST(StateFile, is_read_as_it_was_written) {
  StateFile state;
  state.record.id = 9;
  state.record.slice = {.name = "a",
                        .request_id = "r",
                        .owner = 1000,
                        .parts = {{Uuid{{5}}, 2_GiB, {3000}, 1_GiB}},
                        .exclusive = true,
                        .lifetime = Lifetime::until_deleted,
                        .isolation = Isolation::none,
                        .policy = Policy::native_burst_share,
                        .latency = LatencyClass::latency,
                        .application = "web"};
  state.record.slice.holder.pod = PodContainer{"a", "web-0", "0b6c", "main"};
  state.record.from = {1'700'000'000'000'000'000, "boot", 55};
  state.record.periods = {{{1_GiB, {2000}, Policy::fixed_share, LatencyClass::batch, Isolation::memory},
                           {1'700'000'000'000'000'009, "boot", 77}}};
  state.boot_id = "boot 2";
  state.command = "train \"x\"\n";
  state.cgroup = state.entered = true;
  state.creator = {1, 2};
  state.root = {3, 4};
  state.supervisor = {5, 6};
  state.containers.push_back({{7, 8}, {{"", "/x"}, {"memory", "/y"}}, 99});
  state.slot = ContainerSlot{17};
  state.released = true;
  const auto again = read_state_file(write_state_file(state));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->record, state.record);
  EXPECT_EQ(again->boot_id, "boot 2");
  EXPECT_EQ(again->command, state.command);
  EXPECT_TRUE(again->cgroup && again->entered && again->released);
  EXPECT_EQ(again->slot, ContainerSlot{17});
  EXPECT_EQ(again->creator, state.creator);
  EXPECT_EQ(again->root, state.root);
  EXPECT_EQ(again->supervisor, state.supervisor);
  ASSERT_EQ(again->containers.size(), 1u);
  EXPECT_EQ(again->containers[0].cgroups, state.containers[0].cgroups);
  EXPECT_EQ(again->containers[0].pid_namespace, 99u);
}

TEST(StateFile, is_rejected_if_its_text_has_another_form) {
  for (const char* text : {"", "{", "[]", "null", "{}", "{\"name\":7}"})
    EXPECT_FALSE(read_state_file(text)) << text;
}

}  // namespace
}  // namespace carve::node

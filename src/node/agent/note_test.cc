#include "node/agent/note.h"

#include <gtest/gtest.h>

namespace carve::node {
namespace {

TEST(Note, says_again_what_was_noted) {
  Note note;
  note.record.id = 9;
  note.record.slice = {.name = "a",
                       .request_id = "r",
                       .owner = 1000,
                       .parts = {{Uuid{{5}}, 2_GiB, {3000}, 1_GiB}},
                       .exclusive = true,
                       .persistent = true,
                       .isolation = Isolation::none,
                       .policy = Policy::native_burst_share,
                       .latency = LatencyClass::latency,
                       .application = "web"};
  note.record.from = {1'700'000'000'000'000'000, "boot", 55};
  note.record.periods = {{{1_GiB, {2000}, Policy::fixed_share, LatencyClass::batch, Isolation::memory},
                          {1'700'000'000'000'000'009, "boot", 77}}};
  note.boot_id = "boot 2";
  note.command = "train \"x\"\n";
  note.cgroup = note.entered = true;
  note.creator = {1, 2};
  note.root = {3, 4};
  note.supervisor = {5, 6};
  note.containers.push_back({{7, 8}, {{"", "/x"}, {"memory", "/y"}}, 99});
  const auto again = read_note(write_note(note));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->record, note.record);
  EXPECT_EQ(again->boot_id, "boot 2");
  EXPECT_EQ(again->command, note.command);
  EXPECT_TRUE(again->cgroup && again->entered);
  EXPECT_EQ(again->creator, note.creator);
  EXPECT_EQ(again->root, note.root);
  EXPECT_EQ(again->supervisor, note.supervisor);
  ASSERT_EQ(again->containers.size(), 1u);
  EXPECT_EQ(again->containers[0].cgroups, note.containers[0].cgroups);
  EXPECT_EQ(again->containers[0].pid_namespace, 99u);
}

TEST(Note, anything_else_is_nothing) {
  for (const char* text : {"", "{", "[]", "null", "{}", "{\"name\":7}"})
    EXPECT_FALSE(read_note(text)) << text;
}

}  // namespace
}  // namespace carve::node

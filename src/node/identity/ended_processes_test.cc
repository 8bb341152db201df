#include "node/identity/ended_processes.h"

#include <gtest/gtest.h>

#include "node/identity/slice_members.h"

namespace carve::node {
namespace {

constexpr uint64_t s = 1'000'000;

TEST(EndedProcesses, identify_an_attached_process_by_its_pid_and_time) {
  EndedProcesses ended;
  ended.add({.pid = 50, .slice = 7, .name = "a", .span = {100 * s, 200 * s}});
  EXPECT_EQ(ended.known_as(50, 100 * s), KnownAs::attached);
  EXPECT_EQ(ended.known_as(50, 200 * s), KnownAs::attached);
  EXPECT_EQ(ended.known_as(50, 0), KnownAs::attached);
  EXPECT_EQ(ended.known_as(51, 150 * s), KnownAs::unattached);
  EXPECT_EQ(ended.known_as(50, 90 * s), KnownAs::unattached);
  EXPECT_EQ(ended.known_as(50, 201 * s), KnownAs::unattached);
}

TEST(EndedProcesses, include_every_process_of_a_reused_pid) {
  EndedProcesses ended;
  ended.add({.pid = 50, .slice = 7, .name = "a", .span = {100 * s, 101 * s}});
  ended.add({.pid = 50, .slice = 8, .name = "b", .span = {200 * s, 201 * s}});
  EXPECT_EQ(ended.known_as(50, 100 * s), KnownAs::attached);
  EXPECT_EQ(ended.known_as(50, 200 * s), KnownAs::attached);
  EXPECT_EQ(ended.known_as(50, 150 * s), KnownAs::unattached);
  EXPECT_EQ(ended.find(50)->slice, 8u);
}

TEST(EndedProcesses, do_not_accuse_a_process_after_too_many_others_ended) {
  EndedProcesses ended;
  for (size_t i = 0; i <= EndedProcesses::max_kept; ++i)
    ended.add({.pid = static_cast<pid_t>(1 + i), .slice = 7, .name = "a", .span = {100 * s, 200 * s + i}});
  EXPECT_EQ(ended.known_as(1, 150 * s), KnownAs::unknown);
  EXPECT_EQ(ended.known_as(2, 150 * s), KnownAs::attached);
  EXPECT_EQ(ended.known_as(1, 300 * s), KnownAs::unattached);
}

TEST(SliceMembers, contain_a_process_in_the_slice_in_which_it_was_last_seen) {
  SliceMembers members;
  members.see({7, "a"}, {0, 50}, 100 * s);
  members.see({8, "b"}, {51}, 100 * s);
  ASSERT_NE(members.find(50, 100 * s, 101 * s), nullptr);
  EXPECT_EQ(members.find(50, 100 * s, 101 * s)->name, "a");
  EXPECT_EQ(members.find(51, 100 * s, 101 * s)->id, 8u);
  EXPECT_EQ(members.find(0, 100 * s, 101 * s), nullptr);
  members.see({8, "b"}, {50}, 102 * s);
  EXPECT_EQ(members.find(50, 102 * s, 103 * s)->id, 8u);
}

TEST(SliceMembers, distinguish_earlier_and_later_processes_with_the_same_pid) {
  SliceMembers members;
  members.see({7, "a"}, {50}, 100 * s);
  EXPECT_EQ(members.find(50, 90 * s, 91 * s), nullptr);
  EXPECT_EQ(members.find(50, 110 * s, 111 * s), nullptr);
}

TEST(SliceMembers, are_limited_in_number) {
  SliceMembers members;
  std::vector<int> many;
  for (int pid = 1; pid <= static_cast<int>(SliceMembers::max_kept) + 10; ++pid) many.push_back(pid);
  members.see({7, "a"}, many, 100 * s);
  EXPECT_EQ(members.find(many.back(), 100 * s, 100 * s), nullptr);
  members.see({7, "a"}, {many.back()}, 200 * s);
  EXPECT_NE(members.find(many.back(), 200 * s, 200 * s), nullptr);
}

}  // namespace
}  // namespace carve::node

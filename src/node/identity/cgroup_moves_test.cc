#include "node/identity/cgroup_moves.h"

#include <gmock/gmock.h>

namespace carve::node {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Moves : testing::Test {
  CgroupMoves moves;
  std::map<pid_t, os::ProcessStat> processes;
  unsigned stats = 0;

  void add(pid_t pid, pid_t parent, uint64_t start = 1) {
    processes[pid] = {.id = {pid, start}, .parent = parent, .group = pid, .session = pid, .state = 'S'};
  }
  std::vector<CgroupMove> find(const std::vector<CgroupMoves::Members>& slices) {
    return moves.find(slices, [this](pid_t pid) -> std::optional<os::ProcessStat> {
      ++stats;
      const auto found = processes.find(pid);
      return found == processes.end() ? std::nullopt : std::optional(found->second);
    });
  }
};

TEST_F(Moves, look_up_a_process_that_stays_only_once) {
  add(10, 1);
  add(11, 10);
  for (int i = 0; i < 5; ++i) EXPECT_THAT(find({{1, {10, 1}, {10, 11}}, {2, {}, {}}}), IsEmpty());
  EXPECT_EQ(stats, 1u) << "the program that entered is known";
}

TEST_F(Moves, report_a_process_that_changes_its_slice_once) {
  add(10, 1);
  add(11, 10);
  find({{1, {10, 1}, {10, 11}}, {2, {}, {}}});
  EXPECT_THAT(find({{1, {10, 1}, {10}}, {2, {}, {11}}}), ElementsAre(CgroupMove{{11, 1}, 1, 2}));
  EXPECT_THAT(find({{1, {10, 1}, {10}}, {2, {}, {11}}}), IsEmpty());
}

TEST_F(Moves, identify_a_process_that_moved_before_it_was_seen_by_its_entry_or_its_parent) {
  add(10, 1);
  add(11, 10);
  EXPECT_THAT(find({{1, {10, 1}, {}}, {2, {}, {10, 11}}}), ElementsAre(CgroupMove{{10, 1}, 1, 2}));
  EXPECT_THAT(find({{1, {}, {}}, {2, {}, {10, 11}}}), IsEmpty()) << "its child was created there";
  add(20, 1);
  add(21, 20);
  find({{1, {20, 1}, {20}}, {2, {}, {10, 11}}});
  EXPECT_THAT(find({{1, {20, 1}, {20}}, {2, {}, {10, 11, 21}}}), ElementsAre(CgroupMove{{21, 1}, 1, 2}));
}

TEST_F(Moves, do_not_include_a_reused_pid) {
  add(10, 1);
  add(11, 1, 1);
  find({{1, {10, 1}, {10, 11}}, {2, {}, {}}});
  add(11, 1, 7);
  EXPECT_THAT(find({{1, {10, 1}, {10}}, {2, {}, {11}}}), IsEmpty());
  EXPECT_THAT(find({{1, {10, 1}, {10}}, {2, {}, {12}}}), IsEmpty()) << "it has ended";
}

}  // namespace
}  // namespace carve::node

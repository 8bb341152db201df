#include "node/slice/slices.h"

#include <gtest/gtest.h>

namespace carve::node {
namespace {

LiveSlice& add(Slices& slices, uint64_t id, const std::string& name) {
  auto slice = std::make_unique<LiveSlice>();
  slice->record.id = id;
  slice->record.slice.name = name;
  return slices.add(std::move(slice));
}

// Returns a world with processes 10 <- 11 <- 12, and 20, by pid and parent.
World world_of(const std::map<pid_t, pid_t>& parents) {
  World world;
  world.stat = [parents](pid_t pid) -> std::optional<os::ProcessStat> {
    const auto found = parents.find(pid);
    if (found == parents.end()) return std::nullopt;
    os::ProcessStat stat;
    stat.id = {pid, 1};
    stat.parent = found->second;
    return stat;
  };
  world.cgroups = [](pid_t) { return Cgroups{}; };
  world.pid_namespace = [](pid_t) { return uint64_t{0}; };
  return world;
}
const World world = world_of({{10, 1}, {11, 10}, {12, 11}, {20, 1}});

TEST(Slices, are_found_by_id_and_by_name) {
  Slices slices;
  LiveSlice& a = add(slices, 1, "a");
  LiveSlice& b = add(slices, 2, "b");
  EXPECT_EQ(slices.find(1), &a);
  EXPECT_EQ(slices.find("b"), &b);
  EXPECT_EQ(slices.find(3), nullptr);
  EXPECT_EQ(slices.find("c"), nullptr);
  slices.erase(1);
  EXPECT_EQ(slices.find("a"), nullptr);
  EXPECT_EQ(slices.size(), 1u);
}

TEST(Slices, include_a_process_by_the_slice_of_its_ancestors) {
  Slices slices;
  LiveSlice& a = add(slices, 1, "a");
  a.identity.root = {10, 1};
  EXPECT_EQ(slices.slice_of(12, world), &a);
  EXPECT_EQ(slices.slice_of(20, world), nullptr);
  EXPECT_EQ(slices.slice_of(99, world), nullptr);
}

TEST(Slices, keep_a_process_in_the_slice_in_which_it_attached) {
  Slices slices;
  add(slices, 1, "a").identity.root = {10, 1};
  LiveSlice& b = add(slices, 2, "b");
  b.attached[{12, 1}] = {};
  EXPECT_EQ(slices.slice_of(12, world), &b);
  EXPECT_EQ(slices.slice_of(11, world)->name(), "a");
}

TEST(SlicesDeathTest, fails_if_an_id_is_used_twice) {
  Slices slices;
  add(slices, 1, "a");
  EXPECT_DEATH(add(slices, 1, "b"), "an id is given out once");
  EXPECT_DEATH(add(slices, 0, "c"), "a live slice has a usage record");
}

}  // namespace
}  // namespace carve::node

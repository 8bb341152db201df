#include "controller/known_node.h"

#include <gmock/gmock.h>

namespace carve::controller {
namespace {

using testing::IsEmpty;

constexpr int64_t second_ns = 1'000'000'000;

Poll answered(int64_t at_ns, uint64_t started_ns = 5, unsigned devices = 2) {
  api::AgentReport report{
      .version = {.version = "0.1.0", .started_ns = started_ns}, .devices = {}, .slices = {{.name = "a"}}};
  for (uint32_t i = 0; i < devices; ++i)
    report.devices.push_back({.index = i, .uuid = "GPU-x", .usable_bytes = 22, .free_bytes = 11});
  return {at_ns, report};
}
Poll failed(int64_t at_ns, const char* problem = "no agent listens at /s") {
  return {at_ns, tl::unexpected(std::string(problem))};
}

std::vector<std::string> texts(const std::vector<NodeChange>& changes) {
  std::vector<std::string> out;
  for (const NodeChange& change : changes)
    out.push_back((change.level == NodeChange::Level::warning ? "warning " : "info ") + change.text);
  return out;
}

TEST(KnownNode, reports_each_change_once) {
  KnownNode node({"a", "/s"}, nullptr);
  const struct {
    Poll poll;
    std::vector<std::string> changes;
    Reachability reachability;
  } rows[] = {
      {failed(1), {"warning node a: not reached; no agent listens at /s"}, Reachability::unreachable},
      {failed(2), {}, Reachability::unreachable},
      {failed(3, "denied"), {"warning node a: not reached; denied"}, Reachability::unreachable},
      {answered(4),
       {"info node a: reached, carved 0.1.0 at /s with 2 devices, 1 slice"},
       Reachability::reachable},
      {answered(5), {}, Reachability::reachable},
      {answered(6, 5, 1), {"info node a: number of devices changed from 2 to 1"}, Reachability::reachable},
      {answered(7, 6, 1),
       {"info node a: agent restarted, carved 0.1.0 at /s with 1 device, 1 slice"},
       Reachability::reachable},
      {failed(8), {"warning node a: lost; no agent listens at /s"}, Reachability::unreachable},
      {answered(9, 6, 1),
       {"info node a: reached, carved 0.1.0 at /s with 1 device, 1 slice"},
       Reachability::reachable},
      {failed(10), {"warning node a: lost; no agent listens at /s"}, Reachability::unreachable},
      {answered(11, 10, 1),
       {"info node a: agent restarted, carved 0.1.0 at /s with 1 device, 1 slice"},
       Reachability::reachable},
  };
  EXPECT_EQ(node.seen()->reachability, Reachability::unknown);
  for (const auto& row : rows) {
    EXPECT_EQ(texts(node.update(row.poll)), row.changes) << row.poll.ended_ns;
    EXPECT_EQ(node.seen()->reachability, row.reachability);
    EXPECT_EQ(node.seen()->problem.empty(), row.reachability == Reachability::reachable);
  }
}

TEST(KnownNode, shows_the_last_answer_while_it_is_unreachable) {
  KnownNode node({"a", "/s"}, nullptr);
  node.update(answered(7));
  node.update(failed(9));
  const NodeObservation& seen = *node.seen();
  EXPECT_EQ(seen.problem, "no agent listens at /s");
  EXPECT_EQ(seen.report.devices.size(), 2u);
  EXPECT_EQ(seen.report.devices[1].usable_bytes, 22u);
  EXPECT_EQ(seen.report.devices[1].free_bytes, 11u);
  EXPECT_EQ(seen.report.slices.size(), 1u);
  EXPECT_EQ(seen.record.last_seen_ns, 7);
}

TEST(KnownNode, keeps_its_first_answer_and_takes_over_a_new_socket_when_read_from_the_database) {
  const NodeRecord earlier{.name = "a",
                           .socket = "/old",
                           .first_seen_ns = 3,
                           .last_seen_ns = 4,
                           .agent_version = "0.0.9",
                           .agent_started_ns = 2};
  KnownNode node({"a", "/s"}, &earlier);
  EXPECT_EQ(node.record().first_seen_ns, 3);
  EXPECT_EQ(node.record().last_seen_ns, 4);
  EXPECT_EQ(node.record().agent_version, "0.0.9");
  EXPECT_THAT(node.seen()->report.devices, IsEmpty());
  node.update(answered(7));
  EXPECT_EQ(node.record(), (NodeRecord{.name = "a",
                                       .socket = "/s",
                                       .first_seen_ns = 3,
                                       .last_seen_ns = 7,
                                       .agent_version = "0.1.0",
                                       .agent_started_ns = 5}));
}

TEST(KnownNode, is_stored_when_it_changed_or_a_minute_has_passed) {
  KnownNode node({"a", "/s"}, nullptr);
  const struct {
    Poll poll;
    bool must_be_stored;
  } rows[] = {
      {failed(1 * second_ns), false},        // There is no answer to store.
      {answered(2 * second_ns), true},       // The first answer.
      {answered(4 * second_ns), false},      // Only the time differs.
      {answered(62 * second_ns), true},      // 60 s later.
      {answered(64 * second_ns, 6), true},   // Another agent.
      {answered(66 * second_ns, 6), false},  // Only the time differs.
      {failed(68 * second_ns), true},        // The last answer before it was lost.
      {failed(70 * second_ns), false},       // Nothing new.
      {answered(30 * second_ns, 6), true},   // The clock was set back.
  };
  for (const auto& row : rows) {
    node.update(row.poll);
    EXPECT_EQ(node.must_be_stored(), row.must_be_stored) << row.poll.ended_ns;
    if (node.must_be_stored()) node.was_stored();
  }
}

}  // namespace
}  // namespace carve::controller

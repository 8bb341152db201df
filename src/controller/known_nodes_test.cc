#include "controller/known_nodes.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "client/testing/agent_stub.h"
#include "os/clock.h"

namespace carve::controller {
namespace {

using client::AgentStub;
using client::json_answer;

struct Directory {
  std::filesystem::path path;
  Directory() {
    char name[] = "/tmp/carve-nodes-XXXXXX";
    path = mkdtemp(name);
  }
  ~Directory() { std::filesystem::remove_all(path); }
  ControllerStore store() const { return std::move(ControllerStore::open(path / "controller.db", 1)->store); }
};

// Polls the nodes until `done` returns true, then stops as the controller does. Returns the nodes.
std::vector<NodeObservationPointer> polled(ControllerStore store, const std::vector<NodeAddress>& addresses,
                                           const std::vector<NodeRecord>& earlier,
                                           bool (*done)(const NodeObservationPointer&)) {
  os::Loop loop;
  JournaledRegistry objects(store, {}, *store.version());
  NodeSync node_sync(objects, {}, os::utc_ns());
  KnownNodes nodes(loop, store, addresses, earlier, node_sync);
  nodes.begin();
  loop.every(os::millisecond, [&] {
    if (std::ranges::all_of(nodes.seen(), done)) loop.stop();
  });
  loop.run();
  nodes.end();
  return nodes.seen();
}

const auto is_known = [](const NodeObservationPointer& node) {
  return node->reachability != Reachability::unknown;
};

std::map<std::string, std::string> answers(int started_ns) {
  return {{"GET /v1/version",
           json_answer(200, fmt::format(R"({{"version": "1", "started_ns": {}}})", started_ns))},
          {"GET /v1/devices", json_answer(200, R"({"devices": [{}]})")},
          {"GET /v1/slices", json_answer(200, "{}")},
          {"GET /v1/node", json_answer(200, "{}")}};
}

TEST(KnownNodes, are_listed_in_their_order_and_a_silent_one_does_not_block_the_others) {
  const Directory dir;
  AgentStub agent(answers(5));
  const auto list = polled(dir.store(), {{"b", "/nowhere/carved.sock"}, {"a", agent.socket()}}, {}, is_known);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]->record.name, "b");
  EXPECT_EQ(list[0]->reachability, Reachability::unreachable);
  EXPECT_NE(list[0]->problem, "");
  EXPECT_EQ(list[1]->reachability, Reachability::reachable);
  EXPECT_EQ(list[1]->report.devices.size(), 1u);
  // A node that never responded is not in the database.
  const auto stored = dir.store().all<NodeRecord>();
  ASSERT_EQ(stored->size(), 1u);
  EXPECT_EQ(stored->at(0).name, "a");
}

TEST(KnownNodes, keep_their_first_answer_across_a_restart_with_and_without_an_agent) {
  const Directory dir;
  {
    AgentStub agent(answers(5));
    polled(dir.store(), {{"a", agent.socket()}}, {}, is_known);
  }
  const auto first = dir.store().all<NodeRecord>()->at(0);
  EXPECT_GT(first.first_seen_ns, 0);
  EXPECT_GE(first.last_seen_ns, first.first_seen_ns);

  const auto away =
      polled(dir.store(), {{"a", "/nowhere/carved.sock"}}, *dir.store().all<NodeRecord>(), is_known);
  EXPECT_EQ(away[0]->record.first_seen_ns, first.first_seen_ns);
  EXPECT_EQ(away[0]->record.last_seen_ns, first.last_seen_ns);
  EXPECT_EQ(away[0]->record.agent_version, "1");

  AgentStub next(answers(6));
  polled(dir.store(), {{"a", next.socket()}}, *dir.store().all<NodeRecord>(), is_known);
  const auto later = dir.store().all<NodeRecord>()->at(0);
  EXPECT_EQ(later.first_seen_ns, first.first_seen_ns);
  EXPECT_GT(later.last_seen_ns, first.last_seen_ns);
  EXPECT_EQ(later.agent_started_ns, 6);
  EXPECT_EQ(later.socket, next.socket());
}

TEST(KnownNodes, that_are_not_on_the_command_line_are_kept_but_not_shown) {
  const Directory dir;
  AgentStub agent(answers(5));
  polled(dir.store(), {{"a", agent.socket()}}, {}, is_known);
  const auto list = polled(dir.store(), {{"b", agent.socket()}}, *dir.store().all<NodeRecord>(), is_known);
  EXPECT_EQ(list.size(), 1u);
  EXPECT_EQ(dir.store().all<NodeRecord>()->size(), 2u);
}

}  // namespace
}  // namespace carve::controller

#include "controller/runtime/endpoint_plan.h"

#include <gtest/gtest.h>

namespace carve::controller {
namespace {

using Kind = ProxyAction::Kind;

std::string text(const std::vector<ProxyAction>& actions) {
  constexpr const char* kinds[] = {"reload", "add", "weight", "ready", "drain", "maint", "remove"};
  std::string out;
  for (const ProxyAction& action : actions) {
    out += (out.empty() ? "" : ", ") + std::string(kinds[static_cast<size_t>(action.kind)]);
    if (action.kind != Kind::reload) out += " " + action.server;
    if (action.weight != 0) out += "*" + std::to_string(action.weight);
  }
  return out;
}

constexpr ServerState ready = ServerState::ready, drain = ServerState::drain, maint = ServerState::maint;

TEST(EndpointPlan, has_the_next_steps_for_each_observed_state) {
  struct Row {
    const char* what;
    std::vector<DesiredServer> desired;
    std::map<std::string, ProxyServer> observed;
    const char* actions;
  };
  const DesiredServer a{.replica = "a", .port = 1}, b{.replica = "b", .port = 2};
  const Row rows[] = {
      {"nothing to do", {a}, {{"a.1", {ready}}}, ""},
      {"a new server", {a, b}, {{"a.1", {ready}}}, "add b.2*1, ready b.2"},
      {"added, then killed before it was ready", {a}, {{"a.1", {maint}}}, "ready a.1"},
      {"desired again while it drains", {a}, {{"a.1", {drain, 1, 4}}}, "ready a.1"},
      {"another weight", {{"a", 1, 7}}, {{"a.1", {ready}}}, "weight a.1*7"},
      {"another weight and not ready", {{"a", 1, 7}}, {{"a.1", {maint}}}, "weight a.1*7, ready a.1"},
      {"no longer desired", {a}, {{"a.1", {ready}}, {"b.2", {ready, 1, 3}}}, "drain b.2"},
      {"no longer desired and idle", {}, {{"b.2", {ready}}}, "drain b.2"},
      {"draining with sessions", {a}, {{"a.1", {ready}}, {"b.2", {drain, 1, 1}}}, ""},
      {"drained", {a}, {{"a.1", {ready}}, {"b.2", {drain}}}, "maint b.2, remove b.2"},
      {"drained, then killed before it was removed", {}, {{"b.2", {maint}}}, "remove b.2"},
      {"in maintenance with sessions", {}, {{"b.2", {maint, 1, 2}}}, ""},
      {"the same replica on another port",
       {{"a", 9}},
       {{"a.1", {ready, 1, 2}}},
       "add a.9*1, ready a.9, drain a.1"},
      {"a rollout's step", {b}, {{"a.1", {ready}}}, "add b.2*1, ready b.2, drain a.1"},
  };
  for (const Row& row : rows) {
    const std::vector<DesiredEndpoint> desired{{.service = "web", .port = 8001, .servers = row.desired}};
    const ProxyObserved observed{"f", {{"default:web", row.observed}}};
    EXPECT_EQ(text(plan(desired, "f", observed)), row.actions) << row.what;
  }
}

TEST(EndpointPlan, is_only_a_reload_if_the_frame_differs) {
  const std::vector<DesiredEndpoint> desired{
      {.service = "web", .port = 8001, .servers = {{.replica = "a", .port = 1}}}};
  EXPECT_EQ(text(plan(desired, "new", {"old", {{"default:web", {{"b.2", {ready}}}}}})), "reload");
  EXPECT_EQ(text(plan({}, "new", {})), "reload");
}

TEST(EndpointPlan, adds_servers_of_all_endpoints_before_any_is_drained) {
  const std::vector<DesiredEndpoint> desired{
      {.service = "web", .port = 8001, .servers = {{.replica = "a", .port = 1}}},
      {.service = "api", .port = 8002, .servers = {{.replica = "c", .port = 3}}}};
  const ProxyObserved observed{"f", {{"default:web", {{"b.2", {ready}}}}, {"default:api", {}}}};
  EXPECT_EQ(text(plan(desired, "f", observed)), "add a.1*1, ready a.1, add c.3*1, ready c.3, drain b.2");
}

// Simulates a worker that carries out every action immediately; sessions end when the test ends them.
TEST(EndpointPlan, leads_from_every_state_to_the_desired_one_and_is_then_empty) {
  const std::vector<DesiredEndpoint> desired{
      {.service = "web",
       .port = 8001,
       .servers = {{.replica = "a", .port = 1}, {.replica = "b", .port = 2}}}};
  for (int start = 0; start < 64; ++start) {
    std::map<std::string, ProxyServer> servers;
    const char* names[] = {"a.1", "b.2", "c.3"};
    for (int i = 0; i < 3; ++i)
      if (const int state = start >> (2 * i) & 3; state < 3)
        servers[names[i]] = {static_cast<ServerState>(state), static_cast<uint64_t>(1 + i), 1};
    int rounds = 0;
    for (;; ++rounds) {
      const auto actions = plan(desired, "f", {"f", {{"default:web", servers}}});
      if (actions.empty() && (servers.size() == 2 || rounds > 5)) break;
      for (const ProxyAction& action : actions) {
        if (action.kind == Kind::add_server) {
          ASSERT_FALSE(servers.contains(action.server));
          servers[action.server] = {maint, action.weight, 0};
          continue;
        }
        ProxyServer& server = servers.at(action.server);
        if (action.kind == Kind::set_weight) server.weight = action.weight;
        if (action.kind == Kind::set_ready) server.state = ready;
        if (action.kind == Kind::set_drain) server.state = drain;
        if (action.kind == Kind::set_maint) server.state = maint;
        if (action.kind == Kind::remove_server) {
          ASSERT_EQ(server.state, maint);
          ASSERT_EQ(server.sessions, 0u);
          servers.erase(action.server);
        }
      }
      for (auto& [name, server] : servers) server.sessions = 0;
    }
    const std::map<std::string, ProxyServer> expected{{"a.1", {ready, 1, 0}}, {"b.2", {ready, 1, 0}}};
    for (auto& [name, server] : servers) server.sessions = 0;
    EXPECT_EQ(servers, expected) << start;
    EXPECT_LE(rounds, 4);
  }
}

}  // namespace
}  // namespace carve::controller

#include "controller/cluster/budget_publisher.h"

#include <gmock/gmock.h>

#include "kubernetes/api/testing/simulated_api_client.h"

namespace carve::controller {
namespace {

using kubernetes::second_ns;

constexpr const char* until = "2026-12-01T00:00:00Z";

BudgetState budget(const std::string& name, const std::string& account, const std::string& then, bool holds) {
  BudgetState out{.name = name, .spec = {}, .status = {}};
  out.spec.account = account;
  out.spec.then = then;
  out.status.to = until;
  out.status.holds = holds;
  return out;
}

TEST(BudgetPublisher, publishes_only_used_up_budgets_that_refuse_pods) {
  size_t left_out = 9;
  BudgetState earlier = budget("old", "e", "refuse", true);
  earlier.status.to = "2026-11-01T00:00:00Z";
  const auto used =
      used_budgets({budget("b1", "a", "refuse", true), budget("b2", "a", "refuse", true),
                    budget("b3", "b", "refuse", false), budget("b4", "c", "hold", true), earlier},
                   until, left_out);
  EXPECT_EQ(used.accounts, (std::map<std::string, std::string>{{"a", "b1"}}));
  EXPECT_EQ(kubernetes::read_used_budgets(api::write(used)).value(), used);
  EXPECT_EQ(left_out, 0u);
}

TEST(BudgetPublisher, leaves_out_accounts_that_do_not_fit) {
  std::vector<BudgetState> many;
  for (int i = 0; i < 5000; ++i)
    many.push_back(budget(fmt::format("budget-{}", i), fmt::format("\"account\\{}", i), "refuse", true));
  size_t left_out = 0;
  const auto used = used_budgets(many, until, left_out);
  EXPECT_EQ(used.accounts.size() + left_out, many.size());
  EXPECT_GT(used.accounts.size(), 300u);
  EXPECT_TRUE(kubernetes::read_used_budgets(api::write(used))) << "a reader accepts it";
}

TEST(BudgetPublisher, writes_changes_and_tries_again_after_a_failure) {
  kubernetes::VirtualTime time;
  kubernetes::ApiServerFake server;
  kubernetes::SimulatedApiClient client(time, server, 1);
  server.put("/api/v1/configmaps",
             {{"metadata", {{"name", "carve-budgets"}, {"namespace", "carve-system"}}}});
  kubernetes::UsedBudgets wanted{.until = until, .accounts = {{"a", "b1"}}};
  const BudgetPublisher publisher(client, "carve-system", [&] { return wanted; });
  const auto published = [&] {
    const auto* const object = server.find("/api/v1/configmaps", "carve-system", "carve-budgets");
    const auto text = object->value(
        nlohmann::json::json_pointer("/metadata/annotations/carve.dev~1used-budgets"), std::string());
    const auto read = kubernetes::read_used_budgets(text);
    return read ? read->accounts : std::map<std::string, std::string>();
  };
  time.run_for(second_ns);
  EXPECT_EQ(published(), wanted.accounts);
  const size_t requests = server.requests().size();
  time.run_for(60 * second_ns);
  EXPECT_EQ(server.requests().size(), requests) << "nothing has changed";
  wanted.accounts.clear();
  server.add_fault({.kind = kubernetes::ApiFault::Kind::lose_request, .method = "PATCH", .times = 3});
  time.run_for(30 * second_ns);
  EXPECT_EQ(published(), wanted.accounts);
}

}  // namespace
}  // namespace carve::controller

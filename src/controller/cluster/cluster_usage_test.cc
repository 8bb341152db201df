// Reads the nodes of a simulated cluster: events, hostile nodes, and a program that poses as a node.
#include "controller/cluster/cluster_usage.h"

#include <gmock/gmock.h>

#include "controller/cluster/testing/simulated_cluster.h"

namespace carve::controller {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr Nanoseconds minute = 60 * second_ns;

class ClusterUsageTest : public testing::Test, public SimulatedCluster {
 public:
  ClusterUsageTest() : SimulatedCluster(1) {
    n1 = &add_node("n1");
    n2 = &add_node("n2");
    pod = put_pod("n1", "a", "web-0");
  }
  // Returns all stored records, each as "ledger:id account".
  std::vector<std::string> stored() {
    std::vector<std::string> out;
    EXPECT_TRUE(books->store->each({}, [&](UsageRow&& row) {
      out.push_back(
          fmt::format("{}:{} {}{}", ledger_name(row), row.id, row.account, row.end_ns == 0 ? " open" : ""));
      return true;
    }));
    std::ranges::sort(out);
    return out;
  }

  SimulatedNode *n1 = nullptr, *n2 = nullptr;
  std::string pod;
};

TEST_F(ClusterUsageTest, copies_records_once_and_until_they_end) {
  grant(*n1, "a", "web-0", pod);
  start();
  time.run_for(5 * minute);
  EXPECT_THAT(stored(), ElementsAre("n1:1 a open"));
  n1->records[0].to = stamp(n1->boot);
  time.run_for(2 * minute);
  EXPECT_THAT(stored(), ElementsAre("n1:1 a"));
  EXPECT_THAT(events, IsEmpty());
  EXPECT_EQ(usage->figures().nodes, 2u);
  EXPECT_EQ(usage->figures().failing, 0u);
}

TEST_F(ClusterUsageTest, shows_why_the_cluster_cannot_be_followed) {
  server.add_fault({.kind = kubernetes::ApiFault::Kind::status,
                    .method = "GET",
                    .target = "/api/v1/pods",
                    .status = 403,
                    .times = 3});
  start();
  time.run_for(second_ns / 2);
  EXPECT_THAT(usage->problem(), HasSubstr("pods: "));
  time.run_for(minute);
  EXPECT_EQ(usage->problem(), "");
}

TEST_F(ClusterUsageTest, reports_a_node_that_does_not_respond_once_and_its_return) {
  start();
  n1->fault = SimulatedNode::Fault::away;
  time.run_for(30 * minute);
  EXPECT_THAT(events, ElementsAre("n1 UsageReadFailed: its usage records cannot be read: cannot connect"));
  EXPECT_EQ(usage->figures().failing, 1u);
  n1->fault = SimulatedNode::Fault::none;
  grant(*n1, "a", "web-0", pod);
  time.run_for(11 * minute);
  EXPECT_THAT(events.back(), HasSubstr("n1 UsageReadResumed"));
  EXPECT_THAT(stored(), ElementsAre("n1:1 a open"));
}

// A program at the node's address without the node's key learns nothing, and a node's token is of no use
// elsewhere.
TEST_F(ClusterUsageTest, sends_no_token_to_a_program_that_poses_as_a_node) {
  start();
  time.run_for(3 * minute);
  ASSERT_THAT(n1->tokens, Not(IsEmpty()));
  for (const std::string& token : n1->tokens) {
    EXPECT_EQ(server.token_audiences.at(token), "carve.dev/usage/n1");
    EXPECT_THAT(n2->tokens, Not(Contains(token)));
  }
  const size_t before = n1->tokens.size();
  n1->key = "sha256//" + std::string(43, 'B') + "=";  // The impostor's.
  time.run_for(20 * minute);
  EXPECT_EQ(n1->tokens.size(), before);
  EXPECT_THAT(events, ElementsAre(HasSubstr("the key differs")));
  n1->published_key = n1->key;  // carve-kubelet was restarted with a new certificate.
  publish(*n1);
  time.run_for(10 * second_ns);
  EXPECT_THAT(events.back(), HasSubstr("UsageReadResumed"))
      << "within seconds, without waiting for the interval";
}

TEST_F(ClusterUsageTest, reuses_a_token_until_it_is_old_or_rejected) {
  start();
  time.run_for(30 * minute);
  const std::set<std::string> first(n1->tokens.begin(), n1->tokens.end());
  EXPECT_EQ(first.size(), 1u);
  server.token_audiences.erase(*first.begin());
  time.run_for(10 * minute);
  EXPECT_EQ(std::set<std::string>(n1->tokens.begin(), n1->tokens.end()).size(), 2u);
  time.run_for(60 * minute);
  EXPECT_GE(std::set<std::string>(n1->tokens.begin(), n1->tokens.end()).size(), 3u);
}

TEST_F(ClusterUsageTest, names_a_ledger_that_was_replaced) {
  grant(*n1, "a", "web-0", pod).to = stamp(n1->boot);
  time.run_for(second_ns);
  grant(*n1, "a", "web-0", pod);
  start();
  time.run_for(3 * minute);
  n1->records.clear();
  n1->last_id = 0;
  n1->boot = "boot-2";
  grant(*n1, "a", "web-0", pod);
  time.run_for(3 * minute);
  EXPECT_THAT(stored(), ElementsAre("n1:1 a", "n1:2 a", "n1@2:1 a open"));
  EXPECT_THAT(events, ElementsAre(HasSubstr("n1 LedgerReplaced: its agent has a new ledger, n1@2")));
}

TEST_F(ClusterUsageTest, continues_with_a_node_that_comes_back_under_its_name) {
  grant(*n1, "a", "web-0", pod);
  start();
  time.run_for(3 * minute);
  server.remove("/api/v1/nodes", "", "n1");
  time.run_for(3 * minute);
  EXPECT_EQ(usage->figures().nodes, 1u);
  EXPECT_THAT(stored(), ElementsAre("n1:1 a open"));
  n1->records[0].to = stamp(n1->boot);
  publish(*n1);
  time.run_for(3 * minute);
  EXPECT_THAT(stored(), ElementsAre("n1:1 a"));
}

TEST_F(ClusterUsageTest, needs_no_pod_for_a_record_that_it_has_stored_before) {
  grant(*n1, "a", "web-0", pod);
  start();
  time.run_for(3 * minute);
  server.remove("/api/v1/pods", "a", "web-0");
  n1->records[0].to = stamp(n1->boot);
  start();  // The new controller never sees the pod.
  time.run_for(minute + 10 * second_ns);
  EXPECT_THAT(stored(), ElementsAre("n1:1 a"));
  EXPECT_THAT(events, IsEmpty());
}

TEST_F(ClusterUsageTest, refuses_a_hostile_nodes_records_and_reads_the_others) {
  start();
  time.run_for(20 * minute);  // So that every pod must have been seen.
  grant(*n1, "a", "web-0", pod);
  grant(*n2, "a", "web-0", pod);  // The pod is on n1.
  grant(*n2, "b", "made-up", "no such uid");
  auto& negative = grant(*n2, "a", "web-0", pod);
  negative.from.monotonic_ns = -1;
  time.run_for(5 * minute);
  EXPECT_THAT(stored(), ElementsAre("n1:1 a open"));
  EXPECT_THAT(events, Contains(HasSubstr("n2 UsageRefused: record 1: pod a/web-0 was on node n1")));
  EXPECT_GE(usage->figures().refused, 3u);
  EXPECT_THAT(events, testing::SizeIs(1)) << "the same refusals are reported once";
}

TEST_F(ClusterUsageTest, is_not_stopped_by_endless_or_contradicting_answers) {
  uint64_t next = 0;
  ledger::UsageRecord made_up = grant(*n2, "a", "web-0", pod);
  made_up.slice.holder = {};
  const auto page_of = [&](uint64_t from, const std::string& target) {
    ledger::UsagePage page;
    page.query = target.substr(target.find('?') + 1);
    for (uint64_t i = 0; i < max_records_per_page; ++i) {
      page.records.push_back(made_up);
      page.records.back().id = from + i;
    }
    return api::write(page);
  };
  n2->lie = [&](const std::string& target) { return page_of(1 + max_records_per_page * next++, target); };
  grant(*n1, "a", "web-0", pod);
  start();
  time.run_for(10 * minute);
  EXPECT_THAT(stored(), ElementsAre("n1:1 a open"));
  EXPECT_LT(next, 1200u * NodeRead::max_pages);
  n2->lie = [&](const std::string& target) { return page_of(1, target); };
  time.run_for(20 * minute);
  n2->lie = [&](const std::string&) { return std::string(max_page_bytes + 1, 'x'); };
  time.run_for(20 * minute);
  EXPECT_THAT(events, Contains(HasSubstr("n2 UsageReadFailed")));
  n1->records[0].to = stamp(n1->boot);
  time.run_for(2 * minute);
  EXPECT_THAT(stored(), ElementsAre("n1:1 a"));
}

TEST_F(ClusterUsageTest, waits_for_the_pod_of_a_record) {
  start();
  time.run_for(20 * minute);
  server.add_fault({.kind = kubernetes::ApiFault::Kind::late, .target = "/api/v1/pods"});
  const std::string late = put_pod("n1", "a", "late");
  grant(*n1, "a", "late", late).to = stamp(n1->boot);
  time.run_for(90 * second_ns);
  EXPECT_THAT(stored(), IsEmpty());
  server.release_late();
  time.run_for(3 * minute);
  EXPECT_THAT(stored(), ElementsAre("n1:1 a"));
  EXPECT_THAT(events, IsEmpty());
}

TEST_F(ClusterUsageTest, ignores_nodes_without_carve_and_reports_unusable_annotations) {
  server.put("/api/v1/nodes", {{"metadata", {{"name", "plain"}}}});
  server.put("/api/v1/nodes",
             {{"metadata", {{"name", "local"}, {"annotations", {{"carve.dev/reader", "{}"}}}}}});
  for (const char* reader : {R"({"v":1,"address":"evil.example:80","key":"sha256//x"})", R"({"v":2})", "x",
                             R"({"v":1,"address":"10.0.0.1:9472","key":"sha256//x"})"}) {
    server.put("/api/v1/nodes",
               {{"metadata", {{"name", "odd"}, {"annotations", {{"carve.dev/reader", reader}}}}}});
    if (!usage) start();
    events.clear();
    time.run_for(minute);
    EXPECT_EQ(usage->figures().nodes, 2u);
    EXPECT_THAT(events, ElementsAre(HasSubstr("odd UsageReadFailed: carve.dev/reader"))) << reader;
  }
}

TEST_F(ClusterUsageTest, reads_at_most_fifty_nodes_at_a_time) {
  for (int i = 0; i < 300; ++i) add_node(fmt::format("m{}", i)).fault = SimulatedNode::Fault::hangs;
  start();
  size_t most = 0;
  for (int second = 0; second < 300; ++second) {
    time.run_for(second_ns);
    most = std::max(most, usage->figures().running);
  }
  EXPECT_EQ(most, 50u);
}

}  // namespace
}  // namespace carve::controller

#include "controller/cluster/pod_evidence.h"

#include <gmock/gmock.h>

#include "kubernetes/format/pod_request.h"
#include "kubernetes/format/pod_slices.h"

namespace carve::controller {
namespace {

using testing::HasSubstr;
using Verdict = PodEvidence::Verdict;

constexpr int64_t one_minute = 60'000'000'000;
constexpr int64_t noon = 30'000'000 * one_minute;

kubernetes::ObjectMeta pod(const std::string& uid, const std::string& node, const std::string& account = "") {
  kubernetes::ObjectMeta out;
  out.name_space = "a";
  out.name = "web-0";
  out.uid = uid;
  if (!account.empty()) out.labels[kubernetes::account_label] = account;
  if (!node.empty())
    out.annotations[kubernetes::slices_annotation] = R"({"v":1,"node":")" + node + R"(","containers":{}})";
  return out;
}

ledger::UsageRecord record(const std::string& uid, const std::string& account = "a", int64_t from_ns = noon) {
  ledger::UsageRecord out;
  out.id = 7;
  out.from.utc_ns = from_ns;
  out.slice.account = account;
  out.slice.holder.pod = PodContainer{"a", "web-0", uid, "main"};
  return out;
}

TEST(PodEvidence, accepts_only_the_pods_of_the_node_and_their_accounts) {
  PodEvidence evidence;
  evidence.replaced({{"u1", pod("u1", "n1")}, {"u2", pod("u2", "n1", "research")}, {"u3", pod("u3", "")}},
                    noon);
  const auto reason = [&](const ledger::UsageRecord& r, const char* node) {
    const auto decision = evidence.check(r, node, noon + 60 * one_minute);
    EXPECT_EQ(decision.verdict == Verdict::accepted, decision.reason.empty());
    return decision.reason;
  };
  EXPECT_EQ(reason(record("u1"), "n1"), "");
  EXPECT_EQ(reason(record("u2", "research"), "n1"), "");
  EXPECT_EQ(reason(record("u1"), "n2"), "pod a/web-0 was on node n1");
  EXPECT_EQ(reason(record("u3"), "n1"), "pod a/web-0 was on no node");
  EXPECT_EQ(reason(record("u1", "research"), "n1"),
            "account 'research' does not pay for pod a/web-0; 'a' does");
  EXPECT_EQ(reason(record("u2"), "n1"), "account 'a' does not pay for pod a/web-0; 'research' does");
  auto other = record("u1");
  other.slice.holder.pod->namespace_ = "b";
  EXPECT_THAT(reason(other, "n1"), HasSubstr("pod u1 is a/web-0, not b/web-0"));
  auto claim = record("u9", "b");
  claim.slice.holder = Holder{.pod = {}, .claim = "c1"};
  EXPECT_EQ(reason(claim, "n1"), "");
}

TEST(PodEvidence, remembers_deleted_pods) {
  PodEvidence evidence;
  evidence.replaced({{"u1", pod("u1", "n1")}, {"u2", pod("u2", "n1")}}, noon);
  evidence.removed(pod("u1", "n1"), noon + one_minute);
  evidence.replaced({}, noon + 2 * one_minute);
  for (const char* uid : {"u1", "u2"}) {
    EXPECT_EQ(evidence.check(record(uid), "n1", noon + 60 * one_minute).verdict, Verdict::accepted);
    EXPECT_EQ(evidence.check(record(uid), "n2", noon + 60 * one_minute).verdict, Verdict::refused);
  }
}

// An honest node has records of pods that ended before the controller started.
TEST(PodEvidence, refuses_an_unknown_pod_only_if_it_must_have_been_seen) {
  PodEvidence evidence;
  const auto verdict = [&](int64_t from_ns, int64_t heard_ns) {
    return evidence.check(record("u", "a", from_ns), "n1", heard_ns).verdict;
  };
  EXPECT_EQ(verdict(noon, 0), Verdict::undecided) << "nothing has been listed";
  evidence.replaced({}, noon);
  const int64_t heard = noon + 60 * one_minute;
  EXPECT_EQ(verdict(noon - 60 * one_minute, heard), Verdict::accepted);
  EXPECT_EQ(verdict(noon + 9 * one_minute, heard), Verdict::accepted) << "the node's clock may differ";
  EXPECT_EQ(verdict(noon + 20 * one_minute, heard), Verdict::refused);
  EXPECT_EQ(verdict(heard - one_minute, heard), Verdict::undecided) << "the watch may be late";
  EXPECT_EQ(verdict(noon + 20 * one_minute, noon + 5 * one_minute), Verdict::undecided)
      << "the watch is silent";
  evidence.replaced({}, noon + 30 * one_minute);
  EXPECT_EQ(verdict(noon + 20 * one_minute, heard), Verdict::accepted)
      << "it may have ended between two lists";
}

TEST(PodEvidence, forgets_the_oldest_deleted_pods_and_then_accepts_what_it_cannot_know) {
  PodEvidence evidence;
  evidence.replaced({}, noon);
  for (size_t i = 0; i < max_remembered_pods + 10; ++i)
    evidence.removed(pod("u" + std::to_string(i), "n1"), noon + 30 * one_minute + static_cast<int64_t>(i));
  EXPECT_EQ(evidence.pods(), max_remembered_pods);
  EXPECT_EQ(evidence.check(record("u0", "a", noon + 25 * one_minute), "n1", noon + 99 * one_minute).verdict,
            Verdict::accepted);
  EXPECT_EQ(evidence.check(record("u99", "a", noon + 25 * one_minute), "n2", noon + 99 * one_minute).verdict,
            Verdict::refused);
}

}  // namespace
}  // namespace carve::controller

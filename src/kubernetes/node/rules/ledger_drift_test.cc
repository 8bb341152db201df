#include "kubernetes/node/rules/ledger_drift.h"

#include <gmock/gmock.h>

#include "kubernetes/format/pod_slices.h"

namespace carve::kubernetes::node {
namespace {

using kubernetes::second_ns;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* ledger_uuid = "GPU-00000000-0000-0000-0000-000000000001";

api::Slice ledger_slice(const std::string& name, const std::string& pod, uint64_t memory) {
  api::Slice out;
  out.name = name;
  out.holder = Holder{.pod = PodContainer{"a", pod, "uid-" + pod, "main"}, .claim = {}};
  out.parts.push_back({.uuid = ledger_uuid, .quota_bytes = memory});
  return out;
}

kubernetes::ObjectsByUid pods_holding(const std::string& name, const std::string& slice,
                                      const std::string& node = "n1") {
  kubernetes::ObjectMeta out;
  out.annotations[kubernetes::slices_annotation] =
      fmt::format(R"({{"v":1,"node":"{}","containers":{{"main":{}}}}})", node, slice);
  return {{"uid-" + name, out}};
}

std::string one_part(uint64_t memory, uint32_t share_bp = 0, const char* more = "") {
  return fmt::format(R"({{"parts":[["{}",{},{}]]{}}})", ledger_uuid, memory, share_bp, more);
}

struct DriftRow {
  const char* name;
  api::Slice slice;
  kubernetes::ObjectsByUid pods;
  bool differs;
};

std::vector<DriftRow> drift_rows() {
  api::Slice ended = ledger_slice("s", "gone", 4), claimed = ledger_slice("s", "p", 4),
             unheld = ledger_slice("s", "p", 4), whole = ledger_slice("s", "p", 4),
             shared = ledger_slice("s", "p", 4);
  ended.state = SliceState::ended;
  claimed.holder = Holder{.pod = {}, .claim = "u"};
  unheld.holder.reset();
  whole.exclusive = true;
  shared.parts[0].share_bp = 3000;
  return {{"equal", ledger_slice("s", "p", 4), pods_holding("p", one_part(4)), false},
          {"the ledger has more memory", ledger_slice("s", "p", 6), pods_holding("p", one_part(4)), true},
          {"another share", shared, pods_holding("p", one_part(4, 2000)), true},
          {"the same share", shared, pods_holding("p", one_part(4, 3000)), false},
          {"a pod that is gone", ledger_slice("s", "gone", 4), pods_holding("p", one_part(4)), true},
          {"a pod of another node", ledger_slice("s", "p", 4), pods_holding("p", one_part(4), "n2"), true},
          {"an annotation that cannot be read", ledger_slice("s", "p", 4), pods_holding("p", "1"), true},
          {"another container", ledger_slice("s", "p", 4), {}, true},
          {"whole devices", whole, pods_holding("p", one_part(2, 10000, R"(,"exclusive":true)")), false},
          {"a slice without a pod", unheld, {}, true},
          {"a claim, which is not in the annotations", claimed, {}, false},
          {"an ended slice", ended, {}, false}};
}

TEST(LedgerDrift, is_what_the_annotations_do_not_grant) {
  for (const DriftRow& row : drift_rows())
    EXPECT_EQ(find_drift({row.slice}, "n1", row.pods).size(), row.differs) << row.name;
  EXPECT_THAT(find_drift({}, "n1", pods_holding("p", one_part(4))), IsEmpty())
      << "its container has not started";
  const auto found = find_drift({ledger_slice("s", "gone", 4)}, "n1", {});
  EXPECT_THAT(found, ElementsAre(kubernetes::LedgerPart{.slice = "s",
                                                        .pod = "a/gone",
                                                        .uid = "uid-gone",
                                                        .container = "main",
                                                        .device = *parse_uuid(ledger_uuid),
                                                        .memory = 4,
                                                        .share_bp = 0}));
}

TEST(LedgerDrift, is_reported_only_if_it_lasts) {
  LastingDrift memory;
  auto found = find_drift({ledger_slice("s", "gone", 4)}, "n1", {});
  EXPECT_THAT(memory.lasting(found, second_ns).parts, IsEmpty());
  EXPECT_THAT(memory.lasting(found, 30 * second_ns).parts, IsEmpty());
  EXPECT_EQ(memory.lasting(found, 31 * second_ns).parts, found);
  EXPECT_THAT(memory.lasting({}, 32 * second_ns).parts, IsEmpty());
  EXPECT_THAT(memory.lasting(found, 33 * second_ns).parts, IsEmpty()) << "the time started again";
  found[0].memory = 5;
  EXPECT_THAT(memory.lasting(found, 70 * second_ns).parts, IsEmpty()) << "another amount";
  LastingDrift successor;
  successor.assume({.parts = found});
  EXPECT_EQ(successor.lasting(found, 0).parts, found);
}

TEST(LedgerDrift, fits_an_annotation_even_with_many_slices) {
  std::vector<api::Slice> slices;
  for (int i = 0; i < 40; ++i) {
    slices.push_back(
        ledger_slice(fmt::format("{:03}{}", i, std::string(61, 's')), std::string(253, 'p'), UINT64_MAX));
    slices.back().holder->pod->namespace_ = std::string(63, 'n');
    slices.back().holder->pod->container = std::string(63, 'c');
    slices.back().holder->pod->uid = std::string(36, 'u');
  }
  LastingDrift memory;
  memory.lasting(find_drift(slices, "n1", {}), 0);
  const kubernetes::NodeLedger ledger = memory.lasting(find_drift(slices, "n1", {}), 40 * second_ns);
  EXPECT_EQ(ledger.parts.size(), kubernetes::max_ledger_parts);
  EXPECT_EQ(ledger.left_out, 40 - kubernetes::max_ledger_parts);
  const auto again = kubernetes::read_ledger(api::write(ledger));
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(*again, ledger);
}

}  // namespace
}  // namespace carve::kubernetes::node

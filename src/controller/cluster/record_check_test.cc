// Hostile responses of a node.
#include "controller/cluster/record_check.h"

#include <gmock/gmock.h>

#include "wire/api/json.h"

namespace carve::controller {
namespace {

using ledger::UsageRecord;
using testing::HasSubstr;
using testing::SizeIs;

constexpr int64_t second = 1'000'000'000;
constexpr int64_t now = 1'793'491'200 * second;

UsageRecord sound(uint64_t id) {
  UsageRecord out;
  out.id = id;
  out.slice.name = "k1";
  out.slice.account = "a";
  out.slice.holder.pod = PodContainer{"a", "web-0", "uid", "main"};
  SlicePart part{.memory = 1024_MiB, .share = {1000}, .usable = 22731_MiB, .model = "NVIDIA A10"};
  part.device.bytes[0] = 1;
  out.slice.parts = {part};
  out.from = {now - 3600 * second, "b", 100 * second};
  return out;
}

Outcome<CheckedPage> check(const std::string& body, const LedgerCopy::Request& request = {}) {
  return check_page(body, request, "n1", PodEvidence(), now, now);
}
Outcome<CheckedPage> check(const std::vector<UsageRecord>& records, const LedgerCopy::Request& request = {}) {
  return check(api::write(ledger::UsagePage{.records = records, .last = 0, .query = usage_query(request)}),
               request);
}

TEST(RecordCheck, passes_sound_records_on) {
  const auto page = check({sound(1), sound(2)});
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_THAT(page->records, SizeIs(2));
  EXPECT_EQ(page->last, 2u);
  EXPECT_EQ(page->records[0], sound(1));
  EXPECT_EQ(check(std::vector<UsageRecord>())->last, 0u);
}

TEST(RecordCheck, rejects_a_response_that_is_not_a_page_of_the_request) {
  const auto message = [](const Outcome<CheckedPage>& page) {
    return page ? "accepted" : page.error().message;
  };
  EXPECT_THAT(message(check({sound(2), sound(2)})), HasSubstr("record 2 after record 2"));
  EXPECT_THAT(message(check({sound(5), sound(3)})), HasSubstr("record 3 after record 5"));
  EXPECT_THAT(message(check({sound(7)}, {.ids = {}, .after = 7})), HasSubstr("record 7 after record 7"));
  EXPECT_THAT(message(check({sound(3)}, {.ids = {1, 2}})), HasSubstr("record 3, which was not requested"));
  EXPECT_THAT(message(check({sound(1), sound(1)}, {.ids = {1, 2}})), HasSubstr("record 1 twice"));
  std::vector<UsageRecord> many;
  for (uint64_t id = 1; id <= max_records_per_page + 1; ++id) many.push_back(sound(id));
  EXPECT_THAT(message(check(many)), HasSubstr("101 records instead of at most 100"));
  EXPECT_THAT(message(check(std::string(max_page_bytes + 1, ' '))), HasSubstr("more than 4194304 bytes"));
  for (const char* bad : {"", "[]", "{", "{\"records\":3}", "{\"records\":[{\"id\":-1}]}",
                          "{\"records\":[{\"id\":18446744073709551616}]}", "<html>"})
    EXPECT_FALSE(check(std::string(bad))) << bad;
  EXPECT_THAT(message(check(api::write(ledger::UsagePage{.records = {}, .last = 0, .query = "ids=7"}))),
              HasSubstr("another request: 'ids=7'"));
  EXPECT_FALSE(check(std::string(100'000, '['))) << "deeply nested";
}

TEST(RecordCheck, refuses_impossible_records_and_keeps_the_others) {
  using Change = void (*)(UsageRecord&);
  const std::pair<const char*, Change> changes[] = {
      {"neither a pod nor a claim", [](UsageRecord& r) { r.slice.holder = {}; }},
      {"id is out of range", [](UsageRecord& r) { r.id = uint64_t{1} << 63; }},
      {"has 0 parts", [](UsageRecord& r) { r.slice.parts.clear(); }},
      {"has 17 parts", [](UsageRecord& r) { r.slice.parts.resize(17, r.slice.parts[0]); }},
      {"impossible amount", [](UsageRecord& r) { r.slice.parts[0].memory = Bytes{UINT64_MAX}; }},
      {"impossible amount", [](UsageRecord& r) { r.slice.parts[0].memory = 22732_MiB; }},
      {"impossible amount", [](UsageRecord& r) { r.slice.parts[0].share = {10001}; }},
      {"impossible amount", [](UsageRecord& r) { r.slice.parts[0].usable = Bytes{uint64_t{1} << 51}; }},
      {"account is missing", [](UsageRecord& r) { r.slice.account.clear(); }},
      {"account is missing", [](UsageRecord& r) { r.slice.account = std::string(254, 'a'); }},
      {"a label is too long", [](UsageRecord& r) { r.slice.labels["a"] = std::string(254, 'a'); }},
      {"an impossible time", [](UsageRecord& r) { r.from.utc_ns = -1; }},
      {"an impossible time", [](UsageRecord& r) { r.from.monotonic_ns = -1; }},
      {"an impossible time",
       [](UsageRecord& r) {
         r.to = {now, "b", INT64_MAX};
       }},
      {"an impossible time", [](UsageRecord& r) { r.from.boot_id = std::string(65, 'a'); }},
      {"impossible time or amount",
       [](UsageRecord& r) { r.periods = {{.terms = {.memory = Bytes{UINT64_MAX}}, .to = r.from}}; }},
      {"used impossibly much", [](UsageRecord& r) { r.busy_ns = UINT64_MAX; }},
      {"", [](UsageRecord& r) { r.slice.holder.pod->name = "../../etc"; }},
  };
  for (const auto& [reason, change] : changes) {
    UsageRecord bad = sound(2);
    change(bad);
    const auto page = check({sound(1), bad});
    ASSERT_TRUE(page) << reason << page.error().message;
    ASSERT_THAT(page->refusals, SizeIs(1)) << reason;
    EXPECT_THAT(page->refusals[0], HasSubstr(reason));
    EXPECT_THAT(page->refusals[0], testing::StartsWith(fmt::format("record {}: ", bad.id)));
    EXPECT_THAT(page->records, SizeIs(1));
    EXPECT_EQ(page->last, bad.id) << "a refused record is not requested again";
    EXPECT_FALSE(check({bad}, {.ids = {bad.id}})) << "a stored record never becomes wrong";
  }
}

TEST(RecordCheck, waits_for_records_from_the_future) {
  UsageRecord future = sound(2);
  future.from.utc_ns = now + 700 * second;
  UsageRecord long_one = sound(3);
  long_one.to = {now, "b", 100 * second + 36 * 365 * int64_t{86'400} * second};
  for (const UsageRecord& bad : {future, long_one}) {
    const auto page = check({sound(1), bad, sound(9)});
    ASSERT_TRUE(page) << page.error().message;
    EXPECT_THAT(page->records, SizeIs(1));
    EXPECT_EQ(page->last, 1u) << "nothing behind it is skipped";
    EXPECT_THAT(page->undecided, HasSubstr("from the future"));
  }
}

TEST(RecordCheck, lists_only_some_of_many_refusals) {
  std::vector<UsageRecord> bad;
  for (uint64_t id = 1; id <= max_records_per_page; ++id) {
    bad.push_back(sound(id));
    bad.back().slice.holder = {};
  }
  const auto page = check(bad);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->refused, max_records_per_page);
  EXPECT_THAT(page->refusals, SizeIs(max_refusals));
}

}  // namespace
}  // namespace carve::controller

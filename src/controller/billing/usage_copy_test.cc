// Copies the ledger of an agent while it grows, changes and is lost.
#include "controller/billing/usage_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <random>

namespace carve::controller {
namespace {

using ledger::Stamp;
using ledger::UsageRecord;
using testing::ElementsAre;

constexpr int64_t second = 1'000'000'000;

Stamp at(int64_t s, const char* boot = "a") { return {s * second, boot, s * second}; }

UsageRecord record(uint64_t id, int64_t from_s) {
  UsageRecord r;
  r.id = id;
  r.slice.name = fmt::format("s{}", id);
  r.slice.account = "alice";
  SlicePart part{.memory = 4096_MiB, .share = {3000}, .usable = 22731_MiB, .model = "NVIDIA A10"};
  part.device.bytes[0] = 1;
  r.slice.parts = {part};
  r.from = at(from_s);
  return r;
}

struct SourceFake final : UsageSource {
  std::vector<UsageRecord> records;
  size_t page = 2;
  bool fails = false;

  Outcome<std::vector<UsageRecord>> after(uint64_t id) override {
    if (fails) return failure(FailureKind::unavailable, "no agent");
    std::vector<UsageRecord> out;
    for (const UsageRecord& r : records)
      if (r.id > id && out.size() < page) out.push_back(r);
    return out;
  }
  Outcome<std::vector<UsageRecord>> of(const std::vector<uint64_t>& ids) override {
    std::vector<UsageRecord> out;
    for (const UsageRecord& r : records)
      if (std::ranges::find(ids, r.id) != ids.end()) out.push_back(r);
    return out;
  }
};

class UsageCopyTest : public testing::Test {
 public:
  UsageCopyTest() {
    std::filesystem::create_directory(folder);
    open();
  }
  ~UsageCopyTest() override { std::filesystem::remove_all(folder); }
  void open() {
    store.reset();
    auto opened = UsageStore::open(folder + "/usage.db", 1);
    ASSERT_TRUE(opened) << opened.error().message;
    store.emplace(std::move(opened->store));
  }
  size_t copy(int64_t now_s = 1000) {
    const auto done = copy_usage(
        *store, "n1", source,
        {.is_prepaid = [this](const std::string& q) { return q == prepaid_queue; }, .now = at(now_s)});
    EXPECT_TRUE(done) << done.error().message;
    return done ? *done : 0;
  }
  // Returns all copied records, each with its end.
  std::vector<std::string> rows(bill::Window window = {}) {
    std::vector<std::string> out;
    const auto done = store->each(window, [&](UsageRow&& row) {
      out.push_back(
          fmt::format("{}:{} {}-{}", ledger_name(row), row.id, row.from_ns / second, row.end_ns / second));
      return true;
    });
    EXPECT_TRUE(done);
    std::ranges::sort(out);
    return out;
  }

  const std::string folder = fmt::format("/tmp/carve-usage-{}", getpid());
  std::optional<UsageStore> store;
  SourceFake source;
  std::string prepaid_queue;
};

TEST_F(UsageCopyTest, copies_a_record_once_and_an_open_one_until_it_ends) {
  for (uint64_t id = 1; id <= 5; ++id) source.records.push_back(record(id, 10));
  source.records[0].to = at(20);
  EXPECT_EQ(copy(), 5u);
  EXPECT_EQ(copy(), 4u);
  source.records[2].to = at(30);
  EXPECT_EQ(copy(), 4u);
  EXPECT_EQ(copy(), 3u);
  open();
  EXPECT_EQ(copy(), 3u);
  EXPECT_THAT(rows(), ElementsAre("n1:1 10-20", "n1:2 10-0", "n1:3 10-30", "n1:4 10-0", "n1:5 10-0"));
}

TEST_F(UsageCopyTest, finds_the_records_that_overlap_a_window) {
  source.records = {record(1, 10), record(2, 50), record(3, 90), record(4, 5)};
  source.records[0].to = at(20);
  source.records[1].to = at(60);
  source.records[2].to = at(95);
  copy();
  EXPECT_THAT(rows({20 * second, 60 * second}), ElementsAre("n1:2 50-60", "n1:4 5-0"));
  EXPECT_THAT(rows({19 * second, 90 * second}), ElementsAre("n1:1 10-20", "n1:2 50-60", "n1:4 5-0"));
  EXPECT_THAT(rows({0, 6 * second}), ElementsAre("n1:4 5-0"));
}

// A copy under another ledger's number would be billed twice.
TEST_F(UsageCopyTest, does_not_copy_again_a_ledger_that_lost_its_newest_records) {
  source.records = {record(1, 10), record(2, 20), record(3, 30), record(4, 40)};
  source.records[0].to = at(15);
  copy(70);
  source.records = {source.records[0], record(2, 20), record(7, 80)};  // 3 and 4 are lost, 2 is still open.
  EXPECT_EQ(copy(90), 2u);
  source.records[1].to = at(100);
  EXPECT_EQ(copy(110), 2u);
  EXPECT_THAT(rows(), ElementsAre("n1:1 10-15", "n1:2 20-100", "n1:3 30-70", "n1:4 40-70", "n1:7 80-0"));
  // All records were lost except those that the agent rewrote from a state file.
  source.records = {record(7, 80)};
  source.records[0].slice.account = "alice";
  copy(120);
  EXPECT_THAT(rows(), testing::SizeIs(5));
}

TEST_F(UsageCopyTest, ends_open_records_of_a_lost_ledger_when_the_agent_was_last_seen) {
  source.records = {record(1, 10), record(2, 20)};
  source.records[0].to = at(15);
  copy(70);
  source.records = {record(1, 80)};
  EXPECT_EQ(copy(90), 1u);
  EXPECT_THAT(rows(), ElementsAre("n1:1 10-15", "n1:2 20-70", "n1@2:1 80-0"));
  source.records = {};
  copy(100);
  EXPECT_THAT(rows(), ElementsAre("n1:1 10-15", "n1:2 20-70", "n1@2:1 80-0"))
      << "an empty ledger proves nothing";
  source.records = {record(1, 110)};
  copy(120);
  EXPECT_THAT(rows(), ElementsAre("n1:1 10-15", "n1:2 20-70", "n1@2:1 80-90", "n1@3:1 110-0"));
}

TEST_F(UsageCopyTest, keeps_the_queues_billing_from_the_start_of_a_job) {
  source.records = {record(1, 10)};
  source.records[0].slice.labels = {
      {"carve.dev/kind", "job"}, {"carve.dev/name", "j"}, {"carve.dev/queue", "q"}};
  prepaid_queue = "q";
  copy();
  prepaid_queue = "";
  copy();
  const auto row = store->find("n1", 1, 1);
  ASSERT_TRUE(row && *row);
  EXPECT_TRUE((*row)->prepaid);
  EXPECT_EQ((*row)->kind, "job");
  EXPECT_EQ((*row)->name, "j");
}

TEST_F(UsageCopyTest, changes_nothing_if_the_agent_does_not_answer) {
  source.records = {record(1, 10)};
  copy();
  source.fails = true;
  EXPECT_FALSE(copy_usage(*store, "n1", source,
                          {.is_prepaid = [](const std::string&) { return false; }, .now = at(99)}));
  EXPECT_THAT(rows(), ElementsAre("n1:1 10-0"));
}

TEST_F(UsageCopyTest, does_not_copy_again_a_ledger_of_which_only_open_records_are_left) {
  for (uint64_t id = 1; id <= 4; ++id) source.records.push_back(record(id, static_cast<int64_t>(10 * id)));
  source.records[0].to = at(15);
  copy(70);
  source.records = {record(2, 20)};  // Rewritten from the state file of a live slice.
  copy(90);
  source.records[0].to = at(100);
  copy(110);
  EXPECT_THAT(rows(), ElementsAre("n1:1 10-15", "n1:2 20-100", "n1:3 30-70", "n1:4 40-70"));
}

TEST_F(UsageCopyTest, compares_more_open_records_than_fit_one_request) {
  for (uint64_t id = 1; id <= 3 * max_copied_ids; ++id) source.records.push_back(record(id, 10));
  copy(70);
  for (UsageRecord& r : source.records) r.to = at(80);
  EXPECT_EQ(copy(90), 3 * max_copied_ids);
  EXPECT_EQ(copy(95), 0u);
  for (UsageRecord& r : source.records) r.to.reset();
  EXPECT_EQ(copy(96), 0u) << "an ended record never changes";
}

TEST_F(UsageCopyTest, continues_with_an_old_ledger_that_was_restored) {
  source.records = {record(1, 10), record(2, 20)};
  source.records[0].to = at(15);
  copy(70);
  const auto old = source.records;
  source.records = {record(1, 80)};
  copy(90);
  source.records = old;
  const auto done = copy_usage(*store, "n1", source,
                               {.is_prepaid = [](const std::string&) { return false; }, .now = at(95)});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "its agent again has ledger n1, which was replaced by another one");
  source.records.push_back(record(3, 96));
  copy(99);
  copy(100);
  EXPECT_THAT(rows(), ElementsAre("n1:1 10-15", "n1:2 20-70", "n1:3 96-0", "n1@2:1 80-0"))
      << "no record is copied twice";
}

TEST_F(UsageCopyTest, fails_if_a_record_changes_its_begin_or_account) {
  source.records = {record(1, 10), record(2, 20), record(3, 30)};
  copy(70);
  for (const bool is_begin : {true, false}) {
    source.records[1] = record(2, is_begin ? 11 : 20);
    if (!is_begin) source.records[1].slice.account = "bob";
    EXPECT_FALSE(copy_usage(*store, "n1", source,
                            {.is_prepaid = [](const std::string&) { return false; }, .now = at(99)}));
  }
  EXPECT_THAT(rows(), ElementsAre("n1:1 10-0", "n1:2 20-0", "n1:3 30-0"));
}

// Stops a copy after each number of writes. The next copy must produce what one uninterrupted copy does.
TEST_F(UsageCopyTest, continues_after_an_end_at_any_write) {
  for (const bool is_lost : {false, true}) {
    std::vector<std::string> expected;
    for (size_t stop = 0; stop < 8; ++stop) {
      store.reset();
      std::filesystem::remove_all(folder);
      std::filesystem::create_directory(folder);
      open();
      source.records = {record(1, 10), record(2, 20), record(3, 30)};
      copy(70);
      if (is_lost)
        source.records = {record(1, 80), record(2, 81), record(3, 82), record(4, 83), record(5, 84)};
      else
        for (uint64_t id = 4; id <= 9; ++id) source.records.push_back(record(id, 40));
      LedgerCopy interrupted(
          "n1", *store->position("n1"), [](const std::string&) { return false; }, at(90));
      for (size_t step = 0; step < stop; ++step) {
        const auto request = interrupted.next();
        if (!request) break;
        const auto some = request->ids.empty() ? source.after(request->after) : source.of(request->ids);
        const auto write = interrupted.take(*some, some->empty() ? 0 : some->back().id);
        ASSERT_TRUE(write && write_copy(*store, "n1", *write, nullptr));
      }
      open();
      copy(90);
      if (stop == 0) expected = rows();
      EXPECT_EQ(rows(), expected) << stop;
      EXPECT_THAT(rows(), testing::SizeIs(is_lost ? 8 : 9));
    }
  }
}

// A copy produces the same line as the record itself, whatever its periods, boots and devices.
TEST_F(UsageCopyTest, gives_the_same_invoice_as_the_records_themselves) {
  std::mt19937 random(7);
  const auto chance = [&](unsigned n) { return random() % n; };
  std::vector<bill::Usage> direct;
  for (uint64_t id = 1; id <= 200; ++id) {
    UsageRecord r = record(id, 10 + static_cast<int64_t>(chance(1000)));
    int64_t now = r.from.utc_ns / second;
    r.slice.exclusive = chance(5) == 0;
    for (unsigned n = chance(3); n > 0; --n) {
      r.periods.push_back({.terms = ledger::terms_of(r.slice), .to = at(now += chance(500))});
      r.periods.back().terms.memory = Bytes{(1 + chance(8)) * (1_GiB).count};
    }
    if (chance(4) == 0) {
      r.slice.parts.push_back(r.slice.parts[0]);
      r.slice.parts[1].device.bytes[0] = 2;
    }
    r.to = at(now += chance(900), chance(6) == 0 ? "b" : "a");
    source.records.push_back(r);
    bill::Usage u{.node = "n1",
                  .record = r,
                  .account = "alice",
                  .name_space = "",
                  .kind = "slice",
                  .name = r.slice.name,
                  .queue = "",
                  .devices = {}};
    for (const SlicePart& part : r.slice.parts) u.devices.push_back({part.device, part.model, part.usable});
    direct.push_back(u);
  }
  copy();
  std::vector<bill::Usage> copied;
  ASSERT_TRUE(store->each({}, [&](UsageRow&& row) {
    copied.push_back(*usage_of(row));
    return true;
  }));
  const auto prices = *bill::Tariffs::from(
      {{.currency = "EUR", .units = bill::shipped_units(), .price = {1'234'567}, .granularity = 7 * second}});
  const bill::Window window{200 * second, 1500 * second};
  const bill::Invoice a = bill::invoice(direct, prices, window, at(5000));
  const bill::Invoice b = bill::invoice(copied, prices, window, at(5000));
  ASSERT_GT(a.lines.size(), 100u);
  ASSERT_EQ(a.lines.size(), b.lines.size());
  EXPECT_EQ(bill::totals(a.lines, bill::GroupBy::workload), bill::totals(b.lines, bill::GroupBy::workload));
  for (size_t i = 0; i < a.lines.size(); ++i) {
    EXPECT_EQ(bill::explain(a.lines[i]), bill::explain(b.lines[i]));
    EXPECT_EQ(a.lines[i].from, b.lines[i].from);
    EXPECT_EQ(a.lines[i].to, b.lines[i].to);
  }
}

}  // namespace
}  // namespace carve::controller

#include "controller/billing/allocation_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <random>

#include "controller/billing/bill_report.h"

namespace carve::controller {
namespace {

using ledger::Stamp;
using ledger::UsageRecord;
using testing::ElementsAre;

constexpr int64_t hours = 3600 * bill::second_ns;
constexpr int64_t days = 24 * hours;
// 2026-11-01.
constexpr int64_t month_ns = 1'793'491'200 * bill::second_ns;
static_assert(month_ns % days == 0);

Stamp stamp_at(int64_t ns) { return {ns, "a", ns}; }

struct Held {
  uint64_t id = 0;
  int64_t from_ns = 0, to_ns = 0;  // 0 if it has not ended.
  const char* account = "alice";
  uint32_t owner = 1000;
  int64_t busy_ns = 0;
  Share share = {2500};
  uint8_t device = 1;
  const char* service = "";
};

UsageRow row_of(const Held& held) {
  UsageRecord record;
  record.id = held.id;
  record.slice.name = fmt::format("s{}", held.id);
  record.slice.account = held.account;
  record.slice.owner = held.owner;
  record.slice.labels = {{"team", held.owner % 2 == 0 ? "even" : "odd"}};
  if (*held.service != '\0')
    record.slice.labels.merge(std::map<std::string, std::string>{
        {"carve.dev/kind", "service"}, {"carve.dev/name", held.service}, {"carve.dev/namespace", "default"}});
  SlicePart part{.memory = 1024_MiB, .share = held.share, .usable = 22731_MiB, .model = "NVIDIA A10"};
  part.device.bytes[0] = held.device;
  record.slice.parts = {part};
  record.from = stamp_at(held.from_ns);
  if (held.to_ns != 0) record.to = stamp_at(held.to_ns);
  record.busy_ns = static_cast<uint64_t>(held.busy_ns);
  return usage_row("n1", 1, record, [](const std::string&) { return false; });
}

class AllocationReportTest : public testing::Test {
 public:
  AllocationReportTest() {
    std::filesystem::create_directory(folder);
    auto opened = UsageStore::open(folder + "/usage.db", 1);
    if (opened) store.emplace(std::move(opened->store));
  }
  ~AllocationReportTest() override { std::filesystem::remove_all(folder); }
  void write(const std::vector<Held>& all) {
    std::vector<UsageRow> rows;
    for (const Held& held : all) rows.push_back(row_of(held));
    ASSERT_TRUE(store->write(rows));
  }
  api::Allocations made(const BillQuery& query, int64_t now_ns = month_ns + 20 * days) {
    auto out = make_allocations(*store, tariffs, query, stamp_at(now_ns));
    EXPECT_TRUE(out) << out.error().message;
    return out ? std::move(*out) : api::Allocations();
  }

  const std::string folder = fmt::format("/tmp/carve-allocations-{}", getpid());
  std::optional<UsageStore> store;
  bill::Tariffs tariffs = *bill::Tariffs::from(
      {{.currency = "EUR", .units = bill::shipped_units(), .price = {2 * bill::millionths_per_one}}});
};

BillQuery first_days(int64_t count) { return {.window = {.from = month_ns, .to = month_ns + count * days}}; }

TEST_F(AllocationReportTest, counts_what_began_ended_and_is_held) {
  write({{.id = 1, .from_ns = month_ns - 2 * hours, .to_ns = month_ns + 2 * hours, .busy_ns = hours},
         {.id = 2, .from_ns = month_ns + hours, .to_ns = month_ns + 2 * hours, .busy_ns = hours},
         {.id = 3, .from_ns = month_ns + 3 * hours, .to_ns = month_ns + 3 * days},
         {.id = 4, .from_ns = month_ns + 4 * hours},
         {.id = 5, .from_ns = month_ns + 2 * days, .to_ns = month_ns + 3 * days},
         {.id = 6, .from_ns = month_ns - 9 * hours, .to_ns = month_ns - 8 * hours}});
  const auto all = made(first_days(1));
  ASSERT_EQ(all.items.size(), 1u);
  const api::AllocationSum& alice = all.items[0];
  EXPECT_EQ(alice.key, "alice");
  EXPECT_EQ(alice.allocations, 4u);
  EXPECT_EQ(alice.begun, 3u);
  EXPECT_EQ(alice.ended, 2u);
  EXPECT_EQ(alice.held, 2u);
  EXPECT_EQ(alice.since, "2026-11-01T03:00:00Z") << "slice 3, which ended after the period";
  EXPECT_EQ(alice.longest_stay_seconds, 20u * 86'400 - 4 * 3600) << "slice 4, until now";
  EXPECT_EQ(alice.median_stay_seconds, (4u * 3600 + 3 * 86'400 - 3 * 3600) / 2) << "of slices 1 and 3";
  // 25 % of an A10 is 2.5 an hour: 2, 1, 21 and 20 hours in the period.
  EXPECT_EQ(alice.gpu_hours, "110.000000");
  EXPECT_EQ(all.total.allocations, 4u);
  EXPECT_EQ(all.currency, "EUR");
}

TEST_F(AllocationReportTest, sums_the_idle_part_of_each_allocation) {
  write({{.id = 1, .from_ns = month_ns, .to_ns = month_ns + 4 * hours, .busy_ns = hours / 2},
         // Used more than its share, which does not make the other one less idle.
         {.id = 2, .from_ns = month_ns, .to_ns = month_ns + 4 * hours, .busy_ns = 2 * hours}});
  const auto all = made(first_days(1));
  EXPECT_EQ(all.total.gpu_hours, "20.000000");
  EXPECT_EQ(all.total.used_gpu_hours, "25.000000");
  EXPECT_EQ(all.total.idle_gpu_hours, "5.000000");
}

TEST_F(AllocationReportTest, counts_a_slice_once_for_each_device) {
  UsageRow row = row_of({.id = 1, .from_ns = month_ns, .to_ns = month_ns + hours, .device = 1});
  UsageRecord record = usage_of(row)->record;
  record.slice.parts.push_back(record.slice.parts[0]);
  record.slice.parts[1].device.bytes[0] = 2;
  ASSERT_TRUE(store->write({usage_row("n1", 1, record, [](const std::string&) { return false; })}));
  BillQuery query = first_days(1);
  query.by = BillBy::device;
  const auto all = made(query);
  ASSERT_EQ(all.items.size(), 2u);
  EXPECT_EQ(all.items[0].gpu_hours, all.items[1].gpu_hours);
  EXPECT_EQ(all.total.allocations, 2u);
  query.by = BillBy::node;
  EXPECT_EQ(made(query).total.allocations, 1u);
  EXPECT_EQ(made(query).total.gpu_hours, all.total.gpu_hours);
}

TEST_F(AllocationReportTest, groups_by_user_service_and_label) {
  write({{.id = 1, .from_ns = month_ns, .to_ns = month_ns + hours, .owner = 1001, .service = "a"},
         {.id = 2, .from_ns = month_ns, .to_ns = month_ns + hours, .owner = 1002},
         {.id = 3, .from_ns = month_ns, .to_ns = month_ns + hours, .owner = 1001}});
  const auto keys = [](const api::Allocations& all) {
    std::vector<std::string> out;
    for (const auto& item : all.items) out.push_back(fmt::format("{}:{}", item.key, item.allocations));
    return out;
  };
  BillQuery query = first_days(1);
  query.by = BillBy::user;
  EXPECT_THAT(keys(made(query)), ElementsAre("1001:2", "1002:1"));
  query.user_name = [](uint32_t uid) { return uid == 1001 ? "ann" : "ben"; };
  EXPECT_THAT(keys(made(query)), ElementsAre("ann:2", "ben:1"));
  EXPECT_EQ(made(query).items[1].uid, 1002u);
  query.by = BillBy::service;
  const auto by_service = made(query);
  EXPECT_THAT(keys(by_service), ElementsAre("service default/a:1", "-:2"));
  EXPECT_TRUE(by_service.items[1].is_rest);
  EXPECT_FALSE(by_service.items[0].uid);
  query.by_label = "team";
  EXPECT_THAT(keys(made(query)), ElementsAre("even:1", "odd:2"));
  query.may_see = [](const UsageRow& row) { return row.owner_uid == 1002; };
  EXPECT_THAT(keys(made(query)), ElementsAre("even:1"));
}

TEST_F(AllocationReportTest, shows_how_much_of_the_devices_was_granted_on_each_day) {
  write({{.id = 1, .from_ns = month_ns - hours, .to_ns = month_ns + days + 6 * hours},
         {.id = 2, .from_ns = month_ns + 12 * hours, .share = {10'000}}});
  ASSERT_TRUE(store->record_inventory({{"n1", 2}}, month_ns + days / 2));
  ASSERT_TRUE(store->record_inventory({{"n1", 2}}, month_ns + days));
  ASSERT_TRUE(store->record_inventory({{"n1", 2}, {"n2", 4}}, month_ns + days + 6 * hours));
  ASSERT_TRUE(store->record_inventory({{"n2", 4}}, month_ns + days + 12 * hours));
  EXPECT_EQ(store->inventory()->size(), 3u) << "only changes are stored";
  BillQuery query{.window = {.from = month_ns, .to = month_ns + 2 * days + 6 * hours}, .by_day = true};
  const auto all = made(query);
  ASSERT_EQ(all.days.size(), 3u);
  EXPECT_EQ(all.days[0].granted_device_hours, "18.000000") << "6 of slice 1, 12 of slice 2";
  EXPECT_FALSE(all.days[0].usable_device_hours) << "not recorded for the whole day";
  EXPECT_EQ(all.days[1].granted_device_hours, "25.500000");
  EXPECT_EQ(all.days[1].usable_device_hours, "96.000000") << "12 h with 2 devices, 18 h with 4";
  EXPECT_EQ(all.days[2].from, "2026-11-03T00:00:00Z");
  EXPECT_EQ(all.days[2].to, "2026-11-03T06:00:00Z");
  EXPECT_EQ(all.days[2].usable_device_hours, "24.000000");
  EXPECT_EQ(made(query, month_ns + 13 * hours).days.size(), 1u) << "the others have not begun";
}

// 64 devices in a month, with slices of random sizes and lengths.
std::vector<UsageRow> month_of_use(unsigned seed, size_t devices) {
  std::mt19937_64 random(seed);
  static constexpr const char* accounts[] = {"alice", "bob", "carol", "dave", "erin"};
  static constexpr const char* services[] = {"", "", "chat", "rank"};
  std::vector<UsageRow> out;
  for (size_t device = 0; device < devices; ++device)
    for (size_t place = 0; place < 16; ++place)
      for (int64_t at = -static_cast<int64_t>(random() % (10 * hours)); at < 30 * days;) {
        const auto length = static_cast<int64_t>(60 * bill::second_ns + random() % (12 * hours));
        const bool is_open = at + length > 30 * days;
        out.push_back(row_of({.id = out.size() + 1,
                              .from_ns = month_ns + at,
                              .to_ns = is_open ? 0 : month_ns + at + length,
                              .account = accounts[random() % std::size(accounts)],
                              .owner = static_cast<uint32_t>(1000 + random() % 20),
                              .busy_ns = static_cast<int64_t>(random() % static_cast<uint64_t>(length)) / 10,
                              .share = {static_cast<uint32_t>(100 + random() % 525)},
                              .device = static_cast<uint8_t>(device + 1),
                              .service = services[random() % std::size(services)]}));
        at += length + static_cast<int64_t>(random() % hours);
      }
  return out;
}

TEST_F(AllocationReportTest, has_the_figures_of_the_invoice) {
  ASSERT_TRUE(store->write(month_of_use(1, 3)));
  for (const auto& [from, to] : {std::pair{0, 30}, {7, 8}, {13, 20}})
    for (const BillBy by : {BillBy::account, BillBy::user, BillBy::service}) {
      const BillQuery query{.window = {.from = month_ns + from * days, .to = month_ns + to * days}, .by = by};
      const Stamp now = stamp_at(month_ns + 30 * days);
      const auto bill = make_bill(*store, tariffs, query, now);
      const auto all = make_allocations(*store, tariffs, query, now);
      ASSERT_TRUE(bill && all);
      ASSERT_EQ(all->items.size(), bill->items.size());
      for (size_t i = 0; i < bill->items.size(); ++i) {
        EXPECT_EQ(all->items[i].key, bill->items[i].key);
        EXPECT_EQ(all->items[i].gpu_hours, bill->items[i].gpu_hours);
        EXPECT_EQ(all->items[i].amount, bill->items[i].amount);
        EXPECT_EQ(all->items[i].used_gpu_hours, bill->items[i].used_gpu_hours);
        EXPECT_EQ(all->items[i].unpriced_seconds, bill->items[i].unpriced_seconds);
      }
      EXPECT_EQ(all->total.gpu_hours, bill->total.gpu_hours);
      EXPECT_EQ(all->total.amount, bill->total.amount);
    }
}

// Prints the figures in docs/history.md.
TEST_F(AllocationReportTest, DISABLED_measures_a_month_of_64_devices) {
  const auto rows = month_of_use(2, 64);
  ASSERT_TRUE(store->write(rows));
  ASSERT_TRUE(store->record_inventory({{"n1", 64}}, month_ns));
  BillQuery query = first_days(30);
  const auto measured = [&](const char* name, const auto& report) {
    const std::clock_t begin = std::clock();
    report();
    fmt::print("{} of {} allocations: {:.0f} ms of CPU time\n", name, rows.size(),
               1000.0 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  };
  measured("allocations", [&] { made(query, month_ns + 30 * days); });
  measured("invoice", [&] {
    const auto bill = make_bill(*store, tariffs, query, stamp_at(month_ns + 30 * days));
    ASSERT_TRUE(bill);
  });
  query.by_day = true;
  measured("allocations by day", [&] { made(query, month_ns + 30 * days); });
}

}  // namespace
}  // namespace carve::controller

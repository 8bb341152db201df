#include "bill/invoice.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

namespace carve::bill {
namespace {

using ledger::Period;
using ledger::Stamp;
using ledger::Terms;
using ::testing::EndsWith;
using ::testing::StartsWith;

constexpr Ns hour = 3600 * second_ns;
constexpr Bytes usable = 22731_MiB;

// Returns a time during boot "a", which began at 1 h UTC.
Stamp at(Ns since_boot) { return {hour + since_boot, "a", since_boot}; }

Uuid uuid(uint8_t number) {
  Uuid id;
  id.bytes[0] = number;
  return id;
}

// A record on one A10 that begins 1 h after the boot.
Usage usage(uint64_t id, Bytes memory, Share share, Ns duration = hour) {
  Usage u;
  u.node = "n1";
  u.account = "alice";
  u.name_space = "default", u.kind = "job", u.name = "spark-1", u.queue = "q";
  u.record.id = id;
  u.record.slice.name = "s";
  u.record.slice.parts = {{uuid(1), memory, share, {}}};
  u.record.from = at(hour);
  u.record.to = at(hour + duration);
  u.devices = {{uuid(1), "NVIDIA A10", usable}};
  return u;
}

Tariff tariff(Ns from = 0, Millionths price = {2'000'000}) {
  return {.currency = "EUR", .from = from, .units = shipped_units(), .price = price};
}

Tariffs tariffs(std::vector<Tariff> list = {tariff()}) { return *Tariffs::from(std::move(list)); }

Invoice bill(const std::vector<Usage>& records, const Tariffs& prices = tariffs(), Window window = {}) {
  return invoice(records, prices, window, at(100 * hour));
}

// The source prints 4069 where its parameter is 4096; both give 3 (requirements S4-13, S4-14).
TEST(Invoice, reproduces_the_worked_examples) {
  struct Row {
    Bytes memory;
    Share share;
    Ns duration;
    const char* gpu_hours;
    const char* explained;
  } const rows[] = {
      {4096_MiB,
       {3000},
       hour,
       "3.000000",
       "1.000000 h x 10 x max(30/100 = 0.300000, 4096/22731 = 0.180194) = 3.000000"},
      {4069_MiB,
       {3000},
       hour,
       "3.000000",
       "1.000000 h x 10 x max(30/100 = 0.300000, 4069/22731 = 0.179007) = 3.000000"},
      {8192_MiB,
       {3000},
       hour,
       "3.603889",
       "1.000000 h x 10 x max(30/100 = 0.300000, 8192/22731 = 0.360389) = 3.603889"},
      {22731_MiB,
       {500},
       hour,
       "10.000000",
       "1.000000 h x 10 x max(5/100 = 0.050000, 22731/22731 = 1.000000) = 10.000000"},
      {8192_MiB, {0}, hour, "3.603889", "1.000000 h x 10 x (8192/22731 = 0.360389) = 3.603889"},
      {1_MiB,
       {10000},
       2 * hour,
       "20.000000",
       "2.000000 h x 10 x max(100/100 = 1.000000, 1/22731 = 0.000044) = 20.000000"},
      {1_MiB,
       {1250},
       second_ns,
       "0.000347",
       "0.000278 h x 10 x max(12.5/100 = 0.125000, 1/22731 = 0.000044) = 0.000347"},
  };
  for (const Row& row : rows) {
    const std::vector<Usage> records{usage(1, row.memory, row.share, row.duration)};
    const Invoice i = bill(records);
    ASSERT_EQ(i.lines.size(), 1u);
    EXPECT_EQ(text(i.lines[0].gpu_hours), row.gpu_hours);
    EXPECT_EQ(explain(i.lines[0]), row.explained);
  }
}

TEST(Invoice, a_line_costs_its_gpu_hours_times_the_price) {
  std::vector<Usage> records{usage(1, 8192_MiB, {3000})};
  const Invoice i = bill(records);
  EXPECT_EQ(text(i.lines[0].amount), "7.207778");  // 2 x 3.60388896..., not 2 x 3.603889.
  EXPECT_EQ(i.currency, "EUR");
  EXPECT_EQ(i.lines[0].ratio_by, RatioBy::memory);
  EXPECT_EQ(text(total(i.lines).amount, 2), "7.21");
  records[0].prepaid = true;
  const Invoice prepaid = bill(records);
  EXPECT_EQ(prepaid.lines[0].amount.count, 0);
  EXPECT_EQ(text(prepaid.lines[0].gpu_hours), "3.603889");
  EXPECT_EQ(prepaid.lines[0].unpriced, Unpriced::no);
}

TEST(Invoice, bills_exclusive_slices_and_slices_of_several_devices) {
  Usage u = usage(1, usable, {});
  u.record.slice.exclusive = true;
  u.record.slice.parts.push_back({uuid(2), usable, {}, {}});
  u.devices.push_back({uuid(2), "NVIDIA A10", usable});
  const std::vector<Usage> records{u};
  const Invoice i = bill(records);
  ASSERT_EQ(i.lines.size(), 2u);
  EXPECT_EQ(explain(i.lines[1]), "1.000000 h x 10 x 1 = 10.000000");
  EXPECT_EQ(text(total(i.lines).gpu_hours), "20.000000");
}

TEST(Invoice, each_part_of_a_slice_has_a_line_with_its_own_amounts) {
  Usage u = usage(1, usable, {3000});
  u.record.slice.parts[0].memory = {usable.count / 10};
  u.record.slice.parts.push_back({uuid(2), {usable.count / 2}, {1000}, {}});
  u.devices.push_back({uuid(2), "NVIDIA A10", usable});
  // A change of the latency class leaves the amounts of each part unchanged.
  ledger::Period before{ledger::terms_of(u.record.slice), u.record.from};
  before.to.utc_ns += 1'000'000'000;
  before.to.monotonic_ns += 1'000'000'000;
  u.record.periods = {before};
  u.record.slice.latency = LatencyClass::latency;
  const std::vector<Usage> records{u};
  const Invoice i = bill(records);
  ASSERT_EQ(i.lines.size(), 4u) << "each part has a line before and after the change";
  for (const size_t first : {0, 1}) {
    EXPECT_EQ(i.lines[first].share, Share{3000});
    EXPECT_EQ(i.lines[first].memory.count, usable.count / 10);
    EXPECT_EQ(i.lines[first + 2].share, Share{1000});
    EXPECT_EQ(i.lines[first + 2].memory.count, usable.count / 2);
  }
  // In one hour the first part costs 0.3 by its share, and the second 0.5 by its memory.
  EXPECT_EQ(text(total(i.lines).gpu_hours), "8.000000");
}

TEST(Invoice, granularity_and_minimum_apply_to_the_whole_duration_of_an_ended_record) {
  struct Row {
    Ns duration;
    Ns granularity;
    Ns minimum;
    Ns billed;
  } const rows[] = {
      {second_ns, second_ns, 0, second_ns},
      {second_ns + 1, second_ns, 0, 2 * second_ns},
      {1, second_ns, 0, second_ns},
      {0, second_ns, 0, 0},
      {0, second_ns, 60 * second_ns, 60 * second_ns},
      {61 * second_ns, second_ns, 60 * second_ns, 61 * second_ns},
      {61 * second_ns, 60 * second_ns, 90 * second_ns, 120 * second_ns},
      {10, 1, 0, 10},
  };
  for (const Row& row : rows) {
    Tariff t = tariff();
    t.granularity = row.granularity, t.minimum = row.minimum;
    const std::vector<Usage> records{usage(1, 1_GiB, {5000}, row.duration)};
    const Invoice i = bill(records, tariffs({t}));
    EXPECT_EQ(i.lines.size(), row.billed == 0 ? 0u : 1u);
    EXPECT_EQ(i.lines.empty() ? 0 : i.lines[0].billed, row.billed) << row.duration;
  }
  // Three terms of 0.4 s take 1.2 s, which are rounded up to 2 s; the last line has the remaining 0.8 s.
  Usage u = usage(1, 1_GiB, {5000}, 1'200'000'000);
  u.record.periods = {{Terms{1_GiB, {1000}}, at(hour + 400'000'000)},
                      {Terms{2_GiB, {1000}}, at(hour + 800'000'000)}};
  const std::vector<Usage> records{u};
  const Invoice i = bill(records);
  ASSERT_EQ(i.lines.size(), 3u);
  EXPECT_EQ(i.lines[0].billed, 400'000'000);
  EXPECT_EQ(i.lines[1].billed, 400'000'000);
  EXPECT_EQ(i.lines[2].billed, 1'200'000'000);
  EXPECT_EQ(i.lines[1].memory, 2_GiB);
  EXPECT_EQ(explain(i.lines[1]),
            "0.000111 h x 10 x max(10/100 = 0.100000, 2048/22731 = 0.090097) = 0.000111");
  EXPECT_THAT(explain(i.lines[2]),
              StartsWith("0.000333 h (0.000111 h, plus 0.000222 h for the minimum and granularity) x"));
}

TEST(Invoice, an_open_record_counts_until_now) {
  std::vector<Usage> records{usage(1, 1_GiB, {5000})};
  records[0].record.to.reset();
  const Invoice i = invoice(records, tariffs(), {}, at(hour + 1));
  ASSERT_EQ(i.lines.size(), 1u);
  EXPECT_TRUE(i.lines[0].open);
  EXPECT_EQ(i.lines[0].billed, 1) << "the duration is rounded when the record ends";
  EXPECT_FALSE(bill({usage(1, 1_GiB, {5000})}).lines[0].open);
}

TEST(Invoice, lines_end_at_changes_of_terms_at_tariff_dates_and_at_the_window) {
  Usage u = usage(1, usable, {5000}, 4 * hour);  // 2 h to 6 h UTC.
  u.record.periods = {{Terms{1_GiB, {1000}}, at(2 * hour)}};
  const std::vector<Usage> records{u};
  const Invoice i = bill(records, tariffs({tariff(), tariff(4 * hour, {3'000'000})}), {0, 5 * hour});
  ASSERT_EQ(i.lines.size(), 3u);
  const Ns edges[] = {2 * hour, 3 * hour, 4 * hour, 5 * hour};
  const char* amounts[] = {"2.000000", "20.000000", "30.000000"};
  for (size_t l = 0; l < 3; ++l) {
    EXPECT_EQ(i.lines[l].from, edges[l]);
    EXPECT_EQ(i.lines[l].to, edges[l + 1]);
    EXPECT_EQ(text(i.lines[l].amount), amounts[l]);
    EXPECT_FALSE(i.lines[l].open);
  }
  EXPECT_TRUE(bill(records, tariffs(), {0, 2 * hour}).lines.empty()) << "a window excludes its `to`";
  EXPECT_TRUE(bill(records, tariffs(), {6 * hour, 9 * hour}).lines.empty());
}

TEST(Invoice, a_clock_step_within_one_boot_changes_nothing) {
  std::vector<Usage> records{usage(1, 1_GiB, {5000})};
  const Total before = total(bill(records).lines);
  records[0].record.to->utc_ns -= 30 * 60 * second_ns;
  EXPECT_EQ(total(bill(records).lines), before);
  records[0].record.to->boot_id = "b";  // Across boots the UTC times count.
  records[0].record.to->monotonic_ns = 0;
  EXPECT_EQ(text(total(bill(records).lines).gpu_hours), "2.500000");
}

TEST(Invoice, lists_and_counts_time_without_a_price) {
  std::vector<Usage> records{usage(1, 1_GiB, {5000}), usage(2, 1_GiB, {5000})};
  records[1].devices[0].model = "NVIDIA H100";
  const Invoice i = bill(records);
  ASSERT_EQ(i.lines.size(), 2u);
  EXPECT_EQ(i.lines[1].unpriced, Unpriced::no_units);
  EXPECT_EQ(explain(i.lines[1]),
            "1.000000 h: no price; model 'NVIDIA H100' has no GPU-hour units; add them to the tariff");
  EXPECT_EQ(total(i.lines).unpriced_ns, hour);
  EXPECT_EQ(text(total(i.lines).gpu_hours), "5.000000");

  const Invoice none = bill(records, tariffs({}));
  EXPECT_EQ(none.currency, "");
  EXPECT_THAT(explain(none.lines[0]), EndsWith(" = 5.000000; not priced, because no tariff was in effect"));
  EXPECT_EQ(none.lines[1].unpriced, Unpriced::no_units);
  EXPECT_EQ(total(none.lines).unpriced_ns, 2 * hour);
  EXPECT_EQ(text(total(none.lines).gpu_hours), "5.000000") << "Carve ships the units of an A10";
  EXPECT_EQ(total(none.lines).amount, 0);
}

TEST(Invoice, rejects_an_invalid_record_and_bills_the_others) {
  struct Row {
    const char* message;
    void (*change)(Usage&);
  } const rows[] = {
      {"its end is before the previous time in the record", [](Usage& u) { u.record.to = at(0); }},
      {"its change of terms is before the previous time in the record",
       [](Usage& u) {
         u.record.periods = {{Terms{}, at(0)}};
       }},
      {"its end is before the previous time in the record",
       [](Usage& u) {
         u.record.periods = {{Terms{}, at(9 * hour)}};
       }},
      {"its current time is before the previous time in the record",
       [](Usage& u) { u.record.to.reset(), u.record.from = at(101 * hour); }},
      {"the time of its start is negative", [](Usage& u) { u.record.from.utc_ns = INT64_MIN; }},
      {"the time of its end is negative", [](Usage& u) { u.record.to->monotonic_ns = INT64_MIN; }},
      {"its end is after the year 2262", [](Usage& u) { u.record.to->monotonic_ns = INT64_MAX; }},
      {"its slice has no parts", [](Usage& u) { u.record.slice.parts.clear(); }},
      {"its device GPU-01000000-0000-0000-0000-000000000000 has no description",
       [](Usage& u) { u.devices.clear(); }},
      {"its device GPU-01000000-0000-0000-0000-000000000000 has 0 B of usable memory; must be above 0 and at "
       "most 1024 TiB",
       [](Usage& u) { u.devices[0].usable = {}; }},
      {"it has 22732 MiB of device GPU-01000000-0000-0000-0000-000000000000, which has only 22731 MiB usable",
       [](Usage& u) { u.record.slice.parts[0].memory = 22732_MiB; }},
      {"its compute share of device GPU-01000000-0000-0000-0000-000000000000 is more than 100%",
       [](Usage& u) { u.record.slice.parts[0].share = {10001}; }},
  };
  for (const Row& row : rows) {
    std::vector<Usage> records{usage(1, 1_GiB, {5000}), usage(2, 1_GiB, {5000}), usage(3, 1_GiB, {5000})};
    row.change(records[1]);
    const Invoice i = bill(records);
    EXPECT_EQ(i.lines.size(), 2u) << row.message;
    ASSERT_EQ(i.refused.size(), 1u) << row.message;
    EXPECT_EQ(i.refused[0].message, fmt::format("record 2 of node n1: {}", row.message));
    EXPECT_EQ(i.refused[0].usage, &records[1]);
  }
}

TEST(Invoice, rejects_an_amount_beyond_64_bits) {
  Tariff t = tariff(0, max_price);
  t.units["NVIDIA A10"] = max_units;
  std::vector<Usage> records{usage(1, usable, whole_device, 80'000 * hour),
                             usage(2, usable, whole_device, second_ns)};
  const Invoice i = bill(records, tariffs({t}));
  ASSERT_EQ(i.refused.size(), 1u);
  EXPECT_TRUE(
      i.refused[0].message.starts_with("record 1 of node n1: its amount is too large for an invoice line"));
  EXPECT_EQ(text(i.lines.at(0).amount), "277777777777.777778");
}

TEST(Invoice, bills_a_duplicated_record_once) {
  std::vector<Usage> records{usage(7, 1_GiB, {5000}), usage(7, 1_GiB, {5000})};
  EXPECT_EQ(bill(records).lines.size(), 1u);
  records[1].node = "n2";
  EXPECT_EQ(bill(records).lines.size(), 2u);
  records[1] = usage(7, 1_GiB, {6000});
  const Invoice i = bill(records);
  EXPECT_TRUE(i.lines.empty());
  ASSERT_EQ(i.refused.size(), 2u);
  EXPECT_EQ(i.refused[1].message, "record 7 of node n1: 2 different records have this id");
}

TEST(Invoice, totals_can_be_grouped) {
  std::vector<Usage> records{usage(1, 1_GiB, {5000}), usage(2, 1_GiB, {2500}), usage(3, 1_GiB, {1000})};
  records[1].account = "bob", records[1].queue = "", records[2].name = "spark-2";
  const Invoice i = bill(records);
  EXPECT_EQ(text(totals(i.lines, GroupBy::account).at("alice").gpu_hours), "6.000000");
  EXPECT_EQ(text(totals(i.lines, GroupBy::account).at("bob").gpu_hours), "2.500000");
  EXPECT_EQ(totals(i.lines, GroupBy::queue).size(), 2u);
  EXPECT_EQ(text(totals(i.lines, GroupBy::workload).at("default/job/spark-1").gpu_hours), "7.500000");
  EXPECT_EQ(text(totals(i.lines, GroupBy::device).at(text(uuid(1))).gpu_hours), "8.500000");
}

// Random records, each whole and divided into pieces.
class Random {
 public:
  explicit Random(unsigned seed) : dice_(seed) {}

  Ns below(Ns n) { return std::uniform_int_distribution<Ns>(0, n - 1)(dice_); }

  Usage record(uint64_t id) {
    Usage u = usage(id, {static_cast<uint64_t>(1 + below(usable.count))},
                    {static_cast<uint32_t>(below(10001))}, 1 + below(48 * hour));
    u.record.slice.exclusive = below(10) == 0;
    u.account = below(2) == 0 ? "alice" : "bob";
    if (below(5) == 0) u.record.to.reset();
    return u;
  }

  Tariffs prices() {
    std::vector<Tariff> list{tariff(0, {below(5'000'000)})};
    while (below(2) == 0) list.push_back(tariff(1 + hour * list.size() + below(hour), {below(5'000'000)}));
    for (Tariff& t : list) t.granularity = 1 + below(120 * second_ns), t.minimum = below(3) * 60 * second_ns;
    return tariffs(list);
  }

  std::mt19937& dice() { return dice_; }

 private:
  std::mt19937 dice_;
};

Stamp end_of(const Usage& u, const Stamp& now) { return u.record.to ? *u.record.to : now; }

TEST(Invoice, splitting_a_record_into_lines_changes_no_total) {
  const Stamp now = at(60 * hour);
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const Tariffs prices = random.prices();
    const std::vector<Usage> whole{random.record(1)};
    const Total expected = total(invoice(whole, prices, {}, now).lines);

    std::vector<Usage> in_periods = whole;  // With changes of terms that change nothing.
    const Ns duration = ledger::duration_ns(whole[0].record.from, end_of(whole[0], now));
    std::vector<Ns> cuts(random.below(20));
    for (Ns& cut : cuts) cut = random.below(duration + 1);
    std::ranges::sort(cuts);
    for (const Ns cut : cuts)
      in_periods[0].record.periods.push_back({ledger::terms_of(whole[0].record.slice), at(hour + cut)});
    ASSERT_EQ(total(invoice(in_periods, prices, {}, now).lines), expected);

    Total in_windows;  // The sum over adjacent windows, each with its own invoice.
    Ns from = 0;
    cuts.push_back(INT64_MAX - 2 * hour);
    for (const Ns cut : cuts) {
      const Total sum = total(invoice(in_periods, prices, {from, 2 * hour + cut}, now).lines);
      in_windows.gpu_hours += sum.gpu_hours, in_windows.amount += sum.amount;
      from = 2 * hour + cut;
    }
    ASSERT_EQ(in_windows, expected);
  }
}

// Two records are rounded separately: each may gain one granularity, the minimum, and 0.0000005.
TEST(Invoice, splitting_a_record_in_two_changes_the_total_by_at_most_the_rounding) {
  const Stamp now = at(60 * hour);
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    Tariff t = tariff(0, {1'000'000});
    t.granularity = random.below(2) == 0 ? 1 : 1 + random.below(60 * second_ns);
    const Tariffs prices = tariffs({t});
    Usage first = random.record(1);
    first.record.to = end_of(first, now);
    Usage second = first;
    const std::vector<Usage> whole{first};
    const Stamp cut = at(hour + random.below(ledger::duration_ns(first.record.from, *first.record.to) + 1));
    first.record.to = cut, second.record.from = cut, second.record.id = 2;
    const std::vector<Usage> halves{first, second};
    const Total one = total(invoice(whole, prices, {}, now).lines);
    const Total two = total(invoice(halves, prices, {}, now).lines);
    // One granularity of a whole A10 at 10 units and a price of 1, in millionths.
    const __int128 bound = 1 + (__int128{t.granularity} * 10 * millionths_per_one + hour - 1) / hour;
    const auto is_within = [&](__int128 a, __int128 b) { return a - b <= bound && b - a <= bound; };
    ASSERT_TRUE(is_within(one.gpu_hours, two.gpu_hours));
    ASSERT_TRUE(is_within(one.amount, two.amount));
    if (t.granularity == 1) {
      ASSERT_LE(two.amount - one.amount, 1);
      ASSERT_LE(one.amount - two.amount, 1);
    }
  }
}

TEST(Invoice, does_not_depend_on_the_order_of_the_records) {
  const Stamp now = at(60 * hour);
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const Tariffs prices = random.prices();
    std::vector<Usage> records;
    for (uint64_t id = 0; id < 20; ++id) records.push_back(random.record(id / 2));  // Some ids occur twice.
    for (uint64_t id = 20; id < 30; ++id) records.push_back(random.record(id));
    const auto shown = [&](const std::vector<Usage>& list) {
      const Invoice i = invoice(list, prices, {}, now);
      std::string out;
      for (const Line& line : i.lines)
        out += fmt::format("{} {} {}\n", line.usage->record.id, line.from, explain(line));
      for (const auto& [account, sum] : totals(i.lines, GroupBy::account))
        out += account + text(sum.amount) + "\n";
      return out + fmt::format("{} refused\n", i.refused.size());
    };
    const std::string expected = shown(records);
    std::ranges::shuffle(records, random.dice());
    ASSERT_EQ(shown(records), expected);
  }
}

TEST(Invoice, a_smaller_slice_covers_the_usage_and_costs_no_more) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const Tariffs prices = random.prices();
    const std::vector<Usage> records{random.record(1)};
    for (const Line& line : bill(records, prices).lines) {
      const Ns busy = random.below(line.to - line.from + 1);
      const Bytes peak{static_cast<uint64_t>(random.below(static_cast<Ns>(line.device.usable.count) + 1))};
      const SmallerSlice smaller = smaller_slice(line, busy, peak);
      const bool whole = line.usage->record.slice.exclusive;
      const Bytes granted = whole ? line.device.usable : line.memory;
      const Share share = whole ? whole_device : line.share;
      EXPECT_LE(smaller.memory, granted);
      EXPECT_LE(smaller.share, share);
      EXPECT_TRUE(smaller.memory >= peak || smaller.memory == granted);
      EXPECT_TRUE(__int128{smaller.share.basis_points} * (line.to - line.from) >= __int128{busy} * 10'000 ||
                  smaller.share == share);
      EXPECT_LE(smaller.gpu_hours, line.gpu_hours);
      EXPECT_LE(smaller.amount, line.amount);
    }
  }
}

// Records and tariffs come from other programs: whatever they contain, they must be billed or rejected.
TEST(Invoice, extreme_records_are_billed_or_rejected) {
  size_t billed = 0, refused = 0;
  for (unsigned seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 dice(seed);
    const auto number = [&](int64_t usual) -> int64_t {
      constexpr int64_t extremes[] = {INT64_MIN, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
      return dice() % 5 == 0 ? extremes[dice() % std::size(extremes)] : usual;
    };
    const auto stamp = [&](Ns since_boot) {
      return Stamp{number(hour + since_boot), dice() % 8 == 0 ? "b" : "a", number(since_boot)};
    };
    const auto terms = [&] {
      return Terms{.memory = {static_cast<uint64_t>(number(1 << 30))},
                   .share = {static_cast<uint32_t>(number(3000))}};
    };
    Usage u = usage(1, terms().memory, terms().share);
    u.record.from = stamp(hour);
    for (Ns since_boot = hour; dice() % 3 != 0; since_boot += hour)
      u.record.periods.push_back({terms(), stamp(since_boot)});
    u.record.to = stamp(100 * hour);
    if (dice() % 4 == 0) u.record.to.reset();
    u.record.slice.exclusive = dice() % 4 == 0;
    u.devices[0].usable = {static_cast<uint64_t>(number(usable.count))};
    Tariff first = tariff(0, dice() % 2 == 0 ? max_price : Millionths{1});
    first.granularity = dice() % 2 == 0 ? max_granularity_ns : 1;
    Tariff second = tariff(1 + static_cast<Ns>(dice() % INT64_MAX));
    second.units["NVIDIA A10"] = dice() % 2 == 0 ? max_units : Millionths{1};
    const std::vector<Usage> records{u};
    const Window window{number(2 * hour), number(3 * hour)};
    const Invoice made = invoice(records, tariffs({first, second}), window, stamp(200 * hour));
    for (const Line& line : made.lines) {
      EXPECT_LE(smaller_slice(line, number(hour), {static_cast<uint64_t>(number(1))}).amount, line.amount);
      EXPECT_NE(explain(line), "");
    }
    EXPECT_EQ(totals(made.lines, GroupBy::account).size(), made.lines.empty() ? 0u : 1u);
    billed += made.lines.size();
    refused += made.refused.size();
  }
  EXPECT_GT(billed, 1000u);
  EXPECT_GT(refused, 1000u);
}

TEST(InvoiceDeathTest, no_total_has_a_negative_amount) {
  const std::vector<Usage> records{usage(1, 1_GiB, {5000})};
  Invoice made = bill(records);
  made.lines[0].amount = {-1};
  EXPECT_DEATH((void)total(made.lines), "invoice\\.cc:[0-9]+: .*no number of a line is negative");
}

TEST(InvoiceDeathTest, a_smaller_slice_requires_a_device_with_memory) {
  const std::vector<Usage> records{usage(1, 1_GiB, {5000})};
  Invoice made = bill(records);
  made.lines[0].device.usable = {};
  EXPECT_DEATH((void)smaller_slice(made.lines[0], 0, 1_MiB), "a device has usable memory");
}

}  // namespace
}  // namespace carve::bill

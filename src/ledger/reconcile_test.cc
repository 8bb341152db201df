#include "ledger/reconcile.h"

#include <gmock/gmock.h>

#include <random>

#include "ledger/testing/store_fake.h"

namespace carve::ledger {
namespace {

using testing::HasSubstr;

const Stamp now{1'000, "boot", 10};

Device device(unsigned index, Bytes native = 16_GiB) {
  Device d;
  d.uuid.bytes[0] = static_cast<uint8_t>(index + 1);
  d.index = index;
  d.name = "A10";
  d.native = native;
  d.reserved = 1_GiB;
  return d;
}

UsageRecord holding(uint64_t id, std::string name, unsigned on, Bytes memory) {
  UsageRecord record;
  record.id = id;
  record.slice.name = std::move(name);
  record.slice.parts = {{device(on).uuid, memory, {1000}, {}}};
  record.from = now;
  return record;
}

// Two devices. "a" holds 4 GiB of the first, and "b" 6 GiB of the second.
Ledger book() {
  Ledger ledger;
  for (unsigned i = 0; i < 2; ++i) EXPECT_TRUE(ledger.apply(*ledger.see(device(i))));
  EXPECT_TRUE(ledger.apply(Granted{holding(1, "a", 0, 4_GiB)}));
  EXPECT_TRUE(ledger.apply(Granted{holding(2, "b", 1, 6_GiB)}));
  return ledger;
}

Observed in_agreement() {
  Observed seen;
  seen.boot_id = "boot";
  seen.devices = {device(0), device(1)};
  seen.state_files = {{"a", holding(1, "a", 0, 4_GiB)}, {"b", holding(2, "b", 1, 6_GiB)}};
  seen.has_processes = {1, 2};
  return seen;
}

TEST(FindDrift, changes_nothing_in_a_correct_ledger) {
  EXPECT_TRUE(find_drift(book(), in_agreement(), now).empty());
}

// The node lost power. A record ends when the agent last saw its slice alive, so the outage is not billed.
TEST(FindDrift, ends_records_at_the_last_recorded_minute_after_a_reboot) {
  const Stamp alive{5'000, "boot", 50}, later{9'000'000, "next boot", 3};
  for (const bool recorded : {true, false}) {
    Ledger ledger = book();
    if (recorded) {
      ASSERT_TRUE(ledger.apply(ledger.alive(alive, {{2, {77}}})));
    }
    Observed seen = in_agreement();
    seen.boot_id = "next boot";
    seen.state_files.clear();
    seen.has_processes->clear();
    for (const Drift& d : find_drift(ledger, seen, later)) ASSERT_TRUE(!d.change || ledger.apply(*d.change));
    ASSERT_EQ(ledger.ended().size(), 2u);
    EXPECT_EQ(ledger.ended().back().to, recorded ? alive : now)
        << "without a recorded minute, the record ends at its beginning";
    EXPECT_EQ(ledger.ended().back().busy_ns, recorded ? 77u : 0u);
  }
}

TEST(FindDrift, returns_a_kind_a_resolution_and_a_message_for_each_drift) {
  struct Row {
    DriftKind kind;
    Resolution resolution;
    const char* message;
    void (*spoil)(Observed&);
  };
  const Row rows[] = {
      {DriftKind::device_unknown, Resolution::update_ledger, "device 2 (GPU-03",
       [](Observed& o) { o.devices.push_back(device(2)); }},
      {DriftKind::device_resized, Resolution::update_ledger,
       "recorded: 16 GiB; observed: the driver reports 20 GiB",
       [](Observed& o) { o.devices[0] = device(0, 20_GiB); }},
      {DriftKind::device_too_small, Resolution::report_only, "not changed; check that it is the same device",
       [](Observed& o) { o.devices[0] = device(0, 3_GiB); }},
      {DriftKind::device_gone, Resolution::report_only,
       "(recorded: 1 slices on it; observed: the driver does not report it)",
       [](Observed& o) { o.devices.pop_back(); }},
      {DriftKind::slice_over, Resolution::update_ledger,
       "slice b: ended in the ledger (recorded: live; observed: its last process ended while the agent was "
       "not running)",
       [](Observed& o) { o.has_processes->erase(2), o.state_files.pop_back(); }},
      {DriftKind::slice_over, Resolution::update_ledger, "the node was rebooted",
       [](Observed& o) { o.boot_id = "next boot", o.has_processes->erase(2), o.state_files.pop_back(); }},
      {DriftKind::shared_memory_differs, Resolution::update_machine, "its state file has 7 GiB",
       [](Observed& o) { o.state_files[0].record->slice.parts[0].memory = 7_GiB; }},
      {DriftKind::shared_memory_differs, Resolution::update_machine, "belongs to an earlier slice",
       [](Observed& o) { o.state_files[0].record->id = 9; }},
      {DriftKind::shared_memory_stale, Resolution::update_machine,
       "slice c: shared memory removed (recorded: no live slice of this name",
       [](Observed& o) {
         o.state_files.push_back({"c", {}});
       }},
      {DriftKind::record_lost, Resolution::update_ledger,
       "slice c: restored from its state file (recorded: nothing, because the record was lost",
       [](Observed& o) {
         o.state_files.push_back({"c", holding(3, "c", 1, 2_GiB)});
       }},
      {DriftKind::record_unreadable, Resolution::update_machine, "its state file cannot be used",
       [](Observed& o) {
         o.state_files.push_back({"c", holding(3, "c", 1, 12_GiB)});
       }},
      {DriftKind::shared_memory_stale, Resolution::update_machine, "slice c: shared memory removed",
       [](Observed& o) {
         o.state_files.push_back({"c", holding(3, "c", 1, 2_GiB), true});
       }},
      {DriftKind::end_lost, Resolution::update_ledger, "it ended before the ledger lost its newest changes",
       [](Observed& o) { o.ended_before = {2}, o.state_files.pop_back(); }},
      {DriftKind::device_differs, Resolution::update_ledger,
       "recorded: index 0, A10, 1 GiB reserved; observed: the driver reports index 0, A10, 2 GiB",
       [](Observed& o) { o.devices[0].reserved = 2_GiB; }},
      {DriftKind::device_differs, Resolution::update_ledger, "observed: the driver reports index 5",
       [](Observed& o) { o.devices[0].index = 5; }},
  };
  for (const Row& row : rows) {
    Observed seen = in_agreement();
    row.spoil(seen);
    const auto list = find_drift(book(), seen, now);
    ASSERT_FALSE(list.empty()) << row.message;
    EXPECT_EQ(list[0].kind, row.kind) << row.message;
    EXPECT_EQ(list[0].resolution, row.resolution) << row.message;
    EXPECT_THAT(message(list[0]), HasSubstr(row.message));
    EXPECT_EQ(list[0].change.has_value(), row.resolution == Resolution::update_ledger) << row.message;
  }
}

// The size is settled first. The reserve changes in a second step, when the live slices are known.
TEST(FindDrift, keeps_the_ledgers_reserve_of_a_resized_device_in_the_first_step) {
  struct Row {
    Bytes native, reserve;  // As the driver reports it, and the requested reserve.
    Bytes kept;             // Reserve after the first step.
  };
  for (const Row& row :
       {Row{20_GiB, 2_GiB, 1_GiB}, Row{20_GiB, {}, 1_GiB}, Row{{512 << 20}, {}, {512 << 20}}}) {
    Ledger ledger;
    ASSERT_TRUE(ledger.apply(*ledger.see(device(0))));
    Observed seen;
    seen.devices = {device(0, row.native)};
    seen.devices[0].reserved = row.reserve;
    for (const bool looked : {false, true}) {
      if (looked) seen.has_processes.emplace();
      const auto list = find_drift(ledger, seen, now);
      ASSERT_EQ(list.size(), looked ? 2u : 1u);
      EXPECT_EQ(list[0].kind, DriftKind::device_resized);
      EXPECT_EQ(std::get<DeviceSeen>(list[0].change.value()).device.reserved, row.kept);
      if (!looked) continue;
      EXPECT_EQ(list[1].kind, DriftKind::device_differs);
      EXPECT_EQ(std::get<DeviceSeen>(list[1].change.value()).device.reserved, row.reserve);
    }
  }
}

TEST(FindDrift, restores_a_lost_ledger_from_the_state_files_as_far_as_they_fit) {
  Observed seen = in_agreement();
  seen.is_behind = true;
  seen.state_files.push_back({"much", holding(3, "much", 1, 12_GiB)});  // Does not fit next to "b".
  // The state file names another slice.
  seen.state_files.push_back({"d", holding(4, "another", 0, 1_GiB)});
  seen.state_files.push_back({"e", {}});
  Ledger ledger;
  std::vector<DriftKind> kinds;
  for (const Drift& d : find_drift(ledger, seen, now)) {
    kinds.push_back(d.kind);
    if (d.change) {
      ASSERT_TRUE(ledger.apply(*d.change)) << message(d);
    }
  }
  using D = DriftKind;
  EXPECT_THAT(kinds, testing::ElementsAre(D::device_unknown, D::device_unknown, D::record_lost,
                                          D::record_lost, D::record_unreadable, D::record_unreadable,
                                          D::shared_memory_stale, D::device_differs, D::device_differs));
  EXPECT_EQ(ledger.living(), book().living());
  EXPECT_EQ(ledger.balances().at(device(0).uuid).free, 11_GiB);
}

// An older copy of the ledger. Since then, "a" has ended, another "a" was granted in its place, "b" has
// released memory and "c" has grown into it.
TEST(FindDrift, updates_a_ledger_that_is_behind_from_the_state_files) {
  Ledger ledger;
  for (unsigned i = 0; i < 2; ++i) ASSERT_TRUE(ledger.apply(*ledger.see(device(i))));
  for (const auto& [id, name, memory] : {std::tuple{1, "a", 10_GiB}, {2, "b", 4_GiB}, {3, "c", 1_GiB}})
    ASSERT_TRUE(ledger.apply(Granted{holding(static_cast<uint64_t>(id), name, 0, memory)}));
  const auto changed = [](UsageRecord record, Bytes memory) {
    record.periods.push_back({terms_of(record.slice), {2'000, "boot", 20}});
    record.slice.parts[0].memory = memory;
    return record;
  };
  Observed seen = in_agreement();
  seen.is_behind = true;
  seen.ended_before = {1};
  seen.state_files = {{"a", holding(7, "a", 0, 6_GiB)},
                      {"c", changed(holding(3, "c", 0, 1_GiB), 7_GiB)},
                      {"b", changed(holding(2, "b", 0, 4_GiB), 2_GiB)}};
  seen.has_processes = {2, 3, 7};
  for (const Drift& d : find_drift(ledger, seen, now))
    ASSERT_TRUE(!d.change || ledger.apply(*d.change)) << message(d);
  ASSERT_EQ(ledger.living().size(), 3u);
  for (const StateFileSeen& p : seen.state_files) EXPECT_EQ(ledger.living().at(p.record->id), *p.record);
  EXPECT_EQ(ledger.ended().back().id, 1u);
  EXPECT_EQ(ledger.balances().at(device(0).uuid).free, Bytes{});
  EXPECT_EQ(ledger.next_id(), 8u);
  EXPECT_TRUE(find_drift(ledger, seen, now).empty());
}

// For any ledger and any observation, the changes can be posted in order, and the ledger stays balanced.
// Afterwards it contains no slice without processes, and no drift requires a change.
TEST(FindDrift, returns_changes_that_leave_nothing_to_change) {
  for (unsigned seed = 0; seed < 2'000; ++seed) {
    std::mt19937 dice(seed);
    Ledger ledger;
    const auto size = [&] { return Bytes{(dice() % 12 + 1ull) << 30}; };
    for (unsigned i = 0; i < dice() % 4; ++i)
      ASSERT_TRUE(ledger.apply(*ledger.see(device(i, {size().count + (2ull << 30)}))));
    for (uint64_t id = 1; id < 6; ++id)
      (void)ledger.apply(
          Granted{holding(id, std::string(1, static_cast<char>('a' + id)), dice() % 4, size())});
    Observed seen;
    seen.boot_id = dice() % 2 == 0 ? "boot" : "next boot";
    seen.is_behind = dice() % 3 == 0;
    for (uint64_t id = 1; seen.is_behind && id < 6; ++id)
      if (dice() % 3 == 0) seen.ended_before.insert(id);
    for (unsigned i = 0; i < 4; ++i) {
      if (dice() % 4 == 0) continue;
      seen.devices.push_back(device(i, {size().count + (2ull << 30)}));
      seen.devices.back().index = dice() % 8;
    }
    for (char name = 'a'; name < 'h'; ++name) {
      if (dice() % 2 == 0) continue;
      seen.state_files.push_back({std::string(1, name), {}});
      if (dice() % 4 != 0)
        seen.state_files.back().record =
            holding(dice() % 8, std::string(1, dice() % 8 == 0 ? 'x' : name), dice() % 4, size());
    }
    // In the agent's order: first the drift that is visible without a scan of processes, then all drift.
    const auto carried_out = [&] {
      std::set<std::string> removed;
      for (const Drift& d : find_drift(ledger, seen, now)) {
        ASSERT_EQ(d.change.has_value(), d.resolution == Resolution::update_ledger) << message(d);
        if (d.change) {
          ASSERT_TRUE(ledger.apply(*d.change)) << message(d);
        }
        ASSERT_TRUE(ledger.balanced());
        if (d.kind == DriftKind::shared_memory_stale || d.kind == DriftKind::record_unreadable)
          removed.insert(d.name);
      }
      std::erase_if(seen.state_files, [&](const StateFileSeen& p) { return removed.contains(p.name); });
    };
    carried_out();
    seen.has_processes.emplace();
    for (const auto& [id, record] : ledger.living())
      if (dice() % 2 == 0) seen.has_processes->insert(id);
    carried_out();
    for (const auto& [id, record] : ledger.living()) EXPECT_TRUE(seen.has_processes->contains(id));
    for (const Drift& d : find_drift(ledger, seen, now)) {
      EXPECT_FALSE(d.change) << "seed " << seed << ": " << message(d);
      EXPECT_NE(d.kind, DriftKind::shared_memory_stale);
    }
  }
}

}  // namespace
}  // namespace carve::ledger

// A store in memory, for tests. It keeps the same data as a table, and the disk can be made to appear full.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "ledger/store.h"

namespace carve::ledger {

class Memory : public Store {
 public:
  Outcome<void> write(const Change& change) override {
    if (full) return failure(FailureKind::unavailable, "the disk is full");
    changes.push_back(change);
    return {};
  }
  Generation generation() const override { return {"memory", raised + changes.size()}; }
  Outcome<void> raise_changes(uint64_t to) override {
    raised = to - changes.size();
    return {};
  }
  // Returns the changes as a table stores them, without the order of events: devices without their reserves,
  // then records, then reserves.
  Outcome<std::vector<Change>> read() override {
    std::map<Uuid, Device> devices;
    std::map<uint64_t, UsageRecord> records;
    std::optional<Alive> last;
    for (const Change& change : changes) {
      if (const auto* seen = std::get_if<DeviceSeen>(&change)) devices[seen->device.uuid] = seen->device;
      if (const auto* granted = std::get_if<Granted>(&change))
        records.emplace(granted->record.id, granted->record);
      if (const auto* altered = std::get_if<Altered>(&change)) {
        UsageRecord& record = records.at(altered->id);
        record.periods.push_back({terms_of(record.slice), altered->when});
        set_terms(record.slice, altered->terms);
      }
      if (const auto* ended = std::get_if<Ended>(&change)) {
        records.at(ended->id).to = ended->when;
        records.at(ended->id).end_reason = ended->why;
      }
      if (const auto* alive = std::get_if<Alive>(&change)) last = *alive;
    }
    std::vector<Change> out;
    for (auto [uuid, device] : devices) {
      device.reserved = {};
      out.emplace_back(DeviceSeen{device});
    }
    for (const auto& [id, record] : records) out.emplace_back(Granted{record});
    for (const auto& [uuid, device] : devices) out.emplace_back(DeviceSeen{device});
    if (last) out.emplace_back(*last);
    return out;
  }
  Outcome<std::vector<UsageRecord>> records_after(uint64_t id, size_t most) override {
    std::vector<UsageRecord> out;
    const auto all = read();
    for (const Change& change : *all)
      if (const auto* granted = std::get_if<Granted>(&change); granted != nullptr && granted->record.id > id)
        out.push_back(granted->record);
    if (out.size() > most) out.resize(most);
    return out;
  }
  Outcome<std::vector<UsageRecord>> records(const std::vector<uint64_t>& ids) override {
    auto out = records_after(0, SIZE_MAX);
    std::erase_if(*out, [&](const UsageRecord& record) {
      return std::find(ids.begin(), ids.end(), record.id) == ids.end();
    });
    return out;
  }
  std::vector<Change> changes;
  bool full = false;
  uint64_t raised = 0;
};

inline Ledger reread(Store& store) {
  Ledger ledger;
  const auto remembered = store.read();
  for (const Change& change : *remembered) {
    const auto applied = ledger.apply(change);
    EXPECT_TRUE(applied) << applied.error().message;
  }
  return ledger;
}

}  // namespace carve::ledger

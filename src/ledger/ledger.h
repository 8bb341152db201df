// The ledger: which slice holds how much of which device, in double entry.
//
// Every byte of a device belongs to exactly one balance: reserved, free, or held by one slice. Bytes are only
// moved, so at any moment native = reserved + free + the sum that is held. A balance cannot be negative:
// over-commitment of memory has no representation. Compute shares are recorded in the same way. A share is
// time and not space, so the agent's administrator may allow more than 100 %; then nothing of it is free.
//
// The ledger decides and the store makes durable, in three steps that can be interrupted at any point:
//   1. A decision (grant, alter, end) returns a Change and changes nothing.
//   2. The store writes the change in one transaction, or fails; then nothing has happened.
//   3. apply() posts the change here.
// After a crash behind step 2 the next agent reads the store. A crash before step 2 loses only a decision
// that no caller was told. Pure: no clock, file or chance. A grant among 256 slices costs about 1 us.
#pragma once

#include <map>
#include <set>
#include <string_view>
#include <variant>
#include <vector>

#include "core/failure.h"
#include "ledger/usage_record.h"

namespace carve::ledger {

struct DeviceSeen {  // A device and how much of it is to be reserved.
  Device device;
};
// The bound on a device's shares if the agent allows more than 100 % (--overcommit-compute).
inline constexpr Share unlimited_shares{10'000'000};
struct Granted {
  UsageRecord record;
  Share most = unlimited_shares;  // Bound on a device's shares at that moment; not stored.
};
struct Altered {  // The slice has these terms from `when` on.
  uint64_t id;
  Stamp when;
  Terms terms;
  Share most = unlimited_shares;
};
struct Ended {
  uint64_t id;
  Stamp when;
  std::string why;
};
using Change = std::variant<DeviceSeen, Granted, Altered, Ended>;

// The balances of one device.
struct Balance {
  Device device;
  Bytes reserved;  // Grows to device.reserved as earlier slices end.
  Bytes free;
  Share free_share = whole_device;     // 0 if more than 100 % is granted.
  std::map<uint64_t, SlicePart> held;  // By the slice's id.
};

class Ledger {
 public:
  // Decides to record a device. What slices hold stays held: a larger reserve takes free bytes now, and the
  // rest as slices end. Refuses a device that has less memory than slices hold of it.
  Outcome<Change> see(const Device&) const;

  // Decides to grant the slice, or says why not: the name is taken, a device is unknown, or a device has too
  // little free. `slice.name` must be set. The request id of a living slice returns that slice's record again
  // (find_by_request_id()); the request id of an ended slice is refused. The shares of one device never sum
  // to more than `most`.
  Outcome<Change> grant(const Slice& slice, const Stamp& now, Share most = whole_device) const;
  const UsageRecord* find_by_request_id(uint32_t owner, std::string_view request_id) const;

  // Decides to change the terms of a living slice, or says why not: a device has too little free.
  Outcome<Change> alter(uint64_t id, const Terms&, const Stamp& now, Share most = whole_device) const;

  Outcome<Change> end(uint64_t id, const Stamp& now, std::string why) const;

  // Posts a change that a ledger decided, now or before it was stored. Refuses a change that would break a
  // rule above, and changes nothing then: the store was altered.
  Outcome<void> apply(const Change&);

  uint64_t next_id() const { return last_id_ + 1; }
  const UsageRecord* find(std::string_view name) const;  // Living.
  const std::map<uint64_t, UsageRecord>& living() const { return living_; }
  const std::vector<UsageRecord>& ended() const {
    return ended_;
  }  // The newest max_ended_records, oldest first.
  const std::map<Uuid, Balance>& balances() const { return balances_; }

  // Returns whether native = reserved + free + held on every device, and the same for shares.
  bool balanced() const;

  static constexpr size_t max_ended_records = 1000;
  static constexpr size_t max_periods = 100;  // Of one record, the newest; the store has all.

 private:
  Outcome<void> check(const UsageRecord&, Share most) const;

  std::map<Uuid, Balance> balances_;
  std::map<uint64_t, UsageRecord> living_;
  std::vector<UsageRecord> ended_;
  uint64_t last_id_ = 0;
};

}  // namespace carve::ledger

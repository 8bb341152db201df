// Who holds how much of which device: a double-entry book.
//
// Every byte of a device stands in exactly one account: reserved, free, or held by one slice. Nothing is
// ever created or lost, only moved, so that at any moment native = reserved + free + all that is held. An
// account never goes below zero: over-commitment of memory has no representation. Shares of compute are kept
// the same way; since a share is time and not a place, whoever runs the agent may promise more of it than
// there is, and then nothing of it is free.
//
// The ledger decides and the store remembers, in three steps that may be cut anywhere:
//   1. a question (grant, alter, end) gives a Change and alters nothing;
//   2. the store makes the change durable (one transaction), or fails, and then nothing has happened;
//   3. apply() posts it here.
// A crash after 2 is repaired by reading the store again; before 2 nothing was promised to anybody.
// No clock, no file, no chance. A grant among 256 slices costs about 1 us.
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
// More than the whole may be promised of a device's compute, where whoever runs the agent wants it so.
inline constexpr Share unlimited_shares{10'000'000};
struct Granted {
  UsageRecord record;
  Share most = unlimited_shares;  // Of a device's compute. Not kept: it was allowed then.
};
struct Altered {  // From `when` on it has these terms.
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

// What a device's accounts say.
struct Balance {
  Device device;
  Bytes reserved;  // Reaches device.reserved when slices that were there before have left enough.
  Bytes free;
  Share free_share = whole_device;     // Nothing where more is promised than there is.
  std::map<uint64_t, SlicePart> held;  // By the slice's id.
};

class Ledger {
 public:
  // A device that is there. What is held stays held: a larger reserve takes from what is free now, and
  // the rest as slices leave. Refused where the device has become smaller than what is held of it.
  Outcome<Change> see(const Device&) const;

  // The slice as living use, or why not: the name is taken, a device is unknown or has not enough.
  // `what.name` must be set. A request id that was granted before and lives gives that use again
  // (find_by_request_id() tells); one that ended is a conflict.
  // Of compute no more than `most` is promised of one device.
  Outcome<Change> grant(const Slice& slice, const Stamp& now, Share most = whole_device) const;
  const UsageRecord* find_by_request_id(uint32_t owner, std::string_view request_id) const;

  // Other terms for a living slice, or why not: a device has not enough for what it gets more.
  Outcome<Change> alter(uint64_t id, const Terms&, const Stamp& now, Share most = whole_device) const;

  Outcome<Change> end(uint64_t id, const Stamp& now, std::string why) const;

  // Posts a change that this ledger decided, or that a store remembers from one that did.
  // Refused, and nothing changed, where it would break a rule above: the store is not what it was.
  Outcome<void> apply(const Change&);

  uint64_t next_id() const { return last_id_ + 1; }
  const UsageRecord* find(std::string_view name) const;  // Living.
  const std::map<uint64_t, UsageRecord>& living() const { return living_; }
  const std::vector<UsageRecord>& ended() const {
    return ended_;
  }  // The newest max_ended_records, oldest first.
  const std::map<Uuid, Balance>& balances() const { return balances_; }

  // Whether native = reserved + free + held on every device, and the same of shares.
  bool balanced() const;

  static constexpr size_t max_ended_records = 1000;
  static constexpr size_t max_periods = 100;  // Of one use, the newest; the store has all.

 private:
  Outcome<void> check(const UsageRecord&, Share most) const;

  std::map<Uuid, Balance> balances_;
  std::map<uint64_t, UsageRecord> living_;
  std::vector<UsageRecord> ended_;
  uint64_t last_id_ = 0;
};

}  // namespace carve::ledger

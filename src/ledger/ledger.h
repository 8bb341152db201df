// The ledger: which slice holds how much of which device, in double entry.
//
// Every byte of a device is in exactly one account: reserved, free, or held by one slice. Bytes only move
// between accounts, so at any moment native = reserved + free + the sum of what slices hold. An account is
// never negative, so over-commitment of memory has no representation. Promised compute shares are recorded in
// the same way; a weight (native-burst-share) promises nothing. A share is time, so the agent's options may
// allow more than 100 % of it; the free share is then 0.
//
// The ledger decides and the store keeps, in three steps. The process may be killed between any two of them:
//  1. a question (grant, alter, end) returns a Change and changes nothing;
//  2. the store makes the change durable (one transaction); if it fails, nothing has happened;
//  3. apply() posts the change here.
// After a crash behind step 2 the store is read again; before step 2 no caller has got an answer. The ledger
// uses no clock, file or random number. A grant among 256 slices costs about 1 us.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <variant>
#include <vector>

#include "core/failure.h"
#include "ledger/usage_record.h"

namespace carve::ledger {

struct DeviceSeen {  // A device with its reserve.
  Device device;
};
// The maximum if the agent runs with over-commitment of compute (basis points).
inline constexpr Share unlimited_shares{10'000'000};
struct Granted {
  UsageRecord record;
  // Maximum of a device's compute. Not stored, because the grant was allowed then.
  Share most = unlimited_shares;
};
struct Altered {  // The record has these terms from `when` on.
  uint64_t id;
  Stamp when;
  Terms terms;
  Share most = unlimited_shares;
};
struct Ended {
  uint64_t id;
  Stamp when;
  std::string why;
  UsedAmounts used = {};  // Of the whole record; a smaller value than the present one has no effect.
};
// The agent saw all living slices alive. Written once a minute: after a crash of the machine, records end
// here.
struct Alive {
  Stamp when;
  std::map<uint64_t, UsedAmounts> used;  // By the record's id; those that changed.
};
using Change = std::variant<DeviceSeen, Granted, Altered, Ended, Alive>;

// The accounts of one device.
struct Balance {
  Device device;
  Bytes reserved;  // Reaches device.reserved when slices that were granted earlier have left enough.
  Bytes free;
  Share free_share = whole_device;     // Not promised (promised_share()); 0 if more than 100 % is promised.
  std::map<uint64_t, SlicePart> held;  // By the record's id.
};

class Ledger {
 public:
  // Adds or updates a device. Grants are unchanged: a larger reserve takes what is free now, and the rest as
  // slices leave. Refuses a device that has become smaller than what slices hold of it.
  Outcome<Change> see(const Device&) const;

  // Grants the slice, or says why not: the name is taken, a device is unknown or has not enough free.
  // `slice.name` must be set. A holder has at most one living record. If a living record has the same owner
  // and request id, returns that record again (find_by_request_id() shows which); an ended one is a conflict.
  // At most `most` of one device's compute is granted.
  Outcome<Change> grant(const Slice& slice, const Stamp& now, Share most = whole_device) const;
  const UsageRecord* find_by_request_id(uint32_t owner, std::string_view request_id) const;
  // Returns the living record of this container or claim; null if there is none, and for no holder.
  const UsageRecord* find_by_holder(const Holder&) const;

  // Changes the terms of a living record, or says why not: a device has not enough free for the increase.
  Outcome<Change> alter(uint64_t id, const Terms&, const Stamp& now, Share most = whole_device) const;

  Outcome<Change> end(uint64_t id, const Stamp& now, std::string why, const UsedAmounts& used = {}) const;

  // Records that the living slices are alive, with what they have used so far.
  Change alive(const Stamp& now, const std::map<uint64_t, UsedAmounts>& used) const;
  // The last such moment; no value if there was none.
  const std::optional<Stamp>& last_alive() const { return last_alive_; }

  // Applies a change that this ledger decided, or that the store has kept. Refuses it without any effect if
  // it would break a rule above; then the store was changed by other means.
  Outcome<void> apply(const Change&);

  uint64_t next_id() const { return last_id_ + 1; }
  // Ids up to `last` were given out, also those whose records are lost.
  void skip_ids(uint64_t last) { last_id_ = std::max(last_id_, last); }
  const UsageRecord* find(std::string_view name) const;  // Among the living records.
  const std::map<uint64_t, UsageRecord>& living() const { return living_; }
  // The newest max_ended_records, oldest first.
  const std::vector<UsageRecord>& ended() const { return ended_; }
  const std::map<Uuid, Balance>& balances() const { return balances_; }

  // Returns whether native = reserved + free + held on every device, and the same for shares. apply() checks
  // the devices that the change touched and aborts if one of them is not balanced.
  bool balanced() const;

  static constexpr size_t max_ended_records = 1000;
  static constexpr size_t max_periods = 100;  // Of one record, the newest; the store has all.

 private:
  Outcome<void> check(const UsageRecord&, Share most) const;
  Outcome<void> carry_out(const DeviceSeen&);
  Outcome<void> carry_out(const Granted&);
  Outcome<void> carry_out(const Altered&);
  Outcome<void> carry_out(const Alive&);
  Outcome<void> carry_out(const Ended&);
  Share promised_on(const Balance&) const;
  void settle_shares(Balance&) const;
  void add_ended(UsageRecord);
  bool balanced(const Change&) const;

  friend struct LostByte;  // ledger/testing/lost_byte.h

  std::map<Uuid, Balance> balances_;
  std::map<uint64_t, UsageRecord> living_;
  std::vector<UsageRecord> ended_;
  uint64_t last_id_ = 0;
  std::optional<Stamp> last_alive_;
};

}  // namespace carve::ledger

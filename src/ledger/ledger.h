// The ledger records which slice holds how much of which device, in double entry.
//
// Every byte of a device is in exactly one account: reserved, free, or held by one slice. Bytes only move
// between accounts, so at any time native = reserved + free + the sum of the bytes held by slices. An account
// is never negative, so over-commitment of memory cannot be represented. Promised compute shares are recorded
// in the same way; a weight (native-burst-share) promises nothing. Because compute is time, the agent's
// options may allow more than 100 % of it to be promised; the free share is then 0.
//
// The ledger decides on a change and the store makes it durable, in three steps. The process may be killed
// between any two of them:
//  1. a question (grant, alter, end) returns a Change and changes nothing;
//  2. the store makes the change durable (one transaction); if it fails, nothing has happened;
//  3. apply() posts the change here.
// If it crashes after step 2, the store is read again; before step 2 no caller has received an answer. The
// ledger uses no clock, file or random number. A grant among 256 slices takes about 1 us.
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
// The maximum if the agent allows over-commitment of compute (basis points).
inline constexpr Share unlimited_shares{10'000'000};
struct Granted {
  UsageRecord record;
  // Maximum of a device's compute. Not stored, because it was checked when the grant was made.
  Share most = unlimited_shares;
};
struct Altered {  // From `when` on, the record has these terms.
  uint64_t id;
  Stamp when;
  Terms terms;
  Share most = unlimited_shares;
};
struct Ended {
  uint64_t id;
  Stamp when;
  std::string why;
  UsedAmounts used = {};  // For the whole record. A value below the current one has no effect.
};
// Records that the agent saw all live slices alive. Written once a minute. After a machine crash, records end
// at this time.
struct Alive {
  Stamp when;
  std::map<uint64_t, UsedAmounts> used;  // Keyed by the record's id; only changed amounts.
};
using Change = std::variant<DeviceSeen, Granted, Altered, Ended, Alive>;

// The accounts of one device.
struct Balance {
  Device device;
  Bytes reserved;  // Less than device.reserved until earlier slices have released enough.
  Bytes free;
  Share free_share = whole_device;     // Not promised (promised_share()); 0 if more than 100 % is promised.
  std::map<uint64_t, SlicePart> held;  // Keyed by the record's id.
};

class Ledger {
 public:
  // Adds or updates a device. Grants are unchanged: a larger reserve takes the free bytes now, and the rest
  // as slices end. Rejects a device that is smaller than the bytes held by its slices.
  Outcome<Change> see(const Device&) const;

  // Grants the slice. Fails if the name is taken, or if a device is unknown or does not have enough free.
  // `slice.name` must be set. A holder has at most one live record. If a live record has the same owner and
  // request id, returns that record again (find_by_request_id() finds it); an ended record with them is a
  // conflict. Grants at most `most` of one device's compute.
  Outcome<Change> grant(const Slice& slice, const Stamp& now, Share most = whole_device) const;
  const UsageRecord* find_by_request_id(uint32_t owner, std::string_view request_id) const;
  // Returns the live record of this container or claim, or null if there is none or the holder is empty.
  const UsageRecord* find_by_holder(const Holder&) const;

  // Changes the terms of a live record. Fails if a device does not have enough free for an increase.
  Outcome<Change> alter(uint64_t id, const Terms&, const Stamp& now, Share most = whole_device) const;

  Outcome<Change> end(uint64_t id, const Stamp& now, std::string why, const UsedAmounts& used = {}) const;

  // Records that the live slices are alive, together with their usage so far.
  Change alive(const Stamp& now, const std::map<uint64_t, UsedAmounts>& used) const;
  // The last time that alive() recorded, or no value if there is none.
  const std::optional<Stamp>& last_alive() const { return last_alive_; }

  // Applies a change that this ledger decided on or that was read from the store. Rejects the change without
  // any effect if it would break a rule above, which means that the store was changed by other means.
  Outcome<void> apply(const Change&);

  uint64_t next_id() const { return last_id_ + 1; }
  // Marks ids up to `last` as used, including those whose records are lost.
  void skip_ids(uint64_t last) { last_id_ = std::max(last_id_, last); }
  const UsageRecord* find(std::string_view name) const;  // Searches the live records.
  const std::map<uint64_t, UsageRecord>& living() const { return living_; }
  // The newest max_ended_records, oldest first.
  const std::vector<UsageRecord>& ended() const { return ended_; }
  const std::map<Uuid, Balance>& balances() const { return balances_; }

  // Returns whether native = reserved + free + held on every device, and the same for shares. apply() checks
  // the devices that the change touched and aborts if one of them is not balanced.
  bool balanced() const;

  static constexpr size_t max_ended_records = 1000;
  static constexpr size_t max_periods = 100;  // Per record, the newest ones; the store has all.

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

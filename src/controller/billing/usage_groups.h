// The usage records of a query, one batch after the other, and the groups to which their lines belong. Shared
// by invoices and by allocations, so that their figures agree.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "controller/billing/bill_query.h"
#include "controller/billing/usage_store.h"

namespace carve::controller {

// The key by which lines are grouped. Lines without the key form one group, which differs from a group named
// '-'.
struct GroupKey {
  bool is_rest = false;
  std::string name;

  friend auto operator<=>(const GroupKey&, const GroupKey&) = default;
};

class UsageGroups {
 public:
  explicit UsageGroups(const BillQuery& query) : query_(query) {}
  GroupKey of(const bill::Line&);
  // Returns the uid of a user's group; no value for other groups.
  std::optional<uint32_t> uid_of(const GroupKey&) const;

 private:
  std::string key_of(const bill::Line&);
  const BillQuery& query_;
  std::map<uint32_t, std::string> user_names_;  // A look-up may read a file.
};

// Returns "account", or "label:team".
std::string grouping_text(const BillQuery&);

// Calls `add` with batches of the records that the query selects. An open record is in a batch with the time
// until which it counts: when its node was last seen, or `now`. Stops if `add` returns false.
Outcome<void> each_usage(
    UsageStore&, const BillQuery&, bool with_labels, const ledger::Stamp& now,
    const std::function<bool(const std::vector<bill::Usage>&, const ledger::Stamp& until)>& add);

// Returns numerator / denominator in millionths, rounded half to even. Neither may be negative, and the
// denominator must not be 0.
__int128 millionths_of(__int128 numerator, __int128 denominator);

// Returns the busy time of the line, which is a part of the record's: that covers all parts and the whole
// time.
bill::Ns busy_of(const bill::Line&, bill::Ns record_ns);

// Returns how much of its devices the slice used on this line, in millionths of GPU-hours.
__int128 used_of(const bill::Line&, bill::Ns busy_ns);

}  // namespace carve::controller

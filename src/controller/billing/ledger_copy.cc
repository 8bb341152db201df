#include "controller/billing/ledger_copy.h"

#include <algorithm>

#include "core/invariant.h"

namespace carve::controller {
namespace {

CopiedRecord copied(const ledger::UsageRecord& record) {
  return {.id = record.id,
          .from_ns = record.from.utc_ns,
          .boot_id = record.from.boot_id,
          .account = record.slice.account};
}

// Returns the newest record first, so that one response usually identifies the ledger.
std::vector<CopiedRecord> known_records(const CopyPosition& position) {
  std::vector<CopiedRecord> out;
  if (position.newest) out.push_back(*position.newest);
  if (position.oldest && position.oldest != position.newest) out.push_back(*position.oldest);
  for (const CopiedRecord& open : position.open)
    if (open != position.newest && open != position.oldest) out.push_back(open);
  return out;
}

}  // namespace

LedgerCopy::LedgerCopy(std::string node, CopyPosition position, IsPrepaid is_prepaid, ledger::Stamp now)
    : node_(std::move(node)),
      position_(std::move(position)),
      is_prepaid_(std::move(is_prepaid)),
      now_(std::move(now)),
      known_(known_records(position_)),
      phase_(known_.empty() ? Phase::fresh : Phase::compare),
      ledger_(std::max(position_.ledger, uint32_t{1})),
      last_(position_.newest ? position_.newest->id : 0) {}

size_t LedgerCopy::chunk_end() const { return std::min(at_ + max_copied_ids, known_.size()); }

bool LedgerCopy::is_open(uint64_t id) const {
  return std::ranges::binary_search(position_.open, id, {}, &CopiedRecord::id);
}

std::optional<LedgerCopy::Request> LedgerCopy::next() const {
  if (phase_ == Phase::done) return std::nullopt;
  if (phase_ == Phase::first) return Request{.ids = {}, .after = 0};
  if (phase_ == Phase::fresh) return Request{.ids = {}, .after = last_};
  Request out;
  for (size_t i = at_; i < chunk_end(); ++i) out.ids.push_back(known_[i].id);
  invariant(!out.ids.empty(), "a request without ids would be one for new records");
  return out;
}

Outcome<CopyWrite> LedgerCopy::take(const std::vector<ledger::UsageRecord>& records, uint64_t last) {
  invariant(phase_ != Phase::done, "a response belongs to a request");
  if (phase_ == Phase::first) return take_first(records, last);
  return phase_ == Phase::fresh ? take_fresh(records, last) : take_known(records);
}

void LedgerCopy::add(CopyWrite& write, const ledger::UsageRecord& record) {
  write.rows.push_back(usage_row(node_, ledger_, record, is_prepaid_));
  ++taken_;
  has_open_ |= !record.to;
}

Outcome<CopyWrite> LedgerCopy::take_known(const std::vector<ledger::UsageRecord>& records) {
  const auto begin = known_.begin() + static_cast<std::ptrdiff_t>(at_);
  const auto end = known_.begin() + static_cast<std::ptrdiff_t>(chunk_end());
  const bool is_first = phase_ == Phase::compare && at_ == 0;
  at_ = chunk_end();
  if (is_first && std::ranges::find(records, *position_.newest, copied) == records.end())
    phase_ = Phase::search;
  CopyWrite out;
  for (const ledger::UsageRecord& record : records) {
    const auto known = std::find_if(begin, end, [&](const CopiedRecord& one) { return one.id == record.id; });
    if (known == end)
      return failure(FailureKind::failed_precondition, "record {} was not requested", record.id);
    if (phase_ == Phase::search) {
      if (copied(record) == *known) found_.insert(record.id);
    } else if (copied(record) != *known) {
      return failure(FailureKind::failed_precondition, "record {} has another begin or account than before",
                     record.id);
    } else if (is_open(record.id)) {
      // The newest and the oldest record are requested only to identify the ledger.
      add(out, record);
    }
  }
  if (at_ == known_.size()) {
    if (phase_ == Phase::search)
      out = decide_loss();
    else
      phase_ = Phase::fresh;
  }
  if (has_open_) out.seen = SeenLedger{.node = node_, .ledger = ledger_, .at = now_};
  return out;
}

// The agent never reuses an id, so after a loss of the newest records, new ones have larger ids than the
// newest copy. A record under a second ledger's number would be billed twice.
CopyWrite LedgerCopy::decide_loss() {
  CopyWrite out{.rows = {}, .lost = {}, .lost_ledger = ledger_, .lost_at = position_.seen, .seen = {}};
  if (found_.empty()) {
    phase_ = Phase::first;
    return out;
  }
  loss_ = Loss::newest;
  known_.clear();
  at_ = 0;
  for (const CopiedRecord& open : position_.open) {
    if (found_.contains(open.id))
      known_.push_back(open);
    else
      out.lost.push_back(open.id);
  }
  phase_ = known_.empty() ? Phase::fresh : Phase::again;
  return out;
}

// A ledger without records proves nothing: the open records stay open, and count until the agent was last seen.
Outcome<CopyWrite> LedgerCopy::take_first(const std::vector<ledger::UsageRecord>& records, uint64_t last) {
  if (records.empty()) {
    phase_ = Phase::done;
    return CopyWrite{};
  }
  CopyWrite lost{.rows = {}, .lost = {}, .lost_ledger = ledger_, .lost_at = position_.seen, .seen = {}};
  for (const CopiedRecord& open : position_.open) lost.lost.push_back(open.id);
  loss_ = Loss::everything;
  ledger_ = position_.newest_ledger + 1;
  last_ = 0;
  phase_ = Phase::fresh;
  auto out = take_fresh(records, last);
  if (!out) return out;
  lost.rows = std::move(out->rows);
  lost.seen = SeenLedger{.node = node_, .ledger = ledger_, .at = now_};
  lost.is_new_ledger = true;
  return lost;
}

Outcome<CopyWrite> LedgerCopy::take_fresh(const std::vector<ledger::UsageRecord>& records, uint64_t last) {
  CopyWrite out;
  uint64_t before = last_;
  for (const ledger::UsageRecord& record : records) {
    if (record.id <= before || record.id > last)
      return failure(FailureKind::failed_precondition, "record {} follows record {}", record.id, before);
    before = record.id;
    add(out, record);
  }
  if (last <= last_)
    phase_ = Phase::done;
  else
    last_ = last;
  if (has_open_ && !out.rows.empty()) out.seen = SeenLedger{.node = node_, .ledger = ledger_, .at = now_};
  return out;
}

}  // namespace carve::controller

#include "controller/billing/usage_copy.h"

#include <algorithm>

#include "os/log.h"

namespace carve::controller {
namespace {

constexpr size_t ids_at_once = 256;

// Ends the open records of a lost ledger at the time at which the agent was last seen.
Outcome<void> end_lost(UsageStore& store, const std::string& node, const CopyPosition& position,
                       const std::vector<uint64_t>& ids, const CopyTerms& terms) {
  std::vector<UsageRow> ended;
  for (const uint64_t id : ids) {
    auto row = store.find(node, position.ledger, id);
    if (!row) return tl::unexpected(row.error());
    if (!*row) continue;
    auto usage = usage_of(**row);
    if (!usage) return tl::unexpected(usage.error());
    // If the agent has not responded since the first copy, only the record's own start is known.
    usage->record.to = position.seen.boot_id.empty() ? usage->record.from : position.seen;
    UsageRow changed =
        usage_row(node, position.ledger, usage->record, [](const std::string&) { return false; });
    (*row)->end_ns = changed.end_ns;
    if (!changed.details.empty()) (*row)->details = std::move(changed.details);
    ended.push_back(std::move(**row));
  }
  if (ended.empty()) return {};
  const auto done = store.write(ended);
  if (done && terms.written) terms.written(ended);
  return done;
}

// Returns the ids of open records that the agent no longer has.
Outcome<std::vector<uint64_t>> lost_ids(UsageSource& source, const CopyPosition& position) {
  std::vector<uint64_t> lost;
  for (size_t begin = 0; begin < position.open_ids.size(); begin += ids_at_once) {
    const std::vector<uint64_t> ids(
        position.open_ids.begin() + static_cast<std::ptrdiff_t>(begin),
        position.open_ids.begin() +
            static_cast<std::ptrdiff_t>(std::min(begin + ids_at_once, position.open_ids.size())));
    const auto some = source.of(ids);
    if (!some) return tl::unexpected(some.error());
    for (const uint64_t id : ids)
      if (std::ranges::find(*some, id, &ledger::UsageRecord::id) == some->end()) lost.push_back(id);
  }
  return lost;
}

// Returns whether the agent's ledger has lost only its newest records, which is the case if its first record
// was copied. The agent never reuses an id, so new records have larger ids than the newest copy.
Outcome<bool> has_lost_newest(UsageStore& store, const std::string& node, UsageSource& source,
                              const CopyPosition& position) {
  const auto first = source.after(0);
  if (!first) return tl::unexpected(first.error());
  if (first->empty()) return false;
  const auto row = store.find(node, position.ledger, first->front().id);
  if (!row) return tl::unexpected(row.error());
  return *row && (*row)->from_ns == first->front().from.utc_ns &&
         (*row)->boot_id == first->front().from.boot_id;
}

// Returns whether the agent's ledger is the one that was copied. `known` contains the records with the
// requested ids.
bool is_same_ledger(const CopyPosition& position, const std::vector<ledger::UsageRecord>& known) {
  if (!position.newest) return true;
  const auto newest = std::ranges::find(known, position.newest->id, &ledger::UsageRecord::id);
  return newest != known.end() && newest->from.utc_ns == position.newest->from_ns &&
         newest->from.boot_id == position.newest->boot_id;
}

}  // namespace

Outcome<size_t> copy_usage(UsageStore& store, const std::string& node, UsageSource& source,
                           const CopyTerms& terms) {
  const auto position = store.position(node);
  if (!position) return tl::unexpected(position.error());
  uint32_t ledger = std::max(position->ledger, uint32_t{1});
  uint64_t last = position->newest ? position->newest->id : 0;
  bool has_open = false;
  std::vector<UsageRow> rows;
  const auto take = [&](const std::vector<ledger::UsageRecord>& records) {
    for (const ledger::UsageRecord& record : records) {
      rows.push_back(usage_row(node, ledger, record, terms.is_prepaid));
      has_open |= !record.to;
    }
  };

  std::vector<uint64_t> asked = position->open_ids;
  if (position->newest) asked.insert(asked.begin(), position->newest->id);
  for (size_t begin = 0; begin < asked.size(); begin += ids_at_once) {
    const auto some =
        source.of({asked.begin() + static_cast<std::ptrdiff_t>(begin),
                   asked.begin() + static_cast<std::ptrdiff_t>(std::min(begin + ids_at_once, asked.size()))});
    if (!some) return tl::unexpected(some.error());
    if (begin == 0 && !is_same_ledger(*position, *some)) {
      const auto is_shorter = has_lost_newest(store, node, source, *position);
      if (!is_shorter) return tl::unexpected(is_shorter.error());
      os::log::warning(
          "node {}: its agent's ledger has lost {}; those of the lost records that were still open are ended",
          node, *is_shorter ? "its newest records" : "its records and begins again");
      const Outcome<std::vector<uint64_t>> lost =
          *is_shorter ? lost_ids(source, *position) : position->open_ids;
      if (!lost) return tl::unexpected(lost.error());
      if (const auto done = end_lost(store, node, *position, *lost, terms); !done)
        return tl::unexpected(done.error());
      if (!*is_shorter) {
        ++ledger;
        last = 0;
        break;
      }
    }
    // The newest record is requested only to identify the ledger; it is written only if it was open.
    std::vector<ledger::UsageRecord> open;
    for (const ledger::UsageRecord& record : *some)
      if (std::ranges::find(position->open_ids, record.id) != position->open_ids.end())
        open.push_back(record);
    take(open);
  }
  for (;;) {
    const auto some = source.after(last);
    if (!some) return tl::unexpected(some.error());
    if (some->empty()) break;
    take(*some);
    last = some->back().id;
  }
  if (!rows.empty()) {
    if (const auto done = store.write(rows); !done) return tl::unexpected(done.error());
    if (terms.written) terms.written(rows);
  }
  if (has_open)
    if (const auto done = store.see(node, ledger, terms.now); !done) return tl::unexpected(done.error());
  return rows.size();
}

}  // namespace carve::controller

#include "controller/billing/usage_copy.h"

#include <algorithm>

#include "os/log.h"

namespace carve::controller {
namespace {

constexpr size_t ids_at_once = 256;

// Ends the open records of a ledger that is lost, when the agent was last seen.
Outcome<void> end_lost(UsageStore& store, const std::string& node, const CopyPosition& position) {
  std::vector<UsageRow> ended;
  for (const uint64_t id : position.open_ids) {
    auto row = store.find(node, position.ledger, id);
    if (!row) return tl::unexpected(row.error());
    if (!*row) continue;
    auto usage = usage_of(**row);
    if (!usage) return tl::unexpected(usage.error());
    // Without an answer since the first copy the record's own begin is all that is known.
    usage->record.to = position.seen.boot_id.empty() ? usage->record.from : position.seen;
    UsageRow changed =
        usage_row(node, position.ledger, usage->record, [](const std::string&) { return false; });
    (*row)->end_ns = changed.end_ns;
    if (!changed.details.empty()) (*row)->details = std::move(changed.details);
    ended.push_back(std::move(**row));
  }
  return ended.empty() ? Outcome<void>() : store.write(ended);
}

// Returns whether the agent's ledger is the one that was copied. `known` are the records with the ids asked.
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
      os::log::warning("node {}: its agent has begun another ledger; open usage records end", node);
      if (const auto done = end_lost(store, node, *position); !done) return tl::unexpected(done.error());
      ++ledger;
      last = 0;
      break;
    }
    // The newest record is asked for to know the ledger; it is written if it was open.
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
  if (!rows.empty())
    if (const auto done = store.write(rows); !done) return tl::unexpected(done.error());
  if (has_open)
    if (const auto done = store.see(node, ledger, terms.now); !done) return tl::unexpected(done.error());
  return rows.size();
}

}  // namespace carve::controller

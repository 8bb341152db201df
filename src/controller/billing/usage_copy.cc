#include "controller/billing/usage_copy.h"

#include "ledger/stamp_order.h"
#include "os/log.h"

namespace carve::controller {
namespace {

// Returns the open records that the agent has lost, with their ends.
Outcome<std::vector<UsageRow>> ended_rows(UsageStore& store, const std::string& node,
                                          const CopyWrite& write) {
  std::vector<UsageRow> out;
  for (const uint64_t id : write.lost) {
    auto row = store.find(node, write.lost_ledger, id);
    if (!row) return tl::unexpected(row.error());
    if (!*row || (*row)->end_ns != 0) continue;
    auto usage = usage_of(**row);
    if (!usage) return tl::unexpected(usage.error());
    // The record may have changed after the last complete read, at which the agent was last seen. If there was
    // none, only the record's own times are known.
    const ledger::Stamp& last =
        usage->record.periods.empty() ? usage->record.from : usage->record.periods.back().to;
    const bool is_known = !write.lost_at.boot_id.empty() && !ledger::is_earlier(write.lost_at, last);
    usage->record.to = is_known ? write.lost_at : last;
    UsageRow changed =
        usage_row(node, write.lost_ledger, usage->record, [](const std::string&) { return false; });
    (*row)->end_ns = changed.end_ns;
    if (!changed.details.empty()) (*row)->details = std::move(changed.details);
    out.push_back(std::move(**row));
  }
  return out;
}

}  // namespace

namespace {

// Fails if a row of a new ledger was copied before: then an old ledger of the node was restored, or the agent's
// responses contradict each other. The next copy compares with that ledger.
Outcome<void> check_new_ledger(UsageStore& store, const std::string& node, const CopyWrite& write) {
  for (const UsageRow& row : write.rows) {
    const auto ledger = store.ledger_of(
        node, {.id = row.id, .from_ns = row.from_ns, .boot_id = row.boot_id, .account = row.account});
    if (!ledger) return tl::unexpected(ledger.error());
    if (*ledger == 0) continue;
    const SeenLedger seen{.node = node, .ledger = *ledger, .at = write.seen->at};
    if (const auto done = store.write({}, seen); !done) return done;
    return failure(FailureKind::unavailable,
                   "its agent again has ledger {}, which was replaced by another one",
                   ledger_name({.node = node, .ledger = *ledger}));
  }
  return {};
}

}  // namespace

Outcome<void> write_copy(UsageStore& store, const std::string& node, const CopyWrite& write,
                         const WrittenRows& written) {
  if (write.rows.empty() && write.lost.empty() && !write.seen) return {};
  if (write.is_new_ledger)
    if (const auto sound = check_new_ledger(store, node, write); !sound) return sound;
  auto rows = ended_rows(store, node, write);
  if (!rows) return tl::unexpected(rows.error());
  rows->insert(rows->end(), write.rows.begin(), write.rows.end());
  const auto done = store.write(*rows, write.seen);
  if (done && written && !rows->empty()) written(*rows);
  return done;
}

Outcome<size_t> copy_usage(UsageStore& store, const std::string& node, UsageSource& source,
                           const CopyTerms& terms) {
  auto position = store.position(node);
  if (!position) return tl::unexpected(position.error());
  LedgerCopy copy(node, std::move(*position), terms.is_prepaid, terms.now);
  auto loss = LedgerCopy::Loss::none;
  while (const auto request = copy.next()) {
    const auto some = request->ids.empty() ? source.after(request->after) : source.of(request->ids);
    if (!some) return tl::unexpected(some.error());
    const auto write = copy.take(*some, some->empty() ? 0 : some->back().id);
    if (!write) return tl::unexpected(write.error());
    if (const auto done = write_copy(store, node, *write, terms.written); !done)
      return tl::unexpected(done.error());
    if (std::exchange(loss, copy.loss()) != copy.loss())
      os::log::warning(
          "node {}: its agent's ledger has lost {}; those of the lost records that were still open are ended",
          node, loss == LedgerCopy::Loss::newest ? "its newest records" : "its records and begins again");
  }
  return copy.taken();
}

}  // namespace carve::controller

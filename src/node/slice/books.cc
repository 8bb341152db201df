#include "node/slice/books.h"

#include "os/clock.h"
#include "os/process.h"

namespace carve::node {

Outcome<void> Books::load() {
  const auto remembered = store_->read();
  if (!remembered) return tl::unexpected(remembered.error());
  for (const ledger::Change& change : *remembered)
    if (const auto good = ledger_.apply(change); !good)
      return failure(FailureKind::unavailable, "the ledger contradicts itself: {}", good.error().message);
  return {};
}

Outcome<void> Books::post(const ledger::Change& change) {
  auto posted = ledger::post(ledger_, *store_, change);
  if (posted && write_mark_) write_mark_(mark());
  return posted;
}

bool Books::is_behind(const std::optional<LedgerMark>& mark) {
  if (!mark) return false;
  ledger_.skip_ids(mark->last_id);
  const ledger::Generation present = store_->generation();
  return mark->is_behind || mark->generation.ledger != present.ledger ||
         mark->generation.changes > present.changes;
}

Outcome<void> Books::begin_marks(const std::optional<LedgerMark>& mark,
                                 std::function<void(LedgerMark)> write) {
  if (mark && mark->generation.changes > store_->generation().changes)
    if (auto raised = store_->raise_changes(mark->generation.changes); !raised) return raised;
  write_mark_ = std::move(write);
  write_mark_(this->mark());
  return {};
}

LedgerMark Books::mark() const {
  return {store_->generation(), ledger_.next_id() - 1, stamp_now().boot_id, false};
}

ledger::Stamp stamp_now() { return {os::utc_ns(), os::boot_id(), os::monotonic_ns()}; }

}  // namespace carve::node

#include "node/slice/books.h"

#include "os/clock.h"
#include "os/process.h"

namespace carve::node {

Outcome<void> Books::load() {
  const auto remembered = store_->read();
  if (!remembered) return tl::unexpected(remembered.error());
  for (const ledger::Change& change : *remembered)
    if (const auto good = ledger_.apply(change); !good)
      return failure(FailureKind::unavailable, "the ledger contradicts itself: {}", good.error().sentence);
  return {};
}

ledger::Stamp stamp_now() {
  static const std::string boot = os::boot_id();
  return {os::utc_ns(), boot, os::monotonic_ns()};
}

}  // namespace carve::node

// Loses one byte of a device's free account, which no change can do, to test that the ledger aborts.
#pragma once

#include "ledger/ledger.h"

namespace carve::ledger {

struct LostByte {
  LostByte(Ledger& ledger, const Uuid& device) { --ledger.balances_.at(device).free.count; }
};

}  // namespace carve::ledger

// The rule that decides whether a slice stays within the limits of its owner and of its account. All functions are
// pure; the agent calls them when it grants and when it changes a slice, on its loop, so no two decisions are made
// at the same time.
//
// A user's own limit replaces the limit of "*" completely. The slices of pods and claims are not limited, because
// Kubernetes has its own quotas for them.
#pragma once

#include <set>
#include <span>
#include <string>

#include "ledger/ledger.h"
#include "wire/api/limit.h"

namespace carve::node {

// The amounts that the live slices of one user or account hold together.
struct Held {
  Bytes memory;
  Share share;
  uint32_t slices = 0;
  std::set<Uuid> devices;

  void add(const Slice&);
  api::HeldAmounts amounts() const;
};

// `except` is the id of a record that is not counted; 0 for none.
Held held_by_user(const ledger::Ledger&, uint32_t uid, uint64_t except = 0);
Held held_by_account(const ledger::Ledger&, const std::string& account, uint64_t except = 0);

// Return the limit that applies, or null if there is none.
const api::Limit* limit_of_user(std::span<const api::Limit>, uint32_t uid);
const api::Limit* limit_of_account(std::span<const api::Limit>, const std::string& account);

// Checks a slice that is not granted yet. Fails with insufficient_capacity if it would fit after other slices of the
// same user or account have ended, and otherwise with failed_precondition. The message contains whose limit it is,
// its value, and what is left.
Outcome<void> check_grant(std::span<const api::Limit>, const ledger::Ledger&, const Slice&);
// Checks the new terms of the live record `id`. Amounts that do not grow are accepted, even above the limit.
Outcome<void> check_change(std::span<const api::Limit>, const ledger::Ledger&, uint64_t id,
                           const ledger::Terms&);

}  // namespace carve::node

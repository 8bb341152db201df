// Invariants: statements about Carve itself that must hold at a point of the code. They are checked in every
// build, because an inconsistent ledger or scheduler must stop before its result is stored or used. A broken
// invariant prints one line with the file, the line, the function and the condition, then aborts. Slices keep
// running without the agent (node/compute/arbiter.h), and its successor reads the store.
//
// Data from outside is never asserted, but checked and rejected with a message (core/failure.h). A condition
// is O(1), or costs at most as much as the function that contains it. The guest library, which runs in the
// user's process, has ensure() instead (guest/linkage/ensure.h).
#pragma once

#include <source_location>

namespace carve {

// Prints "FILE:LINE: FUNCTION: broken invariant: CONDITION" to standard error with one write(2), and aborts.
// `message` is appended to the condition unless it is empty. Allocates nothing.
[[noreturn, gnu::cold]] void break_invariant(
    const char* condition, const char* message,
    std::source_location where = std::source_location::current()) noexcept;

}  // namespace carve

// invariant(condition) or invariant(condition, "message"). It is a macro because C++20 cannot express the
// text of a condition. In a constexpr function, a broken invariant is a compile-time error.
#define invariant(condition, ...) \
  (static_cast<bool>(condition) ? static_cast<void>(0) : ::carve::break_invariant(#condition, "" __VA_ARGS__))

// Invariants: statements about Carve itself that hold at a point of the code. They are checked in every
// build, because a ledger or a scheduler that contradicts itself must stop before its result is stored or
// used. A broken invariant prints one line with the file, the line, the function and the condition, then
// aborts. Slices keep running without the agent (node/compute/arbiter.h), and its successor reads the store.
//
// Data from outside is never asserted: it is checked and refused with a message (core/failure.h). A condition
// is O(1), or costs at most as much as the function around it. The guest library, which runs in the user's
// process, has ensure() instead (guest/linkage/ensure.h).
#pragma once

#include <source_location>

namespace carve {

// Prints "FILE:LINE: FUNCTION: broken invariant: CONDITION" to standard error with one write(2), and aborts.
// `message` follows the condition unless it is empty. Allocates nothing.
[[noreturn, gnu::cold]] void break_invariant(
    const char* condition, const char* message,
    std::source_location where = std::source_location::current()) noexcept;

}  // namespace carve

// invariant(condition) or invariant(condition, "message"). It is a macro because C++20 cannot express the
// text of a condition. It may be used in a constexpr function; a broken one is then a compile-time error.
#define invariant(condition, ...) \
  (static_cast<bool>(condition) ? static_cast<void>(0) : ::carve::break_invariant(#condition, "" __VA_ARGS__))

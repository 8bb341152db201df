// A value, or the reason why there is none. An error that a caller can meet is a value with a sentence;
// a broken assumption of our own stops the process instead. In this folder, which may run inside a
// stranger's process, the sentence is a fixed text; outside of the guest core/failure.h formats one.
#pragma once

#include <tl/expected.hpp>

namespace carve {

struct Error {
  const char* sentence;  // Static storage. Says what is wrong and what would be right.
};

template <class T, class E = Error>
using Result = tl::expected<T, E>;

constexpr tl::unexpected<Error> failed(const char* sentence) {
  return tl::unexpected<Error>(Error{sentence});
}

}  // namespace carve

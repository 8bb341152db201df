// A value, or the reason why there is none. An error that a caller can meet is a value with a sentence; a
// broken assumption of ours stops the process. In this folder, which also runs inside the user's process, the
// sentence is a fixed text. Outside the guest library core/failure.h formats one.
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

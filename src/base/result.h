// A value, or the reason why there is none. An error that can happen is a value with a message; a broken
// invariant of Carve aborts the process. In this folder, whose code also runs inside the user's process, the
// message is a fixed text. Outside the guest library, core/failure.h formats messages.
#pragma once

#include <tl/expected.hpp>

namespace carve {

struct Error {
  const char* message;  // Static storage. It names the error and the correct form.
};

template <class T, class E = Error>
using Result = tl::expected<T, E>;

constexpr tl::unexpected<Error> failed(const char* message) { return tl::unexpected<Error>(Error{message}); }

}  // namespace carve

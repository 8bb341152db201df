// The routes by which browsers sign in to the console and out (controller/objects/session_book.h).
#pragma once

#include "controller/api/api_call.h"

namespace carve::controller {

http::Response post_code(const Call&);
http::Response get_session(const Call&);
// Also answers anonymous callers: the code or the token identifies them. 401 if it is not valid.
http::Response post_session(const Call&);
http::Response delete_session(const Call&);

// Returns whether the request signs a browser in, so that its caller need not be identified.
bool is_sign_in(const http::Request&);

// Returns the session of a request with the cookie and the page key; no value if there is none or it has
// expired. A browser sends the cookies of all ports of a host, so the cookie's name contains the port.
std::optional<Session> session_of(const http::Request&, const SessionBook&, int64_t now_ns);

}  // namespace carve::controller

// Carries out requests with an Idempotency-Key header only once: a client that got no response repeats its
// POST with the same key and gets the first response, for 24 hours. A key belongs to its caller. The same key
// with another request is rejected with 422 carve:key-reused.
//
// The journal keeps the newest 1,000 successful responses (2xx) of up to 64 KiB. Beyond 1,000 the oldest
// response of the caller with the most responses is dropped, so no caller displaces the responses of a caller
// with fewer. A rejected request changed nothing, so it is checked again when repeated. The response is
// stored after the change. If the controller is killed between the two, the repeated request is applied to
// the changed object. The response with a new token is never stored.
#pragma once

#include <functional>

#include "controller/store/kept_answer.h"
#include "http/caller.h"
#include "http/message.h"

namespace carve::controller {

inline constexpr size_t max_kept_answer_bytes = 64 << 10;
inline constexpr size_t max_idempotency_key_bytes = 128;

// Returns the stored response to the request, or calls `make` and stores its response. Uses the journal only
// for POST requests that have the header and do not create a token.
http::Response answer_once(const http::Request&, const http::Caller&, AnswerJournal&, int64_t now_ns,
                           const std::function<http::Response()>& make);

}  // namespace carve::controller

// Requests that are carried out once (the Idempotency-Key header): a client that got no response repeats its
// POST with the same key and gets the first response, for 24 hours. A key belongs to its caller. The same key
// with another request is rejected with 422 carve:key-reused.
//
// The journal keeps the newest 1,000 successful responses (2xx) of up to 64 KiB. Beyond 1,000 the caller with
// the most responses loses its oldest one, so no caller displaces the responses of a caller with fewer. A
// rejected request changed nothing and is checked again. The response is written after the change: after a
// kill between the two, the repeated request is carried out on the changed object. A new token is never kept.
#pragma once

#include <functional>

#include "controller/store/kept_answer.h"
#include "http/caller.h"
#include "http/message.h"

namespace carve::controller {

inline constexpr size_t max_kept_answer_bytes = 64 << 10;
inline constexpr size_t max_idempotency_key_bytes = 128;

// Returns the kept response to the request, or calls `make` and keeps its response. The journal is used only
// for POST requests that have the header and make no token.
http::Response answer_once(const http::Request&, const http::Caller&, AnswerJournal&, int64_t now_ns,
                           const std::function<http::Response()>& make);

}  // namespace carve::controller

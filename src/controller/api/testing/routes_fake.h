// Helpers that the routes' tests share: a journal that stores nothing, and requests by target.
#pragma once

#include <algorithm>
#include <string>

#include "controller/api/controller_routes.h"
#include "controller/objects/journaled_registry.h"

namespace carve::controller {

struct JournalFake : Journal, TokenJournal, SessionJournal {
  Outcome<void> write(std::span<const Object>) override { return {}; }
  Outcome<void> remove(const ObjectKey&, uint64_t) override { return {}; }
  Outcome<void> write(const Token&) override { return {}; }
  Outcome<void> remove(const Token&) override { return {}; }
  Outcome<void> write(const Session&) override { return {}; }
  Outcome<void> remove(const Session&) override { return {}; }
};

// Returns a request for the target, which is a path, optionally followed by '?' and a query.
inline http::Request request_of(const std::string& method, const std::string& target,
                                const std::string& body = "", http::Headers headers = {}) {
  const size_t mark = std::min(target.find('?'), target.size());
  return {.method = method,
          .path = target.substr(0, mark),
          .query = target.substr(std::min(mark + 1, target.size())),
          .body = body,
          .headers = std::move(headers)};
}

}  // namespace carve::controller

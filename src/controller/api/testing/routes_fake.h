// Helpers that the tests of the routes share: a journal that keeps nothing, and requests by their target.
#pragma once

#include <algorithm>
#include <string>

#include "controller/api/controller_routes.h"

namespace carve::controller {

struct JournalFake : Journal, TokenJournal {
  Outcome<void> write(std::span<const Object>) override { return {}; }
  Outcome<void> remove(const ObjectKey&, uint64_t) override { return {}; }
  Outcome<void> write(const Token&) override { return {}; }
  Outcome<void> remove(const Token&) override { return {}; }
};

// The target is a path, with a query after a question mark.
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

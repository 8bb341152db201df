#include "controller/api/query.h"

#include <algorithm>

#include "http/files.h"

namespace carve::controller {

Outcome<std::map<std::string, std::string>> parse_query(const std::string& query,
                                                        std::initializer_list<const char*> known) {
  std::map<std::string, std::string> out;
  size_t begin = 0;
  while (begin < query.size()) {
    const size_t end = std::min(query.find('&', begin), query.size());
    const std::string part = query.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty()) continue;
    const size_t equal = std::min(part.find('='), part.size());
    std::string value = part.substr(std::min(equal + 1, part.size()));
    std::ranges::replace(value, '+', ' ');
    const auto key = http::percent_decoded(part.substr(0, equal)), decoded = http::percent_decoded(value);
    if (!key || !decoded)
      return failure(FailureKind::invalid_argument, "the query '{}' is malformed", part.substr(0, 80));
    if (std::ranges::find(known, *key) == known.end())
      return failure(FailureKind::invalid_argument, "{}: no such parameter; use {}", key->substr(0, 80),
                     fmt::join(known, ", "));
    if (!out.emplace(*key, *decoded).second)
      return failure(FailureKind::invalid_argument, "{}: the parameter is given twice", *key);
  }
  return out;
}

}  // namespace carve::controller

// The names under which a caller over TCP may have reached the API. A page of another site, opened in a
// browser on this machine, can send requests to a loopback address under its own name (DNS rebinding), or
// under the right name with its own Origin. Both are rejected.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "http/message.h"

namespace carve::controller {

class KnownHosts {
 public:
  // `more` lists names and addresses, without ports, in addition to localhost, 127.0.0.1 and ::1.
  explicit KnownHosts(const std::vector<std::string>& more = {});

  // Returns why the request is rejected, as a message; no value if it has exactly one known Host, and no
  // Origin or its own.
  std::optional<std::string> refusal(const http::Headers&) const;

 private:
  std::set<std::string> names_;  // In lower case.
};

}  // namespace carve::controller

// The host names by which callers over TCP may address the API. A page of another site, opened in a browser
// on this machine, can send requests to a loopback address with its own name in Host (DNS rebinding), or with
// the right Host and its own Origin. Both are rejected.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "http/message.h"

namespace carve::controller {

class KnownHosts {
 public:
  // `more` lists names and addresses without ports that are known in addition to localhost, 127.0.0.1 and
  // ::1.
  explicit KnownHosts(const std::vector<std::string>& more = {});

  // Returns a message if the request is rejected; no value if it has exactly one Host header, which is known,
  // and no Origin or the same host as Origin.
  std::optional<std::string> refusal(const http::Headers&) const;

 private:
  std::set<std::string> names_;  // In lower case.
};

}  // namespace carve::controller

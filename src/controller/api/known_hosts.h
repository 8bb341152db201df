// Which names a caller over TCP may have reached the API by. A page of another site, opened in a browser on
// this machine, can send requests to a loopback address under a name of its own (DNS rebinding), or under the
// right name with its own Origin. Both are refused.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "http/message.h"

namespace carve::controller {

class KnownHosts {
 public:
  // `more`: names and addresses beside localhost, 127.0.0.1 and ::1. They have no port.
  explicit KnownHosts(const std::vector<std::string>& more = {});

  // Returns why the request is refused, as a sentence; no value: it has one known Host, and no Origin or its
  // own.
  std::optional<std::string> refusal(const http::Headers&) const;

 private:
  std::set<std::string> names_;  // In lower case.
};

}  // namespace carve::controller

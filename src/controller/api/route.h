// One row of the table of routes: its handler, and its entry in the API's description.
#pragma once

#include <optional>
#include <string>

#include "controller/api/api_call.h"

namespace carve::controller {

struct Route {
  std::string method;
  std::string path;  // "/v1/{kind}/{}/logs": {kind} is the plural of a kind with replicas, {} is one name.
  http::Response (*answer)(const Call&);
  std::string summary;           // One sentence.
  std::string answer_schema;     // "TokenList"; "Kind" (of the path); "KindList"; "text"; "events"; "any".
  std::string body_schema = {};  // Empty if the request has no body.
  std::string query = {};        // Parameters, separated by blanks.
  std::optional<objects::Kind> kind = {};  // Set if the path names one kind.
};

}  // namespace carve::controller

// One row of the table of routes: what answers, and how the API's description shows it.
#pragma once

#include "controller/api/api_call.h"

namespace carve::controller {

struct Route {
  const char* method;
  const char* path;  // "/v1/{kind}/{}/logs": {kind} is the plural of a kind, {} is one name.
  http::Response (*answer)(const Call&);
  const char* summary;           // One sentence.
  const char* answer_schema;     // "TokenList"; "Kind": the path's kind; "KindList"; "text"; "events"; "any".
  const char* body_schema = "";  // Empty: the request has no body.
  const char* query = "";        // Parameters, with a blank between two.
};

}  // namespace carve::controller

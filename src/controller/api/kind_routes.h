// The routes of each kind's objects: how a document is planned, the check before a deletion, and the texts
// of the routes. A kind without a row of its own is a plain kind: operators change its objects, which are
// only stored and shown.
#pragma once

#include <span>
#include <vector>

#include "controller/api/route.h"

namespace carve::controller {

// The words for the objects of a kind in the API's description.
struct KindWords {
  std::string_view article, noun, plural;  // "a", "node pool", "node pools"
  bool has_namespaces = false;
  // Summaries that differ from those of the other kinds; empty to use the common ones.
  std::string_view list = "", apply = "", replace = "", change = "", remove = "";
};

struct KindApi {
  objects::Kind kind;
  KindWords words;
  // Returns the object that a document would create or change, or why it is rejected.
  Outcome<Object> (*plan)(const Call&, const Submission&);
  // Null if an object is removed only after its programs have ended. Otherwise an operator can delete it
  // immediately, unless this function returns an error.
  Outcome<void> (*check_deletion)(const Call&, const std::string& name) = nullptr;
};

const KindApi& api_of(objects::Kind);
bool is_plain(objects::Kind);

// object_routes() returns the routes that list, apply, show, replace, change and delete objects of the kind.
// The other functions return the routes for an object's events and for the output of its programs. Without a
// kind they cover all kinds with replicas.
std::vector<Route> object_routes(std::optional<objects::Kind>);
Route events_route(std::optional<objects::Kind>);
Route logs_route(std::optional<objects::Kind>);

}  // namespace carve::controller

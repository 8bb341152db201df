// One page of a list: GET /v1/KINDs?namespace=&labelSelector=&limit=&continue=
//
// A page ends behind an object, and `continue` says behind which: namespace and name, in the order of the
// list. So no object that is there from the first page to the last is missing or shown twice, whatever is
// added or deleted in between. The text is opaque for callers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/api/label_selector.h"
#include "controller/objects/object_registry.h"

namespace carve::controller {

inline constexpr size_t default_list_limit = 100;
inline constexpr size_t max_list_limit = 500;

struct ListQuery {
  std::string namespace_;  // Empty: all.
  LabelSelector selector;
  size_t limit = default_list_limit;
  std::optional<ObjectKey> behind;  // The last object of the page before; absent: the first page.
};

// Reads `limit` of a list.
Outcome<size_t> parse_limit(const std::string& word);

// Reads the query of a list of this kind.
Outcome<ListQuery> parse_list_query(const std::string& query, objects::Kind);

struct ListPage {
  std::vector<ObjectRegistry::Pointer> objects;
  std::string next;  // `continue` of the next page; empty: this is the last one.
};

// Returns the page of `all`, the objects of the kind and namespace in their order.
ListPage page_of(const std::vector<ObjectRegistry::Pointer>& all, const ListQuery&);

}  // namespace carve::controller

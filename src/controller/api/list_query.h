// One page of a list: GET /v1/KINDs?namespace=&labelSelector=&limit=&continue=
//
// `continue` identifies the last object of a page by namespace and name, which is also the order of the list.
// So an object that exists from the first page to the last is shown exactly once, whatever is added or
// deleted in between. The token is opaque to callers.
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
  std::string namespace_;  // Empty for all.
  LabelSelector selector;
  size_t limit = default_list_limit;
  std::optional<ObjectKey> behind;  // The last object of the previous page; absent for the first page.
};

// Parses the parameter `limit` of a list.
Outcome<size_t> parse_limit(const std::string& word);

// Parses the query for a list of this kind.
Outcome<ListQuery> parse_list_query(const std::string& query, objects::Kind);

struct ListPage {
  std::vector<ObjectRegistry::Pointer> objects;
  std::string next;  // Token for the next page; empty on the last page.
};

// Returns one page of `all`, which must contain the objects of the kind and namespace in order.
ListPage page_of(const std::vector<ObjectRegistry::Pointer>& all, const ListQuery&);

}  // namespace carve::controller

#include "controller/api/access_routes.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "controller/api/planning.h"
#include "controller/api/query.h"
#include "wire/api/identity.h"

namespace carve::controller {
namespace {

constexpr std::string_view reading_verbs[] = {"get", "list", "watch"};
constexpr std::string_view changing_verbs[] = {"create", "apply", "update", "patch", "scale", "delete"};

bool is_one_of(std::string_view verb, std::span<const std::string_view> verbs) {
  return std::ranges::find(verbs, verb) != verbs.end();
}

// Every caller that reaches a route may read the objects of all users, without their environment and logs.
api::Access allowed(std::string objects) {
  return {.is_allowed = true, .objects = std::move(objects), .reason = ""};
}

api::Access access_to(const Call& call, objects::Kind kind, const ObjectKey& key) {
  const auto present = key.name.empty() ? nullptr : call.context.objects.find(key);
  // Operators own the objects of the other kinds together.
  const auto checked = present && has_owner(kind) ? check_change(call, *present) : check_kind(call, kind);
  if (!checked) return {.is_allowed = false, .objects = "", .reason = checked.error().message};
  if (!key.name.empty()) return allowed(key.name);
  return allowed(call.caller.may_operate() ? "all" : "own");
}

}  // namespace

http::Response get_access(const Call& call) {
  const auto query = parse_query(call.request.query, {"verb", "kind", "name", "namespace"});
  if (!query) return refuse(query.error());
  const auto value = [&](const char* name) {
    const auto found = query->find(name);
    return found == query->end() ? std::string() : found->second;
  };
  const std::string verb = value("verb");
  const auto kind = objects::parse_kind(value("kind"));
  if (!kind)
    return refuse(FailureKind::invalid_argument, fmt::format("kind: '{}' is not a kind of objects",
                                                             value("kind").substr(0, max_shown_bytes)));
  if (is_one_of(verb, reading_verbs)) return document(allowed("all"));
  if (!is_one_of(verb, changing_verbs))
    return refuse(FailureKind::invalid_argument,
                  fmt::format("verb: '{}' is not a verb; use {} or {}", verb.substr(0, max_shown_bytes),
                              fmt::join(reading_verbs, ", "), fmt::join(changing_verbs, ", ")));
  const std::string space = value("namespace");
  return document(access_to(call, *kind, {*kind, space.empty() ? "default" : space, value("name")}));
}

http::Response get_audit(const Call& call) {
  constexpr size_t max_audit_entries = 1000;
  auto entries = call.context.views.audit_entries(max_audit_entries);
  if (!entries) return refuse(entries.error());
  if (!call.caller.may_operate())
    std::erase_if(entries->items,
                  [caller = call.caller.text()](const auto& entry) { return entry.caller != caller; });
  return document(*entries);
}

}  // namespace carve::controller

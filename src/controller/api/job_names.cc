#include "controller/api/job_names.h"

#include <algorithm>

namespace carve::controller {
namespace {

bool is_taken(const Call& call, const std::string& name) {
  const auto has_name = [&](objects::Kind kind) {
    return call.context.objects.find_named(kind, name) != nullptr ||
           document_beside(call, kind, name) != nullptr;
  };
  return std::ranges::any_of(queued_kinds, has_name);
}

}  // namespace

const Submission* document_beside(const Call& call, objects::Kind kind, const std::string& name) {
  const auto found = std::ranges::find_if(
      call.beside, [&](const Submission& one) { return one.kind == kind && one.metadata.name == name; });
  return found == call.beside.end() ? nullptr : &*found;
}

std::optional<http::Response> refused_name(const Call& call, const ObjectKey& key) {
  if (key.name.empty()) return std::nullopt;
  for (const objects::Kind kind : queued_kinds) {
    const auto other = call.context.objects.find_named(kind, key.name);
    if (!other) continue;
    const std::string_view word = objects::text_of(kind).singular;
    if (other->key.namespace_ == key.namespace_)
      return refuse(FailureKind::already_exists,
                    fmt::format("{} {} already has this name; choose another name", word, key.name));
    return refuse(
        FailureKind::already_exists,
        fmt::format(
            "namespace {} already has the {} {}, whose slices would have the same names; use another name",
            other->key.namespace_, word, key.name));
  }
  for (const Submission& one : call.beside)
    if (is_queued(one.kind) && one.metadata.name == key.name &&
        ObjectKey{one.kind, one.metadata.namespace_, one.metadata.name} != key)
      return refuse(FailureKind::invalid_argument,
                    fmt::format("two documents have the name {}, so their slices would have the same names; "
                                "use different names",
                                key.name));
  return std::nullopt;
}

std::string new_name(const Call& call, const Submission& submission, const std::string& engine) {
  size_t before = 0;  // Number of earlier documents that also get a name.
  for (const Submission& one : call.beside) {
    if (&one == &submission) break;
    before += is_queued(one.kind) && one.metadata.name.empty() ? 1 : 0;
  }
  for (uint64_t number = call.context.objects.version() + 1;; ++number) {
    std::string name = fmt::format("{}-{}", engine, number);
    if (is_taken(call, name)) continue;
    if (before == 0) return name;
    --before;
  }
}

}  // namespace carve::controller

#include "core/holder.h"

#include <algorithm>

namespace carve {
namespace {

constexpr size_t max_pod_name_bytes = 253;  // A DNS subdomain.
constexpr size_t max_dns_label_bytes = 63;  // A namespace, a container, a uid.

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// Returns whether it is a Kubernetes name: a-z, 0-9, '-', and, except at the ends, the characters in `also`.
bool is_kubernetes_name(std::string_view name, size_t max_bytes, std::string_view also) {
  return !name.empty() && name.size() <= max_bytes && is_lower_or_digit(name.front()) &&
         is_lower_or_digit(name.back()) && std::ranges::all_of(name, [&](char c) {
           return is_lower_or_digit(c) || c == '-' || also.find(c) != std::string_view::npos;
         });
}

// Checks a uid. Its characters are those of UUIDs and of the hashes that kubelet makes for static pods, so
// that it can be found in a cgroup path.
Outcome<void> check_uid(std::string_view what, std::string_view uid) {
  if (is_kubernetes_name(uid, max_dns_label_bytes, "")) return {};
  return failure(FailureKind::invalid_argument,
                 "holder.{}: '{}' is not a uid; use 1 to {} characters from a-z, 0-9 and '-'", what,
                 uid.substr(0, 80), max_dns_label_bytes);
}

Outcome<void> check_name(std::string_view what, std::string_view name, size_t max_bytes,
                         std::string_view also) {
  if (is_kubernetes_name(name, max_bytes, also)) return {};
  return failure(FailureKind::invalid_argument,
                 "holder.pod.{}: '{}' is not a valid Kubernetes name of 1 to {} characters", what,
                 name.substr(0, 80), max_bytes);
}

}  // namespace

bool is_same(const Holder& a, const Holder& b) {
  if (a.pod && b.pod) return a.pod->uid == b.pod->uid && a.pod->container == b.pod->container;
  return a.claim && b.claim && *a.claim == *b.claim;
}

std::string text(const Holder& holder) {
  if (holder.pod)
    return fmt::format("pod {}/{}, container {}", holder.pod->namespace_, holder.pod->name,
                       holder.pod->container);
  return holder.claim ? "claim " + *holder.claim : "";
}

Outcome<void> check(const Holder& holder) {
  if (holder.pod.has_value() == holder.claim.has_value())
    return failure(FailureKind::invalid_argument, "holder: exactly one of pod and claim is required");
  if (holder.claim) return check_uid("claim", *holder.claim);
  if (const auto good = check_name("namespace", holder.pod->namespace_, max_dns_label_bytes, ""); !good)
    return good;
  if (const auto good = check_name("name", holder.pod->name, max_pod_name_bytes, "."); !good) return good;
  if (const auto good = check_name("container", holder.pod->container, max_dns_label_bytes, ""); !good)
    return good;
  return check_uid("pod.uid", holder.pod->uid);
}

Outcome<void> check(const ClaimPod& pod) {
  return check(Holder{.pod = PodContainer{pod.namespace_, pod.name, pod.uid, "any"}, .claim = {}});
}

}  // namespace carve

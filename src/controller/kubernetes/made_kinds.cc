#include "controller/kubernetes/made_kinds.h"

#include <fmt/format.h>

namespace carve::controller {
namespace {

std::string prefix_of(const MadeKind& kind) {
  return fmt::format("{}/{}", kind.api_version == "v1" ? "/api" : "/apis", kind.api_version);
}

}  // namespace

std::string path_of(const MadeKind& kind) { return fmt::format("{}/{}", prefix_of(kind), kind.plural); }

std::string path_of(const api::Json& object, bool with_name) {
  const MadeKind& kind = made_kind(object["kind"].get<std::string>());
  const api::Json& metadata = object["metadata"];
  std::string out = prefix_of(kind);
  if (kind.has_namespace) out += "/namespaces/" + metadata["namespace"].get<std::string>();
  out += fmt::format("/{}", kind.plural);
  return with_name ? out + "/" + metadata["name"].get<std::string>() : out;
}

}  // namespace carve::controller

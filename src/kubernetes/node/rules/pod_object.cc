#include "kubernetes/node/rules/pod_object.h"

#include "dialects/pod/dialects.h"
#include "dialects/pod/keys.h"
#include "kubernetes/api/json_walk.h"

namespace carve::kubernetes::node {
namespace {

class PodWalk final : public kubernetes::JsonWalk {
 public:
  SeenPod pod;

 private:
  void value(std::span<const kubernetes::JsonLevel> path, const std::string& text) override {
    if (kubernetes::is_path(path, {"spec", "nodeName"})) pod.node = text;
    if (kubernetes::is_path(path, {"status", "phase"})) pod.is_over = text == "Succeeded" || text == "Failed";
  }
};

}  // namespace

Result<SeenPod, std::string> read_pod_object(std::string_view json) {
  auto meta = kubernetes::read_object(json);
  if (!meta) return tl::unexpected(meta.error());
  PodWalk walk;
  if (!walk.read(json)) return tl::unexpected("a pod: " + walk.problem());
  walk.pod.meta = std::move(*meta);
  return std::move(walk.pod);
}

namespace {

bool is_of_dialect(std::string_view limit) {
  if (limit.starts_with(dialects::keys::prefix)) return true;
  for (const dialects::DialectRow& row : dialects::dialect_rows()) {
    if (row.dialect == dialects::Dialect::nvidia) continue;  // Handled by NVIDIA's device plugin.
    for (const char* key : row.limits)
      if (limit == key) return true;
  }
  return false;
}

// Finds the first container with a limit. A container's name may follow its limits.
class LimitWalk final : public kubernetes::JsonWalk {
 public:
  std::string found;

 private:
  static bool is_container(std::span<const kubernetes::JsonLevel> path) {
    return path.size() >= 3 && path[0].key == "spec" && path[2].is_list &&
           (path[1].key == "containers" || path[1].key == "initContainers");
  }
  void value(std::span<const kubernetes::JsonLevel> path, const std::string& text) override {
    if (!is_container(path)) return;
    if (path.size() == 4 && path[3].key == "name") name_ = text;
    if (path.size() == 6 && path[3].key == "resources" && path[4].key == "limits" &&
        is_of_dialect(path[5].key))
      limit_ = path[5].key;
  }
  void closed(std::span<const kubernetes::JsonLevel> path) override {
    if (!is_container(path) || path.size() != 3) return;
    if (!limit_.empty() && found.empty()) found = fmt::format("container {} requests {}", name_, limit_);
    name_.clear();
    limit_.clear();
  }

  std::string name_, limit_;
};

}  // namespace

std::string requested_limit(std::string_view json) {
  LimitWalk walk;
  return walk.read(json) ? walk.found : "";
}

}  // namespace carve::kubernetes::node

#include "kubelet/rules/pod_object.h"

#include "kube/json_walk.h"

namespace carve::kubelet {
namespace {

class PodWalk final : public kube::JsonWalk {
 public:
  SeenPod pod;

 private:
  void value(std::span<const kube::JsonLevel> path, const std::string& text) override {
    if (kube::is_path(path, {"spec", "nodeName"})) pod.node = text;
    if (kube::is_path(path, {"status", "phase"})) pod.is_over = text == "Succeeded" || text == "Failed";
  }
};

}  // namespace

Result<SeenPod, std::string> read_pod_object(std::string_view json) {
  auto meta = kube::read_object(json);
  if (!meta) return tl::unexpected(meta.error());
  PodWalk walk;
  if (!walk.read(json)) return tl::unexpected("a pod: " + walk.problem());
  walk.pod.meta = std::move(*meta);
  return std::move(walk.pod);
}

}  // namespace carve::kubelet

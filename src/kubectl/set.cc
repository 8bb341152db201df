#include "kubectl/set.h"

#include "cluster/books/wished_slices.h"
#include "cluster/snapshot/cluster_pod.h"
#include "fronts/pod/quantity.h"
#include "kube/json_walk.h"

namespace carve::kubectl {
namespace {

// Returns the pod with its slices, or a sentence.
Result<cluster::ClusterPod, std::string> sliced_pod(std::string_view json) {
  const auto object = kube::read_object(json);
  if (!object) return tl::unexpected("the pod: " + object.error());
  cluster::ClusterPod pod = cluster::read_pod(*object);
  if (!pod.problem.empty()) return tl::unexpected(fmt::format("pod {}: {}", pod.full_name(), pod.problem));
  if (pod.slices) return pod;
  return tl::unexpected(
      pod.request ? fmt::format("pod {} waits for its slices; change the limits of its manifest, or see "
                                "kubectl carve explain {}",
                                pod.full_name(), pod.name)
                  : fmt::format("pod {} has no slice", pod.full_name()));
}

Result<std::string, std::string> chosen_container(const cluster::ClusterPod& pod, const std::string& named) {
  if (!named.empty()) return named;
  if (pod.slices->containers.size() == 1) return pod.slices->containers.begin()->first;
  std::string names;
  for (const auto& [name, slice] : pod.slices->containers) names += (names.empty() ? "" : ", ") + name;
  return tl::unexpected(
      fmt::format("pod {} has slices for {}; name one with --container", pod.full_name(), names));
}

class RefusalWalk final : public kube::JsonWalk {
 public:
  std::vector<RefusalNote> found;

 private:
  void value(std::span<const kube::JsonLevel> path, const std::string& text) override {
    if (path.size() < 3 || path[0].key != "items" || !path[1].is_list) return;
    path = path.subspan(2);
    if (kube::is_path(path, {"metadata", "name"})) event_.name = text;
    if (kube::is_path(path, {"note"})) event_.note = text;
    if (kube::is_path(path, {"reason"})) reason_ = text;
    if (kube::is_path(path, {"action"})) action_ = text;
  }
  void closed(std::span<const kube::JsonLevel> path) override {
    if (path.size() != 2 || path[0].key != "items") return;
    if (reason_ == "CarveRefused" && action_ == "ChangeSlice") found.push_back(event_);
    event_ = {};
    reason_.clear();
    action_.clear();
  }

  RefusalNote event_;
  std::string reason_, action_;
};

}  // namespace

Result<WishedPod, std::string> wished_pod(std::string_view pod_json, const SliceWish& asked) {
  const auto pod = sliced_pod(pod_json);
  if (!pod) return tl::unexpected(pod.error());
  const auto container = chosen_container(*pod, asked.container);
  if (!container) return tl::unexpected(container.error());
  const auto memory = fronts::parse_quantity(asked.memory);
  if (!memory)
    return tl::unexpected(
        fmt::format("--memory '{}' is not a size; write 4Gi or 4096Mi", asked.memory.substr(0, 80)));
  kube::PodWish wish;
  wish.containers[*container].memory = *memory;
  auto after = cluster::wished_slices(*pod->slices, wish);
  if (!after) return tl::unexpected(fmt::format("--memory {}: {}", asked.memory, after.error()));
  WishedPod out{.before = *pod->slices, .after = std::move(*after), .patch = ""};
  if (out.before != out.after)
    out.patch = fmt::format(R"({{"metadata":{{"annotations":{{"{}":{}}}}}}})", kube::wish_annotation,
                            api::quoted(api::write(wish)));
  return out;
}

Result<std::optional<kube::PodSlices>, std::string> answered_wish(std::string_view pod_json) {
  const auto object = kube::read_object(pod_json);
  if (!object) return tl::unexpected("the pod: " + object.error());
  if (object->annotations.contains(kube::wish_annotation)) return std::optional<kube::PodSlices>();
  auto pod = sliced_pod(pod_json);
  if (!pod) return tl::unexpected(pod.error());
  return std::move(pod->slices);
}

Result<std::vector<RefusalNote>, std::string> refusals_in(std::string_view events_json) {
  RefusalWalk walk;
  if (!walk.read(events_json)) return tl::unexpected("the events: " + walk.problem());
  return std::move(walk.found);
}

}  // namespace carve::kubectl

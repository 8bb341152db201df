#include "kubernetes/cli/set.h"

#include "kubernetes/api/json_walk.h"
#include "kubernetes/coordinator/cache/resized_slices.h"
#include "kubernetes/coordinator/snapshot/cluster_pod.h"
#include "kubernetes/format/quantity.h"

namespace carve::kubernetes::cli {
namespace {

// Returns the pod with its slices, or a message.
Result<coordinator::ClusterPod, std::string> sliced_pod(std::string_view json) {
  const auto object = kubernetes::read_object(json);
  if (!object) return tl::unexpected("the pod: " + object.error());
  coordinator::ClusterPod pod = coordinator::read_pod(*object);
  if (!pod.problem.empty()) return tl::unexpected(fmt::format("pod {}: {}", pod.full_name(), pod.problem));
  if (pod.slices) return pod;
  return tl::unexpected(
      pod.request
          ? fmt::format(
                "pod {} is waiting for its slices; change the limits in its manifest, or find out why with "
                "'kubectl carve explain {}'",
                pod.full_name(), pod.name)
          : fmt::format("pod {} has no slice", pod.full_name()));
}

Result<std::string, std::string> chosen_container(const coordinator::ClusterPod& pod,
                                                  const std::string& named) {
  if (!named.empty()) return named;
  if (pod.slices->containers.size() == 1) return pod.slices->containers.begin()->first;
  std::string names;
  for (const auto& [name, slice] : pod.slices->containers) names += (names.empty() ? "" : ", ") + name;
  return tl::unexpected(
      fmt::format("pod {} has slices for {}; select one with --container", pod.full_name(), names));
}

class RefusalWalk final : public kubernetes::JsonWalk {
 public:
  std::vector<RefusalNote> found;

 private:
  void value(std::span<const kubernetes::JsonLevel> path, const std::string& text) override {
    if (path.size() < 3 || path[0].key != "items" || !path[1].is_list) return;
    path = path.subspan(2);
    if (kubernetes::is_path(path, {"metadata", "name"})) event_.name = text;
    if (kubernetes::is_path(path, {"note"})) event_.note = text;
    if (kubernetes::is_path(path, {"reason"})) reason_ = text;
    if (kubernetes::is_path(path, {"action"})) action_ = text;
  }
  void closed(std::span<const kubernetes::JsonLevel> path) override {
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

Result<ResizedPod, std::string> resized_pod(std::string_view pod_json, const SliceResize& asked) {
  const auto pod = sliced_pod(pod_json);
  if (!pod) return tl::unexpected(pod.error());
  const auto container = chosen_container(*pod, asked.container);
  if (!container) return tl::unexpected(container.error());
  const auto memory = kubernetes::parse_quantity(asked.memory);
  if (!memory)
    return tl::unexpected(
        fmt::format("--memory '{}' is not a size; write 4Gi or 4096Mi", asked.memory.substr(0, 80)));
  kubernetes::PodResize resize;
  resize.containers[*container].memory = *memory;
  auto after = coordinator::resized_slices(*pod->slices, resize);
  if (!after) return tl::unexpected(fmt::format("--memory {}: {}", asked.memory, after.error()));
  ResizedPod out{.before = *pod->slices, .after = coordinator::changed_slices(*after, {}), .patch = ""};
  if (out.before != out.after)
    out.patch = fmt::format(R"({{"metadata":{{"annotations":{{"{}":{}}}}}}})", kubernetes::resize_annotation,
                            api::quoted(api::write(resize)));
  return out;
}

Result<ResizeProgress, std::string> resize_progress(std::string_view pod_json) {
  using State = ResizeProgress::State;
  const auto object = kubernetes::read_object(pod_json);
  if (!object) return tl::unexpected("the pod: " + object.error());
  if (object->annotations.contains(kubernetes::resize_annotation)) return ResizeProgress{};
  auto pod = sliced_pod(pod_json);
  if (!pod) return tl::unexpected(pod.error());
  const State state = coordinator::is_changing(*pod->slices) ? State::waits_for_node : State::ended;
  return ResizeProgress{.state = state, .slices = std::move(*pod->slices)};
}

Result<std::vector<RefusalNote>, std::string> refusals_in(std::string_view events_json) {
  RefusalWalk walk;
  if (!walk.read(events_json)) return tl::unexpected("the events: " + walk.problem());
  return std::move(walk.found);
}

}  // namespace carve::kubernetes::cli

// kubectl carve set: writes the wish into the pod, and waits until the coordinator has answered it.
#include <algorithm>
#include <chrono>
#include <thread>

#include "cluster/books/wished_slices.h"
#include "kubectl/set.h"
#include "kubectl/verb_tools.h"

namespace carve::kubectl {
namespace {

constexpr std::chrono::seconds answer_patience{30};  // A coordinator that takes over needs 15 s.
constexpr std::chrono::milliseconds answer_interval{500};

// Returns the names of refusals, and the notes of those that are not among `known`.
std::vector<RefusalNote> refusals(const VerbOptions& options, const std::vector<RefusalNote>& known) {
  const auto events =
      get(options, fmt::format("/apis/events.k8s.io/v1/namespaces/{}/events?fieldSelector={}",
                               escaped(options.name_space), escaped("regarding.name=" + options.pod)));
  auto found = events ? refusals_in(*events) : Result<std::vector<RefusalNote>, std::string>({});
  if (!found) return {};
  std::erase_if(*found, [&](const RefusalNote& note) {
    return std::ranges::find(known, note.name, &RefusalNote::name) != known.end();
  });
  return std::move(*found);
}

int print_answer(const VerbOptions& options, const WishedPod& pod, const kube::PodSlices& now,
                 const std::vector<RefusalNote>& known) {
  if (now == pod.after) {
    fmt::print("pod {}/{}: {}; what scheduler and quotas count for the pod stays what was asked\n",
               options.name_space, options.pod, cluster::difference(pod.before, now));
    return 0;
  }
  const std::vector<RefusalNote> notes = refusals(options, known);
  return complain(notes.empty()
                      ? fmt::format("pod {}/{} keeps its amounts; kubectl describe pod {} has the reason",
                                    options.name_space, options.pod, options.pod)
                      : notes.back().note);
}

}  // namespace

int set_slice(const VerbOptions& given) {
  VerbOptions options = given;
  if (options.name_space.empty()) options.name_space = "default";
  const std::string path =
      fmt::format("/api/v1/namespaces/{}/pods/{}", escaped(options.name_space), escaped(options.pod));
  const auto object = get(options, path);
  if (!object) return complain(object.error());
  const auto pod = wished_pod(*object, {.container = options.container, .memory = options.memory});
  if (!pod) return complain(pod.error());
  if (pod->patch.empty()) {
    fmt::print("pod {}/{} has these amounts\n", options.name_space, options.pod);
    return 0;
  }
  const std::vector<RefusalNote> known = refusals(options, {});
  const auto written =
      run_kubectl(options.kubectl, {"patch", "pod", options.pod, "--namespace=" + options.name_space,
                                    "--type=merge", "--patch=" + pod->patch});
  if (!written) return complain(written.error());
  const auto end = std::chrono::steady_clock::now() + answer_patience;
  while (std::chrono::steady_clock::now() < end) {
    const auto now = get(options, path);
    if (!now) return complain(now.error());
    const auto answer = answered_wish(*now);
    if (!answer) return complain(answer.error());
    if (*answer) return print_answer(options, *pod, **answer, known);
    std::this_thread::sleep_for(answer_interval);
  }
  return complain(
      fmt::format("the wish of pod {}/{} is written, and no coordinator has answered for {} s; see "
                  "kubectl carve doctor",
                  options.name_space, options.pod, answer_patience.count()));
}

}  // namespace carve::kubectl

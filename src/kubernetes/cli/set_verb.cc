// kubectl carve set: writes the resize request into the pod and waits for the coordinator's and the node's
// answers.
#include <algorithm>
#include <chrono>
#include <thread>

#include "kubernetes/cli/set.h"
#include "kubernetes/cli/verb_tools.h"
#include "kubernetes/coordinator/cache/resized_slices.h"
#include "wire/api/percent.h"

namespace carve::kubernetes::cli {
namespace {

constexpr std::chrono::seconds answer_patience{30};  // A standby coordinator takes over within 15 s.
constexpr std::chrono::milliseconds answer_interval{500};

// Returns the names of the rejection events, and the notes of those that are not in `known`.
std::vector<RefusalNote> refusals(const VerbOptions& options, const std::vector<RefusalNote>& known) {
  const auto events = get(options, fmt::format("/apis/events.k8s.io/v1/namespaces/{}/events?fieldSelector={}",
                                               api::percent_encoded(options.name_space),
                                               api::percent_encoded("regarding.name=" + options.pod)));
  auto found = events ? refusals_in(*events) : Result<std::vector<RefusalNote>, std::string>({});
  if (!found) return {};
  std::erase_if(*found, [&](const RefusalNote& note) {
    return std::ranges::find(known, note.name, &RefusalNote::name) != known.end();
  });
  return std::move(*found);
}

std::string unanswered(const VerbOptions& options, const ResizeProgress& progress) {
  if (progress.state == ResizeProgress::State::waits_for_node)
    return fmt::format(
        "node {} has not changed the slice of pod {}/{} for {} s; the larger amount stays reserved until the "
        "change is done. See kubectl carve nodes {}",
        progress.slices.node, options.name_space, options.pod, answer_patience.count(), progress.slices.node);
  return fmt::format(
      "the change of pod {}/{} is requested, but no coordinator has answered for {} s; see kubectl carve "
      "doctor",
      options.name_space, options.pod, answer_patience.count());
}

int print_answer(const VerbOptions& options, const ResizedPod& pod, const kubernetes::PodSlices& now,
                 const std::vector<RefusalNote>& known) {
  if (now == pod.after) {
    fmt::print("pod {}/{}: {}; the scheduler and quotas still count the pod's limits\n", options.name_space,
               options.pod, coordinator::difference(pod.before, now));
    return 0;
  }
  const std::vector<RefusalNote> notes = refusals(options, known);
  return complain(notes.empty()
                      ? fmt::format("pod {}/{} keeps its amounts; kubectl describe pod {} shows the reason",
                                    options.name_space, options.pod, options.pod)
                      : notes.back().note);
}

}  // namespace

int set_slice(const VerbOptions& given) {
  VerbOptions options = given;
  const auto name = pod_name(given.pod);
  if (!name) return complain(name.error());
  options.pod = *name;
  options.name_space = namespace_of(given);
  const std::string path =
      fmt::format("/api/v1/namespaces/{}/pods/{}", api::percent_encoded(options.name_space),
                  api::percent_encoded(options.pod));
  const auto object = get(options, path);
  if (!object) return complain(object.error());
  const auto pod = resized_pod(*object, {.container = options.container, .memory = options.memory});
  if (!pod) return complain(pod.error());
  if (pod->patch.empty()) {
    fmt::print("pod {}/{} already has these amounts\n", options.name_space, options.pod);
    return 0;
  }
  const std::vector<RefusalNote> known = refusals(options, {});
  const auto written =
      run_kubectl(options.kubectl, {"patch", "pod", options.pod, "--namespace=" + options.name_space,
                                    "--type=merge", "--patch=" + pod->patch});
  if (!written) return complain(written.error());
  const auto end = std::chrono::steady_clock::now() + answer_patience;
  ResizeProgress progress;
  while (std::chrono::steady_clock::now() < end) {
    const auto now = get(options, path);
    if (!now) return complain(now.error());
    auto read = resize_progress(*now);
    if (!read) return complain(read.error());
    progress = std::move(*read);
    if (progress.state == ResizeProgress::State::ended)
      return print_answer(options, *pod, progress.slices, known);
    std::this_thread::sleep_for(answer_interval);
  }
  return complain(unanswered(options, progress));
}

}  // namespace carve::kubernetes::cli

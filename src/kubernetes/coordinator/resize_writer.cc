#include "kubernetes/coordinator/resize_writer.h"

#include <algorithm>
#include <set>

#include "kubernetes/coordinator/cache/resized_slices.h"
#include "kubernetes/coordinator/cache/slice_changes.h"
#include "kubernetes/coordinator/extender/binder.h"
#include "kubernetes/format/pod_request.h"
#include "os/log.h"

namespace carve::kubernetes::coordinator {
namespace {

std::string path_of(const kubernetes::ObjectMeta& pod) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}", pod.name_space, pod.name);
}

std::string text_of(const kubernetes::ObjectMeta& pod, const char* annotation) {
  const auto found = pod.annotations.find(annotation);
  return found == pod.annotations.end() ? "" : found->second;
}

bool has_resize(const kubernetes::ObjectMeta& pod) {
  return pod.annotations.contains(kubernetes::resize_annotation);
}

// Searches the text, so that the slices of 50,000 listed pods need not be parsed.
bool may_be_changing(const kubernetes::ObjectMeta& pod) {
  const auto slices = pod.annotations.find(kubernetes::slices_annotation);
  return slices != pod.annotations.end() && slices->second.find("memory_before") != std::string::npos;
}

bool needs_answer(const kubernetes::ObjectMeta& pod) {
  return !pod.is_deleting && (has_resize(pod) || may_be_changing(pod));
}

}  // namespace

void ResizeWriter::listed(const kubernetes::ObjectsByUid& pods) {
  resizing_.clear();
  for (const auto& [uid, pod] : pods)
    if (needs_answer(pod)) resizing_.emplace(uid, pod);
  std::erase_if(done_, [&](const auto& done) { return !resizing_.contains(done.first); });
}

void ResizeWriter::consider_all() {
  for (const auto& [uid, pod] : kubernetes::ObjectsByUid(resizing_)) consider(pod);
}

void ResizeWriter::forget(const std::string& uid) {
  resizing_.erase(uid);
  done_.erase(uid);
}

void ResizeWriter::node_seen(const kubernetes::ObjectMeta& node) {
  results_.erase(node.name);
  const auto annotation = node.annotations.find(kubernetes::ledger_annotation);
  if (annotation == node.annotations.end()) return;
  auto ledger = kubernetes::read_ledger(annotation->second);
  if (!ledger || ledger->results.empty()) return;
  std::vector<std::string> uids;
  for (const kubernetes::ChangeResult& result : ledger->results) uids.push_back(result.uid);
  results_[node.name] = std::move(ledger->results);
  for (const std::string& uid : uids)
    if (const auto pod = resizing_.find(uid); pod != resizing_.end())
      consider(kubernetes::ObjectMeta(pod->second));
}

void ResizeWriter::consider(const kubernetes::ObjectMeta& pod) {
  if (!needs_answer(pod)) return forget(pod.uid);
  resizing_.insert_or_assign(pod.uid, pod);
  const auto last = done_.find(pod.uid);
  const bool is_answered = last != done_.end() && last->second == pod.resource_version;
  if (is_answered || answers_.contains(pod.uid) || !fence_().empty()) return;
  const auto before = kubernetes::read_slices(text_of(pod, kubernetes::slices_annotation));
  if (before && is_changing(*before) && end_change(pod, *before)) return;
  if (!has_resize(pod)) return;
  const auto resize = kubernetes::read_resize(text_of(pod, kubernetes::resize_annotation));
  if (!resize) return refuse(pod, resize.error());
  if (!before) return refuse(pod, "the pod has no slices yet; change the limits of its manifest");
  const auto after = reserve_change(cache_, pod.uid, *resize);
  if (!after) return refuse(pod, after.error());
  answers_[pod.uid] = {.step = Step::begin, .pod = pod, .before = *before, .after = *after, .call = {}};
  write_slices(pod.uid);
}

void ResizeWriter::write_slices(const std::string& uid) {
  const Answer& answer = answers_.at(uid);
  const std::string slices =
      fmt::format(R"("{}":{})", kubernetes::slices_annotation, api::quoted(api::write(answer.after)));
  patch(uid, answer.step == Step::end
                 ? slices
                 : fmt::format(R"({},"{}":null)", slices, kubernetes::resize_annotation));
}

// Writes the pod if the node has reported the outcome of the change. Returns whether it has.
bool ResizeWriter::end_change(const kubernetes::ObjectMeta& pod, const kubernetes::PodSlices& slices) {
  const std::vector<kubernetes::ChangeResult>& results = results_[slices.node];
  std::set<std::string> rejected, all;
  std::string why;
  for (const auto& [container, slice] : slices.containers) {
    if (!slice.memory_before) continue;
    all.insert(container);
    const auto result = std::ranges::find_if(results, [&](const kubernetes::ChangeResult& each) {
      return each.uid == pod.uid && each.container == container && !slice.parts.empty() &&
             each.memory == slice.parts.front().memory.count;
    });
    if (result == results.end()) return false;
    if (result->refusal.empty()) continue;
    rejected.insert(container);
    why += (why.empty() ? "" : "; ") + result->refusal;
  }
  answers_[pod.uid] = {.step = Step::end,
                       .pod = pod,
                       .before = changed_slices(slices, all),
                       .after = changed_slices(slices, rejected),
                       .call = {}};
  if (rejected.empty()) {
    write_slices(pod.uid);
    return true;
  }
  events_.write(pod, {.reason = "CarveRefused", .action = "ChangeSlice", .message = why},
                [this, uid = pod.uid] {
                  if (!answers_.contains(uid)) return;
                  if (const std::string problem = fence_(); !problem.empty()) return give_up(uid, problem);
                  write_slices(uid);
                });
  return true;
}

// Writes the event first, so that the reason exists when a user sees that the request was removed.
void ResizeWriter::refuse(const kubernetes::ObjectMeta& pod, const std::string& message) {
  answers_[pod.uid] = {.step = Step::reject, .pod = pod, .before = {}, .after = {}, .call = {}};
  events_.write(pod, {.reason = "CarveRefused", .action = "ChangeSlice", .message = message},
                [this, uid = pod.uid] {
                  if (!answers_.contains(uid)) return;
                  if (const std::string why = fence_(); !why.empty()) return give_up(uid, why);
                  patch(uid, fmt::format(R"("{}":null)", kubernetes::resize_annotation));
                });
}

// The coordinator may only update the status of pods, but such a write can also change annotations.
void ResizeWriter::patch(const std::string& uid, const std::string& annotations) {
  Answer& answer = answers_.at(uid);
  answer.call =
      client_.send({.method = "PATCH",
                    .target = path_of(answer.pod) + "/status?timeout=2s",
                    .body = fmt::format(R"({{"metadata":{{"resourceVersion":{},"annotations":{{{}}}}}}})",
                                        api::quoted(answer.pod.resource_version), annotations),
                    .content_type = kubernetes::merge_patch_type,
                    .accept = kubernetes::metadata_object,
                    .deadline_ns = bind_deadline_ns},
                   [this, uid](const kubernetes::ApiAnswer& a) { answered(uid, a); });
}

void ResizeWriter::answered(const std::string& uid, const kubernetes::ApiAnswer& answer) {
  if (answer.is_success()) {
    if (const auto pod = kubernetes::read_object(answer.body)) return changed(uid, *pod);
    return read_pod(uid);
  }
  // After a 409 the pod has a newer version, which the watch delivers with its resize request.
  const bool is_known = kubernetes::refuses_write(answer.status) || !answer.may_have_happened;
  if (answer.status == 404) return give_up_gone(uid);
  if (is_known) return give_up(uid, answer.problem);
  if (answer.status == 409) return read_pod(uid);
  answers_.at(uid).call = client_.after(find_out_after_ns, [this, uid] { read_pod(uid); });
}

void ResizeWriter::read_pod(const std::string& uid) {
  Answer& answer = answers_.at(uid);
  answer.call = client_.send({.target = path_of(answer.pod), .accept = kubernetes::metadata_object},
                             [this, uid](const kubernetes::ApiAnswer& a) { pod_answered(uid, a); });
}

void ResizeWriter::pod_answered(const std::string& uid, const kubernetes::ApiAnswer& answer) {
  if (answer.status == 404) return give_up_gone(uid);
  const auto pod = answer.is_success()
                       ? kubernetes::read_object(answer.body)
                       : Result<kubernetes::ObjectMeta, std::string>(tl::unexpected(answer.problem));
  if (!pod) {
    answers_.at(uid).call = client_.after(find_out_after_ns, [this, uid] { read_pod(uid); });
    return;
  }
  const auto slices = kubernetes::read_slices(text_of(*pod, kubernetes::slices_annotation));
  const Answer& waiting = answers_.at(uid);
  const bool has_resize =
      text_of(*pod, kubernetes::resize_annotation) == text_of(waiting.pod, kubernetes::resize_annotation);
  const bool is_written = waiting.step != Step::reject && slices && *slices == waiting.after;
  if (pod->uid == uid && is_written && (waiting.step == Step::end || !has_resize)) return changed(uid, *pod);
  if (pod->uid == uid && waiting.step == Step::reject && has_resize && fence_().empty()) {
    answers_.at(uid).pod = *pod;
    return patch(uid, fmt::format(R"("{}":null)", kubernetes::resize_annotation));
  }
  give_up(uid, "the pod has changed meanwhile");
  if (pod->uid == uid) consider(*pod);
}

void ResizeWriter::changed(const std::string& uid, const kubernetes::ObjectMeta& pod) {
  const auto answer = answers_.extract(uid);
  const Answer& done = answer.mapped();
  done_[uid] = done.pod.resource_version;
  if (done.step == Step::reject) return;
  cache_.set_pod(pod);
  if (done.step == Step::begin || done.before == done.after) return;
  os::log::info("pod {}/{}: {}", pod.name_space, pod.name, difference(done.before, done.after));
  events_.write(pod, {.is_warning = false,
                      .reason = "CarveSliceChanged",
                      .action = "ChangeSlice",
                      .message = difference(done.before, done.after) +
                                 "; the scheduler and quotas still count the pod's limits"});
}

// The response may be older or newer than the watch.
void ResizeWriter::give_up_gone(const std::string& uid) {
  give_up(uid, "the pod is gone");
  forget(uid);
}

void ResizeWriter::give_up(const std::string& uid, const std::string& problem) {
  const auto answer = answers_.extract(uid);
  const kubernetes::ObjectMeta& pod = answer.mapped().pod;
  if (answer.mapped().step == Step::begin) cache_.end_change(uid);
  os::log::warning("cannot complete the resize request of pod {}/{} yet: {}", pod.name_space, pod.name,
                   problem);
}

}  // namespace carve::kubernetes::coordinator

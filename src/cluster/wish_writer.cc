#include "cluster/wish_writer.h"

#include "cluster/books/wished_slices.h"
#include "cluster/extender/binder.h"
#include "os/log.h"
#include "wire/kube/pod_request.h"

namespace carve::cluster {
namespace {

std::string path_of(const kube::ObjectMeta& pod) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}", pod.name_space, pod.name);
}

std::string text_of(const kube::ObjectMeta& pod, const char* annotation) {
  const auto found = pod.annotations.find(annotation);
  return found == pod.annotations.end() ? "" : found->second;
}

bool has_wish(const kube::ObjectMeta& pod) {
  return pod.annotations.contains(kube::wish_annotation) && !pod.is_deleting;
}

}  // namespace

void WishWriter::listed(const kube::ObjectsByUid& pods) {
  wishing_.clear();
  for (const auto& [uid, pod] : pods)
    if (has_wish(pod)) wishing_.emplace(uid, pod);
  std::erase_if(done_, [&](const auto& done) { return !wishing_.contains(done.first); });
}

void WishWriter::consider_all() {
  for (const auto& [uid, pod] : kube::ObjectsByUid(wishing_)) consider(pod);
}

void WishWriter::forget(const std::string& uid) {
  wishing_.erase(uid);
  done_.erase(uid);
}

void WishWriter::consider(const kube::ObjectMeta& pod) {
  if (!has_wish(pod)) return forget(pod.uid);
  wishing_.insert_or_assign(pod.uid, pod);
  const auto last = done_.find(pod.uid);
  const bool is_answered = last != done_.end() && last->second == pod.resource_version;
  if (is_answered || answers_.contains(pod.uid) || !fence_().empty()) return;
  const auto wish = kube::read_wish(text_of(pod, kube::wish_annotation));
  if (!wish) return refuse(pod, wish.error());
  const auto before = kube::read_slices(text_of(pod, kube::slices_annotation));
  if (!before) return refuse(pod, "the pod has no slices yet; change the limits of its manifest");
  const auto after = books_.begin_change(pod.uid, *wish);
  if (!after) return refuse(pod, after.error());
  answers_[pod.uid] = {.pod = pod, .before = *before, .after = *after, .is_changed = true, .call = {}};
  patch(pod.uid, fmt::format(R"("{}":{},"{}":null)", kube::slices_annotation, api::quoted(api::write(*after)),
                             kube::wish_annotation));
}

// The event first: who waits for the end of the wish then finds the reason.
void WishWriter::refuse(const kube::ObjectMeta& pod, const std::string& sentence) {
  answers_[pod.uid] = {.pod = pod, .before = {}, .after = {}, .call = {}};
  events_.write(pod, {.reason = "CarveRefused", .action = "ChangeSlice", .sentence = sentence},
                [this, uid = pod.uid] {
                  if (!answers_.contains(uid)) return;
                  if (const std::string why = fence_(); !why.empty()) return give_up(uid, why);
                  patch(uid, fmt::format(R"("{}":null)", kube::wish_annotation));
                });
}

// The coordinator may change the status of pods, whose writes may change annotations too.
void WishWriter::patch(const std::string& uid, const std::string& annotations) {
  Answer& answer = answers_.at(uid);
  answer.call =
      client_.send({.method = "PATCH",
                    .target = path_of(answer.pod) + "/status?timeout=2s",
                    .body = fmt::format(R"({{"metadata":{{"resourceVersion":{},"annotations":{{{}}}}}}})",
                                        api::quoted(answer.pod.resource_version), annotations),
                    .content_type = kube::merge_patch_type,
                    .accept = kube::metadata_object,
                    .deadline_ns = bind_deadline_ns},
                   [this, uid](const kube::ApiAnswer& a) { answered(uid, a); });
}

void WishWriter::answered(const std::string& uid, const kube::ApiAnswer& answer) {
  if (answer.is_success()) {
    if (const auto pod = kube::read_object(answer.body)) return changed(uid, *pod);
    return read_pod(uid);
  }
  // 409: the pod has a newer version. The watch brings it, with its wish.
  const bool is_known = kube::refuses_write(answer.status) || !answer.may_have_happened;
  if (answer.status == 404) return give_up_gone(uid);
  if (is_known) return give_up(uid, answer.problem);
  if (answer.status == 409) return read_pod(uid);
  answers_.at(uid).call = client_.after(find_out_after_ns, [this, uid] { read_pod(uid); });
}

void WishWriter::read_pod(const std::string& uid) {
  Answer& answer = answers_.at(uid);
  answer.call = client_.send({.target = path_of(answer.pod), .accept = kube::metadata_object},
                             [this, uid](const kube::ApiAnswer& a) { pod_answered(uid, a); });
}

void WishWriter::pod_answered(const std::string& uid, const kube::ApiAnswer& answer) {
  if (answer.status == 404) return give_up_gone(uid);
  const auto pod = answer.is_success()
                       ? kube::read_object(answer.body)
                       : Result<kube::ObjectMeta, std::string>(tl::unexpected(answer.problem));
  if (!pod) {
    answers_.at(uid).call = client_.after(find_out_after_ns, [this, uid] { read_pod(uid); });
    return;
  }
  const auto slices = kube::read_slices(text_of(*pod, kube::slices_annotation));
  const Answer& waiting = answers_.at(uid);
  const bool has_wish = text_of(*pod, kube::wish_annotation) == text_of(waiting.pod, kube::wish_annotation);
  if (pod->uid == uid && waiting.is_changed && slices && *slices == waiting.after && !has_wish)
    return changed(uid, *pod);
  if (pod->uid == uid && !waiting.is_changed && has_wish && fence_().empty()) {
    answers_.at(uid).pod = *pod;
    return patch(uid, fmt::format(R"("{}":null)", kube::wish_annotation));
  }
  give_up(uid, "the pod has changed meanwhile");
  if (pod->uid == uid) consider(*pod);
}

void WishWriter::changed(const std::string& uid, const kube::ObjectMeta& pod) {
  const auto answer = answers_.extract(uid);
  const Answer& done = answer.mapped();
  done_[uid] = done.pod.resource_version;
  if (!done.is_changed) return;
  books_.set_pod(pod);
  os::log::info("pod {}/{}: {}", pod.name_space, pod.name, difference(done.before, done.after));
  events_.write(pod, {.is_warning = false,
                      .reason = "CarveSliceChanged",
                      .action = "ChangeSlice",
                      .sentence = difference(done.before, done.after) +
                                  "; what scheduler and quotas count for the pod stays what was asked"});
}

// The answer may be ahead of the watch, and behind it.
void WishWriter::give_up_gone(const std::string& uid) {
  give_up(uid, "the pod is gone");
  forget(uid);
}

void WishWriter::give_up(const std::string& uid, const std::string& problem) {
  const auto answer = answers_.extract(uid);
  const kube::ObjectMeta& pod = answer.mapped().pod;
  if (answer.mapped().is_changed) books_.end_change(uid);
  os::log::warning("the wish of pod {}/{} is not answered yet: {}", pod.name_space, pod.name, problem);
}

}  // namespace carve::cluster

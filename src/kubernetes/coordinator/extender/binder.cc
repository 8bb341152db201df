#include "kubernetes/coordinator/extender/binder.h"

#include <algorithm>

#include "kubernetes/api/answers.h"
#include "kubernetes/coordinator/cache/cache_views.h"
#include "wire/api/json.h"

namespace carve::kubernetes::coordinator {
namespace {

// Returns whether the text is safe as a path segment. Kubernetes names contain no characters that need
// escaping.
bool is_path_word(std::string_view word) {
  return !word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == word.npos &&
         word != "." && word != "..";
}

std::string pod_path(const BindQuestion& question) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}", question.name_space, question.pod);
}

std::string body_of(const BindQuestion& question, const kubernetes::PodSlices& slices) {
  const auto quoted = [](const std::string& text) { return api::quoted(text); };
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Binding","metadata":{{"name":{},"namespace":{},"uid":{},)"
      R"("annotations":{{"{}":{}}}}},"target":{{"apiVersion":"v1","kind":"Node","name":{}}}}})",
      quoted(question.pod), quoted(question.name_space), quoted(question.uid), kubernetes::slices_annotation,
      quoted(api::write(slices)), quoted(question.node));
}

}  // namespace

void Binder::bind(const BindQuestion& question, const kubernetes::PodSlices& slices, Done done) {
  const std::string uid = question.uid;
  const auto [write, is_new] = writes_.try_emplace(uid);
  if (!is_new) {
    // The scheduler retries before the outcome of the first write is known.
    write->second.call.reset();
    write->second.may_be_done = true;
    write->second.is_done = false;
    if (write->second.done) write->second.done("the scheduler sent a newer request");
  }
  write->second.question = question;
  write->second.done = std::move(done);
  write->second.problem.clear();
  if (!is_path_word(question.name_space) || !is_path_word(question.pod)) {
    write->second.call = client_.after(0, [this, uid] {
      cache_.release(uid);
      finish(uid, "the pod's name or namespace is not valid");
    });
    return;
  }
  write->second.call =
      client_.send({.method = "POST",
                    .target = fmt::format("{}/binding?timeout={}s", pod_path(question), server_bind_seconds),
                    .body = body_of(question, slices),
                    .deadline_ns = bind_deadline_ns},
                   [this, uid](const kubernetes::ApiAnswer& answer) { answered(uid, answer); });
}

void Binder::answered(const std::string& uid, const kubernetes::ApiAnswer& answer) {
  if (answer.is_success()) return confirm_later(uid);
  Write& write = writes_.at(uid);
  write.problem = answer.problem;
  const bool is_unsent = answer.status == 0 && !answer.may_have_happened;
  if (is_unsent && !write.may_be_done) {
    cache_.release(uid);
    return finish(uid, answer.problem);
  }
  // On a 409 the pod is already bound, perhaps by the first attempt, or another pod now has its name. The
  // client may have sent the request twice, so the pod is read even if its only attempt was rejected.
  if (answer.status == 409 || (kubernetes::refuses_write(answer.status) && !write.may_be_done))
    return read_pod(uid);
  // The outcome is unknown. The scheduler retries, and the pod is read after the write has ended.
  write.may_be_done = true;
  if (Done done = std::exchange(write.done, nullptr)) done(answer.problem);
  find_out_later(uid);
}

void Binder::find_out_later(const std::string& uid) {
  writes_.at(uid).call = client_.after(find_out_after_ns, [this, uid] { read_pod(uid); });
}

void Binder::confirm_later(const std::string& uid) {
  Write& write = writes_.at(uid);
  write.is_done = true;
  write.call = client_.after(confirm_after_ns, [this, uid] {
    if (is_unconfirmed(cache_, uid))
      read_pod(uid);
    else
      finish(uid, "");
  });
  if (Done done = std::exchange(write.done, nullptr)) done("");
}

void Binder::read_pod(const std::string& uid) {
  Write& write = writes_.at(uid);
  write.call = client_.send({.target = pod_path(write.question), .accept = kubernetes::metadata_object},
                            [this, uid](const kubernetes::ApiAnswer& answer) { pod_answered(uid, answer); });
}

void Binder::pod_answered(const std::string& uid, const kubernetes::ApiAnswer& answer) {
  const Write& write = writes_.at(uid);
  if (answer.status == 404) {
    cache_.release(uid);
    return finish(uid, fmt::format("pod {}/{} is gone", write.question.name_space, write.question.pod));
  }
  const auto pod = answer.is_success()
                       ? kubernetes::read_object(answer.body)
                       : Result<kubernetes::ObjectMeta, std::string>(tl::unexpected(answer.problem));
  if (!pod) return find_out_later(uid);
  if (pod->uid != uid) {
    cache_.release(uid);
    return finish(uid, fmt::format("pod {}/{} was deleted and created again", pod->name_space, pod->name));
  }
  if (pod->annotations.contains(kubernetes::slices_annotation)) {
    cache_.set_pod(*pod);
    const auto slices = kubernetes::read_slices(pod->annotations.at(kubernetes::slices_annotation));
    const bool is_here = slices && slices->node == write.question.node;
    return finish(
        uid, is_here ? "" : fmt::format("pod {}/{} is bound to another node", pod->name_space, pod->name));
  }
  cache_.release(uid);
  finish(uid, fmt::format("pod {}/{} was not bound: {}", pod->name_space, pod->name, write.problem));
}

size_t Binder::open() const {
  return static_cast<size_t>(
      std::ranges::count_if(writes_, [](const auto& entry) { return !entry.second.is_done; }));
}

// Destroys the call whose response is being handled, so callers must do nothing afterwards.
void Binder::finish(const std::string& uid, const std::string& error) {
  auto write = writes_.extract(uid);
  if (write.mapped().done) write.mapped().done(error);
}

}  // namespace carve::kubernetes::coordinator

#include "controller/kubernetes/cluster_reconciler.h"

#include <algorithm>

#include "controller/kubernetes/custom_resources.h"
#include "controller/kubernetes/made_kinds.h"
#include "controller/kubernetes/workload_objects.h"
#include "core/invariant.h"
#include "os/log.h"

namespace carve::controller {

using api::Json;
using kubernetes::ApiAnswer;
using kubernetes::ApiRequest;
using kubernetes::ObjectMeta;

namespace {

const std::string made_by_carve = fmt::format("{}={}", managed_by_label, managed_by_carve);
constexpr kubernetes::Nanoseconds first_retry_ns = kubernetes::second_ns;
constexpr kubernetes::Nanoseconds max_wait_ns = 30 * kubernetes::second_ns;

}  // namespace

ClusterReconciler::ClusterReconciler(kubernetes::ApiClient& client, ClusterRegistry& registry,
                                     Settings settings)
    : client_(client), registry_(registry), settings_(std::move(settings)) {
  watch_kinds();
  for (const char* kind : {ClusterState::deployment, ClusterState::address, "ControllerRevision", "Pod"})
    watch_made(watches_, kind, made_by_carve);
  discover();
}

void ClusterReconciler::watch_kinds() {
  for (const objects::KindText& text : objects::kinds) {
    const objects::Kind kind = text.value;
    if (!is_custom_resource(kind)) continue;
    watches_.push_back(std::make_unique<kubernetes::ObjectWatch>(
        client_,
        kubernetes::Selection{.path = custom_resource_path(kind),
                              .label_selector = "",
                              .field_selector = "",
                              .is_whole = true,
                              .keeps_documents = true},
        kubernetes::ListWatch::Sink{.replaced = [this, kind](const auto& all) { custom_listed(kind, all); },
                                    .changed = [this, kind](const auto& one) { custom_changed(kind, one); },
                                    .removed = [this, kind](const auto& one) { custom_removed(kind, one); }},
        settings_.seed + watches_.size()));
  }
}

void ClusterReconciler::watch_made(Watches& watches, const char* kind, const std::string& label_selector) {
  watches.push_back(std::make_unique<kubernetes::ObjectWatch>(
      client_,
      kubernetes::Selection{.path = path_of(made_kind(kind)),
                            .label_selector = label_selector,
                            .field_selector = "",
                            .is_whole = true,
                            .keeps_documents = true},
      kubernetes::ListWatch::Sink{
          .replaced =
              [this, kind](const auto& all) {
                mark(state_.replace(kind, all));
                mark_queued();
              },
          .changed = [this, kind](const auto& one) { mark(state_.put(kind, one)); },
          .removed = [this, kind](const auto& one) { mark(state_.remove(kind, one)); }},
      settings_.seed + watches_.size() + kueue_watches_.size()));
}

bool ClusterReconciler::is_complete() const {
  return std::ranges::all_of(watches_, [](const auto& watch) { return watch->is_complete(); });
}

std::string ClusterReconciler::problem() const {
  for (const auto& watch : watches_)
    if (!watch->problem().empty()) return watch->problem();
  return "";
}

void ClusterReconciler::custom_listed(objects::Kind kind, const kubernetes::ObjectsByUid& all) {
  std::vector<CustomObject> customs;
  for (const auto& [uid, object] : all) {
    auto read = read_custom_object(kind, Json::parse(object.document, nullptr, false));
    if (read) customs.push_back(std::move(*read));
  }
  for (const std::string& uid : state_.uids())
    if (state_.find(uid)->object.key.kind == kind && !all.contains(uid)) {
      mark(state_.remove_custom(uid));
      work_.erase(uid);
    }
  registry_.replace(kind, customs);
  for (CustomObject& one : customs) mark(state_.put_custom(std::move(one)));
}

void ClusterReconciler::custom_changed(objects::Kind kind, const ObjectMeta& object) {
  auto read = read_custom_object(kind, Json::parse(object.document, nullptr, false));
  if (!read) return os::log::warning("{}", read.error());
  const CustomObject* known = state_.find(object.uid);
  if (known != nullptr && known->object.generation != read->object.generation) work_[object.uid].retry_at = 0;
  registry_.observe(*read);
  mark(state_.put_custom(std::move(*read)));
}

void ClusterReconciler::custom_removed(objects::Kind kind, const ObjectMeta& object) {
  ObjectKey key{.kind = kind, .name = object.name};
  if (!is_cluster_scoped(kind)) key.namespace_ = object.name_space;
  registry_.forget(key, object.uid);
  mark(state_.remove_custom(object.uid));
  work_.erase(object.uid);
  publish_revisions({object.uid});
}

void ClusterReconciler::mark(const std::vector<std::string>& uids) {
  if (uids.empty()) return;
  publish_revisions(uids);
  dirty_.insert(uids.begin(), uids.end());
  schedule();
}

void ClusterReconciler::publish_revisions(const std::vector<std::string>& uids) {
  const os::MutexLock lock(mutex_);
  for (const std::string& uid : uids) {
    auto found = state_.revisions(uid);
    if (found.empty() || state_.find(uid) == nullptr)
      revisions_.erase(uid);
    else
      revisions_.insert_or_assign(uid, std::move(found));
  }
}

std::vector<ClusterRevision> ClusterReconciler::revisions(const std::string& uid) const {
  const os::MutexLock lock(mutex_);
  const auto found = revisions_.find(uid);
  return found == revisions_.end() ? std::vector<ClusterRevision>() : found->second;
}

void ClusterReconciler::take_over() {
  for (auto& [uid, work] : work_) work.retry_at = 0;
  mark(state_.uids());
}

// A callback of a watch is followed by others, so the objects are looked at after all of them.
void ClusterReconciler::schedule() {
  if (!soon_) soon_ = client_.after(0, [this] { run(); });
}

void ClusterReconciler::run() {
  const auto ended = std::move(soon_);
  if (!settings_.may_write() || !is_complete()) {
    // Acquiring the Lease calls take_over(); the last list marks its objects.
    if (settings_.may_write()) retry_ = client_.after(first_retry_ns, [this] { schedule(); });
    return;
  }
  const auto busy = std::ranges::count_if(work_, [](const auto& one) { return one.second.call != nullptr; });
  size_t room = max_requests - std::min<size_t>(static_cast<size_t>(busy), max_requests);
  for (auto it = dirty_.begin(); it != dirty_.end() && room > 0;) {
    const std::string uid = *it;
    if (work_[uid].call) {
      ++it;
      continue;
    }
    it = dirty_.erase(it);
    if (step(uid)) --room;
  }
  kubernetes::Nanoseconds next = 0;
  for (const auto& [uid, work] : work_)
    for (const kubernetes::Nanoseconds at : {work.retry_at, work.due_at})
      if (at > client_.now() && (next == 0 || at < next)) next = at;
  if (next == 0) return;
  retry_ = client_.after(next - client_.now(), [this] {
    for (const auto& [uid, work] : work_)
      for (const kubernetes::Nanoseconds at : {work.retry_at, work.due_at})
        if (at != 0 && at <= client_.now()) dirty_.insert(uid);
    schedule();
  });
}

bool ClusterReconciler::send(const std::string& uid, ApiRequest request, Answered answered) {
  Work& work = work_[uid];
  invariant(work.call == nullptr, "a custom resource has at most one request in progress");
  request.deadline_ns = write_deadline_ns;
  const std::string what = request.method + " " + request.target;
  work.call = client_.send(std::move(request),
                           [this, uid, what, answered = std::move(answered)](const ApiAnswer& answer) {
                             os::log::debug("{}: {}", what, answer.status);
                             const auto found = work_.find(uid);
                             if (found == work_.end()) return;  // The custom resource is gone.
                             const auto ended = std::move(found->second.call);
                             answered(answer);
                             dirty_.insert(uid);
                             schedule();
                           });
  return true;
}

void ClusterReconciler::failed(const std::string& uid, ClusterProblem problem) {
  Work& work = work_[uid];
  work.wait_ns = std::clamp(2 * work.wait_ns, first_retry_ns, max_wait_ns);
  work.retry_at = client_.now() + work.wait_ns;
  work.looked.clear();
  if (work.problem != problem) os::log::warning("object {}: {}: {}", uid, problem.reason, problem.message);
  work.problem = std::move(problem);
}

bool ClusterReconciler::step(const std::string& uid) {
  const CustomObject* custom = state_.find(uid);
  if (custom == nullptr) {
    work_.erase(uid);
    return false;
  }
  const objects::Kind kind = custom->object.key.kind;
  const bool is_queued = kind == objects::Kind::queue || kind == objects::Kind::job;
  if (is_queued && kueue_ != Kueue::missing && !is_kueue_complete()) return false;  // The last list marks it.
  if (custom->errors.empty() && !custom->object.is_ending && client_.now() >= work_[uid].retry_at) {
    if (objects::text_of(kind).is_workload && step_objects(uid, *custom)) return true;
    if (kind == objects::Kind::queue && step_queue(uid, *custom)) return true;
    if (kind == objects::Kind::job && step_job(uid, *custom)) return true;
  }
  return step_status(uid, *custom);
}

}  // namespace carve::controller

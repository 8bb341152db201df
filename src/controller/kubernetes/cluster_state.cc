#include "controller/kubernetes/cluster_state.h"

#include <algorithm>
#include <charconv>

#include "controller/kubernetes/json_members.h"
#include "controller/kubernetes/kueue_status.h"
#include "controller/kubernetes/made_kinds.h"
#include "controller/objects/job_form.h"
#include "core/utc.h"

namespace carve::controller {
namespace {

using api::Json;
using kubernetes::ObjectMeta;

constexpr const char* name_label = "app.kubernetes.io/name";
constexpr const char* pod_kind = "Pod";
constexpr const char* revision_kind = "ControllerRevision";

uint64_t version_of(const std::string& text) {
  uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

void add(std::vector<std::string>& out, const std::vector<std::string>& more) {
  out.insert(out.end(), more.begin(), more.end());
}

// Returns the uids of the object's owners: the controlling one, or all of a shared object.
std::vector<std::string> owners_of(const std::string& kind, const ObjectMeta& object, const Json& json) {
  if (!made_kind(kind).is_shared) return {object.controller_uid};
  std::vector<std::string> out;
  for (const Json& owner : member(member(json, "metadata"), "ownerReferences"))
    out.push_back(text_at(owner, "uid"));
  return out;
}

}  // namespace

const CustomObject* ClusterState::find(const std::string& uid) const {
  const auto found = customs_.find(uid);
  return found == customs_.end() ? nullptr : &found->second;
}

std::vector<std::string> ClusterState::uids() const {
  std::vector<std::string> out;
  for (const auto& [uid, custom] : customs_) out.push_back(uid);
  return out;
}

std::vector<const ClusterState::Made*> ClusterState::made_of(const std::string& owner,
                                                             std::string_view kind) const {
  std::vector<const Made*> out;
  const auto found = of_owner_.find(owner);
  if (found == of_owner_.end()) return out;
  for (const std::string& uid : found->second)
    if (const Made& made = made_.at(uid); kind.empty() || made.kind == kind) out.push_back(&made);
  return out;
}

const Json* ClusterState::owned(const std::string& uid, const std::string& kind) const {
  const auto found = made_of(uid, kind);
  return found.empty() ? nullptr : &found.front()->json;
}

const Json* ClusterState::owned_like(const std::string& uid, const Json& wanted) const {
  const Json& metadata = wanted["metadata"];
  for (const Made* made : made_of(uid, wanted["kind"].get<std::string>()))
    if (made->name == text_at(metadata, "name") && made->name_space == text_at(metadata, "namespace"))
      return &made->json;
  return nullptr;
}

std::vector<std::pair<std::string, const Json*>> ClusterState::owned_objects(const std::string& uid) const {
  std::vector<std::pair<std::string, const Json*>> out;
  for (const Made* made : made_of(uid, ""))
    if (made->kind != revision_kind) out.emplace_back(made->kind, &made->json);
  return out;
}

std::vector<const Json*> ClusterState::pods(const ObjectKey& key) const {
  std::vector<const Made*> found;
  if (const auto at = pods_of_workload_.find({key.namespace_, key.name}); at != pods_of_workload_.end())
    for (const std::string& uid : at->second) found.push_back(&made_.at(uid));
  std::ranges::sort(found, {}, &Made::name);
  std::vector<const Json*> out;
  for (const Made* made : found) out.push_back(&made->json);
  return out;
}

std::vector<ClusterRevision> ClusterState::revisions(const std::string& uid) const {
  std::vector<ClusterRevision> out;
  for (const Made* of : made_of(uid, revision_kind)) {
    const Made& made = *of;
    const Json data = made.json.value("data", Json::object());
    const auto number = made.json.find("revision");
    if (number == made.json.end() || !number->is_number_unsigned() || !data.is_object()) continue;
    ClusterRevision& one = out.emplace_back();
    one.uid = text_at(made.json["metadata"], "uid");
    one.name = made.name;
    one.number = number->get<uint32_t>();
    one.object_spec = text_at(data, "objectSpec");
    one.form = text_at(data, "form");
    if (const auto at = parse_utc("creationTimestamp", text_at(made.json["metadata"], "creationTimestamp")))
      one.created_ns = *at;
  }
  std::ranges::sort(out, {}, &ClusterRevision::number);
  return out;
}

std::vector<std::string> ClusterState::related(const CustomObject& custom) const {
  const ObjectKey& key = custom.object.key;
  if (key.kind == objects::Kind::queue) {
    std::vector<std::string> out = jobs_of(key.name);
    for (const auto& [name, uid] : queues_) out.push_back(uid);
    return out;
  }
  const CustomObject* found =
      key.kind == objects::Kind::job ? queue(custom.object.spec.as<objects::JobSpec>().queue) : nullptr;
  return found == nullptr ? std::vector<std::string>() : std::vector{found->object.uid};
}

// A queue, the other queues and its jobs depend on each other's documents, not on each other's statuses.
std::vector<std::string> ClusterState::put_custom(CustomObject custom) {
  const std::string uid = custom.object.uid;
  const auto known = customs_.find(uid);
  if (known != customs_.end() && known->second.object.version >= custom.object.version) return {};
  const bool is_other_document =
      known == customs_.end() || known->second.object.generation != custom.object.generation;
  const ObjectKey& key = custom.object.key;
  if (objects::text_of(key.kind).is_workload) workloads_[{key.namespace_, key.name}].insert(uid);
  if (key.kind == objects::Kind::queue) queues_[key.name] = uid;
  if (key.kind == objects::Kind::job) {
    if (known != customs_.end()) jobs_of_queue_[job_spec(known->second.object).queue].erase(uid);
    jobs_of_queue_[job_spec(custom.object).queue].insert(uid);
  }
  std::vector<std::string> out = is_other_document ? related(custom) : std::vector<std::string>();
  out.push_back(uid);
  customs_.insert_or_assign(uid, std::move(custom));
  return out;
}

std::vector<std::string> ClusterState::remove_custom(const std::string& uid) {
  const auto known = customs_.find(uid);
  if (known == customs_.end()) return {};
  std::vector<std::string> out = related(known->second);
  const ObjectKey& key = known->second.object.key;
  if (const auto place = workloads_.find({key.namespace_, key.name}); place != workloads_.end()) {
    place->second.erase(uid);
    if (place->second.empty()) workloads_.erase(place);
  }
  if (const auto queue = queues_.find(key.name);
      key.kind == objects::Kind::queue && queue != queues_.end() && queue->second == uid)
    queues_.erase(queue);
  if (key.kind == objects::Kind::job)
    if (const auto queue = jobs_of_queue_.find(job_spec(known->second.object).queue);
        queue != jobs_of_queue_.end()) {
      queue->second.erase(uid);
      if (queue->second.empty()) jobs_of_queue_.erase(queue);
    }
  customs_.erase(known);
  return out;
}

bool ClusterState::has_turn(const Made& made) { return made.kind == kueue_workload && is_waiting(made.json); }

ClusterState::Turn ClusterState::turn_of(const std::string& uid, const Json& workload) {
  const Json& priority = member(member(workload, "spec"), "priority");
  return {.behind = priority.is_number_integer() ? -priority.get<int64_t>() : 0,
          .created = text_at(member(workload, "metadata"), "creationTimestamp"),
          .uid = uid};
}

void ClusterState::index(const std::string& uid, const Made& made) {
  if (made.kind == pod_kind && !made.workload.empty()) {
    pods_of_workload_[{made.name_space, made.workload}].insert(uid);
    return;
  }
  for (const std::string& owner : made.owners) of_owner_[owner].insert(uid);
  if (has_turn(made)) turns_[text_at(member(made.json, "spec"), "queueName")].insert(turn_of(uid, made.json));
}

void ClusterState::remove_made(const std::string& uid) {
  const auto known = made_.find(uid);
  if (known == made_.end()) return;
  const auto take_out = [](auto& index, const auto& key, const auto& value) {
    const auto found = index.find(key);
    if (found == index.end()) return;
    found->second.erase(value);
    if (found->second.empty()) index.erase(found);
  };
  const Made& made = known->second;
  if (made.kind == pod_kind && !made.workload.empty())
    take_out(pods_of_workload_, Place(made.name_space, made.workload), uid);
  else
    for (const std::string& owner : made.owners) take_out(of_owner_, owner, uid);
  if (has_turn(made))
    take_out(turns_, text_at(member(made.json, "spec"), "queueName"), turn_of(uid, made.json));
  made_.erase(known);
}

// The objects of a custom resource name it as their owner. A pod of a service belongs to a ReplicaSet, so it is found
// by the label that its template has. Pods and Workloads of a job belong to its Job.
std::vector<std::string> ClusterState::concerned(const Made& made) const {
  if (made.kind == pod_kind && !made.workload.empty()) {
    const auto found = workloads_.find({made.name_space, made.workload});
    if (found == workloads_.end()) return {};
    return {found->second.begin(), found->second.end()};
  }
  if (made.kind != pod_kind && made.kind != kueue_workload) return made.owners;
  std::vector<std::string> out;
  for (const std::string& owner : made.owners)
    if (const auto job = made_.find(owner); job != made_.end()) add(out, job->second.owners);
  return out;
}

std::vector<std::string> ClusterState::neighbors(const Made& made) const {
  std::vector<std::string> out;
  const auto queue = turns_.find(text_at(member(made.json, "spec"), "queueName"));
  if (queue == turns_.end()) return out;
  size_t count = 0;
  for (const Turn& turn : queue->second) {
    if (count++ == max_positions) break;
    add(out, concerned(made_.at(turn.uid)));
  }
  return out;
}

const Json* ClusterState::workload(const std::string& uid) const {
  for (const Made* job : made_of(uid, batch_job))
    for (const Made* one : made_of(text_at(job->json["metadata"], "uid"), kueue_workload)) return &one->json;
  return nullptr;
}

std::vector<const Json*> ClusterState::pods_of_job(const std::string& uid) const {
  std::vector<const Json*> out;
  for (const Made* job : made_of(uid, batch_job))
    for (const Made* one : made_of(text_at(job->json["metadata"], "uid"), pod_kind))
      out.push_back(&one->json);
  return out;
}

uint32_t ClusterState::position(const std::string& uid) const {
  const Json* found = workload(uid);
  if (found == nullptr) return 0;
  const auto queue = turns_.find(text_at(member(*found, "spec"), "queueName"));
  if (queue == turns_.end()) return 0;
  const Turn own = turn_of(text_at(member(*found, "metadata"), "uid"), *found);
  uint32_t out = 0;
  for (const Turn& turn : queue->second) {
    if (++out > max_positions) break;
    if (turn == own) return out;
  }
  return 0;
}

const CustomObject* ClusterState::queue(const std::string& name) const {
  const auto found = queues_.find(name);
  return found == queues_.end() ? nullptr : find(found->second);
}

std::vector<const Object*> ClusterState::queues_of(const std::string& pool) const {
  std::vector<const Object*> out;
  for (const auto& [name, uid] : queues_)
    if (const CustomObject& one = customs_.at(uid);
        one.errors.empty() && !one.object.is_ending && queue_spec(one.object).pool == pool)
      out.push_back(&one.object);
  return out;
}

std::vector<std::string> ClusterState::jobs_of(const std::string& queue) const {
  const auto found = jobs_of_queue_.find(queue);
  if (found == jobs_of_queue_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

QueueUse ClusterState::use_of(const CustomObject& queue) const {
  QueueUse out;
  for (const Made* made : made_of(queue.object.uid, local_queue)) out.namespaces.insert(made->name_space);
  for (const std::string& uid : jobs_of(queue.object.key.name)) {
    const Object& job = customs_.at(uid).object;
    out.namespaces.insert(job.key.namespace_);
    out.priorities.insert(job_spec(job).priority);
  }
  return out;
}

std::vector<std::string> ClusterState::put(const std::string& kind, const ObjectMeta& object) {
  Json json = Json::parse(object.document, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("metadata")) return {};
  const uint64_t version = version_of(object.resource_version);
  const auto known = made_.find(object.uid);
  if (known != made_.end() && known->second.version >= version) return {};
  const auto label = object.labels.find(name_label);
  Made made{.kind = kind,
            .name_space = object.name_space,
            .name = object.name,
            .owners = owners_of(kind, object, json),
            .workload = label == object.labels.end() ? "" : label->second,
            .version = version,
            .json = std::move(json)};
  std::vector<std::string> out = concerned(made);
  const bool has_waited = known != made_.end() && has_turn(known->second);
  remove_made(object.uid);
  index(object.uid, made);
  const Made& stored = made_.emplace(object.uid, std::move(made)).first->second;
  if (has_waited != has_turn(stored)) add(out, neighbors(stored));
  return out;
}

std::vector<std::string> ClusterState::remove(const std::string&, const ObjectMeta& object) {
  const auto known = made_.find(object.uid);
  if (known == made_.end()) return {};
  std::vector<std::string> out = concerned(known->second);
  if (has_turn(known->second)) add(out, neighbors(known->second));
  remove_made(object.uid);
  return out;
}

std::vector<std::string> ClusterState::replace(const std::string& kind, const kubernetes::ObjectsByUid& all) {
  std::vector<std::string> out;
  std::vector<std::string> gone;
  for (const auto& [uid, made] : made_)
    if (made.kind == kind && !all.contains(uid)) gone.push_back(uid);
  for (const std::string& uid : gone) {
    add(out, concerned(made_.at(uid)));
    remove_made(uid);
  }
  for (const auto& [uid, object] : all) add(out, put(kind, object));
  return out;
}

}  // namespace carve::controller

#include "controller/kubernetes/cluster_state.h"

#include <algorithm>
#include <charconv>

#include "controller/kubernetes/json_members.h"
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

std::vector<std::string> ClusterState::owned_kinds(const std::string& uid) const {
  std::vector<std::string> out;
  for (const Made* made : made_of(uid, ""))
    if (made->kind != revision_kind) out.push_back(made->kind);
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

std::vector<std::string> ClusterState::put_custom(CustomObject custom) {
  const std::string uid = custom.object.uid;
  const auto known = customs_.find(uid);
  if (known != customs_.end() && known->second.object.version >= custom.object.version) return {};
  const ObjectKey& key = custom.object.key;
  if (objects::text_of(key.kind).is_workload) workloads_[{key.namespace_, key.name}].insert(uid);
  customs_.insert_or_assign(uid, std::move(custom));
  return {uid};
}

void ClusterState::remove_custom(const std::string& uid) {
  const auto known = customs_.find(uid);
  if (known == customs_.end()) return;
  const ObjectKey& key = known->second.object.key;
  if (const auto place = workloads_.find({key.namespace_, key.name}); place != workloads_.end()) {
    place->second.erase(uid);
    if (place->second.empty()) workloads_.erase(place);
  }
  customs_.erase(known);
}

void ClusterState::index(const std::string& uid, const Made& made) {
  if (made.kind == pod_kind)
    pods_of_workload_[{made.name_space, made.workload}].insert(uid);
  else
    of_owner_[made.owner].insert(uid);
}

void ClusterState::remove_made(const std::string& uid) {
  const auto known = made_.find(uid);
  if (known == made_.end()) return;
  const auto take_out = [&](auto& index, const auto& key) {
    const auto found = index.find(key);
    found->second.erase(uid);
    if (found->second.empty()) index.erase(found);
  };
  const Made& made = known->second;
  if (made.kind == pod_kind)
    take_out(pods_of_workload_, Place(made.name_space, made.workload));
  else
    take_out(of_owner_, made.owner);
  made_.erase(known);
}

// The objects of a custom resource name it as their owner. A pod belongs to a ReplicaSet, so it is found by the
// label that its template has.
std::vector<std::string> ClusterState::concerned(const Made& made) const {
  if (made.kind != pod_kind) return {made.owner};
  const auto found = workloads_.find({made.name_space, made.workload});
  if (found == workloads_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

std::vector<std::string> ClusterState::put(const std::string& kind, const ObjectMeta& object) {
  Json json = Json::parse(object.document, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("metadata")) return {};
  const uint64_t version = version_of(object.resource_version);
  const auto known = made_.find(object.uid);
  if (known != made_.end() && known->second.version >= version) return {};
  const auto label = object.labels.find(name_label);
  Made made{.kind = kind,
            .owner = object.controller_uid,
            .name_space = object.name_space,
            .name = object.name,
            .workload = label == object.labels.end() ? "" : label->second,
            .version = version,
            .json = std::move(json)};
  std::vector<std::string> out = concerned(made);
  remove_made(object.uid);
  index(object.uid, made);
  made_.emplace(object.uid, std::move(made));
  return out;
}

std::vector<std::string> ClusterState::remove(const std::string&, const ObjectMeta& object) {
  const auto known = made_.find(object.uid);
  if (known == made_.end()) return {};
  std::vector<std::string> out = concerned(known->second);
  remove_made(object.uid);
  return out;
}

std::vector<std::string> ClusterState::replace(const std::string& kind, const kubernetes::ObjectsByUid& all) {
  std::vector<std::string> out;
  const auto add = [&](std::vector<std::string> more) { out.insert(out.end(), more.begin(), more.end()); };
  std::vector<std::string> gone;
  for (const auto& [uid, made] : made_)
    if (made.kind == kind && !all.contains(uid)) gone.push_back(uid);
  for (const std::string& uid : gone) {
    add(concerned(made_.at(uid)));
    remove_made(uid);
  }
  for (const auto& [uid, object] : all) add(put(kind, object));
  return out;
}

}  // namespace carve::controller

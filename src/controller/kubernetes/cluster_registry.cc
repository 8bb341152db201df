#include "controller/kubernetes/cluster_registry.h"

#include <map>

#include "controller/kubernetes/custom_resources.h"
#include "core/invariant.h"
#include "kubernetes/api/answers.h"

namespace carve::controller {

using kubernetes::ApiAnswer;
using kubernetes::ApiRequest;
using os::MutexLock;
using Pointer = ObjectRegistry::Pointer;

namespace {

constexpr kubernetes::Nanoseconds write_deadline_ns = 5 * kubernetes::second_ns;
constexpr unsigned max_attempts = 4;  // Limit for an update that conflicts with changes of other programs.

ApiRequest request_for(const char* method, const ObjectKey& key, const api::Json& body,
                       const char* content_type = kubernetes::json_type) {
  return {.method = method,
          .target = custom_resource_path(key.kind, key.namespace_, key.name),
          .body = body.dump(-1, ' ', /*ensure_ascii=*/false, api::Json::error_handler_t::replace),
          .content_type = content_type,
          .deadline_ns = write_deadline_ns};
}

tl::unexpected<Failure> refused(const ObjectKey& key, const ApiAnswer& answer) {
  const kubernetes::ApiStatus status = kubernetes::read_status(answer.body);
  const std::string message = (status.message.empty() ? answer.problem : status.message).substr(0, 2000);
  const auto failed = [&](FailureKind kind) {
    return failure(kind, "{}: the API server refused: {}", text(key), message);
  };
  switch (answer.status) {
    case 0:
      return failure(
          FailureKind::unavailable, "{}: {}{}", text(key), answer.problem,
          answer.may_have_happened ? "; the change may have been made, so read the object again" : "");
    case 400:
    case 422: return failed(FailureKind::invalid_argument);
    case 401:
    case 403: return failed(FailureKind::permission_denied);
    case 404: return failure(FailureKind::not_found, "there is no {}", text(key));
    case 409:
      if (status.reason == "AlreadyExists") return failed(FailureKind::already_exists);
      return failure(FailureKind::stale, "{} was changed by another program; read the object again",
                     text(key));
    default: return failed(FailureKind::unavailable);
  }
}

// Returns the options of a deletion of exactly this object.
api::Json deletion_of(const Object& object, const char* propagation) {
  return {{"apiVersion", "meta.k8s.io/v1"},
          {"kind", "DeleteOptions"},
          {"propagationPolicy", propagation},
          {"preconditions", {{"uid", object.uid}}}};
}

// Returns whether the change needs a request to the API server.
bool is_change(const Object& before, const Object& after) {
  return after.is_ending != before.is_ending || !change_of_custom_resource(before, after).is_null();
}

}  // namespace

bool ClusterRegistry::take(const CustomObject& seen) {
  const Object& object = seen.object;
  const Pointer known = present(object.key);
  if (removed_.contains(object.uid) ||
      (known && known->uid == object.uid && known->version >= object.version))
    return false;
  if (!seen.errors.empty()) {
    if (!known) return false;
    drop(object.key);
    return true;
  }
  put(std::make_shared<const Object>(object));
  return true;
}

void ClusterRegistry::observe(const CustomObject& seen) {
  {
    const MutexLock lock(mutex_);
    if (!take(seen)) return;
  }
  notify();
}

void ClusterRegistry::forget(const ObjectKey& key, const std::string& uid) {
  {
    const MutexLock lock(mutex_);
    removed_.erase(uid);
    const Pointer known = present(key);
    if (!known || known->uid != uid) return;
    drop(key);
  }
  notify();
}

void ClusterRegistry::replace(objects::Kind kind, const std::vector<CustomObject>& all) {
  std::set<ObjectKey> keys;
  for (const CustomObject& one : all) keys.insert(one.object.key);
  const std::vector<Pointer> before = list(kind);
  {
    const MutexLock lock(mutex_);
    // An object that was added since the list began is newer than the list, and its watch event follows.
    for (const Pointer& object : before)
      if (!keys.contains(object->key) && present(object->key)) drop(object->key);
    for (const CustomObject& one : all) take(one);
  }
  notify();
}

Outcome<Pointer> ClusterRegistry::taken(objects::Kind kind, const std::string& body) {
  const auto json = api::parse(body);
  if (!json) return failure(FailureKind::unavailable, "the API server's response: {}", json.error());
  const auto read = read_custom_object(kind, *json);
  if (!read) return failure(FailureKind::unavailable, "the API server's response: {}", read.error());
  if (!read->errors.empty())
    return failure(FailureKind::invalid_argument, "{}", read->errors.front().message);
  observe(*read);
  const Pointer known = find(read->object.key);
  return known ? known : std::make_shared<const Object>(read->object);
}

void ClusterRegistry::refresh(const ObjectKey& key) {
  const ApiAnswer answer = api_.call(
      {.target = custom_resource_path(key.kind, key.namespace_, key.name), .deadline_ns = write_deadline_ns});
  if (answer.status == 200) {
    (void)taken(key.kind, answer.body);
    return;
  }
  if (answer.status != 404) return;
  if (const Pointer known = find(key)) forget(key, known->uid);
}

Outcome<Pointer> ClusterRegistry::add(Object object) {
  {
    const MutexLock lock(mutex_);
    if (present(object.key))
      return failure(FailureKind::already_exists,
                     "{} already exists; change it with carve apply, or delete it first", text(object.key));
    if (auto room = check_limit(object.key.kind, 1); !room) return tl::unexpected(room.error());
  }
  ApiRequest request = request_for("POST", object.key, new_custom_resource(object));
  request.target =
      custom_resource_path(object.key.kind, object.key.namespace_) + "?fieldManager=carve-controller";
  const ApiAnswer answer = api_.call(std::move(request));
  if (answer.is_success()) return taken(object.key.kind, answer.body);
  if (answer.status == 409) refresh(object.key);  // The watch has not delivered it yet.
  return refused(object.key, answer);
}

Outcome<Pointer> ClusterRegistry::change(const Object& before, const Object& after) {
  ApiRequest request = request_for("PATCH", before.key, change_of_custom_resource(before, after),
                                   kubernetes::merge_patch_type);
  request.target += "?fieldManager=carve-controller";
  const ApiAnswer answer = api_.call(std::move(request));
  if (answer.is_success()) return taken(before.key.kind, answer.body);
  if (answer.status == 409 || answer.status == 404) refresh(before.key);
  return refused(before.key, answer);
}

// The object is removed by the garbage collector when its pods have ended.
Outcome<Pointer> ClusterRegistry::end(const Object& object) {
  const ApiAnswer answer = api_.call(request_for("DELETE", object.key, deletion_of(object, "Foreground")));
  if (!answer.is_success()) return refused(object.key, answer);
  refresh(object.key);
  if (Pointer known = find(object.key)) return known;
  Object ended = object;
  ended.is_ending = true;
  return std::make_shared<const Object>(std::move(ended));
}

Outcome<Pointer> ClusterRegistry::update(const ObjectKey& key,
                                         const std::function<Outcome<void>(Object&)>& edit,
                                         std::optional<uint64_t> expected) {
  Outcome<Pointer> last = failure(FailureKind::not_found, "there is no {}", text(key));
  for (unsigned attempt = 0; attempt < max_attempts; ++attempt) {
    const Pointer known = find(key);
    if (!known) return failure(FailureKind::not_found, "there is no {}", text(key));
    if (expected && *expected != known->version)
      return failure(FailureKind::stale, "{} has version {}, not {}; read the object again", text(key),
                     known->version, *expected);
    Object next = *known;
    if (auto edited = edit(next); !edited) return tl::unexpected(edited.error());
    invariant(next.key == key, "an object keeps its name");
    if (!is_change(*known, next)) return known;
    last = next.is_ending && !known->is_ending ? end(*known) : change(*known, next);
    if (last || last.error().kind != FailureKind::stale) return last;
  }
  return last;
}

Outcome<void> ClusterRegistry::remove(const ObjectKey& key) {
  const Pointer known = find(key);
  if (!known) return failure(FailureKind::not_found, "there is no {}", text(key));
  const ApiAnswer answer = api_.call(request_for("DELETE", key, deletion_of(*known, "Background")));
  if (!answer.is_success() && answer.status != 404) return refused(key, answer);
  {
    const MutexLock lock(mutex_);
    const Pointer now = present(key);
    if (!now || now->uid != known->uid) return {};
    removed_.insert(known->uid);
    drop(key);
  }
  notify();
  return {};
}

Outcome<std::vector<Pointer>> ClusterRegistry::apply(const std::vector<ObjectEdit>& edits) {
  if (auto possible = check(edits); !possible) return tl::unexpected(possible.error());
  std::vector<Pointer> out;
  for (const ObjectEdit& edit : edits) {
    const auto changed = find(edit.added.key) ? update(edit.added.key,
                                                       [&](Object& object) -> Outcome<void> {
                                                         edit.change(object);
                                                         return {};
                                                       })
                                              : add(edit.added);
    if (!changed) {
      if (out.empty()) return tl::unexpected(changed.error());
      return failure(changed.error().kind, "{} (the {} objects before it were applied)",
                     changed.error().message, out.size());
    }
    out.push_back(*changed);
  }
  return out;
}

Outcome<void> ClusterRegistry::check(const std::vector<ObjectEdit>& edits) const {
  const MutexLock lock(mutex_);
  std::map<objects::Kind, size_t> added;
  std::set<ObjectKey> keys;
  for (const ObjectEdit& edit : edits) {
    const ObjectKey& key = edit.added.key;
    if (!keys.insert(key).second)
      return failure(FailureKind::invalid_argument, "two documents describe {}; remove one of them",
                     text(key));
    if (!present(key))
      if (auto room = check_limit(key.kind, ++added[key.kind]); !room) return room;
  }
  return {};
}

}  // namespace carve::controller

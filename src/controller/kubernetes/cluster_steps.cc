// The steps of ClusterReconciler: each begins the next request for a custom resource, or returns false if its part
// of the cluster is as the document describes.
#include <algorithm>

#include "controller/kubernetes/batch_jobs.h"
#include "controller/kubernetes/cluster_reconciler.h"
#include "controller/kubernetes/custom_resources.h"
#include "controller/kubernetes/made_kinds.h"
#include "controller/kubernetes/step_texts.h"
#include "controller/kubernetes/workload_objects.h"
#include "controller/objects/service_form.h"
#include "core/invariant.h"

namespace carve::controller {

using api::Json;
using kubernetes::ApiAnswer;
using kubernetes::ObjectMeta;

namespace {

Json revision_object(const Object& object, uint32_t number, const std::string& form) {
  const std::string singular(objects::text_of(object.key.kind).singular);
  return {{"apiVersion", "apps/v1"},
          {"kind", "ControllerRevision"},
          {"metadata",
           {{"name", fmt::format("carve-{}-{}-{}", singular, object.key.name, number)},
            {"namespace", object.key.namespace_},
            {"labels", {{managed_by_label, managed_by_carve}, {"app.kubernetes.io/name", object.key.name}}},
            {"ownerReferences",
             {{{"apiVersion", objects::api_version},
               {"kind", objects::text_of(object.key.kind).kind},
               {"name", object.key.name},
               {"uid", object.uid},
               {"controller", true},
               {"blockOwnerDeletion", true}}}}}},
          {"revision", number},
          {"data", {{"form", form}, {"objectSpec", object.spec.json()}}}};
}

}  // namespace

bool ClusterReconciler::step_objects(const std::string& uid, const CustomObject& custom) {
  const auto wanted = owned_objects(custom.object);
  if (!wanted) {
    work_[uid].problem = {"Invalid", message_of(wanted.error())};
    return false;
  }
  for (const Json& one : wanted->objects)
    if (step_object(uid, one)) return true;
  if (work_[uid].retry_at > client_.now()) return false;
  if (step_unwanted(uid, wanted->objects) || step_revision(uid, custom)) return true;
  Work& work = work_[uid];
  work.problem = {};
  work.retry_at = work.wait_ns = 0;
  return false;
}

// An object that is not known here is looked up before it is applied, so that an object of another owner is
// not changed.
bool ClusterReconciler::step_object(const std::string& uid, const Json& wanted) {
  const std::string kind = wanted["kind"].get<std::string>();
  if (const Json* made = state_.owned_like(uid, wanted)) {
    if (kind == batch_job || mark_of(*made) == mark_of(wanted)) return false;
    return apply(uid, wanted);
  }
  if (work_[uid].looked.contains(path_of(wanted)))
    return kind == batch_job ? create(uid, wanted) : apply(uid, wanted);
  return send(uid, {.target = path_of(wanted)},
              [this, uid, wanted](const ApiAnswer& answer) { take_looked(uid, wanted, answer); });
}

void ClusterReconciler::take_looked(const std::string& uid, const Json& wanted, const ApiAnswer& answer) {
  const std::string kind = wanted["kind"].get<std::string>();
  if (answer.status == 404) {
    work_[uid].looked.insert(path_of(wanted));
    return;
  }
  const auto object = kubernetes::read_object(answer.body);
  if (answer.status != 200 || !object) return failed(uid, {"ApplyFailed", message_of(answer)});
  if (object->controller_uid == uid) return take_made(uid, wanted, answer);
  if (object->is_deleting)
    return failed(uid, {"Terminating", fmt::format("the {} {} is being deleted, and is made again afterwards",
                                                   kind, object->name)});
  const auto label = object->labels.find(managed_by_label);
  if (made_kind(kind).is_shared && label != object->labels.end() && label->second == managed_by_carve) {
    work_[uid].looked.insert(path_of(wanted));
    return;
  }
  failed(uid,
         {"NameTaken", fmt::format("the {} {} exists and does not belong to this object; delete it, or use "
                                   "another name",
                                   kind, object->name)});
}

// Each owner of a shared object is a field manager of its own, so that it adds itself to the owners.
bool ClusterReconciler::apply(const std::string& uid, const Json& object) {
  std::string manager = managed_by_carve;
  const MadeKind& kind = made_kind(object["kind"].get<std::string>());
  if (kind.is_shared && !kind.is_joint) manager += "-" + state_.find(uid)->object.key.name;
  return send(uid,
              {.method = "PATCH",
               .target = path_of(object) + "?fieldManager=" + manager,
               .body = dumped(object),
               .content_type = kubernetes::apply_patch_type},
              [this, uid, object](const ApiAnswer& answer) {
                if (answer.is_success()) return take_made(uid, object, answer);
                const char* reason = answer.status == 409 ? "FieldConflict" : "ApplyFailed";
                failed(uid, {reason, message_of(answer)});
              });
}

void ClusterReconciler::take_made(const std::string& uid, const Json& wanted, const ApiAnswer& answer) {
  auto object = kubernetes::read_object(answer.body);
  if (!object) return failed(uid, {"ApplyFailed", object.error()});
  work_[uid].looked.erase(path_of(wanted));
  object->document = answer.body;
  state_.put(wanted["kind"].get<std::string>(), *object);
}

bool ClusterReconciler::step_unwanted(const std::string& uid, const std::vector<Json>& wanted) {
  std::set<std::string> paths;
  for (const Json& one : wanted) paths.insert(path_of(one));
  for (const auto& [kind, found] : state_.owned_objects(uid)) {
    const Json& made = *found;
    Json named = made;
    named["kind"] = kind;  // Items of a list have none.
    // A shared object may have other owners.
    if (made_kind(kind).is_shared || paths.contains(path_of(named))) continue;
    if (made["metadata"].contains("deletionTimestamp")) continue;
    const Json options{{"apiVersion", "v1"},
                       {"kind", "DeleteOptions"},
                       {"propagationPolicy", "Background"},
                       {"preconditions", {{"uid", made["metadata"]["uid"]}}}};
    return send(uid, {.method = "DELETE", .target = path_of(named), .body = dumped(options)},
                [this, uid, kind = kind, body = dumped(made)](const ApiAnswer& answer) {
                  if (!answer.is_success() && answer.status != 404)
                    return failed(uid, {"DeleteFailed", message_of(answer)});
                  if (const auto object = kubernetes::read_object(body)) state_.remove(kind, *object);
                });
  }
  return false;
}

bool ClusterReconciler::step_revision(const std::string& uid, const CustomObject& custom) {
  const std::vector<ClusterRevision> known = state_.revisions(uid);
  const std::string form = revision_spec(service_form(custom.object));
  const std::string path =
      fmt::format("/apis/apps/v1/namespaces/{}/controllerrevisions", custom.object.key.namespace_);
  constexpr const char* kind = "ControllerRevision";
  if (known.empty() || known.back().form != form)
    return send(
        uid,
        {.method = "POST",
         .target = path + "?fieldManager=" + managed_by_carve,
         .body = dumped(revision_object(custom.object, known.empty() ? 1 : known.back().number + 1, form))},
        [this, uid](const ApiAnswer& answer) {
          auto made = answer.is_success()
                          ? kubernetes::read_object(answer.body)
                          : Result<ObjectMeta, std::string>(tl::unexpected(message_of(answer)));
          if (!made) return failed(uid, {"RevisionFailed", made.error()});
          made->document = answer.body;
          state_.put(kind, *made);
          publish_revisions({uid});
        });
  if (known.size() <= max_revisions) return false;
  return send(uid, {.method = "DELETE", .target = path + "/" + known.front().name},
              [this, uid, gone = ObjectMeta{.uid = known.front().uid}](const ApiAnswer& answer) {
                if (!answer.is_success() && answer.status != 404)
                  return failed(uid, {"RevisionFailed", message_of(answer)});
                state_.remove(kind, gone);
                publish_revisions({uid});
              });
}

namespace {

// Returns the condition of an object that the cluster keeps and does not run yet.
objects::Condition not_run(const Object& object) {
  objects::Condition out{
      .type = "Ready",
      .status = "False",
      .reason = "NotSupported",
      .message = fmt::format("this controller keeps {} on a cluster, but does not act on them yet",
                             objects::text_of(object.key.kind).plural)};
  if (object.key.kind == objects::Kind::job)
    out.message = fmt::format(
        "this controller runs only custom jobs on a cluster; print the manifests of this {} job with 'carve "
        "render', and submit them to {}",
        text(job_spec(object).engine),
        job_spec(object).engine == JobEngine::ray ? "KubeRay" : "the cluster with spark-submit");
  return out;
}

}  // namespace

Json ClusterReconciler::status_of(const std::string& uid, const CustomObject& custom) const {
  const Object& object = custom.object;
  const int64_t now = settings_.utc_ns();
  if (!custom.errors.empty())
    return conditions_json(single_condition(
        object.status.json(),
        {.type = "Accepted", .status = "False", .reason = "Invalid", .message = message_of(custom.errors)},
        now));
  if (object.key.kind == objects::Kind::queue) return queue_status_of(uid, custom);
  if (object.key.kind == objects::Kind::job && is_run_by_cluster(job_spec(object)))
    return job_status_of(uid, custom);
  if (!objects::text_of(object.key.kind).is_workload)
    return conditions_json(single_condition(object.status.json(), not_run(object), now));
  const auto wanted = owned_objects(object);
  const auto known = state_.revisions(uid);
  const auto work = work_.find(uid);
  const auto status =
      workload_status({.object = object,
                       .deployment = state_.owned(uid, ClusterState::deployment),
                       .pods = state_.pods(object.key),
                       .revision = known.empty() ? 0 : known.back().number,
                       .problem = work == work_.end() ? ClusterProblem() : work->second.problem,
                       .warnings = wanted ? wanted->warnings : std::vector<std::string>()},
                      now);
  const auto json = api::parse(api::write(status));
  invariant(json.has_value(), "a status can be read again");
  return *json;
}

namespace {

// Returns whether a merge patch would not change the document. The members are compared in any order.
bool is_part_of(const Json& patch, const std::string& document) {
  const auto present = nlohmann::json::parse(document, nullptr, /*allow_exceptions=*/false);
  auto patched = present;
  patched.merge_patch(nlohmann::json::parse(dumped(patch)));
  return patched == present;
}

}  // namespace

// Writes the status if it differs from the present one. The version is not part of the patch: no other program
// writes the status.
bool ClusterReconciler::step_status(const std::string& uid, const CustomObject& custom) {
  const Object& object = custom.object;
  const Json status = status_of(uid, custom);
  if (is_part_of(status, object.status.json())) return false;
  if (work_[uid].retry_at > client_.now() && work_[uid].problem.reason == "StatusFailed") return false;
  const objects::Kind kind = object.key.kind;
  return send(uid,
              {.method = "PATCH",
               .target = custom_resource_path(kind, object.key.namespace_, object.key.name) +
                         "/status?fieldManager=" + managed_by_carve,
               .body = dumped({{"metadata", {{"uid", object.uid}}}, {"status", status}}),
               .content_type = kubernetes::merge_patch_type},
              [this, uid, kind](const ApiAnswer& answer) {
                if (!answer.is_success()) {
                  if (answer.status != 404 && answer.status != 409)
                    failed(uid, {"StatusFailed", message_of(answer)});
                  return;
                }
                auto read = read_custom_object(kind, Json::parse(answer.body, nullptr, false));
                if (!read) return;
                registry_.observe(*read);
                state_.put_custom(std::move(*read));
              });
}

}  // namespace carve::controller

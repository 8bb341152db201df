#include "controller/api/planning.h"

#include <algorithm>

#include "controller/api/job_routes.h"
#include "controller/nodes/node_rules.h"
#include "controller/nodes/slice_forecast.h"
#include "controller/objects/service_form.h"
#include "dialects/explain/translation.h"
#include "objects/queue_object.h"
#include "wire/api/json.h"
#include "wire/api/json_value.h"
#include "yaml/documents.h"

namespace carve::controller {

using Pointer = ObjectRegistry::Pointer;

namespace {

// Returns the name that a service's field has in the user's document.
std::string users_field(const objects::ServiceSpec& form, std::string_view field) {
  if (form.source.dialect.empty()) return std::string(field);
  return dialects::field_in_source(form.source.dialect, yaml::json_of(form.source.document), field);
}

// Rejects a change of the command by others. The programs run as the object's owner, so no other user may
// choose the command, not even an operator.
Outcome<void> check_run(const Call& call, const Object& present) {
  const auto caller = owner_of(call, {});
  if (!caller) return tl::unexpected(caller.error());
  if (caller->uid == present.owner_uid) return {};
  const std::string owner = call.context.views.user_name(present.owner_uid);
  return failure(FailureKind::permission_denied,
                 "the programs of {} run as user {}, so only this user may change what they run; apply the "
                 "document as {}, or delete the object and apply the document as yourself",
                 text(present.key), owner, owner);
}

// Rejects a name that is taken. Slices are named after their workloads, so all kinds and namespaces share the
// names.
Outcome<void> check_name(const Call& call, const ObjectKey& key) {
  for (const Pointer& other : call.context.objects.workloads())
    if (other->key.name == key.name && other->key != key)
      return failure(
          FailureKind::already_exists,
          "namespace {} already has the {} {}, whose slices would have the same names; use another name",
          other->key.namespace_, objects::text_of(other->key.kind).singular, key.name);
  for (const Submission& one : call.beside)
    if (objects::text_of(one.kind).is_workload && one.metadata.name == key.name &&
        ObjectKey{one.kind, one.metadata.namespace_, one.metadata.name} != key)
      return failure(
          FailureKind::invalid_argument,
          "two documents have the name {}, so their slices would have the same names; use different names",
          key.name);
  return {};
}

// Rejects a name that another PAI-EAS name maps to as well, such as my_model and my-model.
Outcome<void> check_given_name(const Object& present, const Submission& wanted) {
  const auto before = present.annotations.find(dialects::eas_name_annotation);
  const auto now = wanted.metadata.annotations.find(dialects::eas_name_annotation);
  if (before == present.annotations.end() || now == wanted.metadata.annotations.end()) return {};
  if (before->second == now->second) return {};
  return failure(
      FailureKind::already_exists,
      "metadata.name: '{}' becomes {} here, which is already the name of service '{}'; use another name",
      now->second.substr(0, 80), present.key.name, before->second.substr(0, 80));
}

// Rejects a container image unless the caller is an operator. An image may contain any program of any user,
// and podman starts it with root's rights.
Outcome<void> check_image(const Call& call, const objects::ServiceSpec& form) {
  const std::string& image = form.run.image;
  if (call.context.runs_pods)
    return image.empty() ? failure(FailureKind::invalid_argument,
                                   "{}: is required, because Kubernetes runs only containers",
                                   users_field(form, "spec.run.image"))
                         : Outcome<void>();
  if (image.empty()) return {};
  if (!call.caller.may_operate())
    return failure(FailureKind::permission_denied,
                   "{}: '{}' is a container image, but only operators may start containers; leave the image "
                   "out and set a local program as the command, or ask an operator",
                   users_field(form, "spec.run.image"), image.substr(0, 80));
  if (const std::string problem = call.context.views.container_problem(); !problem.empty())
    return failure(FailureKind::failed_precondition, "{}: '{}': {}", users_field(form, "spec.run.image"),
                   image.substr(0, 80), problem);
  return {};
}

// Rejects a compute policy that no node has, with which a job would wait forever.
Outcome<void> check_policy(const Call& call, const Pointer& present, const objects::ServiceSpec& form) {
  if (!form.gpu || form.gpu->policy.empty()) return {};
  if (present && service_form(*present).gpu.value_or(objects::Gpu()).policy == form.gpu->policy) return {};
  const std::string problem =
      policy_problem(form.gpu->policy, form.pool, call.context.objects.list(objects::Kind::node),
                     users_field(form, "spec.gpu.policy"));
  if (problem.empty()) return {};
  return failure(FailureKind::failed_precondition, "{}", problem);
}

// Rejects a slice that fits on no empty node and would wait forever.
Outcome<void> check_size(const Call& call, const Pointer& present, const objects::ServiceSpec& form) {
  const auto request = slice_terms(form);
  if (!request) return {};
  const auto before = present ? service_form(*present).gpu : std::nullopt;
  if (before && api::write(*before) == api::write(*form.gpu)) return {};
  return check_ever_fits(call.context.objects, node_choice(form), *request, host_request(form),
                         form.gpu->memory);
}

// Rejects a port that another program already uses: the second program to listen on it would never become
// ready.
Outcome<void> check_target_port(const Call& call, const ObjectKey& key, const objects::ServiceSpec& form) {
  if (!form.target_port) return {};
  const auto refused = [&](const ObjectKey& other) {
    return failure(FailureKind::already_exists,
                   "spec.targetPort: {}: the program of {} already listens on this port; let one of them "
                   "listen on the port in its variable PORT, or on another port",
                   *form.target_port, text(other));
  };
  for (const Pointer& other : call.context.objects.workloads())
    if (other->key != key && service_form(*other).target_port == form.target_port) return refused(other->key);
  for (const Submission& one : call.beside)
    if (const ObjectKey other{one.kind, one.metadata.namespace_, one.metadata.name};
        other != key && objects::text_of(one.kind).is_workload && one.form.target_port == form.target_port)
      return refused(other);
  return {};
}

Outcome<Object> new_object(const Call& call, const ObjectKey& key, const Submission& submission) {
  const auto owner = owner_of(call, {.account = submission.metadata.account});
  if (!owner) return tl::unexpected(owner.error());
  if (auto named = check_name(call, key); !named) return tl::unexpected(named.error());
  if (auto starts = check_start(call, owner->uid); !starts) return tl::unexpected(starts.error());
  Object object;
  object.key = key;
  object.owner_uid = owner->uid;
  object.account = owner->account;
  object.created_ns = call.context.views.now_ns();
  object.uid = fmt::format("{:x}-{}", object.created_ns, key.name);
  return object;
}

TypedJson status_with(const TypedJson& status, const std::vector<std::string>& warnings) {
  objects::ServiceStatus out = status.is_readable()
                                   ? status.as<objects::ServiceStatus>()
                                   : objects::ServiceStatus{.phase = objects::WorkloadPhase::waiting};
  out.warnings = warnings;
  return out;
}

}  // namespace

namespace {

// Returns the pool's context, computed from its nodes with GPUs. An empty name means all nodes.
PoolContext context_of_pool(const std::string& name, const std::vector<NodeObservationPointer>& nodes,
                            const ObjectRegistry& objects) {
  PoolContext out;
  for (const NodeObservationPointer& node : nodes) {
    const Pointer object = objects.find(node_key(node->record.name));
    const objects::NodeSpec spec = object ? node_spec(*object) : objects::NodeSpec();
    if (node->report.devices.empty() || (!name.empty() && spec.pool != name)) continue;
    out.eas.pool_instance_types.push_back(spec.instance_type);
    for (const api::Device& device : node->report.devices)
      out.eas.largest_usable_bytes = std::max(out.eas.largest_usable_bytes.value_or(0), device.usable_bytes);
  }
  const Pointer pool = objects.find(pool_key(name));
  out.application.is_elastic_pool = pool && pool_spec(*pool).type == PoolType::vci;
  return out;
}

}  // namespace

SubmissionContext submission_context(const Call& call) {
  return {.allows_unknown_gpu_requests = call.context.allows_unknown_gpu_requests,
          .of_pool = [nodes = call.context.views.nodes(), &objects = call.context.objects](
                         const std::string& pool) { return context_of_pool(pool, nodes, objects); }};
}

namespace {

http::Response read_later(const Call& call, const std::string& text, const std::string& dialect) {
  return call.context.read_documents(
      call.caller.text(),
      [&context = call.context, request = call.request, connection = *call.connection, text, dialect,
       of_documents = submission_context(call)]() -> std::function<http::Response()> {
        auto documents = std::make_shared<ReadDocuments>(ReadDocuments{
            .text = text, .dialect = dialect, .read = read_submissions(text, dialect, of_documents)});
        return [&context, request, connection, documents] {
          return context.answer_read(request, connection, *documents);
        };
      });
}

}  // namespace

Result<std::vector<Submission>, http::Response> submissions_of(const Call& call, const std::string& text,
                                                               const std::string& dialect) {
  if (call.documents != nullptr && call.documents->text == text && call.documents->dialect == dialect) {
    if (!call.documents->read) return tl::unexpected(refuse(call.documents->read.error()));
    return *call.documents->read;
  }
  const bool is_large = text.size() > max_inline_document_bytes;
  if (is_large && call.documents != nullptr)
    return tl::unexpected(refuse(FailureKind::failed_precondition,
                                 "the object was changed during the request; send the request again"));
  if (is_large && call.context.read_documents != nullptr && call.connection != nullptr)
    return tl::unexpected(read_later(call, text, dialect));
  auto read = read_submissions(text, dialect, submission_context(call));
  if (!read) return tl::unexpected(refuse(std::move(read.error())));
  return std::move(*read);
}

Result<std::vector<Submission>, http::Response> posted_submissions(
    const Call& call, const std::map<std::string, std::string>& query) {
  const std::string dialect = query.contains("dialect") ? query.at("dialect") : "auto";
  if (std::ranges::find(dialects, dialect) == std::end(dialects))
    return tl::unexpected(
        refuse(FailureKind::invalid_argument,
               fmt::format("dialect '{}': use {}", dialect.substr(0, 80), fmt::join(dialects, ", "))));
  return submissions_of(call, call.request.body, dialect);
}

namespace {

// Keeps settings of verbs that the document cannot contain or does not contain: the last restart and, if the
// document comes from another system, whether the service is stopped and how it scales. Without the previous
// restart time an unchanged document would restart every replica.
template <class Spec>
Spec wanted_spec(const Call& call, const Object& present, const Submission& submission) {
  Spec out = submission.spec.as<Spec>();
  const auto& before = present.spec.as<Spec>();
  if (out.restarted_at.empty()) out.restarted_at = before.restarted_at;
  const bool is_translated = call.request.method == "POST" && !submission.form.source.dialect.empty();
  // Programs of this restart policy run only once; carve eas start runs them again.
  if (submission.form.restart_policy != RestartPolicy::always || is_translated) out.stopped = before.stopped;
  if constexpr (requires { out.autoscale; })
    if (is_translated && !out.autoscale) out.autoscale = before.autoscale;
  return out;
}

// Sets the object's spec to the submission's and keeps the fields that stay from the current one.
void set_wanted_spec(const Call& call, const Pointer& present, const Submission& submission, Object& object) {
  if (!present)
    object.spec = submission.spec;
  else if (submission.kind == objects::Kind::application)
    object.spec.set(wanted_spec<objects::ApplicationSpec>(call, *present, submission));
  else
    object.spec.set(wanted_spec<objects::ServiceSpec>(call, *present, submission));
}

}  // namespace

std::vector<std::string> warnings_of(const Call& call, const Submission& submission) {
  std::vector<std::string> out = submission.warnings;
  if (objects::text_of(submission.kind).is_workload)
    std::ranges::copy(call.context.views.limit_warnings(submission.form), std::back_inserter(out));
  return out;
}

Outcome<Object> operators_object(const Call& call, const Submission& submission) {
  if (const auto allowed = check_operator(call, submission.kind); !allowed)
    return tl::unexpected(allowed.error());
  const ObjectKey key{.kind = submission.kind, .name = submission.metadata.name};
  Object object;
  if (const Pointer present = call.context.objects.find(key)) {
    object = *present;
  } else {
    object.key = key;
    object.owner_uid = call.caller.uid().value_or(0);
    object.created_ns = call.context.views.now_ns();
    object.uid = fmt::format("{:x}-{}", object.created_ns, key.name);
  }
  object.labels = submission.metadata.labels;
  object.annotations = submission.metadata.annotations;
  object.spec = submission.spec;
  return object;
}

Outcome<Object> planned_workload(const Call& call, const Submission& submission) {
  const ObjectKey key{submission.kind, submission.metadata.namespace_, submission.metadata.name};
  Object object;
  const Pointer present = call.context.objects.find(key);
  const bool runs_the_same =
      present && api::write(service_form(*present).run) == api::write(submission.form.run);
  if (present) {
    for (const auto& allowed : {check_change(call, *present), check_account(*present, submission.metadata),
                                check_given_name(*present, submission)})
      if (!allowed) return tl::unexpected(allowed.error());
    if (auto allowed = runs_the_same ? Outcome<void>() : check_run(call, *present); !allowed)
      return tl::unexpected(allowed.error());
    object = *present;
  } else {
    auto made = new_object(call, key, submission);
    if (!made) return made;
    object = std::move(*made);
  }
  if (auto allowed = runs_the_same ? Outcome<void>() : check_image(call, submission.form); !allowed)
    return tl::unexpected(allowed.error());
  if (auto allowed = check_policy(call, present, submission.form); !allowed)
    return tl::unexpected(allowed.error());
  if (auto allowed = check_target_port(call, key, submission.form); !allowed)
    return tl::unexpected(allowed.error());
  if (auto allowed = check_size(call, present, submission.form); !allowed)
    return tl::unexpected(allowed.error());
  object.labels = submission.metadata.labels;
  object.annotations = submission.metadata.annotations;
  set_wanted_spec(call, present, submission, object);
  object.status = status_with(object.status, warnings_of(call, submission));
  return object;
}

namespace {

// Returns the edits that store the planned objects, which must outlive the edits.
std::vector<ObjectEdit> edits_of(const std::vector<Object>& objects) {
  std::vector<ObjectEdit> edits;
  for (const Object& object : objects)
    edits.push_back({.added = object, .change = [&object](Object& present) {
                       present.labels = object.labels;
                       present.annotations = object.annotations;
                       present.spec = object.spec;
                       if (object.key.kind == objects::Kind::node) present.status = object.status;
                       if (is_queued(object.key.kind)) set_planned_status(present, object);
                       if (!objects::text_of(object.key.kind).is_workload) return;
                       present.status =
                           status_with(present.status, object.status.as<objects::ServiceStatus>().warnings);
                     }});
  return edits;
}

}  // namespace

namespace {

// Returns why the caller may not add these objects: its account is at its quota, or the remaining ones are
// reserved for operators.
Outcome<void> check_quota(const Call& call, const std::vector<Object>& objects) {
  if (call.caller.may_operate()) return {};
  std::map<objects::Kind, size_t> added;
  for (const Object& object : objects) {
    const objects::Kind kind = object.key.kind;
    if (call.context.objects.find(object.key)) continue;
    const size_t more = ++added[kind];
    const std::string_view kinds = objects::text_of(kind).plural;
    const size_t quota = max_objects(kind) * call.context.account_quota_percent / 100;
    const size_t owned = call.context.objects.count_of_owner(kind, object.account, object.owner_uid);
    if (owned + more > quota)
      return failure(FailureKind::resource_exhausted,
                     "account '{}' has {} {}, and its quota is {}; delete one first, or ask an operator to "
                     "raise the quota (carve-controller --account-quota)",
                     object.account, owned, kinds, quota);
    const size_t free_to_all = max_objects(kind) - reserved_objects(kind);
    if (call.context.objects.count(kind) + more > free_to_all)
      return failure(FailureKind::resource_exhausted,
                     "there are {} {}, and the last {} of {} are reserved for operators; delete one first",
                     call.context.objects.count(kind), kinds, reserved_objects(kind), max_objects(kind));
  }
  return {};
}

}  // namespace

Outcome<void> check_keep(const Call& call, const std::vector<Object>& objects) {
  if (const auto has_room = check_quota(call, objects); !has_room) return has_room;
  return call.context.objects.check(edits_of(objects));
}

Outcome<std::vector<Kept>> keep(const Call& call, const std::vector<Object>& objects) {
  if (const auto has_room = check_quota(call, objects); !has_room) return tl::unexpected(has_room.error());
  std::vector<Pointer> before;
  for (const Object& object : objects) before.push_back(call.context.objects.find(object.key));
  const auto kept = call.context.objects.apply(edits_of(objects));
  if (!kept) return tl::unexpected(kept.error());
  std::vector<Kept> out;
  for (size_t i = 0; i < kept->size(); ++i) {
    const Pointer& now = (*kept)[i];
    const bool is_same = before[i] && before[i]->generation == now->generation &&
                         before[i]->labels == now->labels && before[i]->annotations == now->annotations;
    out.push_back({now, !before[i] ? "created" : is_same ? "unchanged" : "configured"});
  }
  return out;
}

}  // namespace carve::controller

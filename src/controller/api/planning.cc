#include "controller/api/planning.h"

#include <algorithm>
#include <charconv>

#include "controller/api/bill_routes.h"
#include "controller/api/job_routes.h"
#include "controller/api/node_routes.h"
#include "controller/api/pool_routes.h"
#include "controller/api/query.h"
#include "controller/nodes/node_rules.h"
#include "controller/objects/service_form.h"
#include "wire/api/json.h"
#include "wire/api/json_value.h"
#include "wire/objects/queue_object.h"

namespace carve::controller {

using K = FailureKind;
using Pointer = ObjectRegistry::Pointer;

namespace {

tl::unexpected<Failure> refuse_viewer(const http::Caller& caller) {
  return failure(K::permission_denied,
                 "{} may see objects and not change them; use a token with the role user", caller.text());
}

}  // namespace

Outcome<Owner> owner_of(const Call& call, const AccountField& wanted) {
  const std::string& wanted_account = wanted.account;
  const Views& views = call.context.views;
  if (!call.caller.may_create()) return refuse_viewer(call.caller);
  if (const auto uid = call.caller.uid()) {
    const std::string own = views.user_name(*uid);
    if (!wanted_account.empty() && wanted_account != own && !call.caller.may_operate())
      return failure(K::permission_denied, "{}: '{}' is not the account of {}; leave it out", wanted.field,
                     wanted_account.substr(0, 80), own);
    return Owner{*uid, wanted_account.empty() ? own : wanted_account};
  }
  const std::string account = *call.caller.token_account();
  const auto uid = views.uid_of(account);
  if (!uid)
    return failure(
        K::failed_precondition,
        "account '{}': programs of a token run as the user of that name, and this machine has no such "
        "user",
        account);
  if (!wanted_account.empty() && wanted_account != account && !call.caller.may_operate())
    return failure(K::permission_denied, "{}: '{}' is not the account of the token, '{}'", wanted.field,
                   wanted_account.substr(0, 80), account);
  return Owner{*uid, wanted_account.empty() ? account : wanted_account};
}

namespace {

tl::unexpected<Failure> refuse_change(const ObjectKey& key) {
  return failure(K::permission_denied,
                 "{} belongs to another user; its owner, its account and operators may change it", text(key));
}

}  // namespace

Outcome<void> check_version(const Call& call, const Object& object) {
  const std::string* header = call.request.headers.find("If-Match");
  if (header == nullptr || *header == "*") return {};
  uint64_t version = 0;
  const std::string digits = header->size() > 2 ? header->substr(1, header->size() - 2) : "";
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), version);
  if (error != std::errc() || end != digits.data() + digits.size())
    return failure(K::invalid_argument, "If-Match '{}' is not an ETag of this API", header->substr(0, 80));
  if (version != object.version)
    return failure(K::stale, "{} has version {}, not {}; read it again", text(object.key), object.version,
                   version);
  return {};
}

// Who pays is settled when the object is made: its usage records and slices have the account.
Outcome<void> check_account(const Object& present, const objects::Metadata& wanted) {
  if (wanted.account.empty() || wanted.account == present.account) return {};
  return failure(K::failed_precondition,
                 "metadata.account: '{}': account '{}' pays for {}, which does not change; leave it out, or "
                 "delete it and apply it again",
                 wanted.account.substr(0, max_shown_bytes), present.account, text(present.key));
}

Outcome<void> check_change(const Call& call, const Object& object) {
  if (!call.caller.may_create()) return refuse_viewer(call.caller);
  if (!call.caller.may_change(object.owner_uid, object.account)) return refuse_change(object.key);
  if (object.is_ending)
    return failure(K::failed_precondition, "{} is being deleted; apply it again when it is gone",
                   text(object.key));
  return {};
}

namespace {

// The programs run as the object's owner, so no other user says what they run: an operator neither.
Outcome<void> check_run(const Call& call, const Object& present) {
  const auto caller = owner_of(call, {});
  if (!caller) return tl::unexpected(caller.error());
  if (caller->uid == present.owner_uid) return {};
  const std::string owner = call.context.views.user_name(present.owner_uid);
  return failure(K::permission_denied,
                 "spec.run: the programs of {} run as user {}, and only this user changes what they run; "
                 "apply it as {}, or delete it and apply it as your own",
                 text(present.key), owner, owner);
}

// Slices are named by their workloads, so all kinds and namespaces share the names.
Outcome<void> check_name(const Call& call, const ObjectKey& key) {
  for (const Pointer& other : call.context.objects.workloads())
    if (other->key.name == key.name && other->key != key)
      return failure(K::already_exists,
                     "namespace {} has the {} {} already, and slices are named by them; use another name",
                     other->key.namespace_, objects::text_of(other->key.kind).singular, key.name);
  for (const Submission& one : call.beside)
    if (objects::text_of(one.kind).is_workload && one.metadata.name == key.name &&
        ObjectKey{one.kind, one.metadata.namespace_, one.metadata.name} != key)
      return failure(K::invalid_argument,
                     "two documents have the name {}, and slices are named by it; use two names", key.name);
  return {};
}

// Two names of PAI-EAS may be the same name here: my_model and my-model.
Outcome<void> check_given_name(const Object& present, const Submission& wanted) {
  const auto before = present.annotations.find(fronts::eas_name_annotation);
  const auto now = wanted.metadata.annotations.find(fronts::eas_name_annotation);
  if (before == present.annotations.end() || now == wanted.metadata.annotations.end()) return {};
  if (before->second == now->second) return {};
  return failure(K::already_exists,
                 "metadata.name: '{}' is {} here, which is service '{}' already; use another name",
                 now->second.substr(0, 80), present.key.name, before->second.substr(0, 80));
}

// An image may have any program of any user in it, and podman starts it with the rights of root.
Outcome<void> check_image(const Call& call, const std::string& image) {
  if (image.empty()) return {};
  if (!call.caller.may_operate())
    return failure(
        K::permission_denied,
        "spec.run.image: '{}' is a container's image, and operators alone start containers; name a "
        "local program in spec.run.command, or ask an operator",
        image.substr(0, 80));
  if (const std::string problem = call.context.views.container_problem(); !problem.empty())
    return failure(K::failed_precondition, "spec.run.image: '{}': {}", image.substr(0, 80), problem);
  return {};
}

// A policy that no node has would wait for ever.
Outcome<void> check_policy(const Call& call, const Pointer& present, const objects::ServiceSpec& form) {
  if (!form.gpu || form.gpu->policy.empty()) return {};
  if (present && service_form(*present).gpu.value_or(objects::Gpu()).policy == form.gpu->policy) return {};
  const std::string problem =
      policy_problem(form.gpu->policy, form.pool, call.context.objects.list(objects::Kind::node));
  if (problem.empty()) return {};
  return failure(K::failed_precondition, "{}", problem);
}

Outcome<Object> new_object(const Call& call, const ObjectKey& key, const Submission& submission) {
  const auto owner = owner_of(call, {.account = submission.metadata.account});
  if (!owner) return tl::unexpected(owner.error());
  if (auto named = check_name(call, key); !named) return tl::unexpected(named.error());
  Object object;
  object.key = key;
  object.owner_uid = owner->uid;
  object.account = owner->account;
  object.created_ns = call.context.views.now_ns();
  object.uid = fmt::format("{:x}-{}", object.created_ns, key.name);
  return object;
}

std::string status_with(const std::string& status, const std::vector<std::string>& warnings) {
  auto read = api::read<objects::ServiceStatus>(status, api::Reading::lenient);
  objects::ServiceStatus out = read ? *read : objects::ServiceStatus{.phase = "Waiting"};
  out.warnings = warnings;
  return api::write(out);
}

}  // namespace

namespace {

// Returns what the nodes with GPUs say of the pool; empty: all nodes.
PoolContext context_of_pool(const std::string& name, const std::vector<api::KnownNode>& nodes,
                            const ObjectRegistry& objects) {
  PoolContext out;
  for (const api::KnownNode& node : nodes) {
    const Pointer object = objects.find(node_key(node.name));
    const objects::NodeSpec spec = object ? node_spec(*object) : objects::NodeSpec();
    if (node.devices.empty() || (!name.empty() && spec.pool != name)) continue;
    out.eas.pool_instance_types.push_back(spec.instance_type);
    for (const api::NodeDevice& device : node.devices)
      out.eas.largest_usable_bytes = std::max(out.eas.largest_usable_bytes.value_or(0), device.usable_bytes);
  }
  const Pointer pool = objects.find(pool_key(name));
  out.application.is_elastic_pool = pool && pool_spec(*pool).type == text(workload::PoolType::vci);
  return out;
}

}  // namespace

SubmissionContext submission_context(const Call& call) {
  return {.of_pool = [nodes = call.context.views.nodes().nodes, &objects = call.context.objects](
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
    return tl::unexpected(
        refuse(K::failed_precondition, "the object was changed meanwhile; send the request again"));
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
        refuse(K::invalid_argument,
               fmt::format("dialect '{}': use {}", dialect.substr(0, 80), fmt::join(dialects, ", "))));
  return submissions_of(call, call.request.body, dialect);
}

Outcome<ObjectKey> key_of(const Call& call) {
  const auto query = parse_query(call.request.query, {"namespace"});
  if (!query) return tl::unexpected(query.error());
  const auto space = query->find("namespace");
  return ObjectKey{call.kind, space == query->end() ? "default" : space->second, call.names[0]};
}

Outcome<Pointer> named_object(const Call& call) {
  const auto key = key_of(call);
  if (!key) return tl::unexpected(key.error());
  Pointer object = call.context.objects.find(*key);
  if (!object) return failure(K::not_found, "there is no {}", text(*key));
  return object;
}

Outcome<Pointer> changeable_object(const Call& call) {
  auto object = named_object(call);
  if (!object) return object;
  if (!call.caller.may_create()) return refuse_viewer(call.caller);
  if (!call.caller.may_change((*object)->owner_uid, (*object)->account)) return refuse_change((*object)->key);
  if (const auto is_expected = check_version(call, **object); !is_expected)
    return tl::unexpected(is_expected.error());
  return object;
}

bool may_see_secrets(const http::Caller& caller, const Object& object) {
  if (caller.token_account() != nullptr && !caller.may_create()) return false;
  return caller.may_change(object.owner_uid, object.account);
}

namespace {

// Returns the spec that the object gets. What a document cannot say, or does not, and a verb has set, stays:
// the last restart, and of a document of another system that is posted, whether the service is stopped and
// how it scales. Without the former restart an unchanged document would restart every replica.
std::string wanted_spec(const Call& call, const Pointer& present, const Submission& submission) {
  if (!present) return submission.spec;
  auto spec = api::parse(submission.spec), before = api::parse(present->spec);
  if (!spec || !before) return submission.spec;
  const auto keep = [&](const char* field) {
    if (before->contains(field)) (*spec)[field] = (*before)[field];
  };
  if ((*spec)["restartedAt"] == "") keep("restartedAt");
  if (call.request.method == "POST" && !submission.form.source.dialect.empty()) {
    keep("stopped");
    keep("autoscale");
  }
  return spec->dump();
}

}  // namespace

std::vector<std::string> warnings_of(const Call& call, const Submission& submission) {
  std::vector<std::string> out = submission.warnings;
  if (objects::text_of(submission.kind).is_workload)
    std::ranges::copy(call.context.views.limit_warnings(submission.form), std::back_inserter(out));
  return out;
}

Outcome<void> check_operator(const Call& call, objects::Kind kind) {
  if (call.caller.may_operate()) return {};
  return failure(K::permission_denied, "{} are changed by operators; {} is none",
                 objects::text_of(kind).plural, call.caller.text());
}

Outcome<Object> operators_object(const Call& call, const Submission& submission,
                                 const std::string& first_status) {
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
    object.status = first_status;
  }
  object.labels = submission.metadata.labels;
  object.annotations = submission.metadata.annotations;
  object.spec = submission.spec;
  return object;
}

Outcome<Object> planned(const Call& call, const Submission& submission) {
  if (submission.kind == objects::Kind::pool) return planned_pool(call, submission);
  if (submission.kind == objects::Kind::node) return planned_node(call, submission);
  if (submission.kind == objects::Kind::queue)
    return operators_object(call, submission, api::write(objects::QueueStatus()));
  if (submission.kind == objects::Kind::tariff || submission.kind == objects::Kind::budget)
    return operators_object(call, submission, "{}");
  if (is_queued(submission.kind)) return planned_job(call, submission);
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
  if (auto allowed = runs_the_same ? Outcome<void>() : check_image(call, submission.form.run.image); !allowed)
    return tl::unexpected(allowed.error());
  if (auto allowed = check_policy(call, present, submission.form); !allowed)
    return tl::unexpected(allowed.error());
  object.labels = submission.metadata.labels;
  object.annotations = submission.metadata.annotations;
  object.spec = wanted_spec(call, present, submission);
  object.status = status_with(object.status, warnings_of(call, submission));
  return object;
}

namespace {

// Returns the edits that make the planned objects, which must outlive them.
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
                       const auto planned =
                           api::read<objects::ServiceStatus>(object.status, api::Reading::lenient);
                       present.status = status_with(present.status,
                                                    planned ? planned->warnings : std::vector<std::string>());
                     }});
  return edits;
}

}  // namespace

namespace {

// Returns why the caller may not add these objects: its account has enough, or the last ones are kept for
// operators.
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
      return failure(
          K::resource_exhausted,
          "account '{}' has {} {}, and its quota is {}; delete one first, or let an operator raise "
          "the quota (carve-controller --account-quota)",
          object.account, owned, kinds, quota);
    const size_t free_to_all = max_objects(kind) - reserved_objects(kind);
    if (call.context.objects.count(kind) + more > free_to_all)
      return failure(K::resource_exhausted,
                     "there are {} {}, and the last {} of {} are kept for operators; delete one first",
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

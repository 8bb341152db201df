#include "controller/api/workload_routes.h"

#include <algorithm>
#include <charconv>

#include "controller/api/object_routes.h"
#include "controller/api/planning.h"
#include "controller/api/pool_routes.h"
#include "controller/api/query.h"
#include "controller/api/watch_routes.h"
#include "controller/objects/kind_table.h"
#include "controller/objects/object_programs.h"
#include "controller/objects/service_form.h"
#include "objects/revision.h"
#include "os/clock.h"
#include "yaml/documents.h"

namespace carve::controller {
namespace {

// Changes the object's spec with `edit`, which accepts the spec of a service or of an application.
template <class Edit>
http::Response changed(const Call& call, Edit edit) {
  const auto object = changeable_object(call);
  if (!object) return refuse(object.error());
  const auto updated = call.context.objects.update((*object)->key, [&](Object& present) -> Outcome<void> {
    if (present.is_ending)
      return failure(FailureKind::failed_precondition, "{} is being deleted", text(present.key));
    edit_workload(present, edit);
    return {};
  });
  if (!updated) return refuse(updated.error());
  return shown(call, **updated);
}

Outcome<std::optional<uint32_t>> number(const std::map<std::string, std::string>& query, const char* name) {
  const auto found = query.find(name);
  if (found == query.end()) return std::optional<uint32_t>();
  const std::string& word = found->second;
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size())
    return failure(FailureKind::invalid_argument, "{}: '{}' is not a non-negative whole number", name,
                   word.substr(0, 80));
  return std::optional(value);
}

}  // namespace

http::Response get_logs(const Call& call) {
  const auto query = parse_query(call.request.query, {"namespace", "role", "replica", "previous", "tail",
                                                      "sinceSeconds", "follow", "plain", "timestamps"});
  if (!query) return refuse(query.error());
  const ObjectKey key{call.kind, query->contains("namespace") ? query->at("namespace") : "default",
                      call.names[0]};
  const auto object = call.context.objects.find(key);
  if (!object) return refuse(FailureKind::not_found, fmt::format("there is no {}", text(key)));
  if (!may_see_secrets(call.caller, *object))
    return refuse(
        FailureKind::permission_denied,
        fmt::format("only the owner of {}, its account and operators may read its logs", text(key)));
  const auto roles = roles_of(*object);
  if (query->contains("role") && std::ranges::find(roles, query->at("role")) == roles.end())
    return refuse(
        FailureKind::invalid_argument,
        fmt::format("role '{}': the programs of {} have {} {}", query->at("role").substr(0, max_shown_bytes),
                    text(key), roles.size() == 1 ? "the role" : "the roles", fmt::join(roles, ", ")));
  const auto replica = number(*query, "replica"), tail = number(*query, "tail"),
             since = number(*query, "sinceSeconds");
  for (const auto* parsed : {&replica, &tail, &since})
    if (!*parsed) return refuse(parsed->error());
  LogQuery wanted{.role = query->contains("role") ? query->at("role") : "",
                  .replica = *replica,
                  .previous = query->contains("previous") && query->at("previous") != "false",
                  .plain = query->contains("plain") && query->at("plain") != "false",
                  .has_times = query->contains("timestamps") && query->at("timestamps") != "false",
                  .tail = *tail};
  if (*since) wanted.since_ns = call.context.views.now_ns() - int64_t{**since} * 1'000'000'000;
  const bool follows = query->contains("follow") && query->at("follow") != "false";
  if (follows && wanted.previous)
    return refuse(FailureKind::invalid_argument,
                  "follow: the log of a previous attempt does not grow; leave out follow");
  if (follows) wanted.may_continue = validity_of(call);
  if (follows) return {.content = call.context.views.follow_logs(*object, wanted)};
  const auto work = [read = call.context.views.logs(*object, wanted)]() -> std::function<http::Response()> {
    auto lines = std::make_shared<Outcome<std::string>>(read());
    return [lines]() -> http::Response {
      if (!*lines) return refuse(lines->error());
      return {200, "text/plain; charset=utf-8", std::move(**lines)};
    };
  };
  if (call.context.read_logs == nullptr) return work()();
  return call.context.read_logs(fmt::format("{} {}", object->owner_uid, object->account), work);
}

http::Response get_revisions(const Call& call) {
  const auto object = named_object(call);
  if (!object) return refuse(object.error());
  const auto revisions = call.context.views.revisions((*object)->uid);
  if (!revisions) return refuse(revisions.error());
  objects::RevisionList out;
  for (const Revision& revision : *revisions) {
    const auto form = api::read<objects::ServiceSpec>(revision.form, api::Reading::lenient);
    if (!form) continue;
    out.items.push_back({.revision = revision.number,
                         .created_at = os::rfc3339(revision.created_ns, os::Decimals::milliseconds),
                         .gpu = form->gpu,
                         .command = form->run.command,
                         .image = form->run.image,
                         .restarted_at = form->restarted_at});
  }
  return document(out);
}

namespace {

http::Response no_revision(const Object& object, std::string_view wanted,
                           const std::vector<Revision>& revisions) {
  std::vector<uint32_t> numbers;
  for (const Revision& revision : revisions) numbers.push_back(revision.number);
  return refuse(FailureKind::not_found,
                fmt::format("{} has no revision {}; it has {}", text(object.key),
                            wanted.substr(0, max_shown_bytes), fmt::join(numbers, ", ")));
}

}  // namespace

http::Response get_revision(const Call& call) {
  const auto object = named_object(call);
  if (!object) return refuse(object.error());
  const auto revisions = call.context.views.revisions((*object)->uid);
  if (!revisions) return refuse(revisions.error());
  for (const Revision& revision : *revisions) {
    if (fmt::format("{}", revision.number) != call.names[1]) continue;
    Object out = **object;
    out.spec = TypedJson::unread(revision.spec);
    out.status = TypedJson();
    return {200, "application/json", document_of(out, !may_see_secrets(call.caller, out))};
  }
  return no_revision(**object, call.names[1], *revisions);
}

http::Response start(const Call& call) {
  return changed(call, [](auto& spec) { spec.stopped = false; });
}

http::Response stop(const Call& call) {
  return changed(call, [](auto& spec) { spec.stopped = true; });
}

http::Response restart(const Call& call) {
  const std::string now = os::rfc3339(call.context.views.now_ns(), os::Decimals::milliseconds);
  return changed(call, [&](auto& spec) { spec.restarted_at = now; });
}

namespace {

// Sets the object's spec to the revision's. The number of replicas and the update strategy are not part of a
// revision and keep their values.
http::Response returned_to(const Call& call, const ObjectKey& key, const Revision& revision) {
  const TypedJson former = row_of(key.kind).read_spec(revision.spec);
  if (!former.is_readable())
    return refuse(FailureKind::unavailable,
                  fmt::format("the spec of revision {} is damaged", revision.number));
  http::Response response = changed(call, [&]<class Spec>(Spec& spec) {
    Spec next = former.as<Spec>();
    next.replicas = spec.replicas;
    next.stopped = spec.stopped;
    next.update = spec.update;
    if constexpr (requires { spec.autoscale; })
      if (spec.autoscale) next.autoscale = spec.autoscale;
    spec = std::move(next);
  });
  if (response.status == 200 && call.context.events != nullptr)
    call.context.events->add(key,
                             {objects::EventReason::undone, fmt::format("to revision {}", revision.number)},
                             call.context.views.now_ns());
  return response;
}

}  // namespace

http::Response undo(const Call& call) {
  const auto object = changeable_object(call);
  if (!object) return refuse(object.error());
  const auto wanted = api::read<objects::UndoRequest>(call.request.body.empty() ? "{}" : call.request.body,
                                                      api::Reading::strict);
  if (!wanted) return refuse(FailureKind::invalid_argument, wanted.error());
  const auto revisions = call.context.views.revisions((*object)->uid);
  if (!revisions) return refuse(revisions.error());
  const auto is_wanted = [&](size_t index) {
    return wanted->revision == 0 ? index + 2 == revisions->size()
                                 : (*revisions)[index].number == wanted->revision;
  };
  for (size_t i = 0; i < revisions->size(); ++i) {
    if (!is_wanted(i)) continue;
    return returned_to(call, (*object)->key, (*revisions)[i]);
  }
  if (wanted->revision == 0)
    return refuse(FailureKind::failed_precondition,
                  fmt::format("{} has no earlier revision", text((*object)->key)));
  return no_revision(**object, fmt::format("{}", wanted->revision), *revisions);
}

namespace {

void set_replicas(Submission& submission, uint32_t replicas) {
  submission.form.replicas = replicas;
  submission.spec = submission.form;
}

// Returns the PAI-EAS document after the changes are applied.
Result<std::string, api::FieldErrors> changed_document(const std::string& former,
                                                       const api::EasChanges& changes) {
  std::string text = former;
  if (!changes.document.empty()) {
    const auto documents = yaml::documents_of(changes.document);
    if (!documents) return tl::unexpected(documents.error());
    if (documents->size() != 1)
      return tl::unexpected(api::FieldErrors{
          {.field = "",
           .value = "",
           .message =
               fmt::format("the request contains {} documents; give exactly one document to change a service",
                           documents->size())}});
    auto whole = dialects::is_whole_eas(documents->front())
                     ? Result<std::string, api::FieldErrors>(changes.document)
                     : dialects::merged(former, documents->front());
    if (!whole) return whole;
    text = std::move(*whole);
  }
  return changes.changes.empty() ? text : dialects::modified(yaml::json_of(text), changes.changes);
}

// Returns the message that rejects a document because it is that of another service.
std::string name_refusal(const Submission& wanted, const ObjectKey& key) {
  const auto given = wanted.metadata.annotations.find(dialects::eas_name_annotation);
  const std::string name = given == wanted.metadata.annotations.end() ? wanted.metadata.name : given->second;
  return fmt::format(
      "metadata.name: '{}': the name differs from service {}; leave the name out, or use the same name in "
      "the command",
      name.substr(0, 80), text(key));
}

}  // namespace

// Changes without metadata.instance keep the number of replicas, which a verb may have set.
http::Response modify(const Call& call) {
  const auto present = changeable_object(call);  // Checked first because errors quote parts of the document.
  if (!present) return refuse(present.error());
  if (const auto is_expected = check_version(call, **present); !is_expected)
    return refuse(is_expected.error());
  const auto changes = api::read<api::EasChanges>(call.request.body, api::Reading::strict);
  if (!changes) return refuse(FailureKind::invalid_argument, changes.error());
  const auto* const spec =
      (*present)->key.kind == objects::Kind::service ? &(*present)->spec.as<objects::ServiceSpec>() : nullptr;
  if (spec == nullptr || spec->source.dialect != "eas")
    return refuse(FailureKind::failed_precondition,
                  fmt::format("{} was not written as a PAI-EAS document; change it with carve apply",
                              text((*present)->key)));
  const std::string former = yaml::json_of(spec->source.document);
  const auto document_text = changed_document(former, *changes);
  if (!document_text) return refuse(document_text.error());
  auto read = submissions_of(call, *document_text, "eas");
  if (!read) return std::move(read.error());
  if (auto refused = refused_by_pool(call, *read)) return std::move(*refused);
  Submission& wanted = read->front();
  if (const auto before = read_submissions(former, "eas", submission_context(call));
      before && before->front().form.replicas == wanted.form.replicas)
    set_replicas(wanted, spec->replicas);
  if (wanted.metadata.name != (*present)->key.name ||
      wanted.metadata.namespace_ != (*present)->key.namespace_)
    return refuse(FailureKind::invalid_argument, name_refusal(wanted, (*present)->key));
  const auto object = planned_workload(call, wanted);
  if (!object) return refuse(object.error());
  const auto kept = keep(call, {*object});
  if (!kept) return refuse(kept.error());
  return shown(call, *kept->front().object);
}

}  // namespace carve::controller

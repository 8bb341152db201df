#include "controller/api/object_routes.h"

#include <algorithm>

#include "controller/api/bill_routes.h"
#include "controller/api/dry_run.h"
#include "controller/api/job_routes.h"
#include "controller/api/kind_routes.h"
#include "controller/api/list_query.h"
#include "controller/api/node_routes.h"
#include "controller/api/planning.h"
#include "controller/api/pool_routes.h"
#include "controller/api/query.h"
#include "wire/api/json_value.h"

namespace carve::controller {
namespace {

using Pointer = ObjectRegistry::Pointer;

// Replaces the object's spec with the document's, after all checks.
http::Response replace(const Call& call, const ObjectKey& key, const std::string& text) {
  auto read = submissions_of(call, text, "carve");
  if (!read) return std::move(read.error());
  if (auto refused = refused_by_pool(call, *read)) return std::move(*refused);
  if (auto refused = refused_by_queues(call, *read)) return std::move(*refused);
  if (auto refused = refused_by_tariffs(call, *read)) return std::move(*refused);
  const Submission& wanted = read->front();
  if (read->size() != 1 || ObjectKey{wanted.kind, wanted.metadata.namespace_, wanted.metadata.name} != key)
    return refuse(FailureKind::invalid_argument,
                  fmt::format("the document does not describe {}", controller::text(key)));
  const Pointer present = call.context.objects.find(key);
  if (!present) return refuse(FailureKind::not_found, fmt::format("there is no {}", controller::text(key)));
  if (const auto is_expected = check_version(call, *present); !is_expected)
    return refuse(is_expected.error());
  const auto object = api_of(wanted.kind).plan(call, wanted);
  if (!object) return refuse(object.error());
  const auto kept = keep(call, {*object});
  if (!kept) return refuse(kept.error());
  return shown(call, *kept->front().object);
}

// Rejects documents of existing objects, because a request with ?create must not change any.
Outcome<void> check_new(const Call& call, const std::vector<Submission>& read) {
  for (const Submission& one : read) {
    const ObjectKey key{one.kind, one.metadata.namespace_, one.metadata.name};
    if (call.context.objects.find(key))
      return failure(FailureKind::already_exists,
                     "metadata.name: '{}': {} already exists; change that object, or use another name",
                     one.metadata.name, controller::text(key));
  }
  return {};
}

// Sets the documents of the object before and after the planned change.
void set_documents(const Call& call, const Object& planned, api::AppliedObject& out) {
  const bool is_hidden = !may_see_secrets(call.caller, planned);
  if (const Pointer present = call.context.objects.find(planned.key))
    out.before = document_of(*present, is_hidden);
  out.after = document_of(planned, is_hidden);
}

std::vector<std::string> planned_warnings(const Call& call, const Submission& submission,
                                          const Object& planned) {
  if (is_queued(submission.kind)) return job_warnings(planned);
  if (submission.kind == objects::Kind::node) return node_warnings(call, submission);
  return pool_warnings(call, submission);
}

}  // namespace

http::Response shown(const Call& call, const Object& object, unsigned status) {
  http::Response response{
      status, "application/json",
      document_of(with_present_status(call.context.views, object), !may_see_secrets(call.caller, object))};
  response.headers.push_back({"ETag", fmt::format("\"{}\"", object.version)});
  return response;
}

http::Response post_documents(const Call& of_path) {
  Call call = of_path;
  const auto query = parse_query(call.request.query, {"dialect", "dryRun", "explain", "diff", "create"});
  if (!query) return refuse(query.error());
  auto read = posted_submissions(call, *query);
  if (!read) return std::move(read.error());
  const auto is_set = [&](const char* name) { return query->contains(name) && query->at(name) != "false"; };
  if (const auto are_new = is_set("create") ? check_new(call, *read) : Outcome<void>(); !are_new)
    return refuse(are_new.error());
  call.beside = *read;
  if (auto refused = refused_by_pool(call, *read)) return std::move(*refused);
  if (auto refused = refused_by_nodes(call, *read)) return std::move(*refused);
  if (auto refused = refused_by_queues(call, *read)) return std::move(*refused);
  if (auto refused = refused_by_tariffs(call, *read)) return std::move(*refused);
  std::vector<Object> wanted;
  for (const Submission& submission : *read) {
    auto object = api_of(submission.kind).plan(call, submission);
    if (!object) return refuse(object.error());
    wanted.push_back(std::move(*object));
  }
  api::AppliedList out;
  for (size_t i = 0; i < wanted.size(); ++i)
    out.items.push_back({.kind = std::string(objects::text_of(wanted[i].key.kind).kind),
                         .name = wanted[i].key.name,
                         .namespace_ = wanted[i].key.namespace_,
                         .action = "checked",
                         .warnings = planned_warnings(call, (*read)[i], wanted[i])});
  if (is_set("dryRun") || is_set("explain") || is_set("diff")) {
    if (const auto may_keep = check_keep(call, wanted); !may_keep) return refuse(may_keep.error());
    SliceForecast forecast(call.context.objects);
    forecast.count_replicas(call.context.objects);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const Pointer present = call.context.objects.find(wanted[i].key);
      if (objects::text_of(wanted[i].key.kind).is_workload)
        out.items[i].placement = forecast_replicas(forecast, wanted[i], present);
      else if (is_queued(wanted[i].key.kind) && !present)
        out.items[i].placement = forecast_slices(call, forecast, (*read)[i]);
    }
    for (size_t i = 0; is_set("explain") && i < wanted.size(); ++i)
      if (objects::text_of(wanted[i].key.kind).is_workload)
        out.items[i].translation = translation_of((*read)[i]);
    for (size_t i = 0; is_set("diff") && i < wanted.size(); ++i) set_documents(call, wanted[i], out.items[i]);
    return document(out);
  }
  const auto kept = keep(call, wanted);
  if (!kept) return refuse(kept.error());
  for (size_t i = 0; i < kept->size(); ++i) out.items[i].action = (*kept)[i].action;
  const bool has_node = std::ranges::find(*read, objects::Kind::node, &Submission::kind) != read->end();
  if (has_node && call.context.node_actions != nullptr) call.context.node_actions->poll();
  return document(out, 201);
}

http::Response list_objects(const Call& call) {
  const auto query = parse_list_query(call.request.query, call.kind);
  if (!query) return refuse(query.error());
  const uint64_t version = call.context.objects.version();
  const ListPage page = page_of(call.context.objects.list(call.kind, query->namespace_), *query);
  std::string items;
  for (const Pointer& object : page.objects)
    items += (items.empty() ? "" : ",") + document_of(with_present_status(call.context.views, *object),
                                                      !may_see_secrets(call.caller, *object));
  return {200, "application/json",
          fmt::format(R"({{"items":[{}],"metadata":{{"resourceVersion":"{}","continue":"{}"}}}})", items,
                      version, page.next)};
}

http::Response get_object(const Call& call) {
  const auto object = named_object(call);
  return object ? shown(call, **object) : refuse(object.error());
}

http::Response put_object(const Call& call) {
  const auto key = key_of(call);
  if (!key) return refuse(key.error());
  return replace(call, *key, call.request.body);
}

http::Response patch_object(const Call& call) {
  // Errors of the whole document quote parts of it, so they must not be shown to a caller who may not change
  // it.
  const auto object = objects::text_of(call.kind).is_workload ? changeable_object(call) : named_object(call);
  if (!object) return refuse(object.error());
  auto patch = api::parse(call.request.body, api::Decimals::as_doubles, api::max_depth, api::max_nodes);
  if (!patch) return refuse(FailureKind::invalid_argument, patch.error());
  auto json = api::parse(document_of(**object));
  json->erase("status");
  json->merge_patch(*patch);  // RFC 7396
  return replace(call, (*object)->key, json->dump());
}

namespace {

// Deletes an object that has no programs.
http::Response delete_now(const Call& call) {
  const std::string& name = call.names[0];
  if (const auto allowed = check_operator(call, call.kind); !allowed) return refuse(allowed.error());
  const Pointer object = call.context.objects.find({call.kind, "default", name});
  if (!object)
    return refuse(FailureKind::not_found,
                  fmt::format("there is no {} {}", objects::text_of(call.kind).singular,
                              name.substr(0, max_shown_bytes)));
  if (const auto is_expected = check_version(call, *object); !is_expected) return refuse(is_expected.error());
  if (const auto may_go = api_of(call.kind).check_deletion(call, name); !may_go)
    return refuse(may_go.error());
  if (const auto removed = call.context.objects.remove(object->key); !removed) return refuse(removed.error());
  return shown(call, *object);
}

}  // namespace

http::Response delete_object(const Call& call) {
  if (api_of(call.kind).check_deletion != nullptr) return delete_now(call);
  const auto object = changeable_object(call);
  if (!object) return refuse(object.error());
  const auto updated = call.context.objects.update((*object)->key, [](Object& present) -> Outcome<void> {
    present.is_ending = true;
    return {};
  });
  if (!updated) return refuse(updated.error());
  return shown(call, **updated);
}

}  // namespace carve::controller

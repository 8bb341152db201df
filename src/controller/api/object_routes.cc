#include "controller/api/object_routes.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "controller/api/query.h"
#include "controller/objects/submission.h"
#include "fronts/service_terms.h"
#include "wire/api/json_value.h"

namespace carve::controller {
namespace {

using K = FailureKind;
using Pointer = ObjectRegistry::Pointer;
using objects::Kind;

fronts::EasContext eas_context(const Call& call) {
  fronts::EasContext context;
  for (const api::KnownNode& node : call.context.views.nodes().nodes)
    for (const api::NodeDevice& device : node.devices)
      context.largest_usable_bytes = std::max(context.largest_usable_bytes.value_or(0), device.usable_bytes);
  return context;
}

bool may_see_secrets(const Call& call, const Object& object) {
  if (call.caller.token_account() != nullptr && !call.caller.may_create()) return false;
  return call.caller.may_change(object.owner_uid, object.account);
}

http::Response shown(const Call& call, const Object& object, unsigned status = 200) {
  http::Response response{status, "application/json", document_of(object, !may_see_secrets(call, object))};
  response.headers.push_back({"ETag", fmt::format("\"{}\"", object.version)});
  return response;
}

// Returns the key of the object that the path names.
Outcome<ObjectKey> key_of(const Call& call, Kind kind) {
  const auto query = parse_query(call.request.query, {"namespace"});
  if (!query) return tl::unexpected(query.error());
  const auto space = query->find("namespace");
  return ObjectKey{kind, space == query->end() ? "default" : space->second, call.names[0]};
}

// Returns the version that the header If-Match names; no value without the header.
Outcome<std::optional<uint64_t>> expected_version(const http::Request& request) {
  const std::string* header = request.headers.find("If-Match");
  if (header == nullptr || *header == "*") return std::optional<uint64_t>();
  uint64_t version = 0;
  const std::string digits = header->size() > 2 ? header->substr(1, header->size() - 2) : "";
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), version);
  if (error != std::errc() || end != digits.data() + digits.size())
    return failure(K::invalid_argument, "If-Match '{}' is not an ETag of this API", header->substr(0, 80));
  return std::optional(version);
}

tl::unexpected<Failure> refuse_change(const ObjectKey& key) {
  return failure(K::permission_denied,
                 "{} belongs to another user; its owner, its account and operators may "
                 "change it",
                 text(key));
}

// Returns who would own a new object of the caller: the user whose rights its programs have.
struct Owner {
  uint32_t uid;
  std::string account;
};
Outcome<Owner> owner_of(const Call& call, const std::string& wanted_account) {
  const Views& views = call.context.views;
  if (!call.caller.may_create())
    return failure(K::permission_denied,
                   "{} may see objects and not change them; use a token with the role user",
                   call.caller.text());
  if (const auto uid = call.caller.uid()) {
    const std::string own = views.user_name(*uid);
    if (!wanted_account.empty() && wanted_account != own && !call.caller.may_operate())
      return failure(K::permission_denied, "metadata.account: '{}' is not the account of {}; leave it out",
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
    return failure(K::permission_denied, "metadata.account: '{}' is not the account of the token, '{}'",
                   wanted_account.substr(0, 80), account);
  return Owner{*uid, wanted_account.empty() ? account : wanted_account};
}

std::string status_with(const std::string& status, const std::vector<std::string>& warnings) {
  auto read = api::read<objects::ServiceStatus>(status, api::Reading::lenient);
  objects::ServiceStatus out = read ? *read : objects::ServiceStatus{.phase = "Waiting"};
  out.warnings = warnings;
  return api::write(out);
}

// Returns the object that the submission would make, or what forbids it.
Outcome<Object> planned(const Call& call, const Submission& submission) {
  const objects::Service& service = submission.service;
  const ObjectKey key{Kind::service, service.metadata.namespace_, service.metadata.name};
  Object object;
  if (const Pointer present = call.context.objects.find(key)) {
    if (!call.caller.may_change(present->owner_uid, present->account) || !call.caller.may_create())
      return refuse_change(key);
    if (present->is_ending)
      return failure(K::failed_precondition, "{} is being deleted; apply it again when it is gone",
                     text(key));
    object = *present;
  } else {
    const auto owner = owner_of(call, service.metadata.account);
    if (!owner) return tl::unexpected(owner.error());
    for (const Pointer& other : call.context.objects.list(Kind::service))
      if (other->key.name == key.name)
        return failure(K::already_exists,
                       "namespace {} has a service {} already, and slices are named by services; use another "
                       "name",
                       other->key.namespace_, key.name);
    object.key = key;
    object.owner_uid = owner->uid;
    object.account = owner->account;
    object.created_ns = call.context.views.now_ns();
    object.uid = fmt::format("{:x}-{}", object.created_ns, key.name);
  }
  if (!service.spec.run.image.empty())
    return failure(
        K::failed_precondition,
        "spec.run.image: '{}' is a container's image, and this version starts local programs; leave the "
        "image out and name the program in spec.run.command",
        service.spec.run.image.substr(0, 80));
  object.labels = service.metadata.labels;
  object.annotations = service.metadata.annotations;
  object.spec = api::write(service.spec);
  object.status = status_with(object.status, submission.warnings);
  return object;
}

struct Kept {
  Pointer object;
  const char* action;
};

Outcome<Kept> keep(const Call& call, const Object& object) {
  const Pointer before = call.context.objects.find(object.key);
  if (!before) {
    auto added = call.context.objects.add(object);
    if (!added) return tl::unexpected(added.error());
    return Kept{*added, "created"};
  }
  auto updated = call.context.objects.update(object.key, [&](Object& present) -> Outcome<void> {
    present.labels = object.labels;
    present.annotations = object.annotations;
    present.spec = object.spec;
    const auto warned = api::read<objects::ServiceStatus>(object.status, api::Reading::lenient);
    present.status = status_with(present.status, warned ? warned->warnings : std::vector<std::string>());
    return {};
  });
  if (!updated) return tl::unexpected(updated.error());
  return Kept{*updated, (*updated)->generation == before->generation ? "unchanged" : "configured"};
}

// Replaces the spec of the object with that of the document, after all checks.
http::Response replace(const Call& call, const ObjectKey& key, const std::string& text) {
  const auto expected = expected_version(call.request);
  if (!expected) return refuse(expected.error());
  const auto read = read_submissions(text, "carve", eas_context(call));
  if (!read) return refuse(read.error());
  const objects::Metadata& metadata = read->front().service.metadata;
  if (read->size() != 1 || metadata.name != key.name || metadata.namespace_ != key.namespace_)
    return refuse(K::invalid_argument, fmt::format("the document is not one of {}", controller::text(key)));
  const Pointer present = call.context.objects.find(key);
  if (!present) return refuse(K::not_found, fmt::format("there is no {}", controller::text(key)));
  if (*expected && **expected != present->version)
    return refuse(K::stale, fmt::format("{} has version {}, not {}; read it again", controller::text(key),
                                        present->version, **expected));
  const auto object = planned(call, read->front());
  if (!object) return refuse(object.error());
  const auto kept = keep(call, *object);
  if (!kept) return refuse(kept.error());
  return shown(call, *kept->object);
}

// Changes the object's spec with `edit`.
http::Response changed(const Call& call, const std::function<void(objects::ServiceSpec&)>& edit) {
  const auto key = key_of(call, Kind::service);
  if (!key) return refuse(key.error());
  const Pointer present = call.context.objects.find(*key);
  if (!present) return refuse(K::not_found, fmt::format("there is no {}", text(*key)));
  if (!call.caller.may_change(present->owner_uid, present->account) || !call.caller.may_create())
    return refuse(refuse_change(*key).value());
  const auto updated = call.context.objects.update(*key, [&](Object& object) -> Outcome<void> {
    auto spec = api::read<objects::ServiceSpec>(object.spec, api::Reading::lenient);
    if (!spec) return failure(K::unavailable, "{}", spec.error());
    edit(*spec);
    object.spec = api::write(*spec);
    return {};
  });
  if (!updated) return refuse(updated.error());
  return shown(call, **updated);
}

bool matches(const Object& object, const std::string& selector) {
  size_t begin = 0;
  while (begin < selector.size()) {
    const size_t end = std::min(selector.find(',', begin), selector.size());
    const std::string part = selector.substr(begin, end - begin);
    begin = end + 1;
    const size_t equal = part.find('=');
    const auto label = object.labels.find(part.substr(0, equal));
    if (label == object.labels.end()) return false;
    if (equal != std::string::npos && label->second != part.substr(equal + 1)) return false;
  }
  return true;
}

}  // namespace

http::Response post_documents(const Call& call) {
  const auto query = parse_query(call.request.query, {"dialect", "dryRun"});
  if (!query) return refuse(query.error());
  const std::string dialect = query->contains("dialect") ? query->at("dialect") : "auto";
  if (std::ranges::find(dialects, dialect) == std::end(dialects))
    return refuse(K::invalid_argument,
                  fmt::format("dialect '{}': use {}", dialect.substr(0, 80), fmt::join(dialects, ", ")));
  const auto read = read_submissions(call.request.body, dialect, eas_context(call));
  if (!read) return refuse(read.error());
  std::vector<Object> planned_objects;
  for (const Submission& submission : *read) {
    auto object = planned(call, submission);
    if (!object) return refuse(object.error());
    planned_objects.push_back(std::move(*object));
  }
  const bool keeps = !query->contains("dryRun") || query->at("dryRun") == "false";
  api::AppliedList out;
  for (size_t i = 0; i < planned_objects.size(); ++i) {
    const Object& object = planned_objects[i];
    api::AppliedObject applied{.kind = std::string(objects::text_of(object.key.kind).kind),
                               .name = object.key.name,
                               .name_space = object.key.namespace_,
                               .action = "checked",
                               .warnings = (*read)[i].warnings};
    if (keeps) {
      const auto kept = keep(call, object);
      if (!kept) return refuse(kept.error());
      applied.action = kept->action;
    }
    out.items.push_back(std::move(applied));
  }
  return document(out, keeps ? 201 : 200);
}

http::Response list_services(const Call& call) {
  const auto query = parse_query(call.request.query, {"namespace", "labelSelector"});
  if (!query) return refuse(query.error());
  const std::string space = query->contains("namespace") ? query->at("namespace") : "";
  const std::string selector = query->contains("labelSelector") ? query->at("labelSelector") : "";
  std::string items;
  const uint64_t version = call.context.objects.version();
  for (const Pointer& object : call.context.objects.list(Kind::service, space))
    if (matches(*object, selector))
      items += (items.empty() ? "" : ",") + document_of(*object, !may_see_secrets(call, *object));
  return {200, "application/json",
          fmt::format(R"({{"items":[{}],"metadata":{{"resourceVersion":"{}"}}}})", items, version)};
}

http::Response get_service(const Call& call) {
  const auto key = key_of(call, Kind::service);
  if (!key) return refuse(key.error());
  const Pointer object = call.context.objects.find(*key);
  if (!object) return refuse(K::not_found, fmt::format("there is no {}", text(*key)));
  return shown(call, *object);
}

http::Response put_service(const Call& call) {
  const auto key = key_of(call, Kind::service);
  if (!key) return refuse(key.error());
  return replace(call, *key, call.request.body);
}

http::Response patch_service(const Call& call) {
  const auto key = key_of(call, Kind::service);
  if (!key) return refuse(key.error());
  const Pointer object = call.context.objects.find(*key);
  if (!object) return refuse(K::not_found, fmt::format("there is no {}", text(*key)));
  auto patch = api::parse(call.request.body);
  if (!patch) return refuse(K::invalid_argument, patch.error());
  auto json = api::parse(document_of(*object));
  json->erase("status");
  json->merge_patch(*patch);  // RFC 7396
  return replace(call, *key, json->dump());
}

http::Response delete_service(const Call& call) {
  const auto key = key_of(call, Kind::service);
  if (!key) return refuse(key.error());
  const Pointer present = call.context.objects.find(*key);
  if (!present) return refuse(K::not_found, fmt::format("there is no {}", text(*key)));
  if (!call.caller.may_change(present->owner_uid, present->account) || !call.caller.may_create())
    return refuse(refuse_change(*key).value());
  const auto updated = call.context.objects.update(*key, [](Object& object) -> Outcome<void> {
    object.is_ending = true;
    return {};
  });
  if (!updated) return refuse(updated.error());
  return shown(call, **updated);
}

http::Response get_service_logs(const Call& call) {
  const auto query =
      parse_query(call.request.query, {"namespace", "replica", "previous", "tail", "sinceSeconds"});
  if (!query) return refuse(query.error());
  const ObjectKey key{Kind::service, query->contains("namespace") ? query->at("namespace") : "default",
                      call.names[0]};
  const Pointer object = call.context.objects.find(key);
  if (!object) return refuse(K::not_found, fmt::format("there is no {}", text(key)));
  if (!may_see_secrets(call, *object))
    return refuse(K::permission_denied, fmt::format("the logs of {} are shown to its owner, its account and "
                                                    "operators",
                                                    text(key)));
  LogQuery wanted{.previous = query->contains("previous") && query->at("previous") != "false"};
  const auto number = [&](const char* name) -> Outcome<std::optional<uint64_t>> {
    if (!query->contains(name)) return std::optional<uint64_t>();
    const std::string& word = query->at(name);
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || value > UINT32_MAX)
      return failure(K::invalid_argument, "{}: '{}' is not a whole number from 0 up", name,
                     word.substr(0, 80));
    return std::optional(value);
  };
  const auto replica = number("replica"), tail = number("tail"), since = number("sinceSeconds");
  for (const auto* parsed : {&replica, &tail, &since})
    if (!*parsed) return refuse(parsed->error());
  if (*replica) wanted.replica = static_cast<uint32_t>(**replica);
  if (*tail) wanted.tail = **tail;
  if (*since) wanted.since_ns = call.context.views.now_ns() - static_cast<int64_t>(**since) * 1'000'000'000;
  const auto lines = call.context.views.logs(*object, wanted);
  if (!lines) return refuse(lines.error());
  return {200, "text/plain; charset=utf-8", *lines};
}

// Changes the stored document of a service that was written as one, and applies it anew.
http::Response modify_service(const Call& call) {
  const auto key = key_of(call, Kind::service);
  if (!key) return refuse(key.error());
  const Pointer present = call.context.objects.find(*key);
  if (!present) return refuse(K::not_found, fmt::format("there is no {}", text(*key)));
  const auto changes = api::read<api::EasChanges>(call.request.body, api::Reading::strict);
  if (!changes) return refuse(K::invalid_argument, changes.error());
  const auto spec = api::read<objects::ServiceSpec>(present->spec, api::Reading::lenient);
  if (!spec || spec->source.dialect != "eas")
    return refuse(
        K::failed_precondition,
        fmt::format("{} was not written as a PAI-EAS document; change it with carve apply", text(*key)));
  const auto document_text = fronts::modified(spec->source.document, changes->changes);
  if (!document_text) return refuse(document_text.error());
  const auto read = read_submissions(*document_text, "eas", eas_context(call));
  if (!read) return refuse(read.error());
  const auto object = planned(call, read->front());
  if (!object) return refuse(object.error());
  const auto kept = keep(call, *object);
  if (!kept) return refuse(kept.error());
  return shown(call, *kept->object);
}

http::Response start_service(const Call& call) {
  return changed(call, [](objects::ServiceSpec& spec) { spec.stopped = false; });
}
http::Response stop_service(const Call& call) {
  return changed(call, [](objects::ServiceSpec& spec) { spec.stopped = true; });
}

}  // namespace carve::controller

#include "kubernetes/api/testing/api_server_fake.h"

#include <fmt/format.h>

#include <algorithm>

#include "kubernetes/api/api_client.h"

namespace carve::kubernetes {
namespace {

using json = nlohmann::json;
using FaultKind = ApiFault::Kind;

constexpr const char* server_audience = "https://kubernetes.default.svc";
constexpr size_t max_requests_kept = 10'000;

struct KindRow {
  const char* resource;
  const char* kind;
};
constexpr KindRow kinds[] = {{"pods", "Pod"},
                             {"nodes", "Node"},
                             {"namespaces", "Namespace"},
                             {"configmaps", "ConfigMap"},
                             {"secrets", "Secret"},
                             {"resourcequotas", "ResourceQuota"},
                             {"leases", "Lease"},
                             {"events", "Event"},
                             {"resourceslices", "ResourceSlice"},
                             {"resourceclaims", "ResourceClaim"},
                             {"deployments", "Deployment"},
                             {"services", "Service"},
                             {"controllerrevisions", "ControllerRevision"}};

// Custom resources have a status subresource, and a generation like Deployments.
constexpr std::string_view custom_group = "/apis/carve.dev/";

std::string kind_of(const std::string& resource) {
  const auto* const found = std::ranges::find(kinds, resource, &KindRow::resource);
  return found != std::end(kinds) ? found->kind : resource;
}

bool has_status_subresource(const std::string& collection) {
  return collection.ends_with("/pods") || collection.ends_with("/nodes") ||
         collection.ends_with("/deployments") || collection.starts_with(custom_group);
}
bool has_generation(const std::string& collection) {
  return collection.ends_with("/deployments") || collection.starts_with(custom_group);
}

// Returns the text at `path` of the object. Empty if absent.
std::string text_at(const json& object, std::initializer_list<const char*> path) {
  const json* at = &object;
  for (const char* key : path) {
    if (!at->is_object() || !at->contains(key)) return "";
    at = &(*at)[key];
  }
  return at->is_string() ? at->get<std::string>() : "";
}

json metadata_of(const json& object) {
  return {{"kind", "PartialObjectMetadata"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata", object.value("metadata", json::object())}};
}

bool wants_metadata(const std::string& accept) {
  return accept.find("as=PartialObjectMetadata") != std::string::npos;
}

// A strategic merge patch merges the list status.conditions by the condition's type. This fake replaces all
// other lists.
void merge_conditions(const json& before, json& change) {
  if (!change.contains("status") || !change["status"].contains("conditions")) return;
  json merged = before.value(json::json_pointer("/status/conditions"), json::array());
  for (const json& condition : change["status"]["conditions"]) {
    const auto old =
        std::ranges::find_if(merged, [&](const json& c) { return c["type"] == condition["type"]; });
    if (old != merged.end())
      old->merge_patch(condition);
    else
      merged.push_back(condition);
  }
  change["status"]["conditions"] = std::move(merged);
}

std::string parameter(const ApiPath& path, const std::string& name) {
  const auto found = path.query.find(name);
  return found != path.query.end() ? found->second : "";
}

uint64_t number(const std::string& text, uint64_t otherwise) {
  const bool is_number = !text.empty() && text.size() < 19 && std::ranges::all_of(text, ::isdigit);
  return is_number ? std::stoull(text) : otherwise;
}

std::pair<std::string, std::string> key_of(const json& object) {
  return {text_at(object, {"metadata", "namespace"}), text_at(object, {"metadata", "name"})};
}

}  // namespace

ApiServerFake::Answer ApiServerFake::problem(unsigned status, const std::string& reason,
                                             const std::string& message) {
  const json body = {{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Failure"},
                     {"reason", reason}, {"message", message}, {"code", status}};
  return {status, body.dump()};
}

std::optional<ApiFault> ApiServerFake::take_fault(const std::string& method, const std::string& target,
                                                  std::initializer_list<FaultKind> of) {
  const auto found = std::ranges::find_if(faults_, [&](const ApiFault& fault) {
    return std::ranges::find(of, fault.kind) != of.end() &&
           (fault.method.empty() || fault.method == method) && target.find(fault.target) != std::string::npos;
  });
  if (found == faults_.end()) return std::nullopt;
  ApiFault out = *found;
  if (--found->times == 0) faults_.erase(found);
  return out;
}

void ApiServerFake::clear_faults() {
  faults_.clear();
  release_late();
}

void ApiServerFake::handle(const Request& request, const std::shared_ptr<Exchange>& exchange) {
  const ApiPath path = parse_api_path(request.target);
  const bool is_watch = request.method == "GET" && parameter(path, "watch") == "true";
  const std::string method = is_watch ? "WATCH" : request.method;
  requests_.push_back(method + " " + request.target);
  if (requests_.size() > max_requests_kept) requests_.pop_front();
  if (!required_token.empty() && request.token != required_token) {
    const Answer answer = problem(401, "Unauthorized", "Unauthorized");
    return exchange->answer(answer.status, answer.body, 0);
  }
  const auto fault =
      take_fault(method, request.target,
                 {FaultKind::status, FaultKind::lose_request, FaultKind::lose_answer, FaultKind::hang});
  if (fault && fault->kind == FaultKind::status) {
    const Answer answer = problem(fault->status, "Fault", fmt::format("injected fault: {}", fault->status));
    return exchange->answer(answer.status, answer.body, fault->retry_after_seconds);
  }
  if (fault && fault->kind == FaultKind::hang) return;
  if (fault && fault->kind == FaultKind::lose_request) return exchange->lose();
  if (is_watch && !fault) return begin_watch(request, path, exchange);
  const Answer answer = act(request, path);
  if (fault) return exchange->lose();
  exchange->answer(answer.status, answer.body, 0);
}

ApiServerFake::Answer ApiServerFake::act(const Request& request, const ApiPath& path) {
  if (path.resource.empty()) {
    if (request.target == "/readyz") return {200, "ok"};
    if (request.target == "/version") return {200, version_text};
    if (request.method == "GET" && groups.contains(request.target))
      return {200, R"({"kind":"APIResourceList"})"};
    return problem(404, "NotFound", "the server could not find the requested resource");
  }
  if (path.resource == "tokenreviews" || path.resource == "subjectaccessreviews")
    return review(request, path);
  if (request.method == "POST" && path.subresource == "binding") return bind(request, path);
  if (request.method == "POST" && path.subresource == "token") return issue_token(request, path);
  if (request.method == "POST" && path.name.empty()) return create(request, path);
  if (request.method == "GET") return path.name.empty() ? list(request, path) : get(request, path);
  if (request.method == "PUT" && !path.name.empty()) return replace(request, path);
  if (request.method == "PATCH" && !path.name.empty()) return patch(request, path);
  if (request.method == "DELETE" && !path.name.empty()) return remove(request, path);
  return problem(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
}

const json* ApiServerFake::find(const std::string& collection, const std::string& name_space,
                                const std::string& name) const {
  const auto found = collections_.find(collection);
  if (found == collections_.end()) return nullptr;
  const auto object = found->second.find({name_space, name});
  return object != found->second.end() ? &object->second : nullptr;
}

std::vector<json> ApiServerFake::all(const std::string& collection) const {
  std::vector<json> out;
  if (const auto found = collections_.find(collection); found != collections_.end())
    for (const auto& [key, object] : found->second) out.push_back(object);
  return out;
}

ApiServerFake::Answer ApiServerFake::get(const Request& request, const ApiPath& path) {
  const json* object = find(path.collection(), path.name_space, path.name);
  if (object == nullptr)
    return problem(404, "NotFound", fmt::format("{} \"{}\" not found", path.resource, path.name));
  return {200, (wants_metadata(request.accept) ? metadata_of(*object) : *object).dump()};
}

// The later pages of a list have the version of its first page.
ApiServerFake::Answer ApiServerFake::list(const Request& request, const ApiPath& path) {
  const size_t limit = std::min<size_t>(number(parameter(path, "limit"), page_limit), page_limit);
  std::string token = parameter(path, "continue");
  uint64_t at = version_;
  size_t begin = 0;
  if (token.empty()) {
    Snapshot snapshot;
    const Selector labels(Selector::Of::labels, parameter(path, "labelSelector"));
    const Selector fields(Selector::Of::fields, parameter(path, "fieldSelector"));
    for (const auto& [key, object] : collections_[path.collection()])
      if ((path.name_space.empty() || key.first == path.name_space) && labels.matches(object) &&
          fields.matches(object))
        snapshot.items.push_back(wants_metadata(request.accept) ? metadata_of(object) : object);
    token = fmt::format("{}-{}", version_, next_token_++);
    lists_[token] = std::move(snapshot);
  } else {
    const size_t slash = std::min(token.find('/'), token.size());
    begin = number(token.substr(std::min(slash + 1, token.size())), 0);
    token.resize(slash);
    at = number(token.substr(0, token.find('-')), 0);
    if (at < oldest_kept_ || !lists_.contains(token))
      return problem(410, "Expired", "The provided continue parameter is too old");
  }
  const std::vector<json>& items = lists_[token].items;
  const size_t end = std::min(items.size(), begin + limit);
  json page = {{"kind", wants_metadata(request.accept) ? "PartialObjectMetadataList"
                                                       : kind_of(path.resource) + "List"},
               {"metadata", {{"resourceVersion", std::to_string(at)}}},
               {"items", json::array()}};
  for (size_t i = begin; i < end; ++i) page["items"].push_back(items[i]);
  if (end < items.size())
    page["metadata"]["continue"] = fmt::format("{}/{}", token, end);
  else
    lists_.erase(token);
  return {200, page.dump()};
}

ApiServerFake::Answer ApiServerFake::create(const Request& request, const ApiPath& path) {
  json object = json::parse(request.body, nullptr, false);
  if (!object.is_object()) return problem(400, "BadRequest", "the body is not an object");
  json& meta = object["metadata"];
  if (text_at(object, {"metadata", "name"}).empty() && !text_at(object, {"metadata", "generateName"}).empty())
    meta["name"] = fmt::format("{}{:05}", meta["generateName"].get<std::string>(), next_uid_);
  if (!path.name_space.empty()) meta["namespace"] = path.name_space;
  const auto [name_space, name] = key_of(object);
  if (name.empty()) return problem(422, "Invalid", "name or generateName is required");
  if (find(path.collection(), path.name_space, name) != nullptr)
    return problem(409, "AlreadyExists", fmt::format("{} \"{}\" already exists", path.resource, name));
  meta.erase("uid");
  write(path.collection(), std::move(object));
  return {201, find(path.collection(), name_space, name)->dump()};
}

// Stores a changed object: depending on the path, either the main resource without its status, or only the
// status.
ApiServerFake::Answer ApiServerFake::store(const ApiPath& path, json object) {
  const json before = *find(path.collection(), path.name_space, path.name);
  const auto refuse = [&](const char* what) {
    return problem(
        409, "Conflict",
        fmt::format("Operation cannot be fulfilled on {} \"{}\": {}", path.resource, path.name, what));
  };
  const std::string given = text_at(object, {"metadata", "resourceVersion"});
  if (!given.empty() && given != text_at(before, {"metadata", "resourceVersion"}))
    return refuse(
        "the object has been modified; please apply your changes to the latest version and try again");
  if (text_at(object, {"metadata", "uid"}) != text_at(before, {"metadata", "uid"}) &&
      !text_at(object, {"metadata", "uid"}).empty())
    return refuse("Precondition failed: UID in precondition differs");
  const auto keep = [&](const char* field) {
    object.erase(field);
    if (before.contains(field)) object[field] = before[field];
  };
  if (path.subresource == "status")
    keep("spec");
  else if (has_status_subresource(path.collection()))
    keep("status");
  for (const char* field : {"uid", "name", "namespace", "creationTimestamp", "resourceVersion"})
    if (before["metadata"].contains(field)) object["metadata"][field] = before["metadata"][field];
  if (object != before) write(path.collection(), std::move(object));
  return {200, find(path.collection(), path.name_space, path.name)->dump()};
}

ApiServerFake::Answer ApiServerFake::replace(const Request& request, const ApiPath& path) {
  json object = json::parse(request.body, nullptr, false);
  if (!object.is_object()) return problem(400, "BadRequest", "the body is not an object");
  if (find(path.collection(), path.name_space, path.name) == nullptr)
    return problem(404, "NotFound", fmt::format("{} \"{}\" not found", path.resource, path.name));
  return store(path, std::move(object));
}

ApiServerFake::Answer ApiServerFake::patch(const Request& request, const ApiPath& path) {
  const json* before = find(path.collection(), path.name_space, path.name);
  if (before == nullptr && request.content_type == apply_patch_type) return create(request, path);
  if (before == nullptr)
    return problem(404, "NotFound", fmt::format("{} \"{}\" not found", path.resource, path.name));
  if (request.content_type == apply_patch_type) return apply(request, path);
  const bool is_strategic = request.content_type == strategic_merge_patch_type;
  if (request.content_type != merge_patch_type && !is_strategic)
    return problem(415, "UnsupportedMediaType", "the body of the request is not a merge patch");
  json change = json::parse(request.body, nullptr, false);
  if (!change.is_object()) return problem(400, "BadRequest", "the body is not an object");
  json object = *before;
  if (is_strategic) merge_conditions(object, change);
  object.merge_patch(change);
  return store(path, std::move(object));
}

// Server-side apply of one manager: members of the spec that it leaves out are removed. Other managers' fields are
// not modelled, except that each adds its owners; a fault injects conflicts.
ApiServerFake::Answer ApiServerFake::apply(const Request& request, const ApiPath& path) {
  const json given = json::parse(request.body, nullptr, false);
  if (!given.is_object()) return problem(400, "BadRequest", "the body is not an object");
  json object = *find(path.collection(), path.name_space, path.name);
  json metadata = object["metadata"];
  json owners = metadata.value("ownerReferences", json::array());
  metadata.merge_patch(given.value("metadata", json::object()));
  if (metadata.contains("ownerReferences")) {
    for (const json& one : metadata["ownerReferences"]) {
      const auto is_same = [&](const json& known) { return known["uid"] == one["uid"]; };
      if (std::ranges::none_of(owners, is_same)) owners.push_back(one);
    }
    metadata["ownerReferences"] = std::move(owners);
  }
  for (const auto& [key, value] : given.items()) object[key] = value;
  object["metadata"] = std::move(metadata);
  return store(path, std::move(object));
}

// A pod that is bound to a node stays until it is deleted without a grace period, because its containers end
// first.
ApiServerFake::Answer ApiServerFake::remove(const Request& request, const ApiPath& path) {
  const json* before = find(path.collection(), path.name_space, path.name);
  if (before == nullptr)
    return problem(404, "NotFound", fmt::format("{} \"{}\" not found", path.resource, path.name));
  const json options = json::parse(request.body, nullptr, false);
  const std::string uid = options.is_object() ? text_at(options, {"preconditions", "uid"}) : "";
  if (!uid.empty() && uid != text_at(*before, {"metadata", "uid"}))
    return problem(409, "Conflict", "Precondition failed: UID in precondition differs");
  const bool is_at_once = options.is_object() && options.value("gracePeriodSeconds", 30) == 0;
  if (path.resource == "pods" && !is_at_once && !text_at(*before, {"spec", "nodeName"}).empty()) {
    json object = *before;
    object["metadata"]["deletionTimestamp"] = now_text;
    if (object != *before) write(path.collection(), object);
    return {200, object.dump()};
  }
  const std::string body = before->dump();
  erase(path.collection(), {path.name_space, path.name});
  return {200, body};
}

ApiServerFake::Answer ApiServerFake::bind(const Request& request, const ApiPath& path) {
  const json* pod = find(path.collection(), path.name_space, path.name);
  if (pod == nullptr) return problem(404, "NotFound", fmt::format("pods \"{}\" not found", path.name));
  const json binding = json::parse(request.body, nullptr, false);
  const std::string node = binding.is_object() ? text_at(binding, {"target", "name"}) : "";
  if (node.empty()) return problem(400, "BadRequest", "target.name is required");
  const auto refuse = [&](const std::string& why) {
    return problem(409, "Conflict",
                   fmt::format("Operation cannot be fulfilled on pods/binding \"{}\": {}", path.name, why));
  };
  const std::string uid = text_at(binding, {"metadata", "uid"});
  if (!uid.empty() && uid != text_at(*pod, {"metadata", "uid"}))
    return refuse(fmt::format("Precondition failed: UID in precondition: {}", uid));
  if (!text_at(*pod, {"metadata", "deletionTimestamp"}).empty())
    return refuse(fmt::format("pod {} is being deleted, cannot be assigned to a host", path.name));
  if (const std::string assigned = text_at(*pod, {"spec", "nodeName"}); !assigned.empty())
    return refuse(fmt::format("pod {} is already assigned to node \"{}\"", path.name, assigned));
  json object = *pod;
  object["spec"]["nodeName"] = node;
  if (const auto meta = binding.find("metadata"); meta != binding.end() && meta->contains("annotations"))
    for (const auto& [name, value] : (*meta)["annotations"].items())
      object["metadata"]["annotations"][name] = value;
  write(path.collection(), std::move(object));
  return {201, R"({"kind":"Status","apiVersion":"v1","status":"Success","code":201})"};
}

// Issues a token of a service account for one audience. It can be reviewed (token_users, token_audiences).
ApiServerFake::Answer ApiServerFake::issue_token(const Request& request, const ApiPath& path) {
  json object = json::parse(request.body, nullptr, false);
  const json audiences =
      object.is_object() ? object.value(json::json_pointer("/spec/audiences"), json()) : json();
  if (!audiences.is_array() || audiences.size() != 1 || !audiences[0].is_string())
    return problem(400, "BadRequest", "this server issues tokens for exactly one audience");
  const std::string token = fmt::format("token-{}", next_token_++);
  token_users[token] = {{"username", fmt::format("system:serviceaccount:{}:{}", path.name_space, path.name)}};
  token_audiences[token] = audiences[0];
  object["status"] = {{"token", token}};
  return {201, object.dump()};
}

ApiServerFake::Answer ApiServerFake::review(const Request& request, const ApiPath& path) const {
  json object = json::parse(request.body, nullptr, false);
  if (!object.is_object() || !object.contains("spec")) return problem(400, "BadRequest", "spec is required");
  if (path.resource == "tokenreviews") {
    const auto user = token_users.find(text_at(object, {"spec", "token"}));
    const auto issued_for =
        user == token_users.end() ? token_audiences.end() : token_audiences.find(user->first);
    const std::string audience = issued_for == token_audiences.end() ? server_audience : issued_for->second;
    const json asked = object["spec"].value("audiences", json::array({server_audience}));
    const bool is_known =
        user != token_users.end() && std::ranges::find(asked, json(audience)) != asked.end();
    object["status"]["authenticated"] = is_known;
    if (is_known) object["status"]["user"] = user->second;
    if (is_known) object["status"]["audiences"] = json::array({audience});
  } else {
    object["status"]["allowed"] = is_allowed != nullptr && is_allowed(object["spec"]);
  }
  return {201, object.dump()};
}

void ApiServerFake::put(const std::string& collection, json object) {
  if (const json* before = find(collection, key_of(object).first, key_of(object).second))
    for (const char* field : {"uid", "creationTimestamp"})
      object["metadata"][field] = (*before)["metadata"][field];
  else
    object["metadata"].erase("uid");
  write(collection, std::move(object));
}

bool ApiServerFake::remove(const std::string& collection, const std::string& name_space,
                           const std::string& name) {
  if (find(collection, name_space, name) == nullptr) return false;
  erase(collection, {name_space, name});
  return true;
}

void ApiServerFake::write(const std::string& collection, json object) {
  json& meta = object["metadata"];
  if (!meta.contains("uid")) {
    meta["uid"] = fmt::format("00000000-0000-4000-8000-{:012}", next_uid_++);
    meta["creationTimestamp"] = now_text;
    if (has_generation(collection)) meta["generation"] = 1;
  }
  if (has_generation(collection))
    if (const json* old = find(collection, key_of(object).first, key_of(object).second))
      meta["generation"] = (*old)["metadata"].value("generation", 1) +
                           (old->value("spec", json()) == object.value("spec", json()) ? 0 : 1);
  meta["resourceVersion"] = std::to_string(++version_);
  const size_t slash = collection.rfind('/');
  if (!object.contains("kind")) object["kind"] = kind_of(collection.substr(slash + 1));
  if (!object.contains("apiVersion"))
    object["apiVersion"] =
        collection.substr(collection.find('/', 1) + 1, slash - collection.find('/', 1) - 1);
  Collection& all = collections_[collection];
  Change change{.version = version_, .collection = collection, .before = {}, .after = object};
  if (const auto before = all.find(key_of(object)); before != all.end()) change.before = before->second;
  all.insert_or_assign(key_of(object), std::move(object));
  changed(std::move(change));
}

void ApiServerFake::erase(const std::string& collection, const Key& key) {
  Collection& all = collections_[collection];
  const auto found = all.find(key);
  Change change{
      .version = ++version_, .collection = collection, .before = std::move(found->second), .after = {}};
  all.erase(found);
  changed(std::move(change));
}

void ApiServerFake::changed(Change change) {
  log_.push_back(std::move(change));
  const Change& last = log_.back();
  if (on_change) on_change(last);
  for (Watch& watch : watches_) deliver(watch, last);
  std::erase_if(watches_, [](const Watch& watch) { return watch.is_over; });
}

void ApiServerFake::compact() {
  oldest_kept_ = version_;
  log_.clear();
}

}  // namespace carve::kubernetes

#include "controller/kubernetes/custom_object.h"

#include <algorithm>
#include <charconv>

#include "controller/kubernetes/custom_resources.h"
#include "controller/kubernetes/json_members.h"
#include "controller/objects/kind_table.h"
#include "core/utc.h"

namespace carve::controller {
namespace {

using api::Json;

constexpr std::string_view foreign_domains[] = {"kubernetes.io/", "k8s.io/"};

// Returns whether the key belongs to Kubernetes or kubectl: "kubectl.kubernetes.io/last-applied-configuration".
bool is_foreign(std::string_view key) {
  const std::string_view domain = key.substr(0, key.find('/') + 1);
  return std::ranges::any_of(foreign_domains, [&](std::string_view one) { return domain.ends_with(one); });
}

bool is_kept_apart(std::string_view key) {
  return is_foreign(key) || key == account_label || key == owner_uid_annotation;
}

std::string text_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::map<std::string, std::string> texts_of(const Json& map) {
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : map.items())
    if (value.is_string() && !is_kept_apart(key)) out[key] = value.get<std::string>();
  return out;
}

template <class Number>
std::optional<Number> number_of(const std::string& text) {
  Number out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

// Returns the document that a user would apply for this object.
std::string document_text(objects::Kind kind, const Json& metadata, const Json& resource) {
  Json out{{"apiVersion", objects::api_version}, {"kind", objects::text_of(kind).kind}};
  out["metadata"] = {{"name", text_in(metadata, "name")},
                     {"labels", texts_of(object_at(metadata, "labels"))},
                     {"annotations", texts_of(object_at(metadata, "annotations"))}};
  if (!is_cluster_scoped(kind)) out["metadata"]["namespace"] = text_in(metadata, "namespace");
  out["spec"] = object_at(resource, "spec");
  return out.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

// Removes texts, lists and objects that are empty, and null. A reader assumes them if they are missing.
Json without_empty(const Json& value) {
  if (!value.is_object()) return value;
  Json out = Json::object();
  for (const auto& [key, item] : value.items()) {
    Json kept = without_empty(item);
    const bool is_empty = kept.is_null() ||
                          (kept.is_string() && kept.get_ref<const std::string&>().empty()) ||
                          ((kept.is_array() || kept.is_object()) && kept.empty());
    if (!is_empty) out[key] = std::move(kept);
  }
  return out;
}

// Returns the merge patch (RFC 7396) from one value to the other: null if they are equal.
Json merge_patch_between(const Json& before, const Json& after) {
  Json out = Json::object();
  for (const auto& [key, value] : before.items())
    if (!after.contains(key)) out[key] = nullptr;
  for (const auto& [key, value] : after.items()) {
    const auto old = before.find(key);
    if (old != before.end() && old->is_object() && value.is_object()) {
      if (Json inner = merge_patch_between(*old, value); !inner.is_null()) out[key] = std::move(inner);
    } else if (old == before.end() || *old != value) {
      out[key] = value;
    }
  }
  return out.empty() ? Json() : out;
}

Json spec_of(const Object& object) {
  const auto spec = api::parse(object.spec.json());
  return spec ? without_empty(*spec) : Json::object();
}

Json metadata_json(const Object& object) {
  Json out = Json::object();
  for (const auto& [key, value] : object.labels) out["labels"][key] = value;
  if (!object.account.empty()) out["labels"][account_label] = object.account;
  for (const auto& [key, value] : object.annotations) out["annotations"][key] = value;
  if (object.owner_uid != 0) out["annotations"][owner_uid_annotation] = fmt::format("{}", object.owner_uid);
  return out;
}

}  // namespace

Result<CustomObject, std::string> read_custom_object(objects::Kind kind, const Json& resource) {
  if (!resource.is_object()) return tl::unexpected(std::string("a custom resource is not an object"));
  const Json& metadata = object_at(resource, "metadata");
  CustomObject out;
  Object& object = out.object;
  object.key = {.kind = kind, .name = text_in(metadata, "name")};
  if (!is_cluster_scoped(kind)) object.key.namespace_ = text_in(metadata, "namespace");
  object.uid = text_in(metadata, "uid");
  const auto version = number_of<uint64_t>(text_in(metadata, "resourceVersion"));
  if (object.key.name.empty() || object.key.namespace_.empty() || object.uid.empty() || !version)
    return tl::unexpected(fmt::format("custom resource {} '{}' has no name, uid or numeric resourceVersion",
                                      objects::text_of(kind).singular, object.key.name.substr(0, 80)));
  object.version = *version;
  object.labels = texts_of(object_at(metadata, "labels"));
  object.annotations = texts_of(object_at(metadata, "annotations"));
  object.account = text_in(object_at(metadata, "labels"), account_label);
  object.owner_uid =
      number_of<uint32_t>(text_in(object_at(metadata, "annotations"), owner_uid_annotation)).value_or(0);
  if (const auto generation = metadata.find("generation");
      generation != metadata.end() && generation->is_number_unsigned())
    object.generation = static_cast<uint32_t>(
        std::min<uint64_t>(generation->get<uint64_t>(), std::numeric_limits<uint32_t>::max()));
  if (const auto created = parse_utc("creationTimestamp", text_in(metadata, "creationTimestamp")))
    object.created_ns = *created;
  object.is_ending = metadata.contains("deletionTimestamp");
  const KindRow& row = row_of(kind);
  object.status =
      row.read_status(object_at(resource, "status").dump(-1, ' ', false, Json::error_handler_t::replace));
  auto read = row.read_document(document_text(kind, metadata, resource), {});
  if (read)
    object.spec = row.read_spec(read->spec.json());
  else
    out.errors = std::move(read.error());
  return out;
}

Json new_custom_resource(const Object& object) {
  Json metadata = metadata_json(object);
  metadata["name"] = object.key.name;
  if (!is_cluster_scoped(object.key.kind)) metadata["namespace"] = object.key.namespace_;
  return {{"apiVersion", objects::api_version},
          {"kind", objects::text_of(object.key.kind).kind},
          {"metadata", std::move(metadata)},
          {"spec", spec_of(object)}};
}

Json change_of_custom_resource(const Object& before, const Object& after) {
  const auto document = [](const Object& object) {
    return Json{{"metadata", metadata_json(object)}, {"spec", spec_of(object)}};
  };
  Json out = merge_patch_between(document(before), document(after));
  if (out.is_null()) return out;
  out["metadata"]["resourceVersion"] = fmt::format("{}", before.version);
  return out;
}

}  // namespace carve::controller

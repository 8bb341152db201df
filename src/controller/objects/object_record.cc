#include "controller/objects/object_record.h"

#include "os/clock.h"
#include "os/user.h"
#include "wire/api/json_value.h"

namespace carve::controller {

std::string text(const ObjectKey& key) {
  return fmt::format("{} {}{}", objects::text_of(key.kind).singular,
                     key.namespace_ == "default" ? "" : key.namespace_ + "/", key.name);
}

Cause cause_of(const Object& object) { return os::cause_of_user(object.owner_uid); }

objects::Metadata metadata_of(const Object& object) {
  return {.name = object.key.name,
          .namespace_ = object.key.namespace_,
          .labels = object.labels,
          .annotations = object.annotations,
          .account = object.account,
          .uid = object.uid,
          .owner_uid = object.owner_uid,
          .generation = object.generation,
          .resource_version = fmt::format("{}", object.version),
          .created_at = os::rfc3339(object.created_ns, os::Decimals::milliseconds)};
}

namespace {

std::string with_hidden_environment(const std::string& spec) {
  auto json = api::parse(spec);
  if (!json) return spec;
  const bool has_run = json->contains("run") && (*json)["run"].contains("env");
  if (has_run)
    for (auto& value : (*json)["run"]["env"]) value = "(hidden)";
  const bool has_own =
      json->contains("env") && (*json)["env"].is_object();  // A cluster has its own environment.
  if (has_own)
    for (auto& value : (*json)["env"]) value = "(hidden)";
  const bool has_env = has_run || has_own;
  // An engine's parameters may contain passwords for its storage.
  const bool has_parameters = json->contains("parameters");
  if (has_parameters)
    for (auto& value : (*json)["parameters"]) value = "(hidden)";
  if (!has_env && !has_parameters) return spec;
  // The source document also contains the environment.
  if (json->contains("source") && (*json)["source"].contains("document"))
    (*json)["source"]["document"] = "(hidden)";
  return json->dump();
}

std::string with_hidden_token(const std::string& status) {
  constexpr const char* token = "dashboardToken";
  auto json = api::parse(status);
  if (!json || !json->contains(token) || (*json)[token] == "") return status;
  (*json)[token] = "(hidden)";
  return json->dump();
}

}  // namespace

std::string document_of(const Object& object, bool hide_environment) {
  return fmt::format(R"({{"apiVersion":"{}","kind":"{}","metadata":{},"spec":{},"status":{}}})",
                     objects::api_version, objects::text_of(object.key.kind).kind,
                     api::write(metadata_of(object)),
                     hide_environment ? with_hidden_environment(object.spec.json()) : object.spec.json(),
                     hide_environment ? with_hidden_token(object.status.json()) : object.status.json());
}

}  // namespace carve::controller

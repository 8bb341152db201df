#include "kubernetes/coordinator/namespace_reader.h"

#include "kubernetes/api/answers.h"

namespace carve::kubernetes::coordinator {

namespace {

// Any program that reaches the webhook may send a review, and the review's namespace becomes part of a path.
bool is_namespace(const std::string& name) {
  return !name.empty() && name.size() <= 63 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == name.npos;
}

}  // namespace

const NamespaceRules* NamespaceReader::find(const std::string& name) {
  const auto known = known_.find(name);
  return known != known_.end() && client_.now() < known->second.until ? &known->second.rules : nullptr;
}

void NamespaceReader::read(const std::string& name, Done done) {
  const auto [reading, is_new] = readings_.try_emplace(name);
  reading->second.waiting.push_back(std::move(done));
  if (!is_new) return;
  reading->second.rules.name = name;
  if (!is_namespace(name)) {
    reading->second.call = client_.after(0, [this, name] { finish(name, "not a valid namespace name"); });
    return;
  }
  reading->second.call =
      client_.send({.target = "/api/v1/namespaces/" + name,
                    .accept = kubernetes::metadata_object,
                    .deadline_ns = deadline_ns},
                   [this, name](const kubernetes::ApiAnswer& a) { namespace_answered(name, a); });
}

void NamespaceReader::namespace_answered(const std::string& name, const kubernetes::ApiAnswer& answer) {
  const auto object = answer.is_success()
                          ? kubernetes::read_object(answer.body)
                          : Result<kubernetes::ObjectMeta, std::string>(tl::unexpected(answer.problem));
  if (!object) return finish(name, object.error());
  Reading& reading = readings_.at(name);
  if (const auto label = object->labels.find(sharing_label); label != object->labels.end())
    reading.rules.is_sharing = label->second == "enabled";
  if (const auto label = object->labels.find(kubernetes::account_label); label != object->labels.end())
    reading.rules.account = label->second;
  reading.call =
      client_.send({.target = "/api/v1/namespaces/" + name + "/resourcequotas", .deadline_ns = deadline_ns},
                   [this, name](const kubernetes::ApiAnswer& a) { quotas_answered(name, a); });
}

void NamespaceReader::quotas_answered(const std::string& name, const kubernetes::ApiAnswer& answer) {
  auto keys = answer.is_success()
                  ? read_quota_keys(answer.body)
                  : Result<std::vector<std::string>, std::string>(tl::unexpected(answer.problem));
  if (!keys) return finish(name, keys.error());
  readings_.at(name).rules.quota_keys = std::move(*keys);
  finish(name, "");
}

void NamespaceReader::finish(const std::string& name, const std::string& problem) {
  auto reading = readings_.extract(name);
  const NamespaceRules& rules = reading.mapped().rules;
  if (problem.empty()) {
    if (known_.size() >= max_known) known_.clear();
    known_[name] = {rules, client_.now() + trust_ns};
  }
  const std::string message =
      problem.empty() ? "" : fmt::format("namespace {} cannot be read: {}; try again", name, problem);
  for (const Done& done : reading.mapped().waiting) done(problem.empty() ? &rules : nullptr, message);
}

}  // namespace carve::kubernetes::coordinator

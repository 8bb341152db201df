#include "node/slice/node_labels.h"

#include "os/directory.h"
#include "os/process.h"
#include "wire/api/json.h"

namespace carve::node {
namespace {

using K = FailureKind;

struct Stored {
  std::map<std::string, std::string> labels;
};

Outcome<void> check(const std::string& key, const std::string& value) {
  if (key != policy_label) return {};
  const auto policy = parse_named<Policy>(value);
  if (!policy) return failure(K::invalid_argument, "label {}: {}", key, policy.error().sentence);
  return {};
}

}  // namespace

Outcome<NodeLabels> NodeLabels::open(const std::string& path, const LabelChanges& given) {
  NodeLabels out;
  if (const auto text = os::read_file(path)) {
    auto stored = api::read<Stored>(*text, api::Reading::lenient);
    if (!stored)
      return failure(K::unavailable, "{} cannot be read: {}; remove the file and give the labels again", path,
                     stored.error());
    out.labels_ = std::move(stored->labels);
  }
  out.path_ = path;
  for (const auto& [key, value] : given)
    if (const auto done = out.change(key, value); !done) return tl::unexpected(done.error());
  return out;
}

Outcome<void> NodeLabels::change(const std::string& key, const std::optional<std::string>& value) {
  const auto known = labels_.find(key);
  if (value && known != labels_.end() && known->second == *value) return {};
  if (!value && known == labels_.end()) return {};
  if (value && is_system_label(key) && known != labels_.end())
    return failure(
        K::failed_precondition,
        "{0} is a system label: its value '{1}' on this node cannot be edited; remove it (carve node "
        "set --label {0}-), restart the agent, then add it again",
        key, known->second);
  if (value && removed_.contains(key))
    return failure(K::failed_precondition,
                   "{} is a system label that was removed; restart the agent, then add it again", key);
  if (value && labels_.size() == max_labels)
    return failure(K::invalid_argument, "label {}: a node has at most {} labels", key, max_labels);
  if (value)
    if (const auto good = check(key, *value); !good) return good;
  Stored next{labels_};
  if (value)
    next.labels[key] = *value;
  else
    next.labels.erase(key);
  if (const auto kept = os::replace_file(path_, api::write(next) + "\n"); !kept) return kept;
  if (!value && is_system_label(key)) removed_.insert(key);
  labels_ = std::move(next.labels);
  return {};
}

std::optional<Policy> NodeLabels::policy() const {
  const auto found = labels_.find(policy_label);
  return found == labels_.end() ? std::nullopt : parse<Policy>(found->second);
}

}  // namespace carve::node

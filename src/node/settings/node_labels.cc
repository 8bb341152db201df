#include "node/settings/node_labels.h"

#include <algorithm>

#include "os/directory.h"
#include "os/process.h"
#include "wire/api/json.h"

namespace carve::node {
namespace {

struct Stored {
  std::map<std::string, std::string> labels;
};

Outcome<void> check(const std::map<std::string, std::string>& labels, const std::string& key,
                    const std::string& value) {
  const LabelMeaning meaning = meaning_of(key);
  if (meaning == LabelMeaning::policy)
    if (const auto policy = parse_named<Policy>(value); !policy)
      return failure(FailureKind::invalid_argument, "label {}: {}", key, policy.error().message);
  if (meaning == LabelMeaning::memory_unit)
    if (const auto unit = parse_named<MemoryUnit>(value); !unit)
      return failure(FailureKind::invalid_argument, "label {}: {}", key, unit.error().message);
  if (meaning == LabelMeaning::none) return {};
  for (const auto& [other, present] : labels)
    if (other != key && meaning_of(other) == meaning && meaning != LabelMeaning::placement &&
        present != value)
      return failure(
          FailureKind::failed_precondition,
          "label {}={}: the label {} sets the same property and is {} on this node; remove that label first "
          "(carve node set --label {}-)",
          key, value, other, present, other);
  return {};
}

}  // namespace

Outcome<NodeLabels> NodeLabels::open(const std::string& path, const LabelChanges& given) {
  NodeLabels out;
  if (const auto text = os::read_file(path)) {
    auto stored = api::read<Stored>(*text, api::Reading::lenient);
    if (!stored)
      return failure(FailureKind::unavailable, "cannot read {}: {}; remove the file and set the labels again",
                     path, stored.error());
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
    return failure(FailureKind::failed_precondition,
                   "{0} is a system label, so its value '{1}' on this node cannot be edited; remove the "
                   "label (carve node set --label {0}-), restart the agent, then add it again",
                   key, known->second);
  if (value && removed_.contains(key))
    return failure(FailureKind::failed_precondition,
                   "{} is a system label that was removed; restart the agent, then add it again", key);
  if (value && labels_.size() == max_labels)
    return failure(FailureKind::invalid_argument, "label {}: a node has at most {} labels", key, max_labels);
  if (value)
    if (const auto good = check(labels_, key, *value); !good) return good;
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

namespace {

// Returns the value that a label with the meaning sets, and the label's key; no value if there is no such
// label.
template <class T>
std::optional<std::pair<T, std::string>> setting_of(const std::map<std::string, std::string>& labels,
                                                    LabelMeaning meaning) {
  for (const auto& [key, value] : labels)
    if (meaning_of(key) == meaning)
      if (const auto parsed = parse<T>(value)) return std::pair{*parsed, key};
  return std::nullopt;
}

}  // namespace

Outcome<void> check_policy(const std::map<std::string, std::string>& labels, Policy policy) {
  const auto label = setting_of<Policy>(labels, LabelMeaning::policy);
  if (!label || label->first == policy) return {};
  return failure(FailureKind::failed_precondition,
                 "the label {0} of this node sets {1}; remove the label first (carve node set --label {0}-)",
                 label->second, text(label->first));
}

Outcome<void> check_memory_unit(const std::map<std::string, std::string>& labels, MemoryUnit unit) {
  const auto label = setting_of<MemoryUnit>(labels, LabelMeaning::memory_unit);
  if (!label || label->first == unit) return {};
  return failure(FailureKind::failed_precondition,
                 "the label {0} of this node sets {1}; change the label (carve node set --label {0}={2})",
                 label->second, text(label->first), text(unit));
}

std::optional<Policy> NodeLabels::policy() const {
  const std::string key = key_of(LabelMeaning::policy);
  return key.empty() ? std::nullopt : parse<Policy>(labels_.at(key));
}

std::optional<MemoryUnit> NodeLabels::memory_unit() const {
  const std::string key = key_of(LabelMeaning::memory_unit);
  return key.empty() ? std::nullopt : parse<MemoryUnit>(labels_.at(key));
}

std::string NodeLabels::key_of(LabelMeaning meaning) const {
  const auto found =
      std::ranges::find(labels_, meaning, [](const auto& label) { return meaning_of(label.first); });
  return found == labels_.end() ? "" : found->first;
}

}  // namespace carve::node

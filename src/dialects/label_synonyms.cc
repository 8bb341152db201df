#include "dialects/label_synonyms.h"

#include <algorithm>
#include <vector>

#include "core/label.h"
#include "objects/error_list.h"

namespace carve::dialects {
namespace {

struct Synonym {
  std::string_view key;
  std::string_view ours;
};

constexpr Synonym synonyms[] = {
    {"vke.volcengine.com/mgpu-compute-policy", workload::compute_policy_label},
    {"ack.node.gpu.schedule", workload::mode_label},
    {"vke.node.gpu.schedule", workload::mode_label},
    {"ack.node.gpu.placement", workload::placement_label},
    {"gpuMemoryUnit", workload::memory_unit_label},
};

// Values of a synonym that differ from Carve's. Such a synonym has no other values.
struct SynonymWord {
  std::string_view key;
  std::string_view word;
  std::string_view ours;
};

constexpr SynonymWord words[] = {
    {"ack.node.gpu.schedule", "share", "none"},
    {"ack.node.gpu.schedule", "cgpu", "memory"},
    {"ack.node.gpu.schedule", "core_mem", "memory-and-compute"},
    {"ack.node.gpu.schedule", "default", "exclusive"},
    {"vke.node.gpu.schedule", "mgpu", "memory-and-compute"},
    {"vke.node.gpu.schedule", "nvidia", "exclusive"},
};

std::string shortened(std::string_view text) { return std::string(text.substr(0, 80)); }

}  // namespace

std::string our_key(std::string_view key) {
  const auto* const found = std::ranges::find(synonyms, key, &Synonym::key);
  return std::string(found == std::end(synonyms) ? key : found->ours);
}

Result<std::string, std::string> our_value(std::string_view key, std::string_view value) {
  std::vector<std::string_view> allowed;
  for (const SynonymWord& word : words) {
    if (word.key != key) continue;
    if (word.word == value) return std::string(word.ours);
    allowed.push_back(word.word);
  }
  if (!allowed.empty())
    return tl::unexpected(
        fmt::format("{} '{}': must be one of {}", key, shortened(value), fmt::join(allowed, ", ")));
  const std::string ours = our_key(key);
  const auto checked = workload::check_label(ours, value);
  if (checked) return std::string(value);
  if (ours == workload::memory_unit_label)
    return tl::unexpected(fmt::format("{} {}: must be 1GiB or 128MiB", key, shortened(value)));
  std::string message = checked.error().message;
  if (message.starts_with(ours)) message.replace(0, ours.size(), key);
  return tl::unexpected(std::move(message));
}

Result<workload::Labels, api::FieldErrors> our_labels(const std::map<std::string, std::string>& labels,
                                                      const std::string& field) {
  objects::ErrorList errors;
  workload::Labels out;
  std::map<std::string, std::string> said_by;  // The document's key for each of Carve's keys.
  if (labels.size() > max_labels)
    errors.add(field, "", "{} labels are too many; use at most {}", labels.size(), max_labels);
  for (const auto& [key, value] : labels) {
    const std::string place = field + "." + key;
    auto translated = our_value(key, value);
    if (!translated) {
      errors.add_message(place, value, fmt::format("{}: {}", field, translated.error()));
      continue;
    }
    const std::string ours = our_key(key);
    const auto [entry, is_new] = out.emplace(ours, *translated);
    if (!is_new && entry->second != *translated)
      errors.add_message(place, value,
                         fmt::format("{}: {} and {} are synonyms but have different values; keep one of them",
                                     field, said_by[ours], key));
    if (is_new) said_by[ours] = key;
  }
  if (!errors.empty()) return tl::unexpected(errors.all());
  return out;
}

}  // namespace carve::dialects

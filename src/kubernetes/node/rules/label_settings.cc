#include "kubernetes/node/rules/label_settings.h"

#include "dialects/label_synonyms.h"

namespace carve::kubernetes::node {
namespace {

constexpr std::string_view understood[] = {workload::mode_label, workload::compute_policy_label,
                                           workload::placement_label};

// Converts the label's value, which the translation has already checked.
template <class E>
std::optional<E> word_of(const workload::Labels& labels, std::string_view key) {
  const auto found = labels.find(key);
  return found == labels.end() ? std::nullopt : parse<E>(found->second);
}

}  // namespace

Result<LabelSettings, std::string> read_label_settings(const std::map<std::string, std::string>& labels) {
  LabelSettings out;
  std::map<std::string, std::string> ours;
  for (const auto& [key, value] : labels)
    if (std::ranges::find(understood, dialects::our_key(key)) != std::end(understood))
      ours.emplace(key, value);
  const auto read = dialects::our_labels(ours, "labels");
  if (!read) return tl::unexpected(read.error().front().message);
  if (const auto found = labels.find(bookkeeper_label); found != labels.end()) {
    const auto way = parse_named<Way>(found->second);
    if (!way) return tl::unexpected(fmt::format("labels: {}: {}", bookkeeper_label, way.error().message));
    out.way = *way;
  }
  out.mode = word_of<NodeMode>(*read, workload::mode_label);
  out.policy = word_of<Policy>(*read, workload::compute_policy_label);
  out.placement = word_of<Strategy>(*read, workload::placement_label).value_or(Strategy::binpack);
  return out;
}

}  // namespace carve::kubernetes::node

#include "controller/billing/usage_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace carve::controller {
namespace {

constexpr size_t records_at_once = 512;
constexpr bill::Ns hour_ns = 3600 * bill::second_ns;
constexpr std::string_view other_group = "-";  // For lines without the key that they are grouped by.

GroupKey group_named(std::string name) {
  const bool is_rest = name == other_group;
  return {.is_rest = is_rest, .name = std::move(name)};
}

}  // namespace

__int128 millionths_of(__int128 numerator, __int128 denominator) {
  const __int128 scaled = numerator * bill::millionths_per_one;
  __int128 out = scaled / denominator;
  const __int128 rest = (scaled % denominator) * 2;
  if (rest > denominator || (rest == denominator && out % 2 != 0)) ++out;
  return out;
}

bill::Ns busy_of(const bill::Line& line, bill::Ns record_ns) {
  const ledger::UsageRecord& record = line.usage->record;
  const size_t parts = std::max<size_t>(record.slice.parts.size(), 1);
  if (record_ns <= 0) return 0;
  const __int128 busy_ns = __int128{record.busy_ns} * std::min(line.to - line.from, record_ns) / record_ns /
                           static_cast<__int128>(parts);
  return static_cast<bill::Ns>(std::min<__int128>(busy_ns, INT64_MAX));
}

__int128 used_of(const bill::Line& line, bill::Ns busy_ns) {
  return millionths_of(busy_ns, hour_ns) * line.units.count / bill::millionths_per_one;
}

std::string UsageGroups::key_of(const bill::Line& line) {
  const bill::Usage& usage = *line.usage;
  const std::string name = usage.name_space.empty() ? usage.name : usage.name_space + "/" + usage.name;
  switch (query_.by) {
    case BillBy::account: return usage.account;
    case BillBy::queue: return usage.queue.empty() ? std::string(other_group) : usage.queue;
    case BillBy::job:
      if (usage.kind == "raycluster") return usage.kind + " " + name;
      return usage.kind == "job" ? name : std::string(other_group);
    case BillBy::service:
      return usage.kind == "service" || usage.kind == "application" ? usage.kind + " " + name
                                                                    : std::string(other_group);
    case BillBy::user: {
      const uint32_t uid = usage.record.slice.owner;
      auto [known, is_new] = user_names_.try_emplace(uid);
      if (is_new) known->second = query_.user_name ? query_.user_name(uid) : std::to_string(uid);
      return known->second;
    }
    case BillBy::name_space: return usage.name_space.empty() ? std::string(other_group) : usage.name_space;
    case BillBy::node: return node_name(usage.node);
    case BillBy::device: break;
  }
  return carve::text(line.device.uuid);
}

GroupKey UsageGroups::of(const bill::Line& line) {
  if (query_.by_label.empty()) return group_named(key_of(line));
  const auto& labels = line.usage->record.slice.labels;
  const auto label = labels.find(query_.by_label);
  if (label == labels.end()) return group_named(std::string(other_group));
  return {.is_rest = false, .name = label->second};
}

std::optional<uint32_t> UsageGroups::uid_of(const GroupKey& key) const {
  for (const auto& [uid, name] : user_names_)
    if (name == key.name) return uid;
  return std::nullopt;
}

std::string grouping_text(const BillQuery& query) {
  return query.by_label.empty() ? std::string(carve::text(query.by)) : "label:" + query.by_label;
}

Outcome<void> each_usage(
    UsageStore& store, const BillQuery& query, bool with_labels, const ledger::Stamp& now,
    const std::function<bool(const std::vector<bill::Usage>&, const ledger::Stamp& until)>& add) {
  std::vector<bill::Usage> batch;
  Failure unreadable;
  std::map<std::pair<std::string, uint32_t>, ledger::Stamp> seen;
  const auto seen_at = [&](const UsageRow& row) {
    auto [at, is_new] = seen.try_emplace({row.node, row.ledger}, now);
    if (!is_new) return at->second;
    if (auto known = store.seen_at(row.node, row.ledger); known && !known->boot_id.empty())
      at->second = std::move(*known);
    return at->second;
  };
  const auto done = store.each(query.window, [&](UsageRow&& row) {
    if (!query.account.empty() && row.account != query.account) return true;
    if (query.may_see && !query.may_see(row)) return true;
    if (query.selects && !query.selects(labels_of(row))) return true;
    if (!with_labels) row.labels.clear();
    const bool is_open = row.end_ns == 0;
    const ledger::Stamp until = is_open ? seen_at(row) : ledger::Stamp{};
    auto usage = usage_of(std::move(row));
    if (!usage) {
      unreadable = usage.error();
      return false;
    }
    if (is_open) return add({std::move(*usage)}, until);
    batch.push_back(std::move(*usage));
    return batch.size() < records_at_once || add(std::exchange(batch, {}), now);
  });
  if (!done) return tl::unexpected(done.error());
  if (!unreadable.message.empty()) return tl::unexpected(unreadable);
  if (!batch.empty()) add(batch, now);
  return {};
}

}  // namespace carve::controller

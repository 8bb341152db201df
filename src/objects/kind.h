// All kinds of objects in one table, with their names in documents, paths and commands.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace carve::objects {

enum class Kind : uint8_t { service, application, node, pool, queue, job, tariff, budget, ray_cluster };

struct KindText {
  Kind value;
  std::string_view kind;      // In documents: "Service"
  std::string_view singular;  // In messages and in KIND/NAME: "service"
  std::string_view plural;    // In paths: "services"
  std::string_view shortcut;  // On the command line: "svc"
  bool is_workload;           // Its objects have replicas, which the controller keeps running.
};

inline constexpr KindText kinds[] = {
    {Kind::service, "Service", "service", "services", "svc", true},
    {Kind::application, "Application", "application", "applications", "app", true},
    {Kind::node, "Node", "node", "nodes", "no", false},
    {Kind::pool, "Pool", "pool", "pools", "np", false},
    {Kind::queue, "Queue", "queue", "queues", "q", false},
    {Kind::job, "Job", "job", "jobs", "j", false},
    {Kind::tariff, "Tariff", "tariff", "tariffs", "tf", false},
    {Kind::budget, "Budget", "budget", "budgets", "bu", false},
    {Kind::ray_cluster, "RayCluster", "raycluster", "rayclusters", "rc", false},
};

constexpr const KindText& text_of(Kind kind) { return kinds[static_cast<size_t>(kind)]; }

// Returns whether the table has one row for each kind, in the order of `kinds`.
template <class Table>
constexpr bool has_row_for_each_kind(const Table& table) {
  return std::ranges::equal(
      table, kinds, {}, [](const auto& row) { return row.kind; }, &KindText::value);
}

// Returns the kind that a user specified in any of these forms.
constexpr std::optional<Kind> parse_kind(std::string_view word) {
  for (const KindText& k : kinds)
    if (word == k.kind || word == k.singular || word == k.plural || word == k.shortcut) return k.value;
  return std::nullopt;
}

}  // namespace carve::objects

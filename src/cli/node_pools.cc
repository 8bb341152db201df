// The columns and details of nodes and pools, and `carve explain slicing`.
#include "cli/node_pools.h"

#include "base/bytes.h"
#include "objects/node_object.h"
#include "objects/pool_object.h"
#include "wire/api/percent.h"

namespace carve::cli {
namespace {

std::string dashed(const std::string& text) { return text.empty() ? "-" : harmless(text); }

// Returns "fixed-share", or "fixed-share -> native-burst-share (restart; blocked by a, b)".
std::string setting_text(const objects::NodeSetting& setting) {
  if (setting.desired == setting.effective || setting.effective.empty()) return dashed(setting.desired);
  std::string out = fmt::format("{} -> {} (restart", setting.effective, setting.desired);
  if (!setting.blocked_by.empty())
    out += fmt::format("; blocked by {}", harmless(fmt::format("{}", fmt::join(setting.blocked_by, ", "))));
  return out + ")";
}

std::string state_text(const objects::Node& node) {
  const objects::NodeStatus& status = node.status;
  std::string out = dashed(text(status.state));
  if (status.state == NodePhase::starting) out += fmt::format(" ({}s)", status.ready_in_seconds);
  if (node.spec.restarting) out += ",restarting";
  if (!node.spec.schedulable) out += ",cordoned";
  return out;
}

std::string units_text(const objects::GpuMemUnits& units) {
  return units.unit.empty() ? "-" : fmt::format("{}/{} x {}", units.allocated, units.capacity, units.unit);
}

std::vector<std::string> narrow_cells(const objects::Node& node) {
  const objects::NodeStatus& s = node.status;
  return {harmless(node.metadata.name), state_text(node),
          dashed(node.spec.pool),       fmt::format("{}", s.gpus),
          fmt::format("{}", s.slices),  units_text(s.gpu_mem_units),
          setting_text(s.policy)};
}

std::vector<std::string> wide_cells(const objects::Node& node) {
  const objects::NodeStatus& s = node.status;
  std::string labels;
  for (const auto& [key, value] : node.metadata.labels)
    labels += fmt::format("{}{}={}", labels.empty() ? "" : ",", key, value);
  return {setting_text(s.mode), setting_text(s.memory_unit), dashed(s.placement),
          s.agent ? harmless(s.agent->socket) : "-", dashed(labels)};
}

std::string slicing_text(const objects::Slicing& slicing) {
  if (!slicing.available) return "no: " + dashed(slicing.failed);
  return slicing.eas_problem.empty() ? "available" : "available, but not to PAI-EAS";
}

std::vector<std::string> narrow_cells(const objects::Pool& pool) {
  const objects::PoolStatus& s = pool.status;
  return {harmless(pool.metadata.name),
          harmless(text(pool.spec.type)),
          fmt::format("{}", s.nodes),
          fmt::format("{}", s.gpus),
          fmt::format("{}", s.running_gpu_nodes),
          pool.spec.label_sync ? "on" : "off",
          s.drift.empty() ? "-" : fmt::format("{}", s.drift.size()),
          slicing_text(s.slicing)};
}

void line(const char* name, const std::string& value) { fmt::print("{:<12} {}\n", name, dashed(value)); }

void describe(const objects::Node& node) {
  const objects::NodeStatus& s = node.status;
  line("name", node.metadata.name);
  line("state", state_text(node));
  line("pool", node.spec.pool);
  line("started", s.started_at);
  line("policy", setting_text(s.policy));
  line("mode", setting_text(s.mode));
  line("memory unit", setting_text(s.memory_unit));
  line("units", units_text(s.gpu_mem_units));
  line("placement", s.placement);
  for (const auto& [key, value] : node.metadata.labels) line("label", key + "=" + value);
  for (const std::string& taint : s.taints) line("taint", taint);
  for (const std::string& label : s.removed_labels) line("removed", label + " (until the next restart)");
  for (const objects::Condition& c : s.conditions)
    line("condition",
         fmt::format("{}={} {}{}", c.type, c.status, c.reason, c.message.empty() ? "" : ": " + c.message));
  if (s.agent) line("agent", fmt::format("{} {}", s.agent->socket, s.agent->problem));
  std::vector<std::vector<std::string>> rows;
  for (const objects::NodeDeviceStatus& d : s.devices)
    rows.push_back({fmt::format("{}", d.index), d.name, std::string(text(Bytes{d.usable_bytes})),
                    std::string(text(Bytes{d.free_bytes})), fmt::format("{}", d.slices), d.uuid});
  if (!rows.empty()) fmt::print("\n{}", table({"DEVICE", "NAME", "USABLE", "FREE", "SLICES", "UUID"}, rows));
}

void describe(const objects::Pool& pool) {
  const objects::PoolStatus& s = pool.status;
  line("name", pool.metadata.name);
  line("type", text(pool.spec.type));
  line("nodes", fmt::format("{} ({} running with a GPU)", s.nodes, s.running_gpu_nodes));
  line("gpu", fmt::format("{}", s.gpus));
  line("sync", pool.spec.label_sync ? "on" : "off");
  line("sharing", pool.spec.sharing ? "on" : "off");
  for (const auto& [key, value] : pool.spec.labels) line("label", key + "=" + value);
  for (const objects::PoolTaint& t : pool.spec.taints)
    line("taint", fmt::format("{}={}:{}", t.key, t.value, text(t.effect)));
  for (const objects::PoolDrift& d : s.drift)
    line("drift", fmt::format("node {}: {} is {}, but {} in the pool", d.node, d.label,
                              d.node_value.empty() ? "absent" : d.node_value, d.pool_value));
  for (const objects::SlicingCheckStatus& c : s.slicing.checks)
    line("slicing", fmt::format("{}: {}", c.name, c.ok ? "ok" : c.message));
}

void print_slicing(Context& context, const std::string& pool) {
  const std::string target = "/v1/pools/" + api::percent_encoded(pool) + "/slicing";
  answered(context, context.controller().get<objects::Slicing>(target), [&](const auto& slicing) {
    if (!slicing.available) context.status = failed_status;
    if (context.json()) return print_json(slicing);
    for (const objects::SlicingCheckStatus& check : slicing.checks)
      fmt::print("{:<15} {}\n", check.name, check.ok ? "ok" : harmless(check.message));
    const bool has_exception = slicing.available && !slicing.eas_problem.empty();
    if (has_exception) fmt::print("{:<15} {}\n", "PAI-EAS", harmless(slicing.eas_problem));
    fmt::print("slicing is {}{}\n", slicing.available ? "available" : "not available",
               has_exception ? ", but not to documents of PAI-EAS" : "");
  });
}

}  // namespace

ObjectCells node_heading(objects::Kind kind) {
  if (kind == objects::Kind::pool)
    return {{"NAME", "TYPE", "NODES", "GPU", "RUNNING", "SYNC", "DRIFT", "SLICING"}, {}};
  return {{"NAME", "STATE", "POOL", "GPU", "SLICES", "MEMORY UNITS", "POLICY"},
          {"MODE", "MEMORY UNIT", "PLACEMENT", "SOCKET", "LABELS"}};
}

Result<ObjectCells, std::string> node_cells(objects::Kind kind, const std::string& json) {
  if (kind == objects::Kind::pool) {
    const auto pool = api::read<objects::Pool>(json, api::Reading::lenient);
    if (!pool) return tl::unexpected(pool.error());
    return ObjectCells{narrow_cells(*pool), {}};
  }
  const auto node = api::read<objects::Node>(json, api::Reading::lenient);
  if (!node) return tl::unexpected(node.error());
  return ObjectCells{narrow_cells(*node), wide_cells(*node)};
}

std::string node_path(const std::string& name, const std::string& verb) {
  return fmt::format("/v1/nodes/{}{}{}", api::percent_encoded(name), verb.empty() ? "" : "/", verb);
}

void describe_node_or_pool(Context& context, const ObjectName& object) {
  const std::string target = list_path(object.kind) + "/" + api::percent_encoded(object.name);
  if (object.kind == objects::Kind::node)
    answered(context, context.controller().get<objects::Node>(target), [](const auto& n) { describe(n); });
  else
    answered(context, context.controller().get<objects::Pool>(target), [](const auto& p) { describe(p); });
}

void add_explain_slicing(CLI::App* explain, Context& context) {
  CLI::App* verb = explain->add_subcommand("slicing", "Show whether slices can be created in a node pool");
  auto pool = std::make_shared<std::string>();
  verb->add_option("--pool", *pool, "Name of the pool")->required();
  add_output(verb, context);
  verb->footer("  carve explain slicing --pool a10");
  verb->callback([&context, pool] { print_slicing(context, *pool); });
}

}  // namespace carve::cli

// One table of requests, run through the controller and through Kubernetes' coordinator over the same nodes.
// Both use the same answers of the nodes' agents: the controller as its nodes' statuses, and the coordinator
// as the annotations that carve-kubelet writes. They must agree on the node, the devices and the reasons of a
// rejection.
#include <gmock/gmock.h>

#include "controller/nodes/node_rules.h"
#include "controller/nodes/slice_forecast.h"
#include "controller/objects/testing/journals.h"
#include "kubernetes/coordinator/cache/cache_views.h"
#include "kubernetes/coordinator/cache/decisions.h"
#include "kubernetes/coordinator/cache/explanation.h"
#include "kubernetes/coordinator/snapshot/testing/cluster_objects.h"
#include "kubernetes/node/rules/advertisement.h"

namespace carve {
namespace {

namespace coordinator = kubernetes::coordinator;
namespace objects_of = kubernetes::coordinator::testing;
using testing::HasSubstr;
using testing::Not;

constexpr uint64_t gib = 1ull << 30;
constexpr int64_t now = 1'800'000'000'000'000'000;

// A live slice on the node. Its device is an index.
struct LiveSlice {
  std::vector<unsigned> devices;
  uint64_t memory = 0;  // Bytes on each device.
  uint32_t share_bp = 0;
  Isolation isolation = Isolation::memory;
  bool is_exclusive = false;
};

struct TableNode {
  std::string name;
  std::vector<uint64_t> usable;  // Usable bytes, by device.
  std::map<std::string, std::string> labels = {};
  std::vector<LiveSlice> slices = {};
  Policy policy = Policy::fixed_share;
  bool admits_best_effort = true;
  bool migrates = true;
  std::string model = "NVIDIA A10";
  std::vector<std::string> links = {};
};

constexpr uint64_t cpu_milli = 4000;  // Cores of each node.

// Returns the agent's answers.
api::AgentReport report_of(const TableNode& node, unsigned number) {
  api::AgentReport out;
  out.node.policy = {.desired = node.policy, .effective = node.policy, .blocked_by = {}};
  out.node.admit_best_effort = node.admits_best_effort;
  out.links = node.links;
  for (unsigned i = 0; i < node.usable.size(); ++i) {
    api::Device& device = out.devices.emplace_back();
    device.index = i;
    device.uuid = text(objects_of::device_uuid(number, i));
    device.name = node.model;
    device.migrates = node.migrates;
    device.native_bytes = device.usable_bytes = device.free_bytes = node.usable[i];
    device.context_bytes = 256 << 20;
    device.policy = out.node.policy;
  }
  for (const LiveSlice& live : node.slices) {
    api::Slice& slice = out.slices.emplace_back();
    slice.name = fmt::format("{}-{}", node.name, out.slices.size());
    slice.isolation = live.isolation;
    slice.exclusive = live.is_exclusive;
    slice.policy = node.policy;
    for (const unsigned i : live.devices) {
      api::Device& device = out.devices[i];
      const uint64_t memory = live.is_exclusive ? device.usable_bytes : live.memory;
      slice.parts.push_back(
          {.index = i, .uuid = device.uuid, .quota_bytes = memory, .share_bp = live.share_bp});
      device.granted_bytes += memory;
      device.free_bytes -= memory;
      device.share_granted_bp += promised_share(node.policy, Share{live.share_bp}).basis_points;
      ++device.slices;
      if (live.is_exclusive) device.exclusive_to = slice.name;
    }
  }
  return out;
}

// A decision: the placement, or why each node rejects the request.
struct Decision {
  std::string place;  // "a: 0 4 GiB, 1 4 GiB"; empty if rejected.
  FailureKind kind = FailureKind::insufficient_capacity;
  std::string message;                                // The controller's message.
  std::map<std::string, std::string> rules, reasons;  // The coordinator's rules and reasons, by node.
};

std::string part_text(unsigned device, Bytes memory) {
  return fmt::format("{} {}", device, std::string(text(memory)));
}

struct Row {
  const std::vector<TableNode>* nodes;
  Amounts amounts;
  std::string expected;    // The place, or the rule that each node breaks: "a memory, b other mode".
  uint64_t cpu_milli = 0;  // Requested thousandths of a core.
};

Decision by_controller(const Row& row) {
  controller::NoJournal journal;
  controller::JournaledRegistry objects(journal, {}, 0);
  unsigned number = 0;
  for (const TableNode& node : *row.nodes) {
    const api::AgentReport report = report_of(node, number++);
    controller::Object object{.key = controller::node_key(node.name), .labels = node.labels};
    object.spec = objects::NodeSpec{};
    object.status = controller::observed_status(object,
                                                {.answered_ns = now,
                                                 .has_answered = true,
                                                 .report = report,
                                                 .host = {.cpu_milli = cpu_milli, .memory_bytes = 64 * gib}},
                                                now);
    EXPECT_TRUE(objects.add(std::move(object)));
  }
  controller::SliceForecast forecast(objects);
  const auto place = forecast.place({}, row.amounts, {.cpu_milli = row.cpu_milli});
  Decision out;
  if (!place) {
    out.kind = place.error().kind;
    out.message = place.error().message;
    return out;
  }
  std::vector<std::string> parts;
  for (size_t i = 0; i < place->devices.size(); ++i)
    parts.push_back(part_text(place->devices[i], place->memory[i]));
  out.place = fmt::format("{}: {}", place->node, fmt::join(parts, ", "));
  return out;
}

// Adds the pods that hold the node's slices.
void add_pods(coordinator::Cache& cache, const std::string& node, const api::AgentReport& report) {
  for (const api::Slice& slice : report.slices) {
    kubernetes::PodSlices slices{.node = node, .containers = {}};
    kubernetes::PlacedSlice& placed = slices.containers["c"];
    placed.isolation = slice.isolation;
    placed.policy = slice.policy;
    if (slice.exclusive) placed.exclusive = true;
    for (const api::SlicePart& part : slice.parts)
      placed.parts.push_back({*parse_uuid(part.uuid), {part.quota_bytes}, {part.share_bp}});
    cache.set_pod(objects_of::bound(objects_of::pod_object(slice.name, 1_GiB), slices));
  }
}

kubernetes::ObjectMeta annotated(const TableNode& node, const api::AgentReport& report) {
  const kubernetes::node::Advertisement advertised =
      kubernetes::node::advertise({.node = node.name,
                                   .agent = report,
                                   .agent_problem = "",
                                   .desired = kubernetes::node::read_label_settings(node.labels),
                                   .runtime = {.has_cdi = true, .message = ""},
                                   .host = {.boot = "b", .cpu_milli = cpu_milli, .memory_bytes = 64 * gib},
                                   .pods = {}});
  return objects_of::node_object(node.name, advertised.devices);
}

// The webhook converts units to bytes with the cluster's unit, 1 GiB.
kubernetes::PodRequest pod_request(const Row& row) {
  kubernetes::PodRequest out{.dialect = "carve"};
  kubernetes::RequestedSlice& slice = out.containers["c"];
  slice.amounts = row.amounts;
  if (const auto units = slice.amounts.memory_units) {
    slice.amounts.memory_units.reset();
    slice.amounts.memory_bytes = *units * gib;
    slice.unit = gib;
    slice.units = *units * slice.amounts.devices;
  }
  out.cpu = row.cpu_milli;
  return out;
}

Decision by_coordinator(const Row& row) {
  coordinator::Cache cache(Strategy::binpack);
  std::vector<std::string_view> names;
  std::map<Uuid, unsigned> index_of;
  unsigned number = 0;
  for (const TableNode& node : *row.nodes) {
    const api::AgentReport report = report_of(node, number++);
    cache.set_node(annotated(node, report));
    add_pods(cache, node.name, report);
    names.push_back(node.name);
    for (const api::Device& device : report.devices) index_of[*parse_uuid(device.uuid)] = device.index;
  }
  EXPECT_TRUE(unreadable_objects(cache).empty());
  const kubernetes::ObjectMeta pod = objects_of::pod_object("asking", pod_request(row));
  cache.set_pod(pod);
  const auto rules = filter_nodes(cache, pod.uid, names);
  Decision out;
  std::vector<std::string_view> fitting;
  for (size_t i = 0; i < names.size(); ++i)
    if (rules[i].empty())
      fitting.push_back(names[i]);
    else
      out.rules[std::string(names[i])] = rules[i];
  if (fitting.empty()) {
    for (const std::string_view name : names) {
      const std::string message = explain_waiting(cache, pod.uid, std::vector{name});
      const std::string begin =
          fmt::format("0/1 nodes can serve: 1 {}. Nearest {}: ", out.rules[std::string(name)], name);
      EXPECT_TRUE(message.starts_with(begin)) << message;
      // In a message about all nodes, advice follows after ". ".
      out.reasons[std::string(name)] =
          message.substr(begin.size(), message.find(". ", begin.size()) - begin.size());
    }
    return out;
  }
  const auto scores = prioritize_nodes(cache, pod.uid, fitting);
  const auto best = std::ranges::max_element(scores) - scores.begin();
  const std::string node(fitting[static_cast<size_t>(best)]);
  const auto slices = reserve_devices(cache, pod.uid, node);
  EXPECT_TRUE(slices) << slices.error();
  std::vector<std::string> parts;
  for (const kubernetes::PlacedPart& part : slices->containers.at("c").parts)
    parts.push_back(part_text(index_of.at(part.device), part.memory));
  out.place = fmt::format("{}: {}", node, fmt::join(parts, ", "));
  return out;
}

// Checks that the controller gives the same reasons as the coordinator. If capacity is the obstacle on some
// node, it does not name nodes whose mode is the obstacle.
void compare_reasons(const Decision& controller, const Decision& coordinator) {
  const auto all_are = [&](std::string_view rule) {
    return std::ranges::all_of(coordinator.rules, [&](const auto& entry) { return entry.second == rule; });
  };
  if (all_are(fleet::invalid_request)) {
    EXPECT_EQ(controller.kind, FailureKind::invalid_argument);
    EXPECT_EQ(controller.message, coordinator.reasons.begin()->second);
    return;
  }
  const bool is_by_mode = all_are(fleet::other_mode);
  EXPECT_EQ(controller.kind,
            is_by_mode ? FailureKind::failed_precondition : FailureKind::insufficient_capacity);
  for (const auto& [node, reason] : coordinator.reasons) {
    if (!is_by_mode && coordinator.rules.at(node) == fleet::other_mode)
      EXPECT_THAT(controller.message, Not(HasSubstr(fmt::format("node {}:", node))));
    else
      EXPECT_THAT(controller.message, HasSubstr(fmt::format("node {}: {}", node, reason)));
  }
}

constexpr uint64_t a10 = 22731ull << 20, a100 = 40ull << 30;

const std::vector<TableNode> mixed{
    {.name = "a",
     .usable = {a10, a10},
     .slices =
         {{.devices = {0}, .memory = 16 * gib, .share_bp = 5000, .isolation = Isolation::memory_and_compute},
          {.devices = {1}, .memory = 2 * gib, .share_bp = 3000, .isolation = Isolation::memory_and_compute}}},
    {.name = "b", .usable = {a10, a10}, .labels = {{"carve.dev/placement", "spread"}}},
    {.name = "c", .usable = {a10}, .labels = {{"carve.dev/mode", "none"}}},
    {.name = "d",
     .usable = {a10},
     .slices =
         {{.devices = {0}, .memory = 4 * gib, .share_bp = 6000, .isolation = Isolation::memory_and_compute}},
     .policy = Policy::native_burst_share},
    {.name = "e", .usable = {a100}, .labels = {{"carve.dev/mode", "memory"}}, .model = "NVIDIA A100"},
    {.name = "f", .usable = {a10}, .labels = {{"carve.dev/mode", "exclusive"}}}};

const std::vector<TableNode> full{
    {.name = "a",
     .usable = {a10, a10},
     .slices = {{.devices = {0}, .memory = 20 * gib},
                {.devices = {1}, .share_bp = 0, .isolation = Isolation::memory, .is_exclusive = true}}},
    {.name = "b",
     .usable = {a10},
     .slices =
         {{.devices = {0}, .memory = 4 * gib, .share_bp = 8000, .isolation = Isolation::memory_and_compute}},
     .admits_best_effort = false,
     .migrates = false}};

const std::vector<TableNode> unlimited{
    {.name = "a", .usable = {a10}, .labels = {{"carve.dev/mode", "none"}}},
    {.name = "b", .usable = {a10}, .labels = {{"carve.dev/mode", "memory"}}}};

const std::vector<TableNode> linked{
    {.name = "a",
     .usable = {a10, a10, a10, a10},
     .links = {"X PHB NV4 PHB", "PHB X PHB NV4", "NV4 PHB X PHB", "PHB NV4 PHB X"}},
    {.name = "b", .usable = {a10, a100, a100}}};

std::vector<TableNode> crowded() {
  TableNode node{.name = "a", .usable = {a10}};
  for (unsigned i = 0; i < max_isolated_slices; ++i) node.slices.push_back({.devices = {0}, .memory = gib});
  return {node};
}
const std::vector<TableNode> sixteen = crowded();

const Row rows[] = {
    // Memory goes to the fullest node with room.
    {&mixed, {.memory_bytes = 4 * gib}, "a: 0 4 GiB"},
    {&mixed, {.memory_bytes = 8 * gib}, "a: 1 8 GiB"},
    {&mixed, {.memory_bytes = 22 * gib}, "b: 0 22 GiB"},
    {&mixed, {.memory_bytes = 30 * gib}, "e: 0 30 GiB"},
    {&mixed, {.memory_bp = 2500}, "a: 0 5682 MiB"},
    {&mixed, {.memory_units = 3}, "a: 0 3 GiB"},
    // Shares go to nodes that enforce them. Under native-burst-share they are weights.
    {&mixed, {.memory_bytes = 4 * gib, .share_bp = 4000}, "a: 0 4 GiB"},
    {&mixed, {.memory_bytes = 4 * gib, .share_bp = 6000}, "a: 1 4 GiB"},
    {&mixed, {.memory_bytes = 4 * gib, .share_bp = 10000}, "d: 0 4 GiB"},
    {&mixed, {.memory_bytes = 4 * gib, .share_bp = 9000, .policy = Policy::fixed_share}, "b: 0 4 GiB"},
    {&mixed, {.memory_bytes = 4 * gib, .policy = Policy::native_burst_share}, "d: 0 4 GiB"},
    {&mixed,
     {.memory_bytes = 4 * gib, .policy = Policy::guaranteed_burst_share},
     "a other policy, b other policy, c other policy, d other policy, e other policy, f other policy"},
    // Isolation is provided by nodes whose mode allows it.
    {&mixed, {.memory_bytes = 4 * gib, .isolation = Isolation::none}, "c: 0 4 GiB"},
    {&mixed, {.memory_bytes = 4 * gib, .isolation = Isolation::memory}, "a: 0 4 GiB"},
    {&unlimited, {.memory_bytes = 4 * gib, .share_bp = 1000}, "a other mode, b other mode"},
    {&unlimited,
     {.memory_bytes = 4 * gib, .share_bp = 1000, .isolation = Isolation::memory_and_compute},
     "a other mode, b other mode"},
    {&unlimited, {.memory_bytes = 4 * gib, .isolation = Isolation::none}, "a: 0 4 GiB"},
    {&unlimited, {.memory_bytes = 40 * gib, .isolation = Isolation::none}, "a too small, b other mode"},
    {&unlimited, {.memory_bytes = 4 * gib, .spill_bytes = gib}, "b: 0 4 GiB"},
    // Whole devices can be granted in every mode.
    {&mixed, {.exclusive = true}, "b: 0 22731 MiB"},
    {&mixed, {.devices = 2, .exclusive = true}, "b: 0 22731 MiB, 1 22731 MiB"},
    {&mixed,
     {.devices = 3, .exclusive = true},
     "a too few devices, b too few devices, c too few devices, d too few devices, e too few devices, "
     "f too few devices"},
    // Several devices with equal and with different parts, and links.
    {&mixed, {.memory_bytes = 4 * gib, .devices = 2}, "a: 0 4 GiB, 1 4 GiB"},
    {&mixed, {.parts = *parse_parts("18GiB:30%,4GiB:10%")}, "a: 1 18 GiB, 0 4 GiB"},
    {&mixed,
     {.parts = *parse_parts("21GiB,21GiB,1GiB")},
     "a too few devices, b too few devices, c too few devices, d too few devices, e too few devices, "
     "f other mode"},
    {&linked, {.memory_bytes = 4 * gib, .devices = 2}, "a: 0 4 GiB, 2 4 GiB"},
    {&linked, {.memory_bp = 5000, .devices = 3}, "a: 0 11365 MiB, 1 11365 MiB, 2 11365 MiB"},
    {&linked, {.memory_bytes = 30 * gib, .devices = 3}, "a too small, b too small"},
    // Models of devices.
    {&mixed, {.memory_bytes = 4 * gib, .models = {"NVIDIA A100"}}, "e: 0 4 GiB"},
    {&unlimited, {.memory_bytes = 4 * gib, .models = {"NVIDIA H100"}}, "a other model, b other model"},
    // Capacity, limits and settings of devices.
    {&full, {.memory_bytes = 20 * gib}, "a memory, b no share"},
    {&full, {.memory_bytes = 4 * gib}, "a memory, b no share"},
    {&full, {.memory_bytes = gib}, "a: 0 1 GiB"},
    {&full, {.memory_bytes = gib, .share_bp = 3000}, "a: 0 1 GiB"},
    {&full, {.memory_bytes = 8 * gib, .share_bp = 3000}, "a memory, b compute"},
    {&full, {.exclusive = true}, "a shared, b shared"},
    {&full, {.memory_bytes = 3 * gib, .share_bp = 1000, .spill_bytes = gib}, "a memory, b no migration"},
    {&full, {.memory_bytes = 128 << 20}, "a less than a context, b less than a context"},
    {&full, {.memory_bytes = 4 * gib, .devices = 2}, "a memory, b too few devices"},
    {&sixteen, {.memory_bytes = gib}, "a 16 slices on every device"},
    {&full, {.memory_bytes = gib}, "a cpu, b cpu", 5000},
    // Requests that are invalid on every node.
    {&mixed,
     {},
     "a invalid request, b invalid request, c invalid request, d invalid request, e invalid request, "
     "f invalid request"},
    {&unlimited, {.memory_bytes = 1000}, "a invalid request, b invalid request"},
    {&unlimited,
     {.memory_bytes = gib, .isolation = Isolation::memory_and_compute},
     "a invalid request, b invalid request"},
};

TEST(OneFleet, gets_the_same_decisions_from_the_controller_and_the_coordinator) {
  for (const Row& row : rows) {
    SCOPED_TRACE(fmt::format("row {}, expected {}", &row - rows, row.expected));
    const Decision coordinator = by_coordinator(row), controller = by_controller(row);
    EXPECT_EQ(controller.place, coordinator.place) << controller.message;
    std::vector<std::string> rules;
    for (const auto& [node, rule] : coordinator.rules) rules.push_back(fmt::format("{} {}", node, rule));
    EXPECT_EQ(coordinator.place.empty() ? fmt::format("{}", fmt::join(rules, ", ")) : coordinator.place,
              row.expected);
    if (coordinator.place.empty()) compare_reasons(controller, coordinator);
  }
}

}  // namespace
}  // namespace carve

#include "controller/nodes/node_rules.h"

#include <gmock/gmock.h>

#include "wire/api/json.h"

namespace carve::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t now = 1'800'000'000'000'000'000;
constexpr int64_t second = 1'000'000'000;

Object node(const std::string& name, objects::NodeSpec spec = {}, objects::NodeStatus status = {},
            std::map<std::string, std::string> labels = {}) {
  return {.key = node_key(name), .labels = std::move(labels), .spec = spec, .status = status};
}

NodeObservation seen() {
  NodeObservation out{.answered_ns = now, .has_answered = true};
  out.report.version.started_ns = now - 60 * second;
  out.report.devices = {{.index = 0, .usable_bytes = (22ull << 30) + 5, .granted_bytes = (2ull << 30) + 1},
                        {.index = 1, .usable_bytes = 22ull << 30}};
  out.report.node.policy.effective = Policy::fixed_share;
  return out;
}

TEST(NodeRules, a_node_runs_while_its_agent_answers) {
  NodeObservation observation = seen();
  EXPECT_EQ(text(observed_status(node("a"), observation, now).state), "Running");
  EXPECT_EQ(text(observed_status(node("a"), observation, now + 10 * second).state), "Stopped");
  EXPECT_EQ(text(observed_status(node("a", {.stopped = true}), observation, now).state), "Stopped");
  observation.report.node.starting = true;
  const auto starting = observed_status(node("a"), observation, now);
  EXPECT_EQ(text(starting.state), "Starting");
  EXPECT_EQ(starting.ready_in_seconds, 540u);
  EXPECT_EQ(observed_status(node("a"), observation, now, 90 * second).ready_in_seconds, 30u);
  EXPECT_EQ(observed_status(node("a"), observation, now, 0).ready_in_seconds, 0u) << "it is late";
  EXPECT_EQ(text(observed_status(node("a"), {.answered_ns = now}, now).state), "Starting");
}

TEST(NodeRules, a_node_reports_whole_units_of_memory) {
  NodeObservation observation = seen();
  auto units = observed_status(node("a"), observation, now).gpu_mem_units;
  EXPECT_EQ(units.capacity, 44u);
  EXPECT_EQ(units.allocated, 3u);
  observation.report.node.memory_unit = MemoryUnit::mib_128;
  units = observed_status(node("a"), observation, now).gpu_mem_units;
  EXPECT_EQ(units.unit, "128MiB");
  EXPECT_EQ(units.capacity, 352u);
}

TEST(NodeRules, an_agent_gets_only_the_differing_settings) {
  NodeObservation observation = seen();
  EXPECT_FALSE(agent_change(node("a"), observation));
  EXPECT_FALSE(agent_change(node("a", {}, {}, {{"carve.dev/compute-policy", "fixed-share"}}), observation));
  const Object wanted =
      node("a", {.schedulable = false, .cordoned = "root since then"}, {},
           {{"carve.dev/compute-policy", "native-burst-share"}, {"carve.dev/memory-unit", "128MiB"}});
  observation.report.node.labels[policy_label] = "fixed-share";
  const auto change = agent_change(wanted, observation);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->policy, Policy::native_burst_share);
  EXPECT_THAT(change->removed_labels, ElementsAre(policy_label));
  EXPECT_EQ(change->memory_unit, MemoryUnit::mib_128);
  EXPECT_TRUE(change->when_free);
  EXPECT_EQ(change->refuse_grants, "node a is cordoned by root since then");
  observation.has_answered = false;
  EXPECT_FALSE(agent_change(wanted, observation));
}

TEST(NodeRules, a_removed_label_leaves_the_default) {
  NodeObservation observation = seen();
  observation.report.node.policy.desired = Policy::native_burst_share;
  observation.report.node.desired_memory_unit = MemoryUnit::mib_128;
  EXPECT_FALSE(agent_change(node("a"), observation)) << "the agent's own settings stay";
  const objects::NodeStatus removed{.removed_labels = {std::string(workload::compute_policy_label),
                                                       std::string(workload::memory_unit_label)}};
  const auto change = agent_change(node("a", {}, removed), observation);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->policy, Policy::fixed_share);
  EXPECT_EQ(change->memory_unit, MemoryUnit::gib);
  EXPECT_TRUE(change->when_free);
  observation.report.node.policy.desired = Policy::fixed_share;
  observation.report.node.desired_memory_unit = MemoryUnit::gib;
  EXPECT_FALSE(agent_change(node("a", {}, removed), observation));
}

TEST(NodeRules, a_restart_ends_when_no_slice_runs_and_the_agent_follows) {
  const Object restarting = node("a", {.restarting = true});
  NodeObservation observation = seen();
  EXPECT_FALSE(has_restarted(restarting, observation));  // The agent still grants slices.
  observation.report.node.grants_refused = refusal_of(restarting);
  EXPECT_TRUE(has_restarted(restarting, observation));
  EXPECT_FALSE(has_restarted(node("a"), observation));
  observation.report.slices.push_back({.name = "s"});
  EXPECT_FALSE(has_restarted(restarting, observation));
}

TEST(NodeRules, removed_labels_are_forgotten_when_the_agent_was_restarted) {
  NodeObservation observation = seen();
  objects::NodeStatus status = observed_status(node("a"), observation, now);
  status.removed_labels = {"carve.dev/mode"};
  EXPECT_EQ(observed_status(node("a", {}, status), observation, now).removed_labels.size(), 1u);
  observation.report.version.started_ns += second;
  EXPECT_TRUE(observed_status(node("a", {}, status), observation, now).removed_labels.empty());
}

TEST(NodeRules, a_policy_that_no_node_has_is_reported) {
  const auto with = [](const char* effective, bool per_slice = false) {
    return std::make_shared<const Object>(
        node("n1", {.pool = "p"}, {.policy = {.effective = effective}, .has_policy_per_slice = per_slice}));
  };
  EXPECT_THAT(policy_problem("native-burst-share", "", {with("fixed-share")}, "spec.gpu.policy"),
              testing::HasSubstr("no node has the policy 'native-burst-share': node n1 has fixed-share"));
  EXPECT_EQ(policy_problem("fixed-share", "", {with("native-burst-share")}, "metadata.gpu_core_percentage"),
            "metadata.gpu_core_percentage: it needs the policy 'fixed-share', which no node has: node n1 has "
            "native-burst-share; leave the policy out, or set a node's policy");
  EXPECT_EQ(policy_problem("fixed-share", "", {with("fixed-share")}, "spec.gpu.policy"), "");
  EXPECT_EQ(policy_problem("native-burst-share", "", {with("fixed-share", true)}, "spec.gpu.policy"), "");
  for (const char* unknown : {"", "mixed"})
    EXPECT_EQ(
        policy_problem("native-burst-share", "", {with("fixed-share"), with(unknown)}, "spec.gpu.policy"),
        "");
  EXPECT_EQ(policy_problem("native-burst-share", "q", {with("fixed-share")}, "spec.gpu.policy"), "")
      << "no node of the pool";
}

TEST(NodeRules, the_slicing_check_reports_the_first_failure) {
  const auto message = [](const char* type, std::vector<Object> nodes) {
    const Object pool{.key = pool_key("p"), .spec = objects::PoolSpec{.type = Word<PoolType>::from(type)}};
    std::vector<Pointer> list;
    for (Object& one : nodes) list.push_back(std::make_shared<const Object>(std::move(one)));
    const objects::Slicing slicing = slicing_of(pool, list, now);
    return slicing.available ? "" : slicing.checks.back().message;
  };
  const auto in_pool = [](NodePhase state, uint32_t gpus, uint32_t ready_in = 0) {
    return node("n1", {.pool = "p"}, {.state = state, .ready_in_seconds = ready_in, .gpus = gpus});
  };
  EXPECT_EQ(
      message("public", {}),
      "pool 'p' is of type public: GPU slicing needs an EAS resource group or a Lingjun resource quota");
  EXPECT_EQ(message("eas", {}), "pool 'p' has no GPU: its GPU column is 0");
  EXPECT_THAT(message("eas", {in_pool(NodePhase::starting, 2, 350)}), HasSubstr("about 6 min left"));
  EXPECT_EQ(message("lingjun", {in_pool(NodePhase::stopped, 2)}), "node n1 is Stopped: start it");
  EXPECT_EQ(message("eas", {in_pool(NodePhase::running, 2)}), "");
}

TEST(NodeRules, damaged_stored_values_get_the_defaults) {
  EXPECT_TRUE(node_spec({.spec = TypedJson::read<objects::NodeSpec>("[1")}).schedulable);
  EXPECT_EQ(text(node_status({.status = TypedJson::read<objects::NodeStatus>("7")}).state), "");
  EXPECT_EQ(pool_spec({.spec = TypedJson::read<objects::PoolSpec>("")}).type, PoolType::eas);
  const auto taints = pool_node(node("a", {}, {.taints = {"k=v:NoSchedule", ":=", "x"}}), now).taints;
  EXPECT_EQ(taints.size(), 1u);
}

}  // namespace
}  // namespace carve::controller

#include "workload/pool.h"

#include <gtest/gtest.h>

#include <random>

namespace carve::workload {
namespace {

using Kind = PoolAction::Kind;

NodePool pool() {
  NodePool p;
  p.name = "p";
  p.labels = {{std::string(compute_policy_label), "fixed-share"}, {"team", "vision"}};
  return p;
}

PoolNode node(const char* name) { return {.name = name, .gpus = 1, .is_ready = true}; }

std::string text(const std::vector<PoolAction>& list) {
  std::string out;
  for (const PoolAction& action : list) {
    out += out.empty() ? "" : ", ";
    if (action.kind == Kind::set_label) out += fmt::format("{} {}={}", action.node, action.key, action.value);
    if (action.kind == Kind::set_taint) out += fmt::format("{} taint {}", action.node, action.taint.key);
    if (action.kind == Kind::initialise) out += fmt::format("{} initialised", action.node);
  }
  return out;
}

TEST(Pool, labels_new_nodes_always_and_existing_nodes_if_it_synchronises) {
  NodePool p = pool(), synchronised = pool();
  p.taints = synchronised.taints = {{"gpu", "yes", TaintEffect::no_schedule}};
  synchronised.synchronises_labels = true;
  PoolNode fresh = node("n1"), differs = node("n2"), same = node("n3");
  differs.is_initialised = same.is_initialised = true;
  differs.labels = {{"carve.dev/compute-policy", "native-burst-share"}, {"own", "1"}};
  same.labels = p.labels, same.taints = p.taints;
  EXPECT_EQ(text(actions(p, std::vector{fresh})),
            "n1 carve.dev/compute-policy=fixed-share, n1 team=vision, n1 taint gpu, n1 initialised");
  EXPECT_EQ(text(actions(p, std::vector{differs, same})), "")
      << "existing nodes change only with synchronisation";
  EXPECT_EQ(text(actions(synchronised, std::vector{differs, same})),
            "n2 carve.dev/compute-policy=fixed-share, n2 team=vision, n2 taint gpu");
  const std::vector<LabelDrift> expected{
      {"n2", "carve.dev/compute-policy", "fixed-share", "native-burst-share"}, {"n2", "team", "vision", ""}};
  EXPECT_EQ(drift(p, std::vector{differs, same}), expected);
}

TEST(Pool, that_synchronises_removes_a_dropped_taint_from_its_nodes) {
  NodePool p = pool();
  PoolNode tainted = node("n1");
  tainted.labels = p.labels, tainted.is_initialised = true;
  tainted.taints = {{"gpu", "yes", TaintEffect::no_schedule}};
  EXPECT_TRUE(actions(p, std::vector{tainted}).empty()) << "existing nodes change only with synchronisation";
  p.synchronises_labels = true;
  const std::vector<PoolAction> expected{
      {.kind = Kind::remove_taint, .node = "n1", .taint = {"gpu", "yes", TaintEffect::no_schedule}}};
  EXPECT_EQ(actions(p, std::vector{tainted}), expected);
}

TEST(Pool, matches_tolerations_by_key_value_and_effect) {
  const Taint taint{"gpu", "a10", TaintEffect::no_schedule};
  EXPECT_TRUE(tolerates({.key = "gpu", .value = "a10", .effect = TaintEffect::no_schedule}, taint));
  EXPECT_TRUE(tolerates({.key = "gpu", .value = "a10"}, taint));
  EXPECT_TRUE(tolerates({.key = "gpu"}, taint));
  EXPECT_TRUE(tolerates({}, taint));
  EXPECT_FALSE(tolerates({.key = "gpu", .value = "t4"}, taint));
  EXPECT_FALSE(tolerates({.key = "gpus"}, taint));
  EXPECT_FALSE(tolerates({.key = "gpu", .effect = TaintEffect::no_execute}, taint));
}

TEST(Pool, avoids_nodes_by_preference_taints_and_is_repelled_by_others) {
  const std::set<Taint> taints{{"a", "", TaintEffect::prefer_no_schedule},
                               {"b", "", TaintEffect::no_schedule},
                               {"c", "", TaintEffect::no_execute}};
  const TaintResult plain = effect_of(taints, {});
  ASSERT_NE(plain.repels, nullptr);
  EXPECT_EQ(plain.repels->key, "b");
  EXPECT_TRUE(plain.avoids);
  const std::vector<Toleration> some{{.key = "b"}};
  EXPECT_EQ(effect_of(taints, some).repels->key, "c");
  const std::vector<Toleration> all{Toleration{}};
  EXPECT_EQ(effect_of(taints, all).repels, nullptr);
  EXPECT_FALSE(effect_of(taints, all).avoids);
}

TEST(Pool, derives_the_phase_of_a_node) {
  constexpr Ns s = second_ns;
  PoolNode n = node("n1");
  n.started_at = n.answered_at = 100 * s;
  EXPECT_EQ(state_of(n, 110 * s - 1), NodePhase::running);
  EXPECT_EQ(state_of(n, 110 * s), NodePhase::stopped) << "no response for 10 s";
  n.is_ready = false;
  EXPECT_EQ(state_of(n, 100 * s), NodePhase::starting);
  EXPECT_EQ(ready_in(n, 100 * s), 600 * s);
  EXPECT_EQ(ready_in(n, 340 * s), 360 * s);
  EXPECT_EQ(ready_in(n, 900 * s), 0);
  EXPECT_EQ(ready_in(n, 110 * s, 20 * s), 10 * s);
  n.is_stopped = true;
  EXPECT_EQ(state_of(n, 100 * s), NodePhase::stopped);
}

TEST(Pool, does_not_allow_a_nodes_system_label_to_be_edited) {
  PoolNode n = node("n1");
  n.labels = {{"carve.dev/compute-policy", "fixed-share"}, {"team", "a"}};
  const auto message = [&](std::string_view key, std::string_view value) {
    const auto good = check_edit(n, key, value);
    return good ? std::string() : good.error().message;
  };
  EXPECT_EQ(message("carve.dev/compute-policy", "fixed-share"), "") << "the same value changes nothing";
  EXPECT_EQ(message("carve.dev/mode", "memory"), "") << "the node does not have the label";
  EXPECT_EQ(message("team", "b"), "");
  EXPECT_EQ(
      message("carve.dev/compute-policy", "native-burst-share"),
      "carve.dev/compute-policy is a system label: its value 'fixed-share' on node n1 cannot be edited. "
      "Remove it "
      "(carve label node n1 carve.dev/compute-policy-), restart the node, and add it again; or let the "
      "pool's synchronisation set it");
  EXPECT_EQ(check_edit(n, "carve.dev/compute-policy", "native-burst-share").error().kind,
            FailureKind::failed_precondition);
  EXPECT_EQ(message("carve.dev/memory-unit", "64MiB"),
            "carve.dev/memory-unit '64MiB': must be one of 1GiB, 128MiB");
  EXPECT_NE(message("carve.dev/placement", ""), "");
  EXPECT_NE(message("", "a"), "");
  EXPECT_NE(message("team", std::string(max_label_bytes + 1, 'a')), "");
}

TEST(Pool, that_is_invalid_is_rejected) {
  EXPECT_TRUE(validated(pool()));
  NodePool name = pool(), value = pool();
  name.name = "P";
  value.labels["carve.dev/mode"] = "memory+compute";
  EXPECT_FALSE(validated(name));
  EXPECT_EQ(validated(value).error().message,
            "carve.dev/mode 'memory+compute': must be one of memory-and-compute, memory, none, exclusive");
}

TEST(Pool, reports_the_first_slicing_check_that_fails) {
  constexpr Ns now = 240 * second_ns;
  PoolNode running = node("n1"), starting = node("n2"), stopped = node("n3"), cpu = node("n4");
  running.answered_at = starting.answered_at = cpu.answered_at = now;
  starting.is_ready = false, stopped.is_stopped = true, cpu.gpus = 0;
  PoolNode later = starting;
  later.name = "n0", later.started_at = now;
  struct Row {
    PoolType type;
    std::vector<PoolNode> nodes;
    size_t checks;
    std::string message;
  } const rows[] = {
      {PoolType::eas, {stopped, running}, 3, ""},
      {PoolType::lingjun, {running}, 3, ""},
      {PoolType::ecs, {running}, 3, ""},
      {PoolType::public_group,
       {running},
       1,
       "pool 'p' is of type public: GPU slicing needs an EAS resource group or a Lingjun resource quota"},
      {PoolType::vci,
       {},
       1,
       "pool 'p' is of type vci: GPU slicing needs an EAS resource group or a Lingjun resource quota"},
      {PoolType::eas, {}, 2, "pool 'p' has no GPU: its GPU column is 0"},
      {PoolType::eas, {cpu}, 2, "pool 'p' has no GPU: its GPU column is 0"},
      {PoolType::eas,
       {cpu, stopped, later, starting},
       3,
       "node n2 is Starting: wait for it to be running (a first start typically takes 8 to 10 minutes; about "
       "6 min "
       "left)"},
      {PoolType::eas, {stopped}, 3, "node n3 is Stopped: start it"},
  };
  for (const Row& row : rows) {
    NodePool p = pool();
    p.type = row.type;
    const auto checks = slicing_checks(p, row.nodes, now);
    EXPECT_EQ(checks.size(), row.checks) << row.message;
    EXPECT_EQ(checks.back().message, row.message);
    EXPECT_EQ(checks.back().is_ok, row.message.empty());
    EXPECT_EQ(may_slice(p, row.nodes, now).has_value(), row.message.empty());
  }
  NodePool off = pool();
  off.is_sharing_enabled = false;
  EXPECT_EQ(may_slice(off, std::vector{running}, now).error().message,
            "GPU sharing is not enabled for pool p");
  EXPECT_EQ(slicing_checks(off, {}, 0).back().name, "sharing");
}

// Pools and nodes change at random, and the controller is killed between any two actions. Afterwards, a pool
// that synchronises leaves no drift, and one that does not leaves existing nodes unchanged.
TEST(Pool, that_synchronises_leaves_no_drift_in_any_history) {
  unsigned applied = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 dice(seed);
    NodePool p = pool();
    std::vector<PoolNode> nodes;
    const auto carry_out = [&](bool killed) {
      const auto list = actions(p, nodes);
      const size_t done = killed ? dice() % (list.size() + 1) : list.size();
      for (size_t i = 0; i < done; ++i) {
        PoolNode& n = *std::ranges::find(nodes, list[i].node, &PoolNode::name);
        ASSERT_TRUE(p.synchronises_labels || !n.is_initialised);
        if (list[i].kind == Kind::set_label) n.labels[list[i].key] = list[i].value;
        if (list[i].kind == Kind::set_taint) n.taints.insert(list[i].taint);
        if (list[i].kind == Kind::remove_taint) n.taints.erase(list[i].taint);
        if (list[i].kind == Kind::initialise) n.is_initialised = true;
      }
      applied += done;
    };
    for (int step = 0; step < 40; ++step) {
      const std::string key = fmt::format("k{}", dice() % 3), value = fmt::format("v{}", dice() % 3);
      if (dice() % 4 == 0) nodes.push_back(node(fmt::format("n{}", step).c_str()));
      if (dice() % 4 == 0) p.labels[key] = value;
      if (dice() % 8 == 0) p.taints.insert({key, value, TaintEffect::no_schedule});
      if (dice() % 8 == 0) p.synchronises_labels = !p.synchronises_labels;
      if (dice() % 4 == 0 && !nodes.empty()) nodes[dice() % nodes.size()].labels[key] = value;
      carry_out(dice() % 2 == 0);
      if (HasFatalFailure()) return;
    }
    p.synchronises_labels = true;
    carry_out(false);
    ASSERT_TRUE(actions(p, nodes).empty());
    ASSERT_TRUE(drift(p, nodes).empty());
  }
  EXPECT_GT(applied, 20'000u);
}

}  // namespace
}  // namespace carve::workload

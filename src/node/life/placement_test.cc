#include "node/placement/placement.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "node/life/update.h"

namespace carve::node {
namespace {

constexpr Bytes GiB{1ull << 30};
const Viewer root{0, true};

// Two devices of 10 GiB, and the slice "a" of uid 1000 with 4 GiB on the first one.
struct PlacementTest : testing::Test {
  Settings settings;
  std::vector<NodeDevice> devices;
  ledger::Ledger ledger;
  Policies policies;
  std::filesystem::path folder = [] {
    char name[] = "/tmp/carve-placement-XXXXXX";
    return std::filesystem::path(mkdtemp(name));
  }();

  PlacementTest() {
    std::vector<Uuid> uuids;
    for (unsigned i = 0; i < 2; ++i) {
      NodeDevice& d = devices.emplace_back();
      d.device.index = i;
      d.device.uuid.bytes[0] = static_cast<uint8_t>(i + 1);
      d.device.native = {10 * GiB.count};
      uuids.push_back(d.device.uuid);
      EXPECT_TRUE(ledger.apply(*ledger.see(d.device)));
    }
    policies.open({.path = folder / "policy.json",
                   .boot_id = "boot",
                   .devices = uuids,
                   .said = {},
                   .otherwise = [](const Uuid&) { return std::nullopt; },
                   .may_follow = [](Policy) { return true; },
                   .holders = [](const Uuid&) { return std::vector<std::string>{}; }});
    grant("a", 1000, {4 * GiB.count}, {2000});
  }
  ~PlacementTest() override { std::filesystem::remove_all(folder); }

  PlacementInput input() const { return {settings, devices, ledger, policies}; }
  void grant(const std::string& name, uint32_t owner, Bytes memory, Share share, size_t device = 0) {
    Slice slice;
    slice.name = name;
    slice.owner = owner;
    slice.isolation = default_isolation(share);
    slice.parts.push_back({devices[device].device.uuid, memory, share, {}, devices[device].device.usable()});
    EXPECT_TRUE(ledger.apply(*ledger.grant(slice, {1, "boot", 1})));
  }
  static Request request(Bytes memory, Share share = {}) {
    Request out;
    out.memory = PerDevice{memory};
    out.share = share;
    return *validated(out);
  }
};

TEST_F(PlacementTest, uses_a_snapshot_with_the_capacity_that_the_ledger_leaves) {
  const auto all = input().snapshot();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].free, Bytes{6 * GiB.count});
  EXPECT_EQ(all[0].free_share, Share{8000});
  EXPECT_EQ(all[0].slices, 1u);
  EXPECT_FALSE(all[0].shared_out) << "slices without a share are admitted";
  EXPECT_EQ(all[1].free, Bytes{10 * GiB.count});
}

TEST_F(PlacementTest, rejects_slices_without_a_share_if_configured) {
  settings.admit_best_effort = false;
  EXPECT_TRUE(input().snapshot()[0].shared_out);
  EXPECT_FALSE(input().snapshot()[1].shared_out);
  const auto answer = explain(input(), request(GiB), root);
  EXPECT_EQ(answer.placement->devices(), std::vector<size_t>{1});
  EXPECT_NE(answer.verdicts[0].message.find("without --best-effort refuse"), std::string::npos);
}

TEST_F(PlacementTest, allows_more_on_a_device_by_settings) {
  settings.overcommit_compute = true;
  settings.policy_per_slice = true;
  const auto all = input().snapshot();
  EXPECT_EQ(all[0].free_share, whole_device);
  EXPECT_FALSE(all[0].policy);
}

TEST_F(PlacementTest, charges_a_context_to_the_slice_unless_it_comes_from_the_reserve) {
  devices[0].context = {300u << 20};
  EXPECT_EQ(input().snapshot()[0].context, Bytes{300u << 20});
  settings.contexts_in_slice = false;
  EXPECT_EQ(input().snapshot()[0].context, Bytes{});
}

TEST_F(PlacementTest, grants_nothing_on_an_unhealthy_device) {
  devices[0].sample.health = {HealthState::lost, "lost from the bus"};
  const auto answer = explain(input(), request(GiB, {1000}), root);
  ASSERT_TRUE(answer.placement);
  EXPECT_EQ(answer.placement->devices(), std::vector<size_t>{1});
  EXPECT_NE(answer.verdicts[0].message.find("lost from the bus"), std::string::npos);
}

TEST_F(PlacementTest, shows_names_only_to_those_who_may_see_them) {
  EXPECT_EQ(input().placed_slices(root)[0].name, "a");
  EXPECT_EQ(input().placed_slices({1000, false})[0].name, "a");
  EXPECT_EQ(input().placed_slices({2000, false})[0].name, "another user's slice");
}

TEST_F(PlacementTest, gives_a_granted_slice_a_free_name_and_the_requested_terms) {
  Request asked = request(GiB, {1000});
  asked.account = "ml";
  asked.owner = 7;
  const auto answer = explain(input(), asked, root);
  ASSERT_TRUE(answer.placement);
  const Slice granted = granted_slice(input(), asked, *answer.placement);
  EXPECT_EQ(granted.name, "slice-2");
  EXPECT_EQ(granted.account, "ml");
  EXPECT_EQ(granted.owner, 7u);
  ASSERT_EQ(granted.parts.size(), 1u);
  EXPECT_EQ(granted.parts[0].memory, GiB);
  EXPECT_EQ(granted.parts[0].usable, Bytes{10 * GiB.count});
}

TEST_F(PlacementTest, grants_parts_that_were_placed_elsewhere_unchanged) {
  Request asked;
  asked.placed = {{devices[1].device.uuid, {3 * GiB.count}, {1000}}, {devices[0].device.uuid, GiB, {500}}};
  asked = *validated(asked);
  const auto answer = explain(input(), asked, root);
  ASSERT_TRUE(answer.placement) << answer.summary;
  const Slice granted = granted_slice(input(), asked, *answer.placement);
  ASSERT_EQ(granted.parts.size(), 2u);
  EXPECT_EQ(granted.parts[0].device, devices[1].device.uuid);
  EXPECT_EQ(granted.parts[0].memory, Bytes{3 * GiB.count});
  EXPECT_EQ(granted.parts[1].share, Share{500});
  EXPECT_EQ(granted.isolation, Isolation::memory_and_compute);
  asked.placed[1].memory = {7 * GiB.count};
  EXPECT_EQ(explain(input(), asked, root).summary, "device 0: 7 GiB needed, 6 GiB free");
}

TEST_F(PlacementTest, recognizes_a_repeated_request_by_its_terms) {
  Request asked;
  asked.placed = {{devices[1].device.uuid, {3 * GiB.count}, {1000}}, {devices[0].device.uuid, GiB, {500}}};
  asked = *validated(asked);
  const Slice granted = granted_slice(input(), asked, *explain(input(), asked, root).placement);
  EXPECT_TRUE(is_granted(input(), asked, granted));
  Request turned = asked;
  std::swap(turned.placed[0], turned.placed[1]);
  EXPECT_TRUE(is_granted(input(), turned, granted));
  const std::function<void(Request&)> changes[] = {
      [](Request& r) { r.placed[0].memory = GiB; },
      [](Request& r) { r.placed[1].share = {501}; },
      [](Request& r) { r.placed[1].device = Uuid{{9}}; },
      [](Request& r) { r.placed.pop_back(), r.devices = 1; },
      [](Request& r) { r.isolation = Isolation::memory; },
      [](Request& r) { r.latency = LatencyClass::latency; },
      [](Request& r) { r.policy = Policy::native_burst_share; },
      [](Request& r) { r.spill = GiB; },
      [](Request& r) { r.exclusive = true; },
  };
  for (const auto& change : changes) {
    Request other = asked;
    change(other);
    EXPECT_FALSE(is_granted(input(), other, granted)) << &change - changes;
  }
  EXPECT_TRUE(is_granted(input(), request({4 * GiB.count}, {2000}), ledger.find("a")->slice));
  EXPECT_FALSE(is_granted(input(), request({5 * GiB.count}, {2000}), ledger.find("a")->slice));
}

TEST_F(PlacementTest, skips_a_generated_name_that_is_taken) {
  grant("slice-3", 1000, GiB, {1000}, 1);
  const Request asked = request(GiB, {1000});
  EXPECT_EQ(granted_slice(input(), asked, *explain(input(), asked, root).placement).name, "slice-4");
}

TEST_F(PlacementTest, names_the_slices_that_a_plan_moves) {
  const ConsolidationView view = plan_consolidation(input(), 2, root);
  ASSERT_EQ(view.slices.size(), 1u);
  EXPECT_TRUE(view.plan.moves.empty()) << "one device holds a slice, and one stays in use";
}

}  // namespace
}  // namespace carve::node

#include "kubernetes/node/rules/advertisement.h"

#include <gmock/gmock.h>

#include "kubernetes/format/pod_slices.h"
#include "kubernetes/node/rules/node_object.h"
#include "wire/api/json_value.h"

namespace carve::kubernetes::node {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* uuids[] = {"GPU-00000000-0000-0000-0000-000000000001",
                                 "GPU-00000000-0000-0000-0000-000000000002"};
constexpr uint64_t usable = 22731ull << 20;

api::AgentReport report() {
  api::AgentReport out;
  out.version.simulated = "a10x2";
  out.node.bookkeeper = Bookkeeper::kubernetes;
  out.node.policy.effective = Policy::fixed_share;
  for (uint32_t i = 0; i < 2; ++i) {
    api::Device& device = out.devices.emplace_back();
    device.index = i;
    device.uuid = uuids[i];
    device.name = "NVIDIA A10";
    device.usable_bytes = usable;
    device.context_bytes = 256 << 20;
  }
  out.links = {"X NV1", "NV1 X"};
  return out;
}

AdvertisementInput input() {
  return {.node = "n1",
          .agent = report(),
          .agent_problem = "",
          .desired = LabelSettings{},
          .runtime = {.has_cdi = true, .message = ""},
          .host = {.boot = "b", .cpu_milli = 2000, .memory_bytes = 8ull << 30},
          .pods = {},
          .has_other_plugin = false};
}

api::Slice slice_of(const std::string& name, const std::string& pod) {
  api::Slice out;
  out.name = name;
  out.holder = Holder{.pod = PodContainer{"a", pod, "uid-" + pod, "main"}, .claim = {}};
  return out;
}

kubernetes::ObjectMeta pod_with(const std::string& parts, const std::string& node = "n1") {
  kubernetes::ObjectMeta out;
  out.annotations[kubernetes::slices_annotation] =
      fmt::format(R"({{"v":1,"node":"{}","containers":{{"main":{{"parts":[{}]}}}}}})", node, parts);
  return out;
}

const Condition& ready(const Advertisement& ad) { return ad.conditions.front(); }

TEST(Advertisement, contains_devices_and_totals) {
  const Advertisement ad = advertise(input());
  EXPECT_TRUE(ready(ad).is_true) << ready(ad).message;
  EXPECT_EQ(ad.label, "extender");
  EXPECT_EQ(ad.totals, (Totals{2 * usable, 200}));
  const auto again = kubernetes::read_devices(api::write(ad.devices));
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(*again, ad.devices);
  EXPECT_EQ(again->devices.at(1).context, 256u << 20);
  EXPECT_TRUE(again->simulated);
  EXPECT_EQ(again->mode.effective, NodeMode::memory_and_compute);
}

TEST(Advertisement, shares_that_are_weights_have_larger_totals) {
  AdvertisementInput in = input();
  in.agent->node.policy.effective = Policy::native_burst_share;
  EXPECT_EQ(advertise(in).totals.compute_percent, 3200u);
}

TEST(Advertisement, marks_and_counts_a_device_that_serves_no_slice) {
  AdvertisementInput in = input();
  in.agent->devices[0].health.state = HealthState::lost;
  in.agent->devices[1].mode = DeviceMode::mig;
  const Advertisement ad = advertise(in);
  EXPECT_EQ(ad.devices.devices[0].health, "lost");
  EXPECT_EQ(ad.devices.devices[1].health, "mig");
  EXPECT_EQ(ad.totals, (Totals{2 * usable, 200}));
}

TEST(Advertisement, a_node_that_cannot_serve_advertises_only_what_its_pods_hold) {
  const std::pair<std::function<void(AdvertisementInput&)>, const char*> rows[] = {
      {[](auto& in) { in.desired = tl::unexpected(std::string("labels: x and y differ")); },
       "x and y differ"},
      {[](auto& in) { in.has_other_plugin = true; }, "nvidia.com/gpu is also allocatable"},
      {[](auto& in) { in.agent->node.bookkeeper = Bookkeeper::agent; }, "--bookkeeper kubernetes"}};
  for (const auto& [spoil, message] : rows) {
    AdvertisementInput in = input();
    in.pods["u"] = pod_with(fmt::format(R"(["{}",1073741824,2550])", uuids[0]));
    in.pods["v"] = pod_with(fmt::format(R"(["{}",1073741824,2550])", uuids[0]), "n2");
    spoil(in);
    const Advertisement ad = advertise(in);
    EXPECT_FALSE(ready(ad).is_true);
    EXPECT_THAT(ready(ad).message, HasSubstr(message));
    EXPECT_EQ(ad.label, std::nullopt);
    EXPECT_EQ(ad.totals, (Totals{1ull << 30, 26})) << message;
  }
}

TEST(Advertisement, reports_a_runtime_without_cdi) {
  AdvertisementInput in = input();
  in.runtime = {.has_cdi = false, .message = "containerd 1.6.20 has no CDI"};
  const Advertisement ad = advertise(in);
  EXPECT_TRUE(ready(ad).is_true);
  EXPECT_EQ(ready(ad).reason, "NoCdi");
  EXPECT_EQ(ready(ad).message,
            "degraded: no CDI, so containers have all device nodes: containerd 1.6.20 has no CDI");
  EXPECT_EQ(ad.label, "extender");
}

TEST(Advertisement, without_the_agent_only_the_condition_changes) {
  AdvertisementInput in = input();
  in.agent.reset();
  in.agent_problem = "no agent at /run/carve/carved.sock";
  const Advertisement ad = advertise(in);
  EXPECT_FALSE(ad.is_known);
  EXPECT_EQ(ready(ad).message, "no agent at /run/carve/carved.sock");
  SeenNode seen;
  seen.meta.labels[node_label] = "extender";
  EXPECT_EQ(metadata_patch(seen, ad), std::nullopt);
  EXPECT_THAT(*status_patch(seen, ad, "t"), Not(HasSubstr("capacity")));
}

TEST(Advertisement, totals_never_fall_below_what_pods_hold) {
  AdvertisementInput in = input();
  in.pods["u"] =
      pod_with(fmt::format(R"(["{}",{},10000],["{}",{},10000])", uuids[0], 2 * usable, uuids[1], usable));
  in.agent->devices.resize(1);
  EXPECT_EQ(advertise(in).totals, (Totals{3 * usable, 200}));
}

TEST(Advertisement, a_mode_change_waits_for_the_pods) {
  AdvertisementInput in = input();
  in.agent->node.labels["carve.dev/mode"] = "none";
  in.desired->mode = NodeMode::memory;
  in.agent->slices = {slice_of("a", "web-1"), slice_of("b", "web-0"), slice_of("c", "web-0")};
  Advertisement ad = advertise(in);
  EXPECT_EQ(ad.devices.mode.effective, NodeMode::none);
  EXPECT_THAT(ad.devices.mode.blocked_by, ElementsAre("a/web-0", "a/web-1"));
  EXPECT_EQ(ad.conditions.at(1).message, "mode none -> memory (blocked by a/web-0, a/web-1)");
  EXPECT_FALSE(agent_change(*in.agent, {.mode = NodeMode::memory}));
  in.agent->slices.clear();
  ad = advertise(in);
  EXPECT_EQ(ad.devices.mode.effective, NodeMode::memory);
  EXPECT_FALSE(ad.conditions.at(1).is_true);
  EXPECT_EQ(agent_change(*in.agent, {.mode = NodeMode::memory})->labels.at("carve.dev/mode"), "memory");
}

TEST(Advertisement, a_changed_policy_is_sent_to_the_agent_and_lists_the_blocking_pods) {
  AdvertisementInput in = input();
  in.desired->policy = Policy::native_burst_share;
  EXPECT_EQ(agent_change(*in.agent, *in.desired)->policy, Policy::native_burst_share);
  in.agent->slices = {slice_of("a", "web-1")};
  in.agent->node.policy = {
      .desired = Policy::native_burst_share, .effective = Policy::fixed_share, .blocked_by = {"a"}};
  in.agent->node.labels["carve.dev/mode"] = "memory-and-compute";
  EXPECT_EQ(agent_change(*in.agent, *in.desired), std::nullopt);
  const Advertisement ad = advertise(in);
  EXPECT_EQ(ad.conditions.at(1).message,
            "compute-policy fixed-share -> native-burst-share (blocked by a/web-1)");
}

TEST(LabelSettings, accept_carves_labels_and_their_synonyms) {
  using Labels = std::map<std::string, std::string>;
  const std::pair<Labels, LabelSettings> good[] = {
      {{}, {}},
      {{{"kubernetes.io/hostname", "n1"}}, {}},
      {{{"carve.dev/bookkeeper", "dra"}}, {.way = Way::dra}},
      {{{"ack.node.gpu.schedule", "share"}}, {.mode = NodeMode::none}},
      {{{"vke.node.gpu.schedule", "mgpu"}, {"carve.dev/mode", "memory-and-compute"}},
       {.mode = NodeMode::memory_and_compute}},
      {{{"vke.volcengine.com/mgpu-compute-policy", "native-burst-share"},
        {"ack.node.gpu.placement", "spread"}},
       {.policy = Policy::native_burst_share, .placement = Strategy::spread}}};
  for (const auto& [labels, desired] : good) {
    const auto read = read_label_settings(labels);
    ASSERT_TRUE(read) << read.error();
    EXPECT_EQ(*read, desired);
  }
  const std::pair<Labels, const char*> bad[] = {
      {{{"ack.node.gpu.schedule", "share"}, {"carve.dev/mode", "memory"}}, "have different values"},
      {{{"ack.node.gpu.schedule", "topology"}}, "share, cgpu, core_mem, default"},
      {{{"carve.dev/bookkeeper", "both"}}, "use extender or dra"}};
  for (const auto& [labels, message] : bad)
    EXPECT_THAT(read_label_settings(labels).error(), HasSubstr(message));
}

TEST(NodeObject, is_patched_only_where_it_differs) {
  const Advertisement ad = advertise(input());
  const auto fresh =
      read_node_object(R"({"metadata":{"name":"n1","uid":"u"},"status":{"capacity":{"cpu":"2"}}})");
  ASSERT_TRUE(fresh) << fresh.error();
  const auto metadata = api::parse(*metadata_patch(*fresh, ad));
  EXPECT_EQ((*metadata)["metadata"]["labels"]["carve.dev/node"], "extender");
  const auto status = api::parse(*status_patch(*fresh, ad, "2026-11-24T00:00:00Z"));
  EXPECT_EQ((*status)["status"]["capacity"]["carve.dev/memory"], std::to_string(2 * usable));
  EXPECT_EQ((*status)["status"]["allocatable"]["carve.dev/compute"], "200");
  EXPECT_EQ((*status)["status"]["conditions"].size(), 2u);

  SeenNode same = *fresh;
  same.meta.annotations[kubernetes::devices_annotation] = api::write(ad.devices);
  same.meta.labels[node_label] = "extender";
  same.capacity = same.allocatable = {{memory_resource, "45462Mi"}, {compute_resource, "200"}};
  same.conditions = ad.conditions;
  EXPECT_EQ(metadata_patch(same, ad), std::nullopt);
  EXPECT_EQ(status_patch(same, ad, "t"), std::nullopt);
  same.allocatable[memory_resource] = "0";  // kubelet has lost its checkpoint.
  EXPECT_THAT(*status_patch(same, ad, "t"),
              testing::AllOf(HasSubstr("allocatable"), Not(HasSubstr("capacity"))));

  AdvertisementInput differs = input();
  differs.desired = tl::unexpected(std::string("x"));
  const auto removed = api::parse(*metadata_patch(same, advertise(differs)));
  EXPECT_TRUE((*removed)["metadata"]["labels"]["carve.dev/node"].is_null());
}

TEST(NodeObject, has_the_port_of_the_records_even_if_the_agent_is_unknown) {
  Advertisement ad;
  ad.reader = kubernetes::NodeReader{.address = "10.0.0.7:9472", .key = "sha256//k"};
  SeenNode seen;
  const auto added = api::parse(*metadata_patch(seen, ad));
  const std::string text = (*added)["metadata"]["annotations"][kubernetes::reader_annotation];
  EXPECT_EQ(kubernetes::read_reader(text).value(), *ad.reader);
  seen.meta.annotations[kubernetes::reader_annotation] = text;
  EXPECT_EQ(metadata_patch(seen, ad), std::nullopt);
  ad.reader->key = "sha256//other";
  EXPECT_TRUE(metadata_patch(seen, ad)) << "a new certificate";
  ad.reader.reset();
  const auto removed = api::parse(*metadata_patch(seen, ad));
  EXPECT_TRUE((*removed)["metadata"]["annotations"][kubernetes::reader_annotation].is_null());
}

TEST(NodeObject, reads_the_first_internal_address) {
  const auto node = read_node_object(
      R"({"metadata":{"name":"n1","uid":"u"},"status":{"addresses":[{"type":"Hostname","address":"n1"},)"
      R"({"address":"10.0.0.7","type":"InternalIP"},{"type":"InternalIP","address":"10.0.0.8"}]}})");
  ASSERT_TRUE(node) << node.error();
  EXPECT_EQ(node->internal_ip, "10.0.0.7");
}

TEST(NodeObject, reads_only_carves_conditions) {
  const auto node = read_node_object(
      R"({"metadata":{"name":"n1","uid":"u"},"status":{"allocatable":{"nvidia.com/gpu":"8"},"conditions":)"
      R"([{"type":"Ready","status":"True"},{"type":"CarveReady","status":"True","reason":"Ready","message":"m"}]}})");
  ASSERT_TRUE(node) << node.error();
  EXPECT_THAT(node->conditions, ElementsAre(Condition{"CarveReady", true, "Ready", "m"}));
  EXPECT_TRUE(node->has_other_plugin());
  for (const char* bad : {"", "[]", R"({"status":{}})"}) EXPECT_FALSE(read_node_object(bad));
}

}  // namespace
}  // namespace carve::kubernetes::node

#include "node/metrics/metrics.h"

#include <gmock/gmock.h>

#include <set>

namespace carve::node {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* pod_labels = R"(namespace="ns",pod="web-0",container="main")";

api::Slice slice_on(const api::Device& device, const std::string& name) {
  api::Slice slice;
  slice.name = name;
  slice.account = "team-a";
  api::SlicePart part;
  part.index = device.index;
  part.uuid = device.uuid;
  part.quota_bytes = 4ull << 30;
  part.charged_bytes = 1ull << 30;
  part.used_bytes = 900ull << 20;
  part.utilization_percent = 20;
  slice.parts.push_back(part);
  return slice;
}

NodeFigures one_device() {
  NodeFigures node{.version = "1", .host_name = "n1"};
  api::Device device;
  device.index = 0;
  device.uuid = "GPU-1";
  device.name = "NVIDIA A10";
  device.pci_id = "00000000:3B:00.0";
  device.native_bytes = 24ull << 30;
  device.used_bytes = 3ull << 30;
  device.utilization_percent = 70;
  device.last_xid = 31;
  device.readings = {.temperature_celsius = 41,
                     .power_milliwatts = 87'500,
                     .sm_clock_mhz = 1695,
                     .memory_clock_mhz = 6251,
                     .memory_busy_percent = 12,
                     .memory_reserved_bytes = 512ull << 20,
                     .energy_millijoules = 123'456};
  node.devices.push_back(device);
  return node;
}

std::string text_of(const NodeFigures& node) { return metrics_text(node, api::MetricsFormat::prometheus); }

TEST(AgentMetrics, name_devices_as_dcgm_does) {
  const std::string text = text_of(one_device());
  const std::string labels = R"({gpu="0",UUID="GPU-1",device="nvidia0",modelName="NVIDIA A10",Hostname="n1",)"
                             R"(pci_bus_id="00000000:3B:00.0"} )";
  for (const auto& [name, value] :
       std::initializer_list<std::pair<const char*, const char*>>{{"GPU_UTIL", "70"},
                                                                  {"MEM_COPY_UTIL", "12"},
                                                                  {"FB_USED", "3072"},
                                                                  {"FB_FREE", "20992"},
                                                                  {"FB_RESERVED", "512"},
                                                                  {"GPU_TEMP", "41"},
                                                                  {"POWER_USAGE", "87.500"},
                                                                  {"TOTAL_ENERGY_CONSUMPTION", "123456"},
                                                                  {"SM_CLOCK", "1695"},
                                                                  {"MEM_CLOCK", "6251"},
                                                                  {"XID_ERRORS", "31"}})
    EXPECT_THAT(text, HasSubstr(fmt::format("\nDCGM_FI_DEV_{}{}{}\n", name, labels, value)));
}

TEST(AgentMetrics, omit_dcgms_names_on_request_and_readings_that_the_driver_lacks) {
  NodeFigures node = one_device();
  node.devices[0].readings = {};
  EXPECT_THAT(text_of(node), HasSubstr("DCGM_FI_DEV_FB_USED"));
  for (const char* name : {"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_FB_RESERVED",
                           "carve_device_energy_joules_total", "carve_device_temperature_celsius"})
    EXPECT_THAT(text_of(node), Not(HasSubstr(name)));
  node.dcgm_names = false;
  EXPECT_THAT(text_of(node), Not(HasSubstr("DCGM")));
}

TEST(AgentMetrics, give_each_pod_of_a_shared_device_its_own_series) {
  NodeFigures node = one_device();
  node.slices.push_back(slice_on(node.devices[0], "a"));
  node.slices.push_back(slice_on(node.devices[0], "not-a-pods"));
  node.slices[0].holder.emplace().pod = PodContainer{"ns", "web-0", "0b6c", "main"};
  const std::string text = text_of(node);
  EXPECT_THAT(text, HasSubstr(fmt::format("{}}} 900\n", pod_labels)));
  EXPECT_THAT(text, HasSubstr("pci_bus_id=\"00000000:3B:00.0\"} 3072\n")) << "the device";
  size_t memory = 0, power = 0;
  for (size_t at = text.find("\nDCGM_FI_DEV_FB_USED{"); at != std::string::npos;
       at = text.find("\nDCGM_FI_DEV_FB_USED{", at + 1))
    ++memory;
  for (size_t at = text.find("\nDCGM_FI_DEV_POWER_USAGE{"); at != std::string::npos;
       at = text.find("\nDCGM_FI_DEV_POWER_USAGE{", at + 1))
    ++power;
  EXPECT_EQ(memory, 2u);
  EXPECT_EQ(power, 1u) << "the power of a shared device cannot be divided";
}

TEST(AgentMetrics, give_an_exclusive_device_the_labels_of_its_pod) {
  NodeFigures node = one_device();
  node.slices.push_back(slice_on(node.devices[0], "a"));
  node.slices[0].exclusive = true;
  node.slices[0].holder.emplace().pod = PodContainer{"ns", "web-0", "0b6c", "main"};
  const std::string text = text_of(node);
  EXPECT_THAT(text, HasSubstr(fmt::format("{}}} 87.500\n", pod_labels)));
  EXPECT_THAT(text, Not(HasSubstr("pci_bus_id=\"00000000:3B:00.0\"} ")));
}

TEST(AgentMetrics, show_the_state_of_the_node_and_its_settings) {
  NodeFigures node = one_device();
  node.phase = NodePhase::stopped;
  node.pending = {{"memory_unit", false}, {"policy", true}};
  const std::string text = text_of(node);
  for (const char* line :
       {"carve_node_state{state=\"Starting\"} 0\n", "carve_node_state{state=\"Running\"} 0\n",
        "carve_node_state{state=\"Stopped\"} 1\n", "carve_setting_pending{setting=\"memory_unit\"} 0\n",
        "carve_setting_pending{setting=\"policy\"} 1\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST(AgentMetrics, show_idle_time_energy_slowdown_and_violations_of_slices) {
  NodeFigures node = one_device();
  node.slices.push_back(slice_on(node.devices[0], "a"));
  api::Slice& slice = node.slices[0];
  slice.idle_seconds = 77;
  slice.violations = {{ViolationKind::bypass, 3, "process 7 bypasses its launch gate"}};
  slice.xids = {{31, 2}};
  slice.parts[0].energy_millijoules = 1'234;
  slice.parts[0].compute.emplace().slowdown_60s_bp = 25'000;
  const std::string text = text_of(node);
  for (const char* line :
       {"carve_slice_idle_seconds{slice=\"a\",account=\"team-a\"} 77\n",
        "carve_slice_violations_total{slice=\"a\",account=\"team-a\",kind=\"bypass\"} 3\n",
        "carve_slice_xid_total{slice=\"a\",account=\"team-a\",xid=\"31\"} 2\n",
        "carve_slice_energy_joules_total{slice=\"a\",device=\"0\",uuid=\"GPU-1\",account=\"team-a\"} 1.234\n",
        "carve_slice_slowdown_ratio{slice=\"a\",device=\"0\",uuid=\"GPU-1\",account=\"team-a\"} 2.5000\n"})
    EXPECT_THAT(text, HasSubstr(line));
  slice.parts[0].compute->slowdown_60s_bp = 0;
  EXPECT_THAT(text_of(node), Not(HasSubstr("carve_slice_slowdown_ratio")));
}

// The table must not promise series that the agent doesn't write.
TEST(AgentMetrics, contain_every_family_of_the_agent) {
  NodeFigures node = one_device();
  node.pending = {{"policy", true}};
  node.devices[0].xids = {{31, 1}};
  node.devices[0].arbitration.emplace();
  node.slices.push_back(slice_on(node.devices[0], "a"));
  api::Slice& slice = node.slices[0];
  slice.violations = {{ViolationKind::bypass, 3, ""}};
  slice.xids = {{31, 2}};
  slice.parts[0].energy_millijoules = 1;
  slice.parts[0].spill_bytes = slice.parts[0].share_bp = 1;
  slice.parts[0].compute.emplace().slowdown_60s_bp = 10'000;
  const std::string text = text_of(node);
  for (const api::MetricFamily& family : api::metric_families)
    if ((family.writers & api::agent_writes) != 0) {
      EXPECT_THAT(text, HasSubstr(fmt::format("# TYPE {} ", family.name)));
    }
}

}  // namespace
}  // namespace carve::node

#include "kubernetes/node/rules/report_events.h"

#include <gmock/gmock.h>

namespace carve::kubernetes::node {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const AboutObject this_node{.kind = "Node", .name_space = "", .name = "n1", .uid = "u"};

struct EventScenario {
  api::AgentReport report;
  ReportEvents events;

  EventScenario() {
    api::Device& device = report.devices.emplace_back();
    device.uuid = "GPU-1";
    device.name = "NVIDIA A10";
    api::Slice& slice = report.slices.emplace_back();
    slice.name = "s";
    slice.holder = Holder{.pod = PodContainer{"a", "web-0", "pod-uid", "main"}, .claim = {}};
  }
  std::vector<std::string> reported() {
    std::vector<std::string> out;
    for (const EventNote& note : events.of_report(report, this_node))
      out.push_back(fmt::format("{} {} {}{}: {}", note.severity == Severity::warning ? "!" : "-", note.reason,
                                note.about.kind == "Pod" ? note.about.name_space + "/" : "", note.about.name,
                                note.note));
    return out;
  }
  std::vector<std::string> reported(const Condition& condition) {
    std::vector<std::string> out;
    for (const EventNote& note : events.of_conditions({condition}, this_node))
      out.push_back(
          fmt::format("{} {}: {}", note.severity == Severity::warning ? "!" : "-", note.reason, note.note));
    return out;
  }
};

TEST(ReportEvents, a_node_without_incidents_has_no_events) {
  EventScenario s;
  EXPECT_THAT(s.reported(), IsEmpty());
  EXPECT_THAT(s.reported(), IsEmpty());
}

TEST(ReportEvents, report_a_lost_device_and_its_recovery) {
  EventScenario s;
  s.reported();
  s.report.devices[0].health = {.state = HealthState::lost, .reason = "lost from the bus"};
  EXPECT_THAT(s.reported(),
              ElementsAre("! CarveDeviceLost n1: device 0 (GPU-1, NVIDIA A10) serves no new slice: lost "
                          "from the bus"));
  EXPECT_THAT(s.reported(), IsEmpty());
  s.report.devices[0].health = {};
  EXPECT_THAT(s.reported(),
              ElementsAre("- CarveDeviceRecovered n1: device 0 (GPU-1, NVIDIA A10) serves slices again"));
}

TEST(ReportEvents, driver_errors_contain_the_device_and_the_pod) {
  EventScenario s;
  s.report.devices[0].xids = {{.code = 31, .count = 2}};
  s.report.slices[0].xids = {{.code = 31, .count = 2}};
  EXPECT_THAT(s.reported(),
              ElementsAre("! CarveXid n1: device 0 (GPU-1, NVIDIA A10): the driver reported Xid 31 (GPU "
                          "memory page fault), 2 times",
                          "! CarveXid a/web-0: container main: its processes caused Xid 31 (GPU memory "
                          "page fault), 2 times"))
      << "the contents of the first report are also reported";
  EXPECT_THAT(s.reported(), IsEmpty());
  s.report.devices[0].xids[0].count = 3;
  EXPECT_EQ(s.reported().size(), 1u);
  s.report.devices[0].xids[0].count = 1;  // The next agent counts from 0.
  EXPECT_EQ(s.reported().size(), 1u);
  s.report.devices[0].health = {.state = HealthState::xid, .reason = "the driver reported Xid 79"};
  EXPECT_THAT(s.reported(),
              ElementsAre("! CarveXid n1: device 0 (GPU-1, NVIDIA A10) serves no new slice: the driver "
                          "reported Xid 79"));
}

TEST(ReportEvents, report_a_pod_that_breaks_its_limits) {
  EventScenario s;
  s.reported();
  s.report.slices[0].violations = {
      {.kind = ViolationKind::over_quota, .count = 1, .text = "found with 1100 MiB on device 0"},
      {.kind = ViolationKind::bypass, .count = 2, .text = "process 50 (train) found unattached"},
      {.kind = ViolationKind::foreign_process, .count = 1, .text = "process 51 refused: it is in pod x"}};
  EXPECT_THAT(
      s.reported(),
      ElementsAre("! CarveOverQuota a/web-0: container main: found with 1100 MiB on device 0",
                  "! CarveBypass a/web-0: container main: process 50 (train) found unattached, 2 times",
                  "! CarveRefused a/web-0: container main: process 51 refused: it is in pod x"));
  EXPECT_THAT(s.reported(), IsEmpty());
  s.report.slices[0].holder.reset();
  s.report.slices[0].violations[0].count = 2;
  EXPECT_THAT(s.reported(), IsEmpty()) << "the slice belongs to no pod";
}

TEST(ReportEvents, report_conditions_when_they_begin_or_change) {
  EventScenario s;
  Condition ready{.type = ready_condition, .is_true = true, .reason = "Ready", .message = "2 devices"};
  EXPECT_THAT(s.reported(ready), IsEmpty());
  ready = {
      .type = ready_condition, .is_true = false, .reason = "CarveOtherPlugin", .message = "nvidia.com/gpu"};
  EXPECT_THAT(s.reported(ready), ElementsAre("! CarveOtherPlugin: nvidia.com/gpu"));
  EXPECT_THAT(s.reported(ready), IsEmpty());
  ready = {.type = ready_condition, .is_true = false, .reason = "NoAgent", .message = "no agent at /s"};
  EXPECT_THAT(s.reported(ready), ElementsAre("! CarveNoAgent: no agent at /s"));
  ready = {.type = ready_condition, .is_true = true, .reason = no_cdi_reason, .message = "degraded: no CDI"};
  EXPECT_THAT(s.reported(ready), ElementsAre("! CarveNoCdi: degraded: no CDI"));
  Condition pending{
      .type = pending_condition, .is_true = true, .reason = "Blocked", .message = "mode none -> memory"};
  EXPECT_THAT(s.reported(pending), ElementsAre("- CarveSettingPending: mode none -> memory"));
  pending = {.type = pending_condition, .is_true = false, .reason = "InEffect", .message = "all"};
  EXPECT_THAT(s.reported(pending), IsEmpty());
}

}  // namespace
}  // namespace carve::kubernetes::node

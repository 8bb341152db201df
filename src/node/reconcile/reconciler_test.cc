#include "node/reconcile/reconciler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>

namespace carve::node {
namespace {

using testing::HasSubstr;

constexpr uint64_t mib_bytes = 1 << 20;
constexpr uint64_t s = 1'000'000'000;

// Slice 7 has 1 GiB of device 0. Its only process is attached and holds what it charged.
struct Scene {
  Observed seen;
  ReconcileRules rules;

  Scene() {
    seen.devices = {{.index = 0, .before = {}, .now = {}, .processes_hidden = false, .xids = {}}};
    PartObserved part;
    part.device = 0;
    part.quota = {1024 * mib_bytes};
    part.reading = Reading{100 * mib_bytes, 1, 100 * mib_bytes, 1, 0};
    seen.slices = {{.id = 7, .parts = {part}}};
    ProcessObserved process;
    process.pid = 50;
    process.start = 1;
    process.slice = 7;
    process.attached = true;
    process.used = {100 * mib_bytes};
    process.command = "train";
    seen.processes = {process};
  }
  PartObserved& part() { return seen.slices[0].parts[0]; }
  ProcessObserved& process() { return seen.processes[0]; }
  // Adds the process to a second device.
  ProcessObserved& process_outside() {
    seen.devices.push_back({.index = 1, .before = {}, .now = {}, .processes_hidden = false, .xids = {}});
    ProcessObserved process = seen.processes[0];
    process.device = 1;
    process.used = {300 * mib_bytes};
    return seen.processes.emplace_back(process);
  }
};

std::string spoken(const Action& action) {
  struct Words {
    std::string operator()(const AddEvent& a) const {
      return fmt::format("event {}: {}{}{}", a.slice, a.is_caused_by_program ? "[by a program] " : "",
                         a.violation ? fmt::format("[{}] ", text(*a.violation)) : "", a.text);
    }
    std::string operator()(const ChargeGrowth& a) const {
      return fmt::format("charge {}/{}: {} to {}", a.slice, a.part, a.from, a.to);
    }
    std::string operator()(const FreezeSlice& a) const { return fmt::format("freeze {}", a.slice); }
    std::string operator()(const KillProcess& a) const { return fmt::format("kill in {}", a.slice); }
    std::string operator()(const StopSlice& a) const { return fmt::format("stop {}: {}", a.slice, a.why); }
  };
  return std::visit(Words{}, action);
}

std::vector<std::string> spoken(const Reconciled& done) {
  std::vector<std::string> out;
  for (const Action& a : done.actions) out.push_back(spoken(a));
  return out;
}

struct Row {
  const char* name;
  std::function<void(Scene&)> change;
  std::vector<const char*> actions;  // Each is a part of an action's text, in order.
};

// One row for each action and cause. `again` makes the changes before the second sample.
const Row rows[] = {
    {"nothing differs", [](Scene&) {}, {}},
    {"growth is charged",
     [](Scene& x) { x.process().used = {130 * mib_bytes}; },
     {"charge 7/0: 0 to 31457280"}},
    {"growth that ended is released",
     [](Scene& x) {
       x.part().charged_growth = 30 * mib_bytes,
       x.part().reading = Reading{130 * mib_bytes, 1, 130 * mib_bytes, 1, 0};
     },
     {"charge 7/0: 31457280 to 0"}},
    {"contexts that the reserve covers are not growth",
     [](Scene& x) { x.process().used = {300 * mib_bytes}, x.part().context = {200 * mib_bytes}; },
     {}},
    {"without a report page nothing is charged",
     [](Scene& x) { x.process().used = {300 * mib_bytes}, x.part().reading.reset(); },
     {}},
    {"a device that hides its processes charges nothing",
     [](Scene& x) { x.process().used = {300 * mib_bytes}, x.seen.devices[0].processes_hidden = true; },
     {}},
    {"beyond the quota, refused",
     [](Scene& x) { x.process().used = {1100 * mib_bytes}; },
     {"charge 7/0",
      "event 7: [over-quota] found with 1100 MiB on device 0, beyond its quota of 1 GiB: further"}},
    {"beyond the quota, only reported",
     [](Scene& x) { x.process().used = {1100 * mib_bytes}, x.rules.over_quota = OverQuotaAction::report; },
     {"beyond its quota of 1 GiB: only reported"}},
    {"beyond the quota, stopped",
     [](Scene& x) { x.process().used = {1100 * mib_bytes}, x.rules.over_quota = OverQuotaAction::kill; },
     {"charge 7/0", "the slice is stopped", "stop 7: it held more than its quota (--over-quota kill)"}},
    {"a refused request, stopped",
     [](Scene& x) { x.seen.slices[0].refused = true, x.rules.over_quota = OverQuotaAction::kill; },
     {"stop 7: it requested more than its quota (--over-quota kill)"}},
    {"a refused request is left to the program by default",
     [](Scene& x) { x.seen.slices[0].refused = true; },
     {}},
    {"a slice that is stopping is not stopped again",
     [](Scene& x) {
       x.process().used = {1100 * mib_bytes}, x.rules.over_quota = OverQuotaAction::kill;
       x.seen.slices[0].stopping = true;
     },
     {"charge 7/0", "the slice is stopped"}},
    {"without isolation there is no quota",
     [](Scene& x) { x.process().used = {1100 * mib_bytes}, x.seen.slices[0].limited = false; },
     {"charge 7/0"}},
    {"unattached, reported",
     [](Scene& x) { x.process().attached = false; },
     {"event 7: [bypass] process 50 (train) found unattached with 100 MiB on device 0: it is "
      "statically linked"}},
    {"unattached, frozen",
     [](Scene& x) { x.process().attached = false, x.rules.audit = AuditAction::freeze; },
     {"found unattached", "freeze 7"}},
    {"unattached, killed",
     [](Scene& x) { x.process().attached = false, x.rules.audit = AuditAction::kill; },
     {"found unattached", "kill in 7"}},
    {"on a device that is not in the slice, reported",
     [](Scene& x) { x.process_outside(); },
     {"event 7: [bypass] process 50 (train) found with 300 MiB on device 1, which is not in the slice"}},
    {"on a device that is not in the slice, frozen",
     [](Scene& x) { x.process_outside(), x.rules.audit = AuditAction::freeze; },
     {"which is not in the slice", "freeze 7"}},
    {"on a device that is not in the slice, killed",
     [](Scene& x) { x.process_outside(), x.rules.audit = AuditAction::kill; },
     {"which is not in the slice", "kill in 7"}},
    {"on a device that is not in the slice, without isolation",
     [](Scene& x) {
       x.process_outside(), x.seen.slices[0].limited = false;
       x.rules.audit = AuditAction::kill;
     },
     {"event 7: process 50 (train) found with 300 MiB on device 1, which is not in the slice; the slice has "
      "no "
      "isolation"}},
    {"an unattached process on a device that is not in the slice is one finding",
     [](Scene& x) { x.process_outside().attached = false; },
     {"event 7: [bypass] process 50 (train) found unattached with 300 MiB on device 1"}},
    {"an ended process on a device that is not in the slice is ignored",
     [](Scene& x) { x.process_outside().start = 0; },
     {}},
    {"an MPS server is only reported",
     [](Scene& x) {
       x.process().attached = false, x.process().evidence.is_mps_server = true;
       x.rules.audit = AuditAction::kill;
     },
     {"event 7: process 50 (train) found unattached"}},
    {"an ended process is ignored",
     [](Scene& x) { x.process().attached = false, x.process().start = 0; },
     {}},
    {"an Xid",
     [](Scene& x) { x.seen.devices[0].xids = {31}; },
     {"event 0: [by a program] device 0: the driver reported Xid 31 (GPU memory page fault)"}},
    {"an Xid of the device",
     [](Scene& x) { x.seen.devices[0].xids = {48}; },
     {"event 0: device 0: the driver reported Xid 48 (double-bit ECC error)"}},
    {"a lost device",
     [](Scene& x) {
       x.seen.devices[0].now = {HealthState::lost, "lost from the bus"};
     },
     {"event 0: device 0: lost from the bus"}},
    {"a device that is back",
     [](Scene& x) {
       x.seen.devices[0].before = {HealthState::lost, "lost from the bus"};
     },
     {"event 0: device 0: recovered"}},
    {"a broken assumption",
     [](Scene& x) { x.seen.slices[0].ensure_failures = 3; },
     {"event 7: degraded: 3 assumptions of the guest library did not hold"}},
};

TEST(Reconciler, takes_an_action_for_each_difference) {
  for (const Row& row : rows) {
    Scene scene;
    row.change(scene);
    Reconciler reconciler;
    const auto actions = spoken(reconciler.reconcile(scene.seen, scene.rules));
    ASSERT_EQ(actions.size(), row.actions.size()) << row.name << ": " << testing::PrintToString(actions);
    for (size_t i = 0; i < actions.size(); ++i)
      EXPECT_THAT(actions[i], HasSubstr(row.actions[i])) << row.name;
  }
}

TEST(Reconciler, reports_a_finding_once_until_it_ends) {
  for (const Row& row : rows) {
    Scene scene;
    row.change(scene);
    Reconciler reconciler;
    reconciler.reconcile(scene.seen, scene.rules);
    for (DeviceObserved& d : scene.seen.devices) d.before = d.now, d.xids.clear();
    for (const std::string& action : spoken(reconciler.reconcile(scene.seen, scene.rules)))
      EXPECT_FALSE(action.starts_with("event") || action.starts_with("freeze")) << row.name << ": " << action;
  }
  Scene scene;
  scene.process().attached = false;
  Reconciler reconciler;
  reconciler.reconcile(scene.seen, scene.rules);
  EXPECT_TRUE(reconciler.is_known(7, 50, 1));
  const ProcessObserved process = scene.process();
  scene.seen.processes.clear();
  reconciler.reconcile(scene.seen, scene.rules);
  EXPECT_FALSE(reconciler.is_known(7, 50, 1)) << "the driver no longer reports the process";
  scene.seen.processes = {process};
  EXPECT_EQ(reconciler.reconcile(scene.seen, scene.rules).actions.size(), 1u);
}

// Returns the work as a driver shows it that counts each process.
WorkShown counted(unsigned percent) { return {percent, percent > 0, percent, percent, percent, 0}; }

// A scene in which the kernels ran 90 % of the time and the arbiter charged 10 %.
Scene beyond_leases(uint64_t samples) {
  Scene scene;
  scene.process().work = counted(90);
  scene.part().time = ChargedTime{.busy_ns = samples * s / 10, .as_of_ns = samples * s};
  return scene;
}

TEST(Reconciler, finds_work_beyond_the_leases_with_two_samples) {
  for (const auto& [audit, action] : {std::pair{AuditAction::report, ""},
                                      {AuditAction::freeze, "freeze 7"},
                                      {AuditAction::kill, "stop 7: it ran"}}) {
    Reconciler reconciler;
    ReconcileRules rules{.audit = audit};
    EXPECT_THAT(reconciler.reconcile(beyond_leases(1).seen, rules).actions, testing::IsEmpty());
    EXPECT_THAT(reconciler.reconcile(beyond_leases(2).seen, rules).actions, testing::IsEmpty());
    const auto found = spoken(reconciler.reconcile(beyond_leases(3).seen, rules));
    ASSERT_EQ(found.size(), audit == AuditAction::report ? 1u : 2u);
    EXPECT_THAT(
        found[0],
        HasSubstr("its kernels used at least 90 % of device 0, but by the arbiter's only 10 %; process 50"));
    EXPECT_THAT(found.back(), HasSubstr(action));
    EXPECT_THAT(reconciler.reconcile(beyond_leases(4).seen, rules).actions, testing::IsEmpty())
        << "reported once";
  }
}

// Each of the driver's periods has one process, so a decision needs several seconds of periods.
TEST(Reconciler, compares_work_that_is_proven_over_a_window_with_the_charge_of_the_window) {
  const auto scene_at = [](uint64_t second, uint64_t charged_percent, WorkShown work) {
    Scene scene;
    scene.process().work = work;
    scene.part().time = ChargedTime{.busy_ns = second * s * charged_percent / 100, .as_of_ns = second * s};
    return scene;
  };
  const int64_t window = 10 * static_cast<int64_t>(s);
  Reconciler honest, beyond;
  unsigned found = 0;
  for (uint64_t second = 1; second < 30; ++second) {
    // By chance the process is in each of the last samples; it is proven to have worked a quarter of the
    // time.
    const WorkShown named{98, true, 50, 24, 100, window};
    EXPECT_THAT(honest.reconcile(scene_at(second, 20, named).seen, {}).actions, testing::IsEmpty()) << second;
    const WorkShown proven{98, true, 90, 80, 100, window};
    const auto done = beyond.reconcile(scene_at(second, 20, proven).seen, {});
    EXPECT_TRUE(second > 5 || done.actions.empty()) << "the charge is unknown for half of the window";
    found += static_cast<unsigned>(done.actions.size());
  }
  EXPECT_EQ(found, 1u);
}

// Slice 8 reports work that never runs. Next to it, the kernels of slice 7 run 80 % of the time.
struct FalseReports {
  Reconciler reconciler;
  uint64_t samples = 0, charged = 0, overlapped = 0, unsupported = 0;

  // Takes one sample: what was charged to slice 7 and what slice 8 claimed of it, in percent.
  std::vector<std::string> sample(unsigned to_7, unsigned to_8, unsigned not_charged, AuditAction audit) {
    Scene scene;
    ++samples;
    charged += to_7 * s / 100, overlapped += to_8 * s / 100, unsupported += not_charged * s / 100;
    scene.process().work = counted(80);
    scene.part().time = ChargedTime{.busy_ns = charged, .as_of_ns = samples * s};
    scene.seen.slices.push_back(scene.seen.slices[0]);
    scene.seen.slices[1].id = 8;
    scene.seen.slices[1].parts[0].time = ChargedTime{.busy_ns = overlapped,
                                                     .as_of_ns = samples * s,
                                                     .overlapped_ns = overlapped,
                                                     .unsupported_ns = unsupported};
    ProcessObserved forger = scene.process();
    forger.pid = 51, forger.slice = 8, forger.work = counted(0);
    scene.seen.processes.push_back(forger);
    return spoken(reconciler.reconcile(scene.seen, {.audit = audit}));
  }
};

TEST(Reconciler, does_not_use_a_neighbours_claims_against_a_slice) {
  FalseReports scene;
  for (int i = 0; i < 5; ++i)
    EXPECT_THAT(scene.sample(45, 40, 0, AuditAction::kill), testing::IsEmpty()) << "sample " << i;
}

TEST(Reconciler, reports_a_slice_that_claims_work_that_the_driver_does_not_show) {
  FalseReports scene;
  for (int i = 0; i < 8; ++i)
    EXPECT_THAT(scene.sample(80, 0, 40, AuditAction::kill), testing::IsEmpty()) << "sample " << i;
  const auto found = scene.sample(80, 0, 40, AuditAction::kill);
  ASSERT_EQ(found.size(), 1u) << "reported, not killed";
  EXPECT_THAT(found[0], HasSubstr("event 8: [false-report] found with a false report"));
  EXPECT_THAT(scene.sample(80, 0, 40, AuditAction::kill), testing::IsEmpty()) << "reported once";
}

TEST(Reconciler, finds_a_bypass_even_if_a_neighbours_claim_is_not_charged) {
  FalseReports scene;
  scene.sample(10, 0, 40, AuditAction::kill);
  scene.sample(10, 0, 40, AuditAction::kill);
  EXPECT_THAT(scene.sample(10, 0, 40, AuditAction::kill),
              testing::ElementsAre(HasSubstr("event 7: [bypass]"), HasSubstr("stop 7")));
}

TEST(Reconciler, does_not_report_a_frozen_slice_again) {
  Reconciler reconciler;
  for (uint64_t n = 1; n < 6; ++n) {
    Scene scene = beyond_leases(n);
    scene.seen.slices[0].frozen = true;
    EXPECT_THAT(reconciler.reconcile(scene.seen, {.audit = AuditAction::kill}).actions, testing::IsEmpty());
  }
}

TEST(Reconciler, adds_up_charged_time_across_arbiters) {
  Reconciler reconciler;
  EXPECT_EQ(reconciler.reconcile(beyond_leases(10).seen, {}).slices.at(7).busy_ns, s);
  EXPECT_EQ(reconciler.reconcile(beyond_leases(12).seen, {}).slices.at(7).busy_ns, s / 5);
  EXPECT_EQ(reconciler.reconcile(beyond_leases(3).seen, {}).slices.at(7).busy_ns, 3 * s / 10)
      << "a new arbiter counts from 0";
}

TEST(Reconciler, sums_the_drivers_figures_by_part_and_process) {
  Scene scene;
  scene.seen.devices.push_back({.index = 1, .before = {}, .now = {}, .processes_hidden = false, .xids = {}});
  scene.seen.slices[0].parts.push_back(scene.part());
  scene.seen.slices[0].parts[1].device = 1;
  ProcessObserved second = scene.process();
  second.device = 1;
  second.used = {50 * mib_bytes};
  scene.seen.processes.push_back(second);
  const SliceUse use = Reconciler().reconcile(scene.seen, {}).slices.at(7);
  EXPECT_EQ(use.parts[0].used.count, 100 * mib_bytes);
  EXPECT_EQ(use.parts[1].used.count, 50 * mib_bytes);
  EXPECT_EQ(use.by_pid.at(50).count, 150 * mib_bytes);
}

TEST(Reconciler, names_an_unmanaged_process_on_a_device_with_slices) {
  Scene scene;
  scene.process().slice.reset();
  const auto unmanaged = Reconciler().reconcile(scene.seen, {.audit = AuditAction::kill}).unmanaged;
  ASSERT_EQ(unmanaged.size(), 1u);
  ASSERT_EQ(unmanaged[0].size(), 1u);
  EXPECT_EQ(unmanaged[0][0], "process 50 (train) uses 100 MiB of this shared device and is in no slice");
  scene.seen.slices.clear();
  EXPECT_THAT(Reconciler().reconcile(scene.seen, {}).unmanaged[0], testing::IsEmpty());
}

}  // namespace
}  // namespace carve::node

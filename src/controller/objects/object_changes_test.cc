#include "controller/objects/object_changes.h"

#include <gmock/gmock.h>

#include <functional>

#include "objects/job_object.h"
#include "objects/node_object.h"
#include "objects/pool_object.h"
#include "objects/service_object.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using enum objects::EventReason;

// Returns an object of this kind with this spec and status.
template <class Spec, class Status>
Object object_with(objects::Kind kind, const Spec& spec, const Status& status) {
  return {.key = {kind, "default", "a"}, .account = "root", .generation = 2, .spec = spec, .status = status};
}

ChangeEvent event(objects::EventReason reason, std::string message) { return {reason, std::move(message)}; }

struct ServiceState {
  objects::ServiceSpec spec = {.replicas = 2};
  objects::ServiceStatus status = {
      .phase = objects::WorkloadPhase::running, .desired_replicas = 2, .revision = 1};

  Object object() const { return object_with(objects::Kind::service, spec, status); }
};

// Returns the events for a change of a running service.
std::vector<ChangeEvent> after_change(ServiceState before, const std::function<void(ServiceState&)>& change) {
  ServiceState after = before;
  change(after);
  return events_between(before.object(), after.object());
}

objects::ReplicaStatus replica(std::string state, uint32_t restarts = 0, std::string last_exit = "") {
  return {.index = 0,
          .revision = 1,
          .slice = "a-1-0",
          .node = "n1",
          .state = Word<objects::ReplicaState>::from(std::move(state)),
          .restarts = restarts,
          .last_exit = std::move(last_exit)};
}

std::vector<ChangeEvent> replica_change(const objects::ReplicaStatus& before,
                                        const objects::ReplicaStatus& after) {
  ServiceState service;
  service.status.replica_list = {before};
  return after_change(service, [&](ServiceState& s) { s.status.replica_list = {after}; });
}

TEST(ObjectChanges, an_unchanged_object_has_no_event) {
  EXPECT_THAT(after_change({}, [](ServiceState&) {}), IsEmpty());
}

TEST(ObjectChanges, creating_and_deleting_a_workload_are_events) {
  EXPECT_THAT(events_of_added(ServiceState{.spec = {.replicas = 2}, .status = {}}.object()),
              ElementsAre(event(created, "2 replicas, account root")));
  EXPECT_THAT(events_of_deleted(ServiceState().object()),
              ElementsAre(event(deleted, "its replicas have ended")));
  Object ending = ServiceState().object();
  ending.is_ending = true;
  EXPECT_THAT(events_between(ServiceState().object(), ending),
              ElementsAre(event(deleting, "its replicas are stopped")));
}

TEST(ObjectChanges, changes_to_a_workload_by_a_user_are_events) {
  const struct {
    std::function<void(objects::ServiceSpec&)> change;
    ChangeEvent expected;
  } cases[] = {
      {[](auto& s) { s.replicas = 3; }, {scaled, "2 -> 3 replicas"}},
      {[](auto& s) { s.stopped = true; }, {stopped, "2 replicas"}},
      {[](auto& s) { s.restarted_at = "now"; }, {restart_requested, "every replica is replaced"}},
      {[](auto& s) { s.run.command = {"other"}; }, {changed, "generation 2"}},
  };
  for (const auto& c : cases)
    EXPECT_THAT(after_change({}, [&](ServiceState& s) { c.change(s.spec); }), ElementsAre(c.expected));
}

TEST(ObjectChanges, a_new_revision_and_the_end_of_its_rollout_are_events) {
  EXPECT_THAT(after_change({}, [](ServiceState& s) { s.status.revision = 2; }),
              ElementsAre(event(revised, "revision 2")));
  ServiceState rolling;
  rolling.status.phase = objects::WorkloadPhase::updating;
  rolling.status.updated_replicas = 1;
  EXPECT_THAT(after_change(rolling,
                           [](ServiceState& s) {
                             s.status.phase = objects::WorkloadPhase::running;
                             s.status.updated_replicas = 2;
                           }),
              ElementsAre(event(rollout_completed, "revision 1 runs with 2 of 2 replicas available")));
}

TEST(ObjectChanges, each_step_of_a_replica_from_creation_to_end_is_an_event) {
  const ChangeEvent is_created = {replica_created, "replica 0 of revision 1: slice a-1-0 on node n1"};
  EXPECT_THAT(after_change({}, [](ServiceState& s) { s.status.replica_list = {replica("Starting")}; }),
              ElementsAre(is_created));
  EXPECT_THAT(replica_change(replica("Starting"), replica("Running")),
              ElementsAre(event(replica_started, "replica 0 of revision 1 started")));
  EXPECT_THAT(replica_change(replica("Running"), replica("Ready")),
              ElementsAre(event(replica_ready, "replica 0 of revision 1 is serving at the endpoint")));
  ServiceState service;
  service.status.replica_list = {replica("Stopping", 0, "signal 15")};
  EXPECT_THAT(after_change(service, [](ServiceState& s) { s.status.replica_list.clear(); }),
              ElementsAre(event(replica_ended, "replica 0 of revision 1 ended: signal 15")));
}

TEST(ObjectChanges, a_failing_replica_reports_its_last_exit_each_time) {
  const ChangeEvent failed = {replica_failed,
                              "replica 0 of revision 1 ended: exit status 3; it will be restarted"};
  EXPECT_THAT(replica_change(replica("Running"), replica("CrashLoopBackOff", 0, "exit status 3")),
              ElementsAre(failed));
  // The replica was started and failed between two turns of the loop.
  EXPECT_THAT(replica_change(replica("CrashLoopBackOff", 0, "exit status 3"),
                             replica("CrashLoopBackOff", 1, "exit status 3")),
              ElementsAre(failed));
  EXPECT_THAT(
      replica_change(replica("CrashLoopBackOff", 1, "exit status 3"), replica("Running", 1, "exit status 3")),
      ElementsAre(event(replica_started, "replica 0 of revision 1 started (start number 2)")));
}

TEST(ObjectChanges, the_end_of_a_program_that_is_not_restarted_is_one_event) {
  const objects::ReplicaStatus ended = replica("Failed", 0, "exit status 4");
  EXPECT_THAT(replica_change(replica("Running"), ended),
              ElementsAre(event(replica_ended, "replica 0 of revision 1 ended: exit status 4")));
  EXPECT_THAT(replica_change(replica("Running"), replica("Succeeded", 0, "exit status 0")),
              ElementsAre(event(replica_ended, "replica 0 of revision 1 ended: exit status 0")));
  ServiceState service;
  service.status.replica_list = {ended};
  EXPECT_THAT(after_change(service, [](ServiceState& s) { s.status.replica_list.clear(); }), IsEmpty());
}

TEST(ObjectChanges, each_failed_attempt_of_a_pod_is_an_event) {
  const auto failed = [](uint32_t attempt) {
    return objects::JobStatus{.phase = JobPhase::running,
                              .admitted_at = "2026-11-26T08:00:00Z",
                              .pods = {{.role = PodRole::task,
                                        .program = "a-task-0",
                                        .state = objects::PodState::failed,
                                        .exit = "exit status 7",
                                        .attempt = attempt}}};
  };
  const auto job = [](const objects::JobStatus& status) {
    return object_with(objects::Kind::job, objects::JobSpec{}, status);
  };
  EXPECT_THAT(events_between(job(failed(1)), job(failed(2))),
              ElementsAre(event(pod_failed, "task 0 ended: exit status 7")));
  EXPECT_THAT(events_between(job(failed(2)), job(failed(2))), IsEmpty());
}

TEST(ObjectChanges, a_rejected_placement_is_one_event_with_its_message) {
  const auto refuse = [](ServiceState& s) {
    const std::string message = "no device has 5 GiB free";
    s.status.conditions = {
        {.type = "Progressing", .status = "True", .reason = "NoCapacity", .message = message},
        {.type = "Degraded", .status = "True", .reason = "StepFailed", .message = message}};
  };
  EXPECT_THAT(after_change({}, refuse), ElementsAre(event(placement_refused, "no device has 5 GiB free")));
  ServiceState refused;
  refuse(refused);
  EXPECT_THAT(after_change(refused, [](ServiceState& s) { s.status.ready_replicas = 1; }), IsEmpty());
}

TEST(ObjectChanges, a_missed_deadline_a_failed_step_and_autoscaling_are_events) {
  EXPECT_THAT(after_change({},
                           [](ServiceState& s) {
                             s.status.conditions = {{.type = "Progressing",
                                                     .status = "False",
                                                     .reason = "ProgressDeadlineExceeded",
                                                     .message = "no replica became available"}};
                           }),
              ElementsAre(event(progress_deadline_exceeded, "no replica became available")));
  EXPECT_THAT(after_change({},
                           [](ServiceState& s) {
                             s.status.conditions = {{.type = "Degraded",
                                                     .status = "True",
                                                     .reason = "StepFailed",
                                                     .message = "the disk is full"}};
                           }),
              ElementsAre(event(step_failed, "the disk is full")));
  EXPECT_THAT(after_change({},
                           [](ServiceState& s) {
                             s.status.desired_replicas = 4;
                             s.status.conditions = {{.type = "ScalingActive",
                                                     .status = "True",
                                                     .reason = "MetricMeasured",
                                                     .message = "38 requests per second"}};
                           }),
              ElementsAre(event(autoscaled, "2 -> 4 replicas: 38 requests per second")));
}

struct NodeState {
  objects::NodeSpec spec;
  objects::NodeStatus status = {.state = NodePhase::running};
  std::map<std::string, std::string> labels;

  Object object() const {
    Object out = object_with(objects::Kind::node, spec, status);
    out.labels = labels;
    return out;
  }
};

std::vector<ChangeEvent> after_node_change(NodeState before, const std::function<void(NodeState&)>& change) {
  NodeState after = before;
  change(after);
  return events_between(before.object(), after.object());
}

TEST(ObjectChanges, cordoning_draining_and_stopping_a_node_are_events) {
  EXPECT_THAT(after_node_change({},
                                [](NodeState& n) {
                                  n.spec.schedulable = false;
                                  n.spec.cordoned = "root since noon";
                                }),
              ElementsAre(event(cordoned, "by root since noon")));
  EXPECT_THAT(after_node_change({}, [](NodeState& n) { n.spec.draining = true; }),
              ElementsAre(event(drain_requested, "replicas of services move to other nodes")));
  NodeState draining;
  draining.spec.schedulable = false;
  draining.status.slices = 2;
  EXPECT_THAT(after_node_change(draining, [](NodeState& n) { n.status.slices = 1; }), IsEmpty());
  EXPECT_THAT(after_node_change(draining, [](NodeState& n) { n.status.slices = 0; }),
              ElementsAre(event(drained, "its last slice has ended")));
  EXPECT_THAT(after_node_change({}, [](NodeState& n) { n.status.state = NodePhase::stopped; }),
              ElementsAre(event(node_stopped, "Running -> Stopped")));
}

TEST(ObjectChanges, changes_of_a_nodes_labels_settings_and_devices_are_events) {
  EXPECT_THAT(after_node_change({},
                                [](NodeState& n) {
                                  n.labels = {{"zone", "b"}};
                                }),
              ElementsAre(event(labels_changed, "zone: (none) -> b")));
  NodeState node;
  node.status.policy.effective = "fixed-share";
  node.status.devices = {{.index = 1, .uuid = "GPU-1"}};
  EXPECT_THAT(after_node_change(node, [](NodeState& n) { n.status.policy.effective = "native-burst-share"; }),
              ElementsAre(event(policy_changed, "fixed-share -> native-burst-share")));
  EXPECT_THAT(after_node_change(node,
                                [](NodeState& n) {
                                  n.status.devices[0].health = {HealthState::xid, "Xid 79 at noon"};
                                }),
              ElementsAre(event(device_unhealthy, "device 1 is xid: Xid 79 at noon")));
}

TEST(ObjectChanges, a_change_of_labels_of_any_kind_is_an_event) {
  for (const objects::KindText& kind : objects::kinds) {
    Object before;
    before.key.kind = kind.value;
    Object after = before;
    before.labels = {{"team", "a"}, {"zone", "z"}};
    after.labels = {{"team", "b"}};
    EXPECT_THAT(events_between(before, after),
                ElementsAre(event(labels_changed, "team: a -> b, zone: z -> (none)")))
        << kind.kind;
  }
}

TEST(ObjectChanges, a_pools_ability_to_be_sliced_and_its_label_drift_are_events) {
  objects::PoolStatus status;
  status.slicing.failed = "gpu-count";
  status.slicing.checks = {{.name = "gpu-count", .ok = false, .message = "pool 'a' has no GPU"}};
  const Object before = object_with(objects::Kind::pool, objects::PoolSpec(), objects::PoolStatus());
  const Object lacking = object_with(objects::Kind::pool, objects::PoolSpec(), status);
  EXPECT_THAT(events_between(before, lacking),
              ElementsAre(event(slicing_unavailable, "pool 'a' has no GPU")));
  status = {};
  status.slicing.available = true;
  status.drift = {{"n1", "carve.dev/mode", "memory", "none"}};
  EXPECT_THAT(
      events_between(lacking, object_with(objects::Kind::pool, objects::PoolSpec(), status)),
      ElementsAre(event(slicing_available, "its devices can be sliced"),
                  event(labels_drifted, "node n1 has carve.dev/mode 'none', but the pool has 'memory'")));
}

TEST(ObjectChanges, a_new_object_of_each_kind_has_an_event_that_names_it) {
  using enum objects::Kind;
  const auto made = [](objects::Kind kind) {
    return events_of_added({.key = {.kind = kind, .name = "a"}, .account = "u"}).at(0).message;
  };
  EXPECT_EQ(made(service), "1 replica, account u");
  EXPECT_EQ(made(node), "from the controller's command line");
  EXPECT_EQ(made(pool), "node pool");
  EXPECT_EQ(made(queue), "queue");
  EXPECT_EQ(made(job), "in queue , account u");
  EXPECT_EQ(made(tariff), "tariff");
  EXPECT_EQ(made(budget), "budget");
  EXPECT_EQ(made(ray_cluster), "in queue , account u");
  const auto gone = [](objects::Kind kind) {
    return events_of_deleted({.key = {.kind = kind, .name = "a"}}).at(0).message;
  };
  EXPECT_EQ(gone(application), "its replicas have ended");
  EXPECT_EQ(gone(ray_cluster), "its programs have ended");
  EXPECT_EQ(gone(pool), "by a user");
}

}  // namespace
}  // namespace carve::controller

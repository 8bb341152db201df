// A service consists of equal replicas, each of which is a program in its own slice. actions() compares the
// desired replicas with the observed ones and returns the controller's next actions.
//
// * A replica is identified by its revision and its index; its slice is NAME-REVISION-INDEX. The desired
//   replicas have the current revision and the ordinals 0 to replicas - 1. Scaling down retires the highest
//   ordinals first.
// * The index is the ordinal. A replica that moves runs at the same time as its successor, so the successor
//   has the other index of the ordinal: ordinal + 64, or the ordinal again.
// * A program that ends is restarted in its slice after the back-off of restart.h, if the restart policy
//   requires it. When all programs of the current revision have ended and none is restarted, the service is
//   finished: the controller stops it, which releases its slices.
// * A change of anything but the number of replicas is a new revision. An old replica is retired when the new
//   replica of its index is available, which means ready for 5 s. At most replicas + max_surge slices are
//   held, and retired replicas count until their slices have ended. If the surge was rejected for lack of
//   capacity, one old replica is retired first, if a trial placement shows that the new one then fits.
// * A replica on a drained node moves: its successor, of the same revision and ordinal, is created elsewhere,
//   and the replica is retired when the successor is available, or when the successor has its slice and the
//   replica itself is not ready. If the successor finds no capacity, the replica stays.
// * Retiring withdraws the replica from the endpoint, waits until its connections have drained, sends
//   SIGTERM, after the grace period SIGKILL, and ends the slice. Until the program is executed, SIGTERM is
//   sent in every pass, and the grace period has not begun.
//
// actions() keeps no state. Each action is decided from the observed state, so a controller that is killed
// between two actions continues: an action with an observed effect is not returned again. Three actions set a
// mark that the observation returns: `retire` sets Replica::retired_at, `terminate` sets terminated_at, and
// `complete` sets complete_revision.
#pragma once

#include <compare>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/failure.h"
#include "core/restart_policy.h"
#include "workload/restart.h"

namespace carve::workload {

inline constexpr unsigned max_replicas = 64;          // Maximum per service.
inline constexpr size_t max_service_name_bytes = 48;  // With revision and index a slice name has at most 63.
inline constexpr Ns min_ready_ns = 5 * second_ns;     // An available replica has been ready for this time.
inline constexpr Ns ready_without_port_ns =
    second_ns;  // Run time after which a replica without a port counts as ready.
inline constexpr Ns default_grace_ns = 30 * second_ns;  // Time from SIGTERM to SIGKILL.
inline constexpr Ns default_progress_ns = 600 * second_ns;
inline constexpr Ns probe_interval_ns = 2 * second_ns;
inline constexpr Ns probe_timeout_ns = second_ns;
inline constexpr unsigned probe_failures = 3;  // A replica is not ready after this many consecutive failures.

struct Rollout {
  unsigned max_surge = 1;        // Maximum number of slices beyond the number of replicas.
  unsigned max_unavailable = 0;  // Replicas that a rollout may remove before their successors are available.
  Ns progress_deadline = default_progress_ns;  // Longest time between two steps of a rollout.
};

struct Service {
  std::string name;
  uint32_t revision = 1;
  unsigned replicas = 1;  // 0 if the service is stopped.
  bool has_port = false;  // Its replicas are probed and published.
  Rollout rollout;
  Ns grace = default_grace_ns;
  RestartPolicy restart_policy = RestartPolicy::always;
  Ns revised_at = 0;  // When this revision became desired.
};

// Returns the service, or the first rule that it violates (invalid_argument).
Outcome<Service> validated(Service);

struct ReplicaId {
  uint32_t revision = 0;
  uint32_t index = 0;

  friend auto operator<=>(const ReplicaId&, const ReplicaId&) = default;
};

// Returns the replica's number in its service, from 0 to replicas - 1. An index is less than 2 *
// max_replicas.
constexpr uint32_t ordinal(uint32_t index) { return index % max_replicas; }
constexpr uint32_t ordinal(ReplicaId id) { return ordinal(id.index); }

// Returns the name of the replica's slice: NAME-REVISION-INDEX.
std::string slice_name(const Service&, ReplicaId);

// The probes of one replica since its program was started. A replica becomes ready after one success, and not
// ready after `probe_failures` consecutive failures.
struct Probe {
  unsigned failures = 0;  // Consecutive failures.
  std::optional<Ns> ready_since;

  friend bool operator==(const Probe&, const Probe&) = default;
};

// Return the state after a successful or a failed probe.
Probe probe_succeeded(Probe, Ns now);
Probe probe_failed(Probe);

enum class ProgramState : uint8_t { not_started, running, exited };
enum class ProgramEnd : uint8_t {
  failed,
  succeeded,  // Its exit status is 0.
  lost,       // Its exit status is unknown, because its machine or supervisor ended. Not finished.
};
enum class EndpointState : uint8_t {
  absent,    // The endpoint does not know the replica.
  serving,   // It sends connections to the replica.
  draining,  // It sends no new connections and keeps the open ones.
};

// A replica that has a slice.
struct Replica {
  ReplicaId id;
  ProgramState program = ProgramState::not_started;
  Ns program_since = 0;                 // When the program entered this state.
  ProgramEnd end = ProgramEnd::failed;  // Set for a program that has exited.
  unsigned failures = 0;                // Consecutive ends (failures_after()).
  Probe probe;                          // For the running program; unused without a port.
  EndpointState endpoint = EndpointState::absent;
  std::optional<Ns> retired_at;
  std::optional<Ns> terminated_at;  // When SIGTERM was sent.
  bool must_move = false;           // Its node is being drained.
  // Its supervisor is running or was requested, but the program has not been executed yet. The program counts
  // as running, but a signal may not reach any process.
  bool is_starting = false;
};

// The last `create_slice` was rejected with insufficient_capacity. The controller clears the rejection when a
// slice is granted to the service, and when one of its slices ends.
struct Refusal {
  uint32_t revision = 0;  // Revision of the rejected replica; a rejection of another revision is ignored.
  Ns at = 0;
  unsigned times = 1;  // Number of consecutive rejections.
};

struct ServiceObserved {
  std::vector<Replica> replicas;  // All replicas with a slice, in any order, without duplicate ids.
  std::optional<Refusal> refusal;
  uint32_t complete_revision = 0;  // The last revision whose rollout was completed; 0 if none was.
  // Replicas whose slice was requested and may have been granted although the response was lost. Each counts
  // as a held slice and is not created again. Instead, the request is repeated with the same id until there
  // is a response.
  std::vector<ReplicaId> requested;
  // Returns whether the next slice of the current revision would be granted if these replicas had ended. An
  // old replica is stopped before its successor is running only in that case. If the function is empty, the
  // slice would always be granted.
  std::function<bool(std::span<const ReplicaId>)> fits_without = {};
};

struct ServiceAction {
  enum class Kind : uint8_t {
    create_slice,
    start,      // Starts the program in the slice.
    publish,    // Adds the replica to the endpoint.
    withdraw,   // Drains the replica at the endpoint and removes it.
    retire,     // Marks the replica: it is stopped and its slice ends.
    terminate,  // SIGTERM.
    kill,       // SIGKILL.
    end_slice,
    complete,  // Marks the rollout of the revision as complete. Names no replica.
    finish,    // Stops the service, all of whose programs have ended for good. Names no replica.
  };
  enum class Reason : uint8_t {
    desired,             // The replica is desired.
    program_ended,       // The program has ended and its back-off is over.
    not_ready,           // The replica is not ready, or its program has ended.
    scaled_down,         // Fewer replicas are desired.
    replaced,            // The replica of the current revision is available.
    superseded,          // Another replica of the same ordinal is kept.
    moved,               // Its node is drained, and its successor replaces it.
    may_be_unavailable,  // Rollout::max_unavailable allows it.
    no_surge_capacity,   // No device has capacity for the surge, so one old replica is stopped first.
    retired,             // The replica was already retired.
    grace_period_is_over,
  };
  Kind kind;
  ReplicaId replica;
  Reason reason = Reason::desired;

  friend bool operator==(const ServiceAction&, const ServiceAction&) = default;
};

// Returns the controller's next actions in this order: the steps of single replicas ordered by their ids,
// then the replicas to retire, then the slices to create, then `complete`. For a finished service, the only
// action is `finish`. The service must have been validated.
std::vector<ServiceAction> actions(const Service&, const ServiceObserved&, Ns now);

enum class ServicePhase : uint8_t {
  stopped,   // No replica is desired and none is left.
  waiting,   // Fewer replicas than desired are available, but none is of an old revision.
  running,   // The desired replicas are available, and there are no others.
  updating,  // There are replicas of an old revision, replicas that must move, or retired replicas.
  failed,    // The rollout has not progressed within its deadline.
};

struct ServiceStatus {
  ServicePhase phase = ServicePhase::stopped;
  unsigned ready = 0;           // Not retired, of any revision.
  unsigned available = 0;       // Not retired, of any revision.
  unsigned updated = 0;         // Available, of the current revision, and not to be moved.
  unsigned crash_looping = 0;   // Programs that have ended and wait for their back-off.
  bool progressing = true;      // False after the progress deadline, until the rollout is complete.
  bool lacks_capacity = false;  // A desired slice was rejected for lack of capacity.
};

ServiceStatus status(const Service&, const ServiceObserved&, Ns now);

// Returns whether the replica's program has ended and will not be restarted.
bool has_run(const Service&, const Replica&);

}  // namespace carve::workload

// The effects and observations of the service reconciler outside of the database: slices of the agents,
// supervised programs, probes and the endpoint. Each call may be repeated: a slice is granted only once, and
// a program is started once for each attempt. A test double is in testing/.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/objects/service_form.h"
#include "controller/services/program_owner.h"
#include "core/failure.h"
#include "objects/service_object.h"
#include "wire/api/slice.h"
#include "workload/service.h"

namespace carve::controller {

using workload::Ns;

// A program as its supervisor reports it.
struct ObservedProgram {
  workload::ProgramState state = workload::ProgramState::not_started;
  uint32_t attempt = 0;  // Last attempt; 0 if there was none.
  Ns started_at = 0;
  Ns ended_at = 0;           // Set for an ended program.
  std::string exit;          // "exit status 1", "signal 9"; empty if it runs or never ran.
  uint32_t exit_status = 0;  // Exit status of an ended program, as a shell reports it.
  bool is_lost = false;      // Its supervisor was killed, so its exit status is unknown.
  bool is_waiting = false;   // Its supervisor waits for the agent and has not executed it.
  bool is_ending = false;    // Its process has ended, but its supervisor has not written the end yet.
};

// The parameters for a supervisor that runs a replica's program.
struct ProgramStart {
  std::string slice;  // Name of the slice and of the program's directory; the slice may not exist.
  std::string node;   // Node whose agent has the slice; empty if the program has no slice.
  uint32_t attempt = 1;
  uint32_t owner_uid = 0;
  std::vector<std::string> command;
  std::map<std::string, std::string> env;
  std::string workdir;  // Empty for the owner's home.
  uint32_t grace_seconds = 30;
  uint64_t cpu_limit_milli = 0;  // Thousandths of a core; 0 for no limit.
  uint64_t memory_limit_bytes = 0;
  std::string image;  // Image of a container, whose command may be empty; empty for a local program.
  std::vector<std::string> args = {};     // For a container, replaces its image's CMD.
  std::vector<std::string> cleanup = {};  // Command to run after the program's end; empty if there is none.
};

// The part of a slice on one device.
struct ObservedPart {
  std::string device;         // UUID.
  uint64_t memory_bytes = 0;  // Quota.
  uint32_t share_bp = 0;
};

// The properties of a slice that the controller shows and compares.
struct ObservedSlice {
  std::vector<ObservedPart> parts;
  uint64_t memory_bytes = 0;  // Quota of the first part.
  uint32_t share_bp = 0;      // Share of the first part.
  std::string policy;
  std::string state;
  std::string workload;  // Name of the object for which it was requested; empty if there is none.
  bool is_exclusive = false;
  std::optional<Isolation> isolation;  // No value if the slice has no part.
  Ns refused_at = 0;                   // When its quota last rejected memory, UTC; 0 if never.
  // Percentage of its share that its programs used in the last 60 s. For a slice without a share, percentage
  // of its devices now.
  uint32_t busy_percent = 0;
};

// A server of a service's endpoint.
struct EndpointServer {
  std::string slice;
  uint32_t port = 0;  // Port of the program, on 127.0.0.1.

  friend auto operator<=>(const EndpointServer&, const EndpointServer&) = default;
};

struct ServiceEndpoint {
  std::string name_space;
  std::string name;  // Name of the object, unique among workloads of all kinds.
  uint32_t port = 0;
  std::vector<EndpointServer> servers;

  friend auto operator<=>(const ServiceEndpoint&, const ServiceEndpoint&) = default;
};

// The load of an endpoint.
struct EndpointLoad {
  uint64_t requests = 0;   // Total; it may restart at 0.
  uint64_t in_flight = 0;  // Requests at the replicas and requests that wait for one.
};

// Result of a probe of a program's port.
struct ProbeResult {
  bool is_success = false;
  std::string foreign;  // Why the listener is not the program's; otherwise empty.
};

// A query for whether a slice would be granted if other slices had ended.
struct RoomQuery {
  NodeChoice choice;
  Amounts amounts;
  workload::HostResources host;  // The program's request of host resources.
  struct Ended {
    std::string node, slice;
  };
  std::vector<Ended> ended;
  std::map<std::string, workload::HostResources>
      host_left;  // By node: resources still requested after their end.
};

class Effects {
 public:
  virtual ~Effects() = default;

  // Returns the candidate nodes for the slice, in the order to try them. Fails with failed_precondition if
  // there is no such pool or no node may take the slice, and with unavailable if no node can be reached now.
  virtual Outcome<std::vector<std::string>> nodes_to_ask(const NodeChoice&, const Amounts&) = 0;
  // Succeeds if a node would grant the slice; otherwise fails with the reason why none would. Grants nothing.
  virtual Outcome<void> check_room(const RoomQuery&) = 0;
  // Grants the slice on the node, with the isolation of the node's mode if the request names none. Fails with
  // insufficient_capacity if the node lacks the capacity now, with invalid_argument or failed_precondition if
  // the node can never grant the slice, and with unavailable if the node may have granted it.
  virtual Outcome<void> grant(const api::SliceRequest&, const std::string& node) = 0;
  // Returns the live slices of a node by name, as of this turn.
  virtual Outcome<std::map<std::string, ObservedSlice>> slices(const std::string& node) = 0;
  virtual Outcome<void> resize(const std::string& node, const std::string& slice,
                               const api::SliceChange&) = 0;
  virtual Outcome<void> end_slice(const std::string& node, const std::string& slice) = 0;

  virtual Outcome<ObservedProgram> program(const std::string& slice) = 0;
  virtual Outcome<void> start(const ProgramStart&) = 0;
  virtual Outcome<void> terminate(const std::string& slice) = 0;
  virtual Outcome<void> kill(const std::string& slice) = 0;
  // Deletes the directory of an ended program with its logs, and its owner.
  virtual void forget_program(const std::string& slice) = 0;

  // Stores the owner of this program outside the database.
  virtual Outcome<void> keep_owner(const std::string& program, const ProgramOwner&) = 0;
  // Returns all programs that have an owner or a directory.
  virtual std::set<std::string> kept_programs() = 0;
  // Returns the owner of a program. Its kind is empty if there is none.
  virtual ProgramOwner owner(const std::string& program) = 0;

  // Returns a port that no program uses, for an endpoint, a program or a job's engine. `used` contains the
  // ports in the records.
  enum class PortUse : uint8_t { endpoint, program, engine };
  virtual Outcome<uint32_t> free_port(PortUse, const std::vector<uint32_t>& used) = 0;
  // Returns whether no program listens on the port. The program that owns the port must not be running.
  virtual bool is_free(uint32_t port) = 0;

  // Returns a new secret of 43 characters.
  virtual std::string new_secret() = 0;

  // Probes the program's port. Returns the result of the last finished probe, once.
  virtual std::optional<ProbeResult> probe(const EndpointServer&, const objects::Readiness&) = 0;

  // Sets the endpoints to those in the list. A server that is not in the list is drained and then removed.
  virtual Outcome<void> publish(const std::vector<ServiceEndpoint>&) = 0;
  // Returns why the last publish() could not set up the endpoint, as a message; empty if it could.
  virtual std::string endpoint_problem(const std::string& name_space, const std::string& name) const = 0;
  // Returns the state of each server, by slice. A server that is missing from the result is absent.
  virtual Outcome<std::map<std::string, workload::EndpointState>> endpoint_states() = 0;
  // Returns the load of an endpoint as of the last endpoint_states(); no value if the endpoint is not set up.
  virtual std::optional<EndpointLoad> load(const std::string& name_space, const std::string& name) = 0;
};

}  // namespace carve::controller

// What the service loop observes and does outside of the database: slices of the agents, supervised programs,
// probes and the endpoint. Each call may be repeated: a slice that is granted is granted once, a program is
// started once for each attempt. A double is in testing/.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/objects/service_form.h"
#include "controller/services/program_owner.h"
#include "core/failure.h"
#include "wire/api/slice.h"
#include "wire/objects/service_object.h"
#include "workload/service.h"

namespace carve::controller {

using workload::Ns;

// A program as its supervisor reports it.
struct ObservedProgram {
  workload::ProgramState state = workload::ProgramState::not_started;
  uint32_t attempt = 0;  // The last one; 0: none.
  Ns started_at = 0;
  Ns ended_at = 0;           // Of an ended program.
  std::string exit;          // "exit status 1", "signal 9"; empty: it runs, or never ran.
  uint32_t exit_status = 0;  // Of an ended program, as a shell has it.
  bool is_lost = false;      // Its supervisor was killed, so its exit status is unknown.
  bool is_waiting = false;   // It runs, but its supervisor has not executed it yet: it waits for the agent.
};

// What a supervisor needs to run a replica's program.
struct ProgramStart {
  std::string slice;  // Name of the slice and of the program's directory; the slice may not exist.
  std::string node;   // Whose agent has the slice; empty: the program has no slice.
  uint32_t attempt = 1;
  uint32_t owner_uid = 0;
  std::vector<std::string> command;
  std::map<std::string, std::string> env;
  std::string workdir;  // Empty: the owner's home.
  uint32_t grace_seconds = 30;
  uint64_t cpu_limit_milli = 0;  // Thousandths of a core; 0: no limit.
  uint64_t memory_limit_bytes = 0;
  std::string image;  // Empty: a local program; else its container's, and the command may be empty.
  std::vector<std::string> cleanup = {};  // A command that is run when the program has ended; empty: none.
};

// The part of a slice that the controller shows and compares.
struct ObservedSlice {
  std::vector<std::string> devices;  // UUIDs.
  uint64_t memory_bytes = 0;         // Quota of one part.
  uint32_t share_bp = 0;
  std::string policy;
  std::string state;
  std::string workload;  // Name of the object that it was requested for; empty: of none.
  bool is_exclusive = false;
  Ns refused_at = 0;  // When its quota last refused memory, UTC; 0: never.
  // Part of its share that its programs used in the last 60 s, or of its devices now if it has no share.
  uint32_t busy_percent = 0;
};

// A server of a service's endpoint.
struct EndpointServer {
  std::string slice;
  uint32_t port = 0;  // Of the program, on 127.0.0.1.

  friend auto operator<=>(const EndpointServer&, const EndpointServer&) = default;
};

struct ServiceEndpoint {
  std::string name_space;
  std::string name;  // Of the object; workloads of all kinds share the names.
  uint32_t port = 0;
  std::vector<EndpointServer> servers;

  friend auto operator<=>(const ServiceEndpoint&, const ServiceEndpoint&) = default;
};

// What an endpoint carries.
struct EndpointLoad {
  uint64_t requests = 0;   // Total; it may begin again at 0.
  uint64_t in_flight = 0;  // Requests at the replicas and those that wait for one.
};

// How a probe of a program's port ended.
struct ProbeResult {
  bool is_success = false;
  std::string foreign;  // Why the listener is not the program's; empty: it is, or nothing listens.
};

class Effects {
 public:
  virtual ~Effects() = default;

  // Returns the nodes that are asked for the slice, the first one first. The kinds of failure:
  // failed_precondition if there is no such pool or no node may take it, unavailable if no node can be asked
  // now.
  virtual Outcome<std::vector<std::string>> nodes_to_ask(const NodeChoice&, const api::SliceRequest&) = 0;
  // Grants the slice on the node, with the isolation of the node's mode if the request names none. The kinds
  // of failure: insufficient_capacity if the node has not the capacity now, invalid_argument and
  // failed_precondition if it never has, unavailable if it may have granted it.
  virtual Outcome<void> grant(const api::SliceRequest&, const std::string& node) = 0;
  // Returns the living slices of a node by name, as of this turn.
  virtual Outcome<std::map<std::string, ObservedSlice>> slices(const std::string& node) = 0;
  virtual Outcome<void> resize(const std::string& node, const std::string& slice,
                               const api::SliceChange&) = 0;
  virtual Outcome<void> end_slice(const std::string& node, const std::string& slice) = 0;

  virtual Outcome<ObservedProgram> program(const std::string& slice) = 0;
  virtual Outcome<void> start(const ProgramStart&) = 0;
  virtual Outcome<void> terminate(const std::string& slice) = 0;
  virtual Outcome<void> kill(const std::string& slice) = 0;
  // Deletes the program's directory with its logs, and its owner. Its program has ended.
  virtual void forget_program(const std::string& slice) = 0;

  // Keeps whose program this is, apart from the database.
  virtual Outcome<void> keep_owner(const std::string& program, const ProgramOwner&) = 0;
  // Returns all programs that have an owner or a directory.
  virtual std::map<std::string, ProgramOwner> owners() = 0;

  // Returns a port that no program uses, for an endpoint, a program or a job's engine; `used` are those of
  // the records.
  enum class PortUse : uint8_t { endpoint, program, engine };
  virtual Outcome<uint32_t> free_port(PortUse, const std::vector<uint32_t>& used) = 0;
  // Returns whether nothing uses the port of a program that does not run.
  virtual bool is_free(uint32_t port) = 0;

  // Returns 43 characters that nothing else knows.
  virtual std::string new_secret() = 0;

  // Probes the program's port; returns the result of the last probe that has ended, once.
  virtual std::optional<ProbeResult> probe(const EndpointServer&, const objects::Readiness&) = 0;

  // Makes the endpoints those of the list. A server that is missing there is drained, then removed.
  virtual Outcome<void> publish(const std::vector<ServiceEndpoint>&) = 0;
  // Returns why the last publish() could not carry the endpoint, as a sentence; empty: it could.
  virtual std::string endpoint_problem(const std::string& name_space, const std::string& name) const = 0;
  // Returns what the endpoints do with each server, by slice. A server that is missing is absent.
  virtual Outcome<std::map<std::string, workload::EndpointState>> endpoint_states() = 0;
  // Returns the load of an endpoint as of the last endpoint_states(); no value if the endpoint is not
  // carried.
  virtual std::optional<EndpointLoad> load(const std::string& name_space, const std::string& name) = 0;
};

}  // namespace carve::controller

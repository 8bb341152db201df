// Rows of controller.db. Each struct is a table and each field a column (sqlite/rows.h). Times are in UTC
// nanoseconds since 1970. The other tables contain objects, tokens, events (object_columns.h) and kept
// answers (kept_answer.h).
#pragma once

#include <cstdint>
#include <string>

namespace carve::controller {

// A node as last reported by its agent.
struct NodeRecord {
  std::string name;
  std::string socket;  // Socket of its agent.
  int64_t first_seen_ns = 0;
  int64_t last_seen_ns = 0;
  std::string agent_version;
  int64_t agent_started_ns = 0;

  friend bool operator==(const NodeRecord&, const NodeRecord&) = default;
};

// Decisions of the controller about a workload that must survive a restart.
struct WorkloadRecord {
  std::string uid;        // Uid of the object.
  uint32_t revision = 0;  // Current revision; 0 if there is none yet.
  uint32_t complete_revision = 0;
  int64_t revised_ns = 0;
  uint32_t port = 0;  // Port of its endpoint, for its whole life; 0 if it has none.

  friend bool operator==(const WorkloadRecord&, const WorkloadRecord&) = default;
};

// A revision: the spec as it was when its replicas were started.
struct RevisionRecord {
  std::string uid;  // Uid of the object.
  uint32_t revision = 0;
  int64_t created_ns = 0;
  std::string spec;         // The part of the service's spec that a revision fixes.
  std::string object_spec;  // The whole spec of the object.

  friend bool operator==(const RevisionRecord&, const RevisionRecord&) = default;
};

// A replica, from the decision to request its slice until its slice has ended. The row is written before the
// slice is requested, so every slice has a row. The row of a run-once program is kept with its log until its
// service runs again or is deleted; its request_id is then empty.
struct ReplicaRecord {
  std::string slice;  // Name of the slice and of the program's directory.
  std::string uid;    // Uid of the object.
  uint32_t revision = 0;
  uint32_t replica = 0;     // Index of the replica.
  std::string request_id;   // Id of the request for the slice; the agent grants it once.
  std::string node;         // Node of the slice's request; empty if not chosen.
  bool is_granted = false;  // The agent has confirmed that the slice exists.
  uint32_t port = 0;        // The program's PORT; 0 if the service has none.
  uint32_t attempt = 0;     // Number of the last start; 0 if not started.
  uint32_t failures = 0;    // Number of consecutive failures.
  uint32_t restarts = 0;
  int64_t retired_ns = 0;     // 0 if not retired.
  int64_t terminated_ns = 0;  // 0 if no SIGTERM was sent.

  // Returns whether the slice has ended, so that only the program's result and log are kept.
  bool has_ended() const { return request_id.empty(); }
  friend bool operator==(const ReplicaRecord&, const ReplicaRecord&) = default;
};

// Decisions of the controller about a job that must survive a restart. A job without a row waits in its
// queue.
struct JobRecord {
  std::string uid;          // Uid of the object.
  int64_t admitted_ns = 0;  // 0 if it waits.
  int64_t finished_ns = 0;  // 0 if it has not ended.
  uint32_t end = 0;         // workload::JobEnd, if it has one.
  uint32_t port = 0;        // Port of the engine's master or head; 0 if it has none.
  std::string secret;       // Secret of the engine's own connections; empty if it has none.
  uint32_t returns = 0;     // How often it was returned to its queue by a node drain.
  bool is_returning = false;
  // For a cluster, the admitted workers of each group, separated by blanks; empty means all. `workers_before`
  // has the previous numbers while further workers start for the first time.
  std::string workers;
  std::string workers_before;
  int64_t grows_ns = 0;  // Time since which it waits for further workers; 0 if it does not wait.

  friend bool operator==(const JobRecord&, const JobRecord&) = default;
};

// A pod, from the decision to request its slice or to start its program until its job is removed. The row is
// written before the slice is requested and before the program is started.
struct PodRecord {
  std::string program;  // Name of the program and the slice: JOB-ROLE-INDEX.
  std::string uid;      // Uid of the job.
  uint32_t role = 0;    // PodRole.
  uint32_t index = 0;
  std::string request_id;     // Id of the request; empty if the pod has no slice.
  std::string node;           // Node of the slice's request; empty if not chosen.
  bool is_granted = false;    // The agent has confirmed that the slice exists.
  std::string devices;        // UUIDs of the last slice, separated by blanks.
  uint32_t attempt = 0;       // Number of the last start; 0 if not started.
  uint32_t failures = 0;      // Failures of earlier attempts.
  int64_t terminated_ns = 0;  // When the attempt got SIGTERM; 0 if it did not.

  friend bool operator==(const PodRecord&, const PodRecord&) = default;
};

// One line of the audit log: a change that a caller made or attempted.
struct AuditRecord {
  int64_t at_ns = 0;
  std::string caller;   // "root", "uid 1000", "token ci (account research)"
  std::string address;  // "unix" or "127.0.0.1:53210"
  std::string change;   // "POST /v1/services"
  uint32_t status = 0;  // HTTP status of the response.

  friend bool operator==(const AuditRecord&, const AuditRecord&) = default;
};

}  // namespace carve::controller

// One call of the API: a handler's input, and the ways in which it can respond.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "controller/api/known_hosts.h"
#include "controller/billing/bill_query.h"
#include "controller/billing/job_hours.h"
#include "controller/history/history_query.h"
#include "controller/nodes/node_actions.h"
#include "controller/nodes/node_rules.h"
#include "controller/objects/job_form.h"
#include "controller/objects/object_events.h"
#include "controller/objects/object_registry.h"
#include "controller/objects/session_book.h"
#include "controller/objects/submission.h"
#include "controller/objects/token_book.h"
#include "http/message.h"
#include "objects/service_object.h"
#include "wire/api/audit.h"
#include "wire/api/controller.h"
#include "wire/api/exposition.h"
#include "wire/api/json.h"
#include "wire/api/problem.h"

namespace carve::controller {

class AnswerJournal;
class ConsoleFiles;
class Watches;

// A caller's query for the log lines of a program.
struct LogQuery {
  std::string role;                              // Role of a job's pods; empty for all.
  std::optional<uint32_t> replica;               // Index; absent for all.
  bool previous = false;                         // Reads the attempt before the last start.
  bool plain = false;                            // Omits the supervisor's lines.
  bool has_times = false;                        // Begins each line with its time.
  std::optional<size_t> tail = {};               // Number of last lines; absent for all.
  int64_t since_ns = 0;                          // UTC; 0 for all.
  std::function<bool()> may_continue = nullptr;  // A follower's stream ends when this returns false.
};

// A revision of a workload, as it was when its replicas were started.
struct Revision {
  uint32_t number = 0;
  int64_t created_ns = 0;  // UTC.
  std::string spec;        // Spec of the object, as JSON.
  std::string form;        // Spec of the service that runs for the object, as JSON.
};

using LogReader = std::function<Outcome<std::string>()>;

inline constexpr uint32_t default_account_quota_percent = 25;

// A text of this size is parsed in less than 2 ms, so it is parsed on the loop.
inline constexpr size_t max_inline_document_bytes = 16 << 10;

// `csv` prints the lines, `csv_sums` prints one row per group, and `line` prints the lines of one part of a
// record as JSON. `allocations` is the report of allocations (billing/allocation_report.h) instead of an invoice.
enum class BillForm : uint8_t { json, csv, csv_sums, line, allocations };

// The data that the routes show in addition to the objects. It hides connections and databases from the
// routes.
class Views {
 public:
  virtual ~Views() = default;
  virtual api::ControllerVersion version() const = 0;
  // Returns the nodes in the order of the command line.
  virtual std::vector<NodeObservationPointer> nodes() const = 0;
  // Returns a reader for the log lines of the object's programs. If there are several programs, each line
  // names its replica. The reader may run in any thread and may take any time.
  virtual LogReader logs(const Object&, const LogQuery&) const = 0;
  // Returns a stream of the same lines and of all later ones.
  virtual http::EventStream follow_logs(const Object&, const LogQuery&) = 0;
  // Returns the kept revisions of the object with this uid, oldest first.
  virtual Outcome<std::vector<Revision>> revisions(const std::string& uid) const = 0;
  // Returns why the user's programs cannot be started, or an empty string if they can.
  virtual std::string start_problem(uint32_t uid) const = 0;
  // Returns why this machine cannot start containers, or an empty string if it can.
  virtual std::string container_problem() const = 0;
  // Returns a message for each of the service's limits that this machine does not enforce.
  virtual std::vector<std::string> limit_warnings(const objects::ServiceSpec&) const = 0;
  // Returns the uid of the account's user, if this machine has that user.
  virtual std::optional<uint32_t> uid_of(const std::string& account) const = 0;
  virtual std::string user_name(uint32_t uid) const = 0;
  // Returns the queue position of the job with this uid if it is waiting, and the number of waiting jobs.
  virtual std::optional<JobPosition> job_position(const std::string& uid) const = 0;
  virtual size_t waiting_jobs() const = 0;
  // Returns the GPU-hours of the job or cluster with this uid; no value if it was never admitted.
  virtual std::optional<JobHours> job_hours(const std::string& uid) const = 0;
  // Returns the invoice, possibly in a later response. With the form `line`, responds with not found if the
  // invoice has no such line.
  virtual http::Response bill(BillQuery, bill::Tariffs, BillForm) = 0;
  // Returns the history of metrics, in a later response.
  virtual http::Response history(HistoryQuery) = 0;
  // Returns the metrics. GPU-hours are restricted to the accounts that the caller may see.
  virtual std::string metrics(api::MetricsFormat, const http::Caller&) const = 0;
  virtual int64_t now_ns() const = 0;  // UTC.
  // Returns the newest entries of the audit log, at most `most`, oldest first.
  virtual Outcome<api::AuditList> audit_entries(size_t most) const = 0;
};

// A change that a caller made or attempted.
struct AuditLine {
  std::string caller;   // "root", "account research", "anonymous"
  std::string address;  // Peer of a caller over TCP, otherwise "unix".
  std::string change;   // "POST /v1/documents"
  uint32_t status = 0;  // HTTP status of the response.
};

// Runs `work` in a thread, then runs the function that it returned on the loop and sends its response. Tasks
// with the same key run one at a time (controller/later_answer.h).
using AnswerLater = std::function<http::Response(const std::string& key,
                                                 std::function<std::function<http::Response()>()> work)>;

// The documents of a request after parsing in a thread, and the parameters of the parsing.
struct ReadDocuments {
  std::string text;
  std::string dialect;
  Result<std::vector<Submission>, api::FieldErrors> read;
};

struct ApiContext {
  Views& views;
  std::function<void(const AuditLine&)> audit;
  ObjectRegistry& objects;
  TokenBook& tokens;
  NodeActions* node_actions = nullptr;
  SessionBook* sessions = nullptr;        // Null if browsers cannot sign in.
  const ConsoleFiles* console = nullptr;  // Null if no console is served.
  KnownHosts hosts = KnownHosts();        // Accepted from callers over TCP.
  ObjectEvents* events = nullptr;         // Null if no events are kept.
  AnswerJournal* answers = nullptr;       // Responses to requests with a key; null if none are kept.
  Watches* watches = nullptr;             // Set by ControllerRoutes.
  // Limits the objects of each kind that one account, and one user, may have, in percent of all.
  uint32_t account_quota_percent = default_account_quota_percent;
  bool allows_unknown_gpu_requests = false;
  AnswerLater read_logs = nullptr;  // Null to read on the loop.
  // Carries out changes of objects in a thread, if storing them may take long; null to store them on the loop.
  AnswerLater change_objects = nullptr;
  bool runs_pods = false;                // Programs run in a cluster's pods, not as users of this machine.
  AnswerLater read_documents = nullptr;  // For more than max_inline_document_bytes; null parses on the loop.
  // Responds to a request after its documents were parsed. Set by ControllerRoutes.
  std::function<http::Response(const http::Request&, const http::Caller&, const ReadDocuments&)> answer_read =
      nullptr;
};

struct Call {
  ApiContext& context;
  const http::Request& request;
  const http::Caller& caller;
  objects::Kind kind = objects::Kind::service;  // The value of {kind} in the path.
  std::vector<std::string> names;               // The values of each {} in the path.
  std::span<const Submission> beside = {};      // Documents of this request, which may refer to each other.
  const Session* session = nullptr;             // Session of a browser; null for other callers.
  const http::Caller* connection = nullptr;  // The peer of the connection; a token may name another caller.
  const ReadDocuments* documents = nullptr;  // This request's documents, if they were parsed in a thread.
};

template <class T>
http::Response document(const T& document, unsigned status = 200) {
  return {status, "application/json", api::write(document)};
}

// Returns a problem document (RFC 9457).
http::Response refuse(FailureKind kind, std::string detail, unsigned status = 0);
inline http::Response refuse(const Failure& failure) { return refuse(failure.kind, failure.message); }
// Returns 409 with one of the controller's own problem types: "carve:immutable", "carve:blocked" with the
// blocking objects, or "carve:slicing-unavailable".
http::Response refuse_as(std::string type, std::string detail,
                         const std::vector<std::string>& blocked_by = {});
// Returns 422 carve:invalid with all errors of a document.
http::Response refuse(api::FieldErrors errors);

}  // namespace carve::controller

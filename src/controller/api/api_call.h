// One call of the API: what a handler gets, and how it answers.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "controller/api/known_hosts.h"
#include "controller/billing/bill_query.h"
#include "controller/billing/job_hours.h"
#include "controller/nodes/node_actions.h"
#include "controller/objects/job_form.h"
#include "controller/objects/object_events.h"
#include "controller/objects/object_registry.h"
#include "controller/objects/submission.h"
#include "controller/objects/token_book.h"
#include "http/message.h"
#include "wire/api/controller.h"
#include "wire/api/json.h"
#include "wire/api/problem.h"
#include "wire/objects/service_object.h"

namespace carve::controller {

class AnswerJournal;
class Watches;

// Which lines of a program's log a caller asks for.
struct LogQuery {
  std::string role;                              // Of a job's pods; empty: all.
  std::optional<uint32_t> replica;               // Index; absent: all.
  bool previous = false;                         // Of the attempt before the last start.
  bool plain = false;                            // Without the lines of the supervisor.
  std::optional<size_t> tail = {};               // The last lines; absent: all.
  int64_t since_ns = 0;                          // UTC; 0: all.
  std::function<bool()> may_continue = nullptr;  // Of a follower: its stream ends when this is false.
};

// A revision of a workload, as it was when its replicas were started.
struct Revision {
  uint32_t number = 0;
  int64_t created_ns = 0;  // UTC.
  std::string spec;        // Of the object, as JSON.
  std::string form;        // The spec of the service that it runs as, as JSON.
};

using LogReader = std::function<Outcome<std::string>()>;

inline constexpr uint32_t default_account_quota_percent = 25;

// A text of this size is read in less than 2 ms, so it is read on the loop.
inline constexpr size_t max_inline_document_bytes = 16 << 10;

enum class BillForm : uint8_t { json, csv, line };

// What the routes show that is no object. The routes see values only, no connection and no database.
class Views {
 public:
  virtual ~Views() = default;
  virtual api::ControllerVersion version() const = 0;
  virtual api::KnownNodeList nodes() const = 0;
  // Returns what reads the lines of the object's programs, each with, if there are several, its replica. It
  // may run in any thread, and may take any time.
  virtual LogReader logs(const Object&, const LogQuery&) const = 0;
  // Returns a stream of these lines and of all that follow.
  virtual http::EventStream follow_logs(const Object&, const LogQuery&) = 0;
  // Returns the kept revisions of the object with this uid, the oldest first.
  virtual Outcome<std::vector<Revision>> revisions(const std::string& uid) const = 0;
  // Returns why this machine starts no containers; empty: it does.
  virtual std::string container_problem() const = 0;
  // Returns a sentence for each limit of the service that this machine does not enforce.
  virtual std::vector<std::string> limit_warnings(const objects::ServiceSpec&) const = 0;
  // Returns the uid of the user of an account, if this machine has it.
  virtual std::optional<uint32_t> uid_of(const std::string& account) const = 0;
  virtual std::string user_name(uint32_t uid) const = 0;
  // Returns where the job with this uid waits, if it waits; and how many jobs wait.
  virtual std::optional<JobPosition> job_position(const std::string& uid) const = 0;
  virtual size_t waiting_jobs() const = 0;
  // Returns the GPU-hours of the job or cluster with this uid, if it was admitted.
  virtual std::optional<JobHours> job_hours(const std::string& uid) const = 0;
  // Returns the invoice, which may come later. As a line it is not found if the invoice has no line.
  virtual http::Response bill(BillQuery, bill::Tariffs, BillForm) = 0;
  virtual std::string metrics() const = 0;  // Of the endpoints, for Prometheus.
  virtual int64_t now_ns() const = 0;       // UTC.
};

// A change that a caller made or was refused.
struct AuditLine {
  std::string caller;   // "root", "account research", "anonymous"
  std::string address;  // Of a caller over TCP; else "unix".
  std::string change;   // "POST /v1/documents"
  uint32_t status = 0;  // HTTP status of the answer.
};

// Runs `work` in a thread and answers with what it returned, which runs on the loop. Of tasks with one key
// one runs at a time (controller/workers.h).
using AnswerLater = std::function<http::Response(const std::string& key,
                                                 std::function<std::function<http::Response()>()> work)>;

// Documents of a request that were read in a thread, and how.
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
  KnownHosts hosts = KnownHosts();   // Of callers over TCP.
  ObjectEvents* events = nullptr;    // Null: none are kept.
  AnswerJournal* answers = nullptr;  // Of requests with a key; null: none is kept.
  Watches* watches = nullptr;        // Set by ControllerRoutes.
  // Part of the objects of each kind that one account, and one user, may have.
  uint32_t account_quota_percent = default_account_quota_percent;
  AnswerLater read_logs = nullptr;       // Null: on the loop.
  AnswerLater read_documents = nullptr;  // Of more than max_inline_document_bytes; null: on the loop.
  // Answers a request whose documents were read. Set by ControllerRoutes.
  std::function<http::Response(const http::Request&, const http::Caller&, const ReadDocuments&)> answer_read =
      nullptr;
};

struct Call {
  ApiContext& context;
  const http::Request& request;
  const http::Caller& caller;
  objects::Kind kind = objects::Kind::service;  // What the path has in place of {kind}.
  std::vector<std::string> names;               // What the path has in place of each {}.
  std::span<const Submission> beside = {};      // The documents of this request, which may name each other.
  const http::Caller* connection = nullptr;     // Who connected, before a token named the caller.
  const ReadDocuments* documents = nullptr;     // Those of this request, if they were read in a thread.
};

template <class T>
http::Response document(const T& document, unsigned status = 200) {
  return {status, "application/json", api::write(document)};
}

// Returns a problem document (RFC 9457).
http::Response refuse(FailureKind kind, std::string detail, unsigned status = 0);
inline http::Response refuse(const Failure& failure) { return refuse(failure.kind, failure.sentence); }
// Returns 409 with a type of the controller's own: "carve:immutable", "carve:blocked" with what blocks it,
// "carve:slicing-unavailable".
http::Response refuse_as(std::string type, std::string detail,
                         const std::vector<std::string>& blocked_by = {});
// Returns 422 carve:invalid with all errors of a document.
http::Response refuse(api::FieldErrors errors);

}  // namespace carve::controller

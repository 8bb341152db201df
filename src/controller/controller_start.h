// The steps of main(): the functions that main() calls.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "controller/agent_calls.h"
#include "controller/api/console_files.h"
#include "controller/api/controller_routes.h"
#include "controller/billing_thread.h"
#include "controller/caller_slices.h"
#include "controller/cluster_thread.h"
#include "controller/controller_options.h"
#include "controller/history_thread.h"
#include "controller/known_nodes.h"
#include "controller/later_answer.h"
#include "controller/log_streams.h"
#include "controller/restart_totals.h"
#include "controller/service_thread.h"
#include "controller/store/controller_store.h"
#include "controller/usage_thread.h"
#include "os/fd.h"
#include "os/kept_socket.h"
#include "tls/tls.h"

namespace carve::controller {

// Returns the user's environment.
Surroundings surroundings();

// Prints the message and returns the exit status: 2 for an invalid command line, otherwise 1.
int complain(const Failure&);

// Prints the help, the version or the completion; returns the exit status.
int print(Options::Mode);

struct Locks {
  os::Fd state, socket;
};
// Creates the directories, and locks the state and the socket for the life of the process.
Outcome<Locks> lock(const Options&);

// Forks the launcher. Must be called before the process has threads.
Outcome<Launcher> begin_launcher(const Options&);

// Connects to the cluster and reads its objects. Returns null without --kubernetes.
Outcome<std::unique_ptr<ClusterThread>> begin_cluster(const Options&);

// The contents of controller.db, and the objects in memory that are stored in it or in a cluster.
class Records {
 public:
  // Opens controller.db and reads it. A damaged file is moved aside, with an error in the log. The objects are
  // those of the cluster unless it is null.
  static Outcome<std::unique_ptr<Records>> open(const Options&, ClusterThread*);

  ControllerStore store;
  std::vector<NodeRecord> nodes;
  ObjectRegistry* objects = nullptr;
  std::optional<ObjectEvents> events;
  std::optional<TokenBook> tokens;
  std::optional<SessionBook> sessions;

 private:
  Records(ControllerStore opened, ClusterThread* cluster) : store(std::move(opened)), cluster_(cluster) {}
  Outcome<void> read();
  Outcome<void> check();

  ClusterThread* const cluster_;
  std::optional<JournaledRegistry> stored_;  // Empty if the objects are a cluster's.
  std::vector<Object> checked_;              // Set from check() until read().
};

// Returns the NodeSync for the nodes' objects. Adds an object for each node that has none.
NodeSync keep_nodes(Records&, const Options&);

// Creates the folder of the programs and begins to reconcile the services.
class Services {
 public:
  static Outcome<std::unique_ptr<Services>> begin(Records&, Launcher, const Options&);

  MachineEffects machine;
  JobPositions job_positions;
  EventInbox late_events;
  std::optional<ServiceThread> thread;

 private:
  Services(Records&, Launcher, const Options&);
};

// The API with its sockets. A caller on the unix socket is identified by the kernel; root and the
// controller's own user are operators. A caller over TCP is identified by its token.
class Api : Views, NodeActions {
 public:
  ~Api() override;
  static Outcome<std::unique_ptr<Api>> open(os::Loop&, KnownNodes&, NodeSync&, Records&, Services&,
                                            HistoryThread&, ClusterThread*, const Options&);

  api::ControllerVersion version() const override { return version_; }
  std::vector<NodeObservationPointer> nodes() const override { return nodes_.seen(); }
  LogReader logs(const Object&, const LogQuery&) const override;
  http::EventStream follow_logs(const Object&, const LogQuery&) override;
  Outcome<std::vector<Revision>> revisions(const std::string& uid) const override;
  std::string start_problem(uint32_t uid) const override {
    return cluster_ != nullptr ? "" : machine_.start_problem(uid);
  }
  std::string container_problem() const override;
  std::vector<std::string> limit_warnings(const objects::ServiceSpec&) const override;
  std::optional<uint32_t> uid_of(const std::string& account) const override;
  std::string user_name(uint32_t uid) const override;
  Outcome<api::AuditList> audit_entries(size_t most) const override;
  std::optional<JobPosition> job_position(const std::string& uid) const override;
  size_t waiting_jobs() const override;
  std::optional<JobHours> job_hours(const std::string& uid) const override { return billing_.hours(uid); }
  http::Response bill(BillQuery, bill::Tariffs, BillForm) override;
  http::Response history(HistoryQuery) override;
  std::string metrics(api::MetricsFormat, const http::Caller&) const override;
  int64_t now_ns() const override;

 private:
  void poll() override { nodes_.poll(); }
  void end_slices(const std::string& node) override { node_sync_.end_slices(node); }
  Outcome<std::vector<std::string>> slices_in_units(const std::string& node) override;
  Outcome<AgentAnswer> ask_agent(const std::string& node, const AgentCall&) override;

  Api(os::Loop&, KnownNodes&, NodeSync&, Records&, Services&, HistoryThread&, ClusterThread*, const Options&,
      std::string endpoint, os::Fd unix_socket, os::Fd tcp_socket, const std::optional<tls::Identity>&,
      std::optional<ConsoleFiles>);
  void read_cluster(const kubernetes::Connection&, const Options&);
  void deliver_changes(os::Loop&, ObjectRegistry&);
  // Returns null if there is no node of this name.
  NodeObservationPointer node_named(const std::string& name) const;
  void write_events();

  os::Loop& loop_;
  KnownNodes& nodes_;
  NodeSync& node_sync_;
  AgentCalls agent_calls_;
  ControllerStore& store_;
  ObjectEvents& events_;
  const ObjectRegistry& objects_;
  RestartTotals restarts_;
  const MachineEffects& machine_;
  const JobPositions& job_positions_;
  EventInbox& late_events_;
  const std::optional<ConsoleFiles> console_;
  const api::ControllerVersion version_;
  const std::vector<uint32_t> operators_;
  ClusterThread* const cluster_;  // Null if the objects are not a cluster's.
  os::Workers log_readers_, document_readers_, changers_;
  LogStreams log_streams_;
  BillingThread billing_;
  std::optional<UsageThread> usage_;  // No value without --kubernetes-nodes.
  HistoryThread& history_;
  ControllerRoutes routes_;
  CallerSlices caller_slices_;
  // True while a delivery of registry changes is scheduled. Shared, because the registry outlives this
  // object.
  std::shared_ptr<std::atomic<bool>> changed_ = std::make_shared<std::atomic<bool>>(false);
  std::optional<http::Server> unix_, tcp_;
  std::optional<os::KeptSocket> kept_socket_;
};

// Drops every capability, even as root. The threads dropped theirs when they started.
Outcome<void> give_up_privileges();

// Returns the API server of --kubernetes-nodes; no value without the option.
Outcome<std::optional<kubernetes::Connection>> find_cluster(const Options&);

// Runs the loop until a signal arrives. Returns the exit status.
int serve(os::Loop&, const os::Fd& signals, KnownNodes&, const Options&);

}  // namespace carve::controller

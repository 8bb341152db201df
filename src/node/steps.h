// The steps of carved's main(), in order. The result of each step lives until the agent ends.
#pragma once

#include <memory>
#include <optional>

#include "node/compute/heart.h"
#include "node/device_search.h"
#include "node/loop/guard_watch.h"
#include "node/loop/reconcile_loop.h"
#include "node/node_agent.h"
#include "node/options.h"
#include "node/store/sqlite_store.h"

namespace carve::node {

// Returns the environment that the options' defaults depend on.
Surroundings surroundings();

// Prints the message and returns the exit status: 2 for an invalid command line, otherwise 1.
int complain(const Failure& failure);

// Carries out the options that start no agent: help, version, completion, and two tasks of the same
// executable. Returns the exit status; no value if the agent should start.
std::optional<int> run_task(const Options& options);

// Prepares the agent's process: blocked signals, descriptors, and the log level.
void prepare_process(const Options& options);

struct Locks {
  os::Fd state, socket;
};
Outcome<Locks> lock(const Options& options);

// The devices of this agent and the libraries.
struct Machine {
  Paths paths;
  Inventory inventory;
  std::unique_ptr<Nvml> nvml;  // Null during the search; then the inventory is the remembered one.
  std::unique_ptr<DeviceSearch> search;
  std::vector<os::Fd> claims;
};
Outcome<Machine> find_machine(const Options& options);

// The stores that keep the slices across a restart of the agent.
struct Stores {
  SqliteStore::Opened ledger;
  RuntimeDir runtime;
  FdStore fd_store;
};
Outcome<Stores> open_stores(const Options& options);

// The agent with its parts.
struct Running {
  explicit Running(NodeState state) : node(std::move(state)) {}
  NodeState node;
  Lifecycle lifecycle{node};
  ReconcileLoop reconcile_loop{node, lifecycle};
  GuardWatch guard_watch{node, lifecycle};
  NodeAgent agent{node, lifecycle};
  std::unique_ptr<Heart> heart;  // Beats even while slices are adopted.
};

// Creates the agent, which uses the parts of `machine` and `stores`, and adopts the running slices.
Outcome<std::unique_ptr<Running>> adopt_slices(os::Loop& loop, const Options& options, const Machine& machine,
                                               Stores stores);

// NVML and its sampler.
struct Measurement {
  std::unique_ptr<Nvml> nvml;
  std::unique_ptr<Sampler> sampler;  // Null until NVML has responded for the first time.
  std::unique_ptr<DeviceSearch> search;
  bool devices_changed = false;  // The agent must restart with the devices that NVML reported.

  bool is_waiting() const { return sampler == nullptr || sampler->under_way_since_ns() != 0; }
};
// Takes NVML from the machine. If NVML has not responded yet, the sampler starts when it responds.
std::unique_ptr<Measurement> start_sampler(os::Loop& loop, const Options& options, Running& running,
                                           Machine& machine);

// The sockets of the attach protocol, of the API and of the metrics.
class Sockets;
struct CloseSockets {
  void operator()(Sockets* sockets) const;
};
Outcome<std::unique_ptr<Sockets, CloseSockets>> open_sockets(os::Loop& loop, const Options& options,
                                                             Running& running);

// Serves until SIGTERM or SIGINT, or until the devices have changed. Returns the exit status.
int serve(os::Loop& loop, const Options& options, const Agent& agent, const Measurement& measurement);

// Executes the agent again with the same arguments; it adopts the running slices. Returns the exit status if
// that fails.
int start_again(char** argv);

}  // namespace carve::node

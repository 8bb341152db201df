// The effects of the service reconciler on this machine: slices through the agents' APIs, programs through
// the launcher, endpoints through HAProxy. Used by one thread; calls may block for a few seconds.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client/agent_client.h"
#include "controller/nodes/slice_forecast.h"
#include "controller/runtime/haproxy.h"
#include "controller/runtime/launcher.h"
#include "controller/runtime/owner_files.h"
#include "controller/runtime/port_registry.h"
#include "controller/runtime/prober.h"
#include "controller/runtime/program_ends.h"
#include "controller/runtime/program_reader.h"
#include "controller/services/effects.h"
#include "os/mutex.h"

namespace carve::controller {

// The port ranges of endpoints and programs, inclusive. They do not overlap with the ports that the kernel
// assigns to outgoing connections (32768 and above).
inline constexpr uint32_t first_endpoint_port = 18000, last_endpoint_port = 18999;
inline constexpr uint32_t first_program_port = 20000, last_program_port = 29999;
inline constexpr uint32_t first_engine_port = 30000, last_engine_port = 31999;

class MachineEffects final : public Effects {
 public:
  struct Node {
    std::string name;
    std::string socket;  // Socket of its agent.
  };
  // Functions that know the nodes (controller/nodes/slice_forecast.h).
  struct NodeRules {
    std::function<Outcome<std::vector<std::string>>(const NodeChoice&, const Amounts&)> nodes_to_ask;
    std::function<std::optional<Isolation>(const std::string& node)> isolation_of;
    std::function<SliceForecast()> forecast;
  };
  // `folder` contains the programs' directories and HAProxy's files; it must exist.
  MachineEffects(std::vector<Node> nodes, NodeRules, Launcher launcher, const std::string& folder);

  // Begins a turn of the loop by dropping the agents' cached answers.
  void begin_turn();
  // Waits until a program ends, wake() is called, or the interval is over.
  ProgramEnds::Woken wait(int64_t interval_ns) { return ends_.wait(interval_ns); }
  // Ends the wait. May be called from any thread.
  void wake() { ends_.wake(); }
  // Returns the figures of all endpoints as of the last turn. May be called from any thread.
  std::vector<RequestFigures> figures() const EXCLUDES(figures_mutex_);
  // Returns why limits of local programs are not enforced. May be called from any thread.
  const runner::LimitProblems& limit_problems() const { return launcher_.limit_problems(); }
  // Returns why the user's programs cannot be started here, or an empty string if they can. May be called
  // from any thread.
  std::string start_problem(uint32_t uid) const { return launcher_.start_problem(uid); }
  // Returns the directory of a replica's program.
  std::string directory_of(const std::string& slice) const { return programs_.directory_of(slice); }

  Outcome<std::vector<std::string>> nodes_to_ask(const NodeChoice& choice, const Amounts& amounts) override {
    return rules_.nodes_to_ask(choice, amounts);
  }
  Outcome<void> check_room(const RoomQuery&) override;
  Outcome<void> grant(const api::SliceRequest&, const std::string& node) override;
  Outcome<std::map<std::string, ObservedSlice>> slices(const std::string& node) override;
  Outcome<void> resize(const std::string& node, const std::string& slice, const api::SliceChange&) override;
  Outcome<void> end_slice(const std::string& node, const std::string& slice) override;
  Outcome<ObservedProgram> program(const std::string& slice) override;
  Outcome<void> start(const ProgramStart&) override;
  Outcome<void> terminate(const std::string& slice) override;
  Outcome<void> kill(const std::string& slice) override;
  void forget_program(const std::string& slice) override;
  Outcome<void> keep_owner(const std::string& program, const ProgramOwner&) override;
  std::set<std::string> kept_programs() override;
  ProgramOwner owner(const std::string& program) override;
  Outcome<uint32_t> free_port(PortUse, const std::vector<uint32_t>& used) override;
  bool is_free(uint32_t port) override;
  std::string new_secret() override;
  std::optional<ProbeResult> probe(const EndpointServer&, const objects::Readiness&) override;
  Outcome<void> publish(const std::vector<ServiceEndpoint>&) override;
  std::string endpoint_problem(const std::string& name_space, const std::string& name) const override {
    return haproxy_ ? haproxy_->problem_of(name_space, name) : "";
  }
  Outcome<std::map<std::string, workload::EndpointState>> endpoint_states() override;
  std::optional<EndpointLoad> load(const std::string& name_space, const std::string& name) override;

 private:
  Outcome<const Node*> node_named(const std::string& name) const;
  client::AgentClient agent_of(const Node&) const;
  Outcome<std::map<std::string, ObservedSlice>> list_slices(const std::string& node) const;
  Outcome<void> open_proxy();
  bool is_published(const std::vector<ServiceEndpoint>&) const;

  const std::vector<Node> nodes_;
  const NodeRules rules_;
  const Launcher launcher_;
  ProgramReader programs_;
  ProgramEnds ends_;
  OwnerFiles owners_;
  const std::string proxy_folder_;
  std::unique_ptr<HaProxy> haproxy_;           // Null until opened.
  std::vector<ServiceEndpoint> published_;     // Endpoints that were sent to HAProxy.
  std::vector<ObservedServer> proxy_servers_;  // Observed in this turn.
  Prober prober_;
  PortRegistry ports_{PortRegistry::machine_files()};
  // This turn's slices by node, or why the agent did not report them. A node that does not respond delays
  // each turn only once.
  std::map<std::string, Outcome<std::map<std::string, ObservedSlice>>> slices_;
  mutable os::Mutex figures_mutex_;
  std::vector<RequestFigures> figures_ GUARDED_BY(figures_mutex_);
};

}  // namespace carve::controller

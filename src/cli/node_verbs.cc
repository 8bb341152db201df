// Verbs for the nodes of the controller: carve cordon, uncordon, drain, and carve node
// stop|start|restart|pool.
#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "cli/node_pools.h"
#include "cli/time_span.h"
#include "objects/node_object.h"

namespace carve::cli {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds node_poll_interval{200};

void fail(Context& context, const std::string& message) {
  fmt::print(stderr, "carve: {}\n", harmless(message));
  context.status = failed_status;
}

void patch(Context& context, const std::string& name, const std::string& body, const std::string& query,
           const std::string& done) {
  answered(context, context.controller().send<objects::Node>("PATCH", node_path(name) + query, body),
           [&](const auto&) { fmt::print("node/{} {}\n", name, done); });
}

// Calls `is_done` with the node until it returns true. Prints a message and returns false if the node cannot
// be read or the time limit passes.
bool wait_for_node(Context& context, const std::string& name, seconds timeout, const std::string& what,
                   const std::function<bool(const objects::Node&)>& is_done) {
  const client::Client controller = context.controller();
  const auto deadline = steady_clock::now() + timeout;
  for (;;) {
    const auto node = controller.get<objects::Node>(node_path(name));
    if (!node) return answered(context, node, [](const auto&) {}), false;
    if (is_done(*node)) return true;
    if (steady_clock::now() >= deadline) {
      std::vector<std::string> names;
      for (const objects::NodeSliceStatus& slice : node->status.slice_list) names.push_back(slice.name);
      fail(context,
           fmt::format("node {} {} within {} s; {}", name, what, timeout.count(),
                       names.empty() ? fmt::format("its state is {}", text(node->status.state))
                                     : fmt::format("it still has slices: {}", fmt::join(names, ", "))));
      return false;
    }
    std::this_thread::sleep_for(node_poll_interval);
  }
}

void restart(Context& context, const std::string& name, bool force, seconds timeout) {
  const std::string target = node_path(name, "restart") + (force ? "?force=true" : "");
  bool begun = false;
  answered(context, context.controller().post<objects::Node>(target, api::Nothing{}),
           [&](const auto&) { begun = true; });
  if (begun && wait_for_node(context, name, timeout, "was not restarted",
                             [](const objects::Node& node) { return !node.spec.restarting; }))
    fmt::print("node/{} restarted\n", name);
}

// Returns the slices that belong to no workload; a drain does not move them.
std::vector<std::string> unmanaged_slices(const objects::Node& node) {
  std::vector<std::string> out;
  for (const objects::NodeSliceStatus& slice : node.status.slice_list)
    if (slice.workload.empty()) out.push_back(slice.name);
  return out;
}

// Prints each workload with replicas on the node once, and each reason why replicas cannot move to another
// node once.
class DrainReport {
 public:
  DrainReport(Context& context, std::string node) : context_(context), node_(std::move(node)) {}

  void update() {
    const client::Client controller = context_.controller();
    for (const objects::KindText& kind : objects::kinds) {
      if (!kind.is_workload) continue;
      const auto list = workloads(controller, kind.value);
      if (!list) continue;  // Retried at the next update.
      for (const objects::Service& service : *list) update(kind.value, service);
    }
  }

 private:
  void update(objects::Kind kind, const objects::Service& service) {
    const auto& replicas = service.status.replica_list;
    if (std::ranges::find(replicas, node_, &objects::ReplicaStatus::node) == replicas.end()) return;
    const std::string name = ObjectName{kind, service.metadata.name, service.metadata.namespace_}.text();
    print(name + " moves");
    for (const objects::Condition& condition : service.status.conditions)
      if (condition.reason == "NoCapacity" || condition.reason == "SliceRefused")
        print(fmt::format("{}: {}", name, condition.message));
  }

  void print(const std::string& line) {
    if (!printed_.insert(line).second) return;
    fmt::print("{}\n", harmless(line));
  }

  Context& context_;
  std::string node_;
  std::set<std::string> printed_;
};

void drain(Context& context, const std::string& name, bool force, seconds timeout) {
  const client::Client controller = context.controller();
  const auto cordoned =
      controller.send<objects::Node>("PATCH", node_path(name), R"({"spec":{"schedulable":false}})");
  if (!cordoned) return answered(context, cordoned, [](const auto&) {});
  // Uses the list of slices from the first response after the node stopped accepting new ones.
  objects::Node node;
  const auto is_told = [&](const objects::Node& one) {
    node = one;
    return one.status.agent && one.status.agent->last_seen_at > cordoned->status.agent->last_seen_at;
  };
  if (!wait_for_node(context, name, timeout, "was not polled", is_told)) return;
  const std::vector<std::string> unmanaged = unmanaged_slices(node);
  if (!unmanaged.empty() && !force)
    return fail(context,
                fmt::format("node {} is cordoned but not drained, because {} would be ended; stop these "
                            "slices, or use --force",
                            name, fmt::join(unmanaged, ", ")));
  const auto begun = controller.post<objects::Node>(node_path(name, "drain"), api::Nothing{});
  if (!begun) return answered(context, begun, [](const auto&) {});
  DrainReport report(context, name);
  const auto has_unmanaged_alone = [&](const objects::Node& one) {
    report.update();
    return unmanaged_slices(one).size() == one.status.slice_list.size();
  };
  if (!wait_for_node(context, name, timeout, "was not drained", has_unmanaged_alone)) return;
  if (!unmanaged.empty()) {
    const auto ended = controller.post<objects::Node>(node_path(name, "end-slices"), api::Nothing{});
    if (!ended) return answered(context, ended, [](const auto&) {});
  }
  if (wait_for_node(context, name, timeout, "was not drained",
                    [](const objects::Node& one) { return one.status.slice_list.empty(); }))
    fmt::print("node/{} drained\n", name);
}

void add_simple(CLI::App* parent, const char* verb_name, const char* help,
                const std::function<void(const std::string& name)>& act) {
  CLI::App* verb = parent->add_subcommand(verb_name, help);
  auto name = std::make_shared<std::string>();
  verb->add_option("NODE", *name, "The node")->required();
  verb->callback([name, act] { act(*name); });
}

}  // namespace

void add_cordon(CLI::App& app, Context& context) {
  add_simple(&app, "cordon", "Create no new slices on a node; running slices are not affected",
             [&context](const std::string& name) {
               patch(context, name, R"({"spec":{"schedulable":false}})", "", "cordoned");
             });
  add_simple(&app, "uncordon", "Allow new slices on a node again", [&context](const std::string& name) {
    patch(context, name, R"({"spec":{"schedulable":true}})", "", "uncordoned");
  });
}

void add_drain(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("drain", "Cordon a node and move its services elsewhere");
  auto name = std::make_shared<std::string>();
  auto timeout = std::make_shared<std::string>("10m");
  auto force = std::make_shared<bool>(false);
  verb->add_option("NODE", *name, "The node")->required();
  verb->add_option("--timeout", *timeout, "Maximum wait for each step")
      ->check(check_time_span)
      ->capture_default_str();
  verb->add_flag("--force", *force, "End the slices that belong to no service");
  verb->footer("  carve drain n1 --timeout 10m");
  verb->callback(
      [&context, name, timeout, force] { drain(context, *name, *force, *parse_time_span(*timeout)); });
}

void add_node_verbs(CLI::App* node, Context& context) {
  const auto post = [&context](const char* verb, const char* done) {
    return [&context, verb, done](const std::string& name) {
      answered(context, context.controller().post<objects::Node>(node_path(name, verb), api::Nothing{}),
               [&](const auto&) { fmt::print("node/{} {}\n", name, done); });
    };
  };
  add_simple(node, "stop", "Take a node out of service; running slices are not affected",
             post("stop", "stopped"));
  add_simple(node, "start", "Return a stopped node to service", post("start", "started"));
  CLI::App* verb = node->add_subcommand(
      "restart", "Refuse new slices until the running ones have ended, then apply the desired settings");
  auto name = std::make_shared<std::string>();
  auto timeout = std::make_shared<std::string>("10m");
  auto force = std::make_shared<bool>(false);
  verb->add_option("NODE", *name, "The node")->required();
  verb->add_option("--timeout", *timeout, "Maximum wait")->check(check_time_span)->capture_default_str();
  verb->add_flag("--force", *force, "End the running slices");
  verb->footer("  carve node restart n1");
  verb->callback(
      [&context, name, timeout, force] { restart(context, *name, *force, *parse_time_span(*timeout)); });
  CLI::App* join = node->add_subcommand("pool", "Put a node into a node pool; '' removes it from its pool");
  auto pool = std::make_shared<std::string>();
  auto joined = std::make_shared<std::string>();
  join->add_option("NODE", *joined, "The node")->required();
  join->add_option("POOL", *pool, "The pool")->required();
  join->footer("  carve node pool n1 a10");
  join->callback([&context, joined, pool] {
    patch(context, *joined, fmt::format(R"({{"spec":{{"pool":{}}}}})", api::quoted(*pool)), "",
          pool->empty() ? "is in no pool" : "is in pool " + *pool);
  });
}

}  // namespace carve::cli

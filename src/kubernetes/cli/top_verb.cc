// kubectl carve top: calls the agent of each node with `kubectl exec` in its pod, and prints the results.
#include <algorithm>
#include <atomic>
#include <thread>

#include "kubernetes/cli/top.h"
#include "kubernetes/cli/verb_tools.h"
#include "wire/api/percent.h"

namespace carve::kubernetes::cli {
namespace {

constexpr size_t max_asked_at_once = 8;  // Each call runs a kubectl with about 50 MB.
constexpr int max_answer_seconds = 15;

Result<std::string, std::string> ask_agent(const VerbOptions& options, const AgentPod& agent) {
  if (!agent.problem.empty()) return tl::unexpected(agent.problem);
  return run_kubectl(options.kubectl,
                     {"exec", "--namespace=carve-system", agent.name, "--container=agent", "--", "carve",
                      "top", "-o", "json"},
                     max_answer_seconds);
}

// Returns the agents' responses in the order of the agents.
std::vector<AgentAnswer> ask_agents(const VerbOptions& options, const std::vector<AgentPod>& agents) {
  std::vector<AgentAnswer> out;
  for (const AgentPod& agent : agents) out.push_back({agent.node, std::string()});
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < agents.size(); i = next++) out[i].text = ask_agent(options, agents[i]);
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < std::min(max_asked_at_once, agents.size()); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  return out;
}

}  // namespace

int show_top(const VerbOptions& options) {
  const std::string selector =
      "carve.dev/node" + (options.selector.empty() ? std::string() : "," + options.selector);
  const auto nodes = get(options, "/api/v1/nodes?labelSelector=" + api::percent_encoded(selector));
  if (!nodes) return complain(nodes.error());
  const auto pods = get(
      options, fmt::format("{}/pods?labelSelector={}", system_path, api::percent_encoded("app=carve-agent")));
  if (!pods) return complain(pods.error());
  auto agents = agents_of(*nodes, *pods);
  if (!agents) return complain(agents.error());
  if (!options.nodes.empty())
    std::erase_if(*agents, [&](const AgentPod& agent) {
      return std::ranges::find(options.nodes, agent.node) == options.nodes.end();
    });
  const TopList list = top_rows(ask_agents(options, *agents), options.name_space);
  const std::string devices =
      options.name_space.empty() ? table_text(device_table(list), options.headings) + "\n" : "";
  const int status =
      options.form == Form::name
          ? print_names(options, slice_table(list, options.form))
          : print(options, list, devices + table_text(slice_table(list, options.form), options.headings));
  for (const SilentNode& node : list.silent)
    complain(fmt::format("no response from node {}: {}", node.node, node.reason));
  return list.silent.empty() ? status : failed_status;
}

}  // namespace carve::kubernetes::cli

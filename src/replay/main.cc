// carve-replay: a year of arrivals in a minute. Replays traces against a cluster under placement policies,
// with the very place/ that runs in production, and says how much of the cluster was used. Same seed, same
// answer, on any machine; all cores work, one replay (trace, policy, seed) each.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <thread>

#include "replay/explain.h"
#include "replay/plot.h"
#include "replay/report.h"

namespace {

using namespace carve;
using namespace carve::replay;

struct Options {
  std::string nodes;
  std::vector<std::string> traces;
  std::vector<std::string> policies = {"fgd"};
  std::string seeds = "42..51";
  std::string arrivals = "inflate";
  double load = 0.95;
  std::string lifetimes = "exponential";
  std::string workload = "trace";
  std::string form = "table";
  std::string plot;
  std::string request;
  unsigned filled = 100;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
};

int complain(std::string_view sentence) {
  fmt::print(stderr, "carve-replay: {}\n", sentence);
  return 2;
}

int printed(const std::string& out) {
  return std::fputs(out.c_str(), stdout) < 0 || std::fflush(stdout) != 0 ? 1 : 0;
}

// "42..51" or "42": at most 10,000 of them.
std::optional<std::vector<uint64_t>> parse_seeds(std::string_view text) {
  const auto number = [](std::string_view t) -> std::optional<uint64_t> {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), value);
    if (error != std::errc() || end != t.data() + t.size()) return std::nullopt;
    return value;
  };
  const size_t dots = text.find("..");
  const auto from = number(text.substr(0, dots));
  const auto to = dots == text.npos ? from : number(text.substr(dots + 2));
  if (!from || !to || *to < *from || *to - *from >= 10'000) return std::nullopt;
  std::vector<uint64_t> out;
  for (uint64_t s = *from; s - *from <= *to - *from; ++s) out.push_back(s);
  return out;
}

struct Job {
  size_t trace;
  size_t series;
  size_t run;
};

// What every replay is, on `threads` threads; how far it is goes to a terminal on stderr.
void run_all(const std::vector<Job>& todo, unsigned threads, const std::function<void(const Job&)>& replay) {
  const bool shown = isatty(STDERR_FILENO) != 0;
  std::atomic<size_t> next = 0;
  std::atomic<size_t> done = 0;
  const auto work = [&] {
    for (size_t i; (i = next.fetch_add(1)) < todo.size();) {
      replay(todo[i]);
      const size_t finished = done.fetch_add(1) + 1;
      if (shown) fmt::print(stderr, "\r{} of {} replays", finished, todo.size());
    }
  };
  {
    std::vector<std::jthread> others;
    for (unsigned t = 1; t < std::min<size_t>(threads, todo.size()); ++t) others.emplace_back(work);
    work();
  }
  if (shown) fmt::print(stderr, "\r\033[K");
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("Replays arrivals against a cluster and says how much of it each placement policy uses.");
  app.add_option("--nodes", o.nodes, "The cluster: CSV with sn,cpu_milli,memory_mib,gpu,model")->required();
  app.add_option("--trace", o.traces, "Arrivals: CSV with name,cpu_milli,memory_mib,num_gpu,gpu_milli")
      ->required();
  app.add_option("--policy", o.policies, "first-fit, best-fit, binpack, spread, fgd, carve, lookahead")
      ->delimiter(',');
  app.add_option("--seeds", o.seeds, "FIRST..LAST or one number")->capture_default_str();
  app.add_option("--arrivals", o.arrivals, "inflate: nobody leaves; churn: everybody does")
      ->check(CLI::IsMember({"inflate", "churn"}))
      ->capture_default_str();
  app.add_option("--load", o.load, "churn: cards asked for at a moment, as a part of the cluster's")
      ->check(CLI::Range(0.01, 10.0))
      ->capture_default_str();
  app.add_option("--lifetimes", o.lifetimes, "churn: exponential, or the trace's own")
      ->check(CLI::IsMember({"exponential", "trace"}))
      ->capture_default_str();
  app.add_option(
         "--workload", o.workload,
         "trace: the policy is told the trace's requests beforehand; learned: carve and lookahead learn them")
      ->check(CLI::IsMember({"trace", "learned"}))
      ->capture_default_str();
  app.add_option("-o", o.form, "table, json or csv")
      ->check(CLI::IsMember({"table", "json", "csv"}))
      ->capture_default_str();
  app.add_option("--plot", o.plot, "inflate: an SVG of what is in use against what was asked for");
  app.add_option(
      "--explain", o.request,
      "A request, such as num_gpu=8,cpu_milli=64000: where it would go once the first trace has filled "
      "the cluster, or why nowhere");
  app.add_option("--filled", o.filled, "explain: percent of the cards asked for before")
      ->check(CLI::Range(0u, 130u))
      ->capture_default_str();
  app.add_option("--jobs", o.jobs, "Threads")->check(CLI::Range(1u, 1024u))->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  // Beyond this point every option is sound.
  const auto seeds = parse_seeds(o.seeds);
  if (!seeds) return complain(fmt::format("--seeds: '{}' is neither a number nor FIRST..LAST", o.seeds));
  std::vector<Strategy> policies;
  for (const std::string& name : o.policies) {
    const auto policy = parse_strategy(name);
    if (!policy) return complain(fmt::format("--policy: there is no policy '{}'", name));
    policies.push_back(*policy);
  }

  // Beyond this point the files are read, and every row of them is sound.
  const auto cluster = read_cluster(o.nodes);
  if (!cluster) return complain(cluster.error().sentence);
  std::vector<Trace> traces;
  for (const std::string& path : o.traces) {
    auto trace = read_trace(path, *cluster);
    if (!trace) return complain(trace.error().sentence);
    traces.push_back(std::move(*trace));
  }

  const bool churns = o.arrivals == "churn";
  const bool known = o.workload == "trace";
  if (churns && !o.plot.empty())
    return complain("--plot: a picture of arrivals that never leave; leave churn out");
  if (!o.request.empty()) {
    const auto request = parse_request(o.request, *cluster);
    if (!request) return complain(request.error().sentence);
    std::string answers;
    for (const Strategy policy : policies)
      answers += explain(*cluster, traces[0], policy, known, seeds->front(), o.filled, *request);
    return printed(answers);
  }

  ChurnPlan plan;
  plan.load_permille = static_cast<unsigned>(std::lround(o.load * 1000));
  plan.lifetimes = o.lifetimes == "trace" ? Lifetimes::trace : Lifetimes::exponential;
  std::vector<Series> all;
  std::vector<Job> todo;
  for (size_t t = 0; t < traces.size(); ++t)
    for (const Strategy policy : policies) {
      for (size_t run = 0; run < seeds->size(); ++run) todo.push_back({t, all.size(), run});
      all.push_back({traces[t].name, policy, *seeds, std::vector<Inflated>(churns ? 0 : seeds->size()),
                     std::vector<Churned>(churns ? seeds->size() : 0)});
    }
  std::vector<std::string> complaints(todo.size());
  run_all(todo, o.jobs, [&](const Job& job) {
    Series& s = all[job.series];
    if (!churns) {
      s.inflated[job.run] = inflate(*cluster, traces[job.trace], s.policy, known, s.seeds[job.run]);
      return;
    }
    auto churned = churn(*cluster, traces[job.trace], s.policy, known, plan, s.seeds[job.run]);
    if (churned)
      s.churned[job.run] = *churned;
    else
      complaints[static_cast<size_t>(&job - todo.data())] = churned.error().sentence;
  });
  for (const std::string& sentence : complaints)
    if (!sentence.empty()) return complain(sentence);
  const std::string out = o.form == "json" ? json(all) : o.form == "csv" ? csv(all) : table(all);
  if (!o.plot.empty() && !(std::ofstream(o.plot) << plot(all) << std::flush))
    return complain(fmt::format("--plot: {}: cannot be written", o.plot));
  return printed(out);
}

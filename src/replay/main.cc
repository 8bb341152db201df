// carve-replay: replays traces against a cluster under placement strategies, with the same code (place/) that
// runs in production, and reports how much of the cluster was used. A year of arrivals takes a minute. The
// same seed gives the same result on any machine. Each core runs one replay (trace, strategy, seed) at a
// time.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <thread>

#include "replay/explain_request.h"
#include "replay/report.h"

namespace {

using namespace carve;
using namespace carve::replay;

struct Options {
  std::string nodes;
  std::vector<std::string> traces;
  std::vector<std::string> strategies = {"fgd"};
  std::string seeds = "42..51";
  std::string arrivals = "inflate";
  double load = 0.95;
  std::string lifetimes = "exponential";
  uint64_t longest = ChurnPlan::any_length;
  std::string workload = "trace";
  std::string form = "table";
  std::string curves;
  std::string request;
  std::string snapshot;
  unsigned consolidate = 0;
  bool quiet = false;
  unsigned filled = 100;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
};

int complain(std::string_view message) {
  fmt::print(stderr, "carve-replay: {}\n", message);
  return 2;
}

int printed(const std::string& out) {
  return std::fputs(out.c_str(), stdout) < 0 || std::fflush(stdout) != 0 ? 1 : 0;
}

// Parses "42..51" or "42"; at most 10,000 seeds.
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

// Reports the progress on stderr. On a terminal, the line is rewritten in place; elsewhere, a line is printed
// every few seconds.
class Progress {
 public:
  Progress(size_t all, bool quiet) : all_(all), quiet_(quiet) {}
  ~Progress() {
    if (!quiet_ && terminal_) fmt::print(stderr, "\r\033[K");
  }
  void finished_one() {
    const size_t finished = done_.fetch_add(1) + 1;
    if (quiet_) return;
    if (terminal_) return fmt::print(stderr, "\r{} of {} replays", finished, all_);
    const int64_t now = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::milliseconds(1);
    int64_t last = said_ms_.load();
    if (now - last >= every_ms && said_ms_.compare_exchange_strong(last, now))
      fmt::print(stderr, "{} of {} replays\n", finished, all_);
  }

 private:
  static constexpr int64_t every_ms = 3000;
  const size_t all_;
  const bool quiet_;
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  std::atomic<size_t> done_ = 0;
  std::atomic<int64_t> said_ms_ =
      std::chrono::steady_clock::now().time_since_epoch() / std::chrono::milliseconds(1);
};

// Runs all replays on `threads` threads.
void run_all(const std::vector<Job>& todo, unsigned threads, bool quiet,
             const std::function<void(const Job&)>& replay) {
  Progress progress(todo.size(), quiet);
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i; (i = next.fetch_add(1)) < todo.size();) {
      replay(todo[i]);
      progress.finished_one();
    }
  };
  {
    std::vector<std::jthread> others;
    for (unsigned t = 1; t < std::min<size_t>(threads, todo.size()); ++t) others.emplace_back(work);
    work();
  }
}

// Prints the explanation of each strategy. The exit status is 1 if the request fits nowhere, as for carve
// explain.
int print_explanations(const std::vector<Explanation>& explanations) {
  std::string text;
  for (const Explanation& explanation : explanations) text += explanation.text;
  const bool fits = std::ranges::any_of(explanations, &Explanation::fits);
  return std::max(printed(text), fits ? 0 : 1);
}

// Runs --explain or --consolidate on a snapshot.
int look_at_snapshot(const Options& o, const std::vector<Strategy>& strategies) {
  const auto snapshot = read_snapshot(o.snapshot);
  if (!snapshot) return complain(snapshot.error().message);
  if (o.consolidate != 0)
    return printed(o.form == "json" ? consolidation_json(*snapshot, strategies[0], o.consolidate)
                                    : consolidation_table(*snapshot, strategies[0], o.consolidate));
  const auto request = parse_request(o.request, models_of(*snapshot));
  if (!request) return complain(request.error().message);
  std::vector<Explanation> answers;
  for (const Strategy strategy : strategies) answers.push_back(explain(*snapshot, strategy, *request));
  return print_explanations(answers);
}

// The options of a replay.
void add_replay_options(CLI::App& app, Options& o) {
  app.add_option("--nodes", o.nodes, "The cluster: CSV with sn,cpu_milli,memory_mib,gpu,model")
      ->type_name("FILE");
  app.add_option("--trace", o.traces, "Arrivals: CSV with name,cpu_milli,memory_mib,num_gpu,gpu_milli")
      ->type_name("FILE");
  app.add_option("--strategy", o.strategies,
                 "Strategies: first-fit, best-fit, binpack, spread, fgd, fgd-scarcity, lookahead")
      ->delimiter(',')
      ->type_name("NAME");
  app.add_option("--seeds", o.seeds, "Seeds for the order of arrivals")
      ->type_name("FIRST[..LAST]")
      ->capture_default_str();
  app.add_option("--arrivals", o.arrivals, "Arrivals: inflate (slices never end) or churn (slices end)")
      ->check(CLI::IsMember({"inflate", "churn"}))
      ->capture_default_str();
  app.add_option("--load", o.load,
                 "With churn: devices requested at any moment, as a fraction of the cluster's devices")
      ->check(CLI::Range(0.01, 10.0))
      ->capture_default_str();
  app.add_option("--lifetimes", o.lifetimes,
                 "With churn: distribution of lifetimes, exponential or as in the trace")
      ->check(CLI::IsMember({"exponential", "trace"}))
      ->capture_default_str();
  app.add_option("--longest", o.longest, "With churn and --lifetimes trace: maximum lifetime in seconds")
      ->check(CLI::Range(uint64_t{1}, ChurnPlan::any_length))
      ->type_name("SECONDS")
      ->default_str("any");
  app.add_option(
         "--workload", o.workload,
         "Expected requests: trace (the strategies know the trace's requests) or learned (fgd-scarcity and "
         "lookahead derive them from the arrivals)")
      ->check(CLI::IsMember({"trace", "learned"}))
      ->capture_default_str();
}

// The options of the output, and those that examine one state of a fleet.
void add_output_options(CLI::App& app, Options& o) {
  app.add_option("-o", o.form, "Output format: table, json or csv (with --consolidate: table or json)")
      ->check(CLI::IsMember({"table", "json", "csv"}))
      ->capture_default_str();
  app.add_option("--curves", o.curves,
                 "With inflate: CSV file to write, with the percentage in use for each percentage requested "
                 "(tools/plot draws it)")
      ->type_name("FILE");
  app.add_option("--explain", o.request,
                 "A request, such as num_gpu=8,cpu_milli=64000: print where it fits after the first trace "
                 "has filled the cluster, or why it fits nowhere")
      ->type_name("REQUEST");
  app.add_option("--snapshot", o.snapshot,
                 "Instead of --nodes and --trace: JSON of a fleet's nodes and slices, for --explain "
                 "and --consolidate")
      ->type_name("FILE");
  app.add_option("--consolidate", o.consolidate,
                 "With --snapshot: print a plan with few moves that would empty this many additional devices")
      ->check(CLI::Range(1u, 1'000'000u))
      ->type_name("DEVICES");
  app.add_flag("--quiet", o.quiet, "Print no progress on stderr");
  app.add_option("--filled", o.filled, "With --explain: percentage of the devices that is requested first")
      ->check(CLI::Range(0u, 130u))
      ->capture_default_str();
  app.add_option("--jobs", o.jobs, "Number of threads")->check(CLI::Range(1u, 1024u))->capture_default_str();
}

// Returns the message of the first rule between options that is violated, or an empty string if there is
// none.
std::string broken_rule(const Options& o) {
  if (!o.snapshot.empty()) {
    if (!o.nodes.empty() || !o.traces.empty())
      return "--snapshot contains the cluster and its slices; omit --nodes and --trace";
    if (o.request.empty() == (o.consolidate == 0))
      return "--snapshot needs exactly one of --explain REQUEST and --consolidate DEVICES";
    return "";
  }
  if (o.consolidate != 0) return "--consolidate needs a fleet; add --snapshot FILE";
  if (o.nodes.empty() || o.traces.empty())
    return "no input is given; add --nodes FILE and --trace FILE, or --snapshot FILE";
  if (o.arrivals == "churn" && !o.curves.empty())
    return "--curves is not available with --arrivals churn; use --arrivals inflate";
  return "";
}

Outcome<std::vector<Strategy>> strategies_of(const Options& o) {
  std::vector<Strategy> out;
  for (const std::string& name : o.strategies) {
    const auto strategy = parse<Strategy>(name);
    if (!strategy) return failure(FailureKind::invalid_argument, "--strategy: unknown strategy '{}'", name);
    out.push_back(*strategy);
  }
  return out;
}

// The input files of a replay.
struct Inputs {
  Cluster cluster;
  std::vector<Trace> traces;
};
Outcome<Inputs> read_inputs(const Options& o) {
  auto cluster = read_cluster(o.nodes);
  if (!cluster) return tl::unexpected(cluster.error());
  Inputs out{std::move(*cluster), {}};
  for (const std::string& path : o.traces) {
    auto trace = read_trace(path, out.cluster);
    if (!trace) return tl::unexpected(trace.error());
    out.traces.push_back(std::move(*trace));
  }
  return out;
}

// Explains the request in the cluster after the first trace has filled it.
int explain_filled(const Options& o, const Inputs& in, const std::vector<Strategy>& strategies,
                   uint64_t seed) {
  const auto request = parse_request(o.request, models_of(in.cluster));
  if (!request) return complain(request.error().message);
  std::vector<Explanation> answers;
  for (const Strategy strategy : strategies)
    answers.push_back(
        explain(in.cluster, in.traces[0], strategy, o.workload == "trace", seed, o.filled, *request));
  return print_explanations(answers);
}

// Replays each trace with each strategy under each seed.
Outcome<std::vector<Series>> replay_all(const Options& o, const Inputs& in,
                                        const std::vector<Strategy>& strategies,
                                        const std::vector<uint64_t>& seeds) {
  const bool churns = o.arrivals == "churn", known = o.workload == "trace";
  ChurnPlan plan;
  plan.load_permille = static_cast<unsigned>(std::lround(o.load * 1000));
  plan.longest_seconds = o.longest;
  plan.lifetimes = o.lifetimes == "trace" ? Lifetimes::trace : Lifetimes::exponential;
  std::vector<Series> all;
  std::vector<Job> todo;
  for (size_t t = 0; t < in.traces.size(); ++t)
    for (const Strategy strategy : strategies) {
      for (size_t run = 0; run < seeds.size(); ++run) todo.push_back({t, all.size(), run});
      all.push_back({in.traces[t].name, strategy, seeds, std::vector<Inflated>(churns ? 0 : seeds.size()),
                     std::vector<Churned>(churns ? seeds.size() : 0)});
    }
  std::vector<std::string> refusals(todo.size());
  run_all(todo, o.jobs, o.quiet, [&](const Job& job) {
    Series& s = all[job.series];
    if (!churns) {
      s.inflated[job.run] = inflate(in.cluster, in.traces[job.trace], s.strategy, known, s.seeds[job.run]);
      return;
    }
    auto churned = churn(in.cluster, in.traces[job.trace], s.strategy, known, plan, s.seeds[job.run]);
    if (churned)
      s.churned[job.run] = *churned;
    else
      refusals[static_cast<size_t>(&job - todo.data())] = churned.error().message;
  });
  for (const std::string& message : refusals)
    if (!message.empty()) return failure(FailureKind::invalid_argument, "{}", message);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  // Parse the command line. After this, every option is valid.
  Options o;
  CLI::App app("Replay arrivals against a cluster and print how much of it each placement strategy uses.");
  app.set_version_flag("--version", "carve-replay " CARVE_VERSION);
  add_replay_options(app, o);
  add_output_options(app, o);
  CLI11_PARSE(app, argc, argv);
  const auto seeds = parse_seeds(o.seeds);
  if (!seeds) return complain(fmt::format("--seeds: '{}' is not a number or FIRST..LAST", o.seeds));
  const auto strategies = strategies_of(o);
  if (!strategies) return complain(strategies.error().message);
  if (const std::string rule = broken_rule(o); !rule.empty()) return complain(rule);
  if (!o.snapshot.empty()) return look_at_snapshot(o, *strategies);

  // Read the files. After this, every row is valid.
  const auto inputs = read_inputs(o);
  if (!inputs) return complain(inputs.error().message);
  if (!o.request.empty()) return explain_filled(o, *inputs, *strategies, seeds->front());

  // Replay. After this, all results are known.
  const auto all = replay_all(o, *inputs, *strategies, *seeds);
  if (!all) return complain(all.error().message);

  // Write the results.
  if (!o.curves.empty() && !(std::ofstream(o.curves) << curves(*all) << std::flush))
    return complain(fmt::format("--curves: {}: cannot be written", o.curves));
  return printed(o.form == "json" ? json(*all) : o.form == "csv" ? csv(*all) : table(*all));
}

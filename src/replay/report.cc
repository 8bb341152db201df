#include "replay/report.h"

#include <sys/resource.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace carve::replay {
namespace {

template <class Run, class Pick>
Spread over(const std::vector<Run>& runs, Pick pick) {
  std::vector<double> values;
  for (const Run& run : runs) values.push_back(static_cast<double>(pick(run)));
  return spread_of(values);
}

Effort effort_of(const Series& s) {
  Effort sum;
  const auto add = [&](const auto& runs) {
    for (const auto& run : runs) {
      sum.decisions += run.effort.decisions, sum.seconds += run.effort.seconds;
      sum.bytes_per_node = std::max(sum.bytes_per_node, run.effort.bytes_per_node);
      sum.classes = std::max(sum.classes, run.effort.classes);
    }
  };
  add(s.inflated), add(s.churned);
  return sum;
}

double speed(const Effort& e) { return e.seconds > 0 ? static_cast<double>(e.decisions) / e.seconds : 0; }

// Rounds to a thousandth of a percent for printing.
double rounded(double value) { return std::round(value * 1000) / 1000; }

nlohmann::ordered_json both(const Spread& s) { return {{"mean", rounded(s.mean)}, {"sd", rounded(s.sd)}}; }

// Returns a field of CSV (RFC 4180). A trace is named after its file, so it may need quotes.
std::string csv_field(std::string_view name) {
  if (name.find_first_of(",\"\r\n") == name.npos) return std::string(name);
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

}  // namespace

Spread spread_of(const std::vector<double>& values) {
  Spread s;
  if (values.empty()) return s;
  for (const double v : values) s.mean += v;
  s.mean /= static_cast<double>(values.size());
  if (values.size() < 2) return s;
  for (const double v : values) s.sd += (v - s.mean) * (v - s.mean);
  s.sd = std::sqrt(s.sd / static_cast<double>(values.size() - 1));
  return s;
}

std::string table(const std::vector<Series>& all) {
  const bool churns = !all.empty() && !all[0].churned.empty();
  std::string out = fmt::format("{:<14}{:<14}{:>6}", "trace", "strategy", "seeds");
  if (churns) {
    out += fmt::format("{:>8}{:>6}", "lost%", "sd");
    for (const auto name : class_names) out += fmt::format("{:>8}", name);
  } else {
    for (const unsigned mark : marks) out += fmt::format("{:>8}%", mark);
    out += fmt::format("{:>7}", "sd100");
  }
  out += fmt::format("{:>14}\n", "decisions/s");
  for (const Series& s : all) {
    out += fmt::format("{:<14}{:<14}{:>6}", s.trace, text(s.strategy), s.seeds.size());
    if (churns) {
      const Spread lost = over(s.churned, [](const Churned& r) { return r.lost_percent(); });
      out += fmt::format("{:>8.2f}{:>6.2f}", lost.mean, lost.sd);
      for (size_t c = 0; c < class_names.size(); ++c)
        out += fmt::format("{:>8.2f}",
                           over(s.churned, [&](const Churned& r) { return r.lost_percent(c); }).mean);
    } else {
      for (size_t m = 0; m < marks.size(); ++m)
        out +=
            fmt::format("{:>9.2f}", over(s.inflated, [&](const Inflated& r) { return r.allocated[m]; }).mean);
      out += fmt::format("{:>7.2f}", over(s.inflated, [](const Inflated& r) { return r.allocated[3]; }).sd);
    }
    out += fmt::format("{:>14.0f}\n", speed(effort_of(s)));
  }
  return out;
}

std::string json(const std::vector<Series>& all) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Series& s : all) {
    nlohmann::ordered_json row;
    row["trace"] = s.trace;
    row["strategy"] = text(s.strategy);
    row["seeds"] = s.seeds;
    if (!s.churned.empty()) {
      row["lost_percent"] = both(over(s.churned, [](const Churned& r) { return r.lost_percent(); }));
      for (size_t c = 0; c < class_names.size(); ++c)
        row["lost_percent_of"][std::string(class_names[c])] =
            both(over(s.churned, [&](const Churned& r) { return r.lost_percent(c); }));
    } else {
      for (size_t m = 0; m < marks.size(); ++m) {
        const std::string mark = std::to_string(marks[m]);
        row["allocated_at"][mark] = both(over(s.inflated, [&](const Inflated& r) { return r.allocated[m]; }));
        for (size_t c = 0; c < class_names.size(); ++c)
          row["failed_at"][mark][std::string(class_names[c])] = {
              {"failed", rounded(over(s.inflated, [&](const Inflated& r) { return r.failed[m][c]; }).mean)},
              {"arrived",
               rounded(over(s.inflated, [&](const Inflated& r) { return r.arrived[m][c]; }).mean)}};
      }
    }
    const Effort effort = effort_of(s);
    row["moves"] = 0;  // No placed slice is moved.
    row["decisions_per_second"] = std::round(speed(effort));
    row["bytes_per_node"] = effort.bytes_per_node;
    row["kinds"] = effort.classes;
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    row["peak_memory_bytes"] = static_cast<uint64_t>(use.ru_maxrss) << 10;
    out.push_back(std::move(row));
  }
  return out.dump(2) + "\n";
}

std::string csv(const std::vector<Series>& all) {
  std::string out = "trace,strategy,seed,what,percent\n";
  for (const Series& s : all) {
    for (size_t i = 0; i < s.inflated.size(); ++i)
      for (size_t m = 0; m < marks.size(); ++m)
        out += fmt::format("{},{},{},allocated_at_{},{:.4f}\n", csv_field(s.trace), text(s.strategy),
                           s.seeds[i], marks[m], s.inflated[i].allocated[m]);
    for (size_t i = 0; i < s.churned.size(); ++i)
      out += fmt::format("{},{},{},lost,{:.4f}\n", csv_field(s.trace), text(s.strategy), s.seeds[i],
                         s.churned[i].lost_percent());
  }
  return out;
}

std::string curves(const std::vector<Series>& all) {
  std::string out = "trace,strategy,asked_percent,in_use_percent\n";
  for (const Series& s : all)
    for (unsigned asked = 0; asked < curve_points; ++asked)
      out += fmt::format("{},{},{},{:.4f}\n", csv_field(s.trace), text(s.strategy), asked,
                         over(s.inflated, [&](const Inflated& r) { return r.curve[asked]; }).mean);
  return out;
}

}  // namespace carve::replay

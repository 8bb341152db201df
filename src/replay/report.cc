#include "replay/report.h"

#include <sys/resource.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace carve::replay {
namespace {

template <class Pick>
Spread over(const Series& s, Pick pick) {
  std::vector<double> values;
  for (const Outline& run : s.runs) values.push_back(static_cast<double>(pick(run)));
  return spread_of(values);
}

double decisions_per_second(const Series& s) {
  uint64_t decisions = 0;
  double seconds = 0;
  for (const Outline& run : s.runs) decisions += run.decisions, seconds += run.seconds;
  return seconds > 0 ? static_cast<double>(decisions) / seconds : 0;
}

// What is printed is what was computed, to a thousandth of a percent.
double rounded(double value) { return std::round(value * 1000) / 1000; }

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
  std::string out = fmt::format("{:<14}{:<11}{:>6}", "trace", "policy", "seeds");
  for (const unsigned mark : marks) out += fmt::format("{:>8}%", mark);
  out += fmt::format("{:>7}{:>14}\n", "sd100", "decisions/s");
  for (const Series& s : all) {
    out += fmt::format("{:<14}{:<11}{:>6}", s.trace, text(s.policy), s.seeds.size());
    for (size_t m = 0; m < marks.size(); ++m)
      out += fmt::format("{:>9.2f}", over(s, [&](const Outline& r) { return r.allocated[m]; }).mean);
    out += fmt::format("{:>7.2f}{:>14.0f}\n", over(s, [](const Outline& r) { return r.allocated[3]; }).sd,
                       decisions_per_second(s));
  }
  return out;
}

std::string json(const std::vector<Series>& all) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Series& s : all) {
    nlohmann::ordered_json row;
    row["trace"] = s.trace;
    row["policy"] = text(s.policy);
    row["seeds"] = s.seeds;
    for (size_t m = 0; m < marks.size(); ++m) {
      const std::string mark = std::to_string(marks[m]);
      const Spread allocated = over(s, [&](const Outline& r) { return r.allocated[m]; });
      row["allocated_at"][mark] = {{"mean", rounded(allocated.mean)}, {"sd", rounded(allocated.sd)}};
      for (size_t c = 0; c < class_names.size(); ++c)
        row["failed_at"][mark][std::string(class_names[c])] = {
            {"failed", rounded(over(s, [&](const Outline& r) { return r.failed[m][c]; }).mean)},
            {"arrived", rounded(over(s, [&](const Outline& r) { return r.arrived[m][c]; }).mean)}};
    }
    row["moves"] = 0;  // Nothing that was placed is moved.
    row["decisions_per_second"] = std::round(decisions_per_second(s));
    row["bytes_per_node"] = s.runs.empty() ? 0 : s.runs[0].bytes_per_node;
    row["kinds"] = s.runs.empty() ? 0 : s.runs[0].kinds;
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    row["peak_memory_bytes"] = uint64_t{static_cast<uint64_t>(use.ru_maxrss)} << 10;
    out.push_back(std::move(row));
  }
  return out.dump(2) + "\n";
}

std::string csv(const std::vector<Series>& all) {
  std::string out = "trace,policy,seed,arrived,allocated\n";
  for (const Series& s : all)
    for (size_t i = 0; i < s.runs.size(); ++i)
      for (size_t m = 0; m < marks.size(); ++m)
        out += fmt::format("{},{},{},{},{:.4f}\n", s.trace, text(s.policy), s.seeds[i], marks[m],
                           s.runs[i].allocated[m]);
  return out;
}

}  // namespace carve::replay

// The results of a replay, as a table, as JSON and as CSV.
#pragma once

#include <string>
#include <vector>

#include "replay/churn.h"
#include "replay/inflate.h"

namespace carve::replay {

struct Series {  // The results of one trace with one strategy.
  std::string trace;
  Strategy strategy;
  std::vector<uint64_t> seeds;
  // In the order of the seeds. Only one of the two is filled.
  std::vector<Inflated> inflated;
  std::vector<Churned> churned;
};

struct Spread {
  double mean = 0;
  double sd = 0;  // Standard deviation of a sample (divisor n - 1).
};
Spread spread_of(const std::vector<double>&);

std::string table(const std::vector<Series>&);
std::string json(const std::vector<Series>&);
std::string csv(const std::vector<Series>&);
// Returns CSV for tools/plot: the percentage of the cluster in use at each percent requested, mean over the
// seeds, for arrivals that never leave. It has 131 rows for each trace and strategy.
std::string curves(const std::vector<Series>&);

}  // namespace carve::replay

// What came out of a replay, for people (a table), for programs (JSON) and for spreadsheets (CSV).
#pragma once

#include <string>
#include <vector>

#include "replay/churn.h"
#include "replay/inflate.h"

namespace carve::replay {

struct Series {  // One trace under one strategy.
  std::string trace;
  Strategy strategy;
  std::vector<uint64_t> seeds;
  // In the order of the seeds: one of the two.
  std::vector<Inflated> inflated;
  std::vector<Churned> churned;
};

struct Spread {
  double mean = 0;
  double sd = 0;  // Of a sample: over n - 1.
};
Spread spread_of(const std::vector<double>&);

std::string table(const std::vector<Series>&);
std::string json(const std::vector<Series>&);
std::string csv(const std::vector<Series>&);
// Percent of the cluster in use at each percent asked for, mean over the seeds, of arrivals that never leave:
// CSV that tools/plot draws. 131 rows for each trace and policy.
std::string curves(const std::vector<Series>&);

}  // namespace carve::replay

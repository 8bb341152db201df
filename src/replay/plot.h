// The paper's picture of a replay as SVG: how much of the cluster is in use against how much was asked for,
// a panel for each trace and a line for each strategy; the mean over the seeds. 100 KB for five traces.
#pragma once

#include <string>
#include <vector>

#include "replay/report.h"

namespace carve::replay {

// Of replays of arrivals that never leave. Everything below 70 % is the diagonal, and is left out.
std::string plot(const std::vector<Series>&);

// How one number grows with another, on logarithmic axes: a panel for each, the legend in the first.
struct Growth {
  struct Line {
    std::string name;
    std::vector<std::pair<double, double>> points;  // Both above 0.
  };
  std::string title;
  std::vector<Line> lines;  // The same names in the same order in every panel.
};
std::string plot(const std::vector<Growth>&, const std::string& heading);

}  // namespace carve::replay

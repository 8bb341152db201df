// Histories as text: a table with a strip for each metric, and CSV. Pure functions.
#pragma once

#include <string>

#include "wire/api/metric_history.h"

namespace carve::cli {

// Returns the value with its unit, which is the end of the metric's name: "4 GiB", "29.9%", "70.0 W".
std::string shown_value(const std::string& metric, uint64_t value);

// Returns a strip of at most `width` characters. Each is as high as the largest of its values, compared with the
// largest of all; a gap is a blank.
std::string strip_of(const std::vector<std::optional<uint64_t>>& values, size_t width);

std::string history_table(const api::MetricHistory&);
// Returns a line for each value, with a heading. A gap has an empty value.
std::string history_csv(const api::MetricHistory&);

}  // namespace carve::cli

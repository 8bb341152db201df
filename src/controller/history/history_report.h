// The history of an object as the API shows it: the mean of each step. If a step is shorter than the stored
// points, each point counts for all of its steps.
#pragma once

#include "controller/history/history_query.h"
#include "controller/history/history_store.h"
#include "wire/api/metric_history.h"

namespace carve::controller {

inline constexpr size_t max_history_points = 11'000;   // Limit of a series.
inline constexpr size_t max_history_values = 200'000;  // Limit of a response.

// Returns the values from the store and from the current minute. If several slices have had the name, returns
// those of the newest one that the caller may see and that was alive in the period. Fails with not_found if
// there is none, and with invalid_argument if slices of several nodes have the name.
Outcome<api::MetricHistory> history_report(HistoryStore&, const HistoryHead&, const HistoryQuery&);

// Returns "slice/n1/train", "device/n1/0".
std::string object_of(const HistoryQuery&);

}  // namespace carve::controller

// The devices by the names, units and labels of NVIDIA's dcgm-exporter, so that existing dashboards and rules
// work. A device has one series of each family. If an exclusive slice of a pod holds the device, the series has
// the pod's labels, as dcgm-exporter has them. If pods share the device, each of their slices has further
// series with the pod's labels for its own utilization and memory; the other readings cannot be divided.
// Sources: dcgm-exporter's default-counters.csv and its label names. A pure function.
#pragma once

#include "node/metrics/metrics.h"

namespace carve::node {

void write_dcgm_metrics(api::Exposition&, const NodeFigures&);

}  // namespace carve::node

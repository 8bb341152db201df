// The input of a replay: a cluster's nodes and the requests that arrive, in openb's CSV
// (cluster-trace-gpu-v2023). Nodes: sn,cpu_milli,memory_mib,gpu,model. Pods:
// name,cpu_milli,memory_mib,num_gpu,gpu_milli and optionally gpu_spec (allowed models joined by |, empty
// means any), creation_time, deletion_time (seconds).
#pragma once

#include <string>
#include <vector>

#include "place/fleet.h"

namespace carve::replay {

struct Node {
  std::string name;
  uint32_t cpu_milli = 0;
  uint64_t memory_mib = 0;
  unsigned devices = 0;
  std::string model;
};

struct Pod {
  std::string name;
  uint32_t cpu_milli = 0;
  uint64_t memory_mib = 0;
  unsigned devices = 0;
  unsigned milli = 0;               // Thousandths of each device.
  std::vector<std::string> models;  // Empty means any.
  uint64_t device_memory_mib = 0;   // On each device. Only --explain sets it; a trace has none.
  uint64_t created = 0;             // Seconds; both are 0 if the file does not have the columns.
  uint64_t deleted = 0;

  unsigned demand() const { return devices * milli; }
};

struct Cluster {
  std::vector<Node> nodes;
  uint64_t devices() const;
};

// A trace, sorted by name as the protocol requires.
struct Trace {
  std::string name;  // "default" of openb_pod_list_default.csv.
  std::vector<Pod> pods;
};

Outcome<Cluster> read_cluster(const std::string& path);

// Reads a trace. Every pod in it is valid, and at least one node of the cluster has the number and model of
// devices that the pod needs.
Outcome<Trace> read_trace(const std::string& path, const Cluster&);

// Splits "T4|P100" into T4 and P100.
std::vector<std::string> split_models(std::string_view text);

// Returns the request shape of a pod. The fleet must know all models of the cluster.
place::RequestShape shape_of(const Pod&, const place::Fleet&);

}  // namespace carve::replay

// The devices of a cluster, by pool: what the agents publish in status.allocatable of their Nodes. Nodes that are not
// ready or cordoned count nothing. It has no lock and sends nothing.
#pragma once

#include <map>
#include <string>

#include "kubernetes/api/answers.h"

namespace carve::controller {

inline constexpr const char* pool_label = "carve.dev/pool";  // Of nodes.

struct DeviceAmounts {
  uint64_t memory_bytes = 0;
  uint64_t compute_percent = 0;  // 100 for each device.

  friend bool operator==(const DeviceAmounts&, const DeviceAmounts&) = default;
};

class ClusterCapacity {
 public:
  // Returns the sum over the nodes with this pool's label; over the nodes without the label if the name is empty.
  DeviceAmounts of(const std::string& pool) const;

  // Each takes what a watch of Nodes delivers, and returns whether a sum may have changed.
  bool replace(const kubernetes::ObjectsByUid&);
  bool put(const kubernetes::ObjectMeta&);
  bool remove(const kubernetes::ObjectMeta&);

 private:
  struct Part {
    std::string pool;
    DeviceAmounts amounts;

    friend bool operator==(const Part&, const Part&) = default;
  };
  static Part part_of(const kubernetes::ObjectMeta&);

  std::map<std::string, Part> parts_;  // By the node's uid.
};

}  // namespace carve::controller

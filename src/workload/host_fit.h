// Whether a replica's cores and memory fit on a node beside those of the other replicas there. Pure: numbers
// in, a sentence out. What replicas request is counted, not what they use.
#pragma once

#include <cstdint>
#include <string>

namespace carve::workload {

struct HostResources {
  uint64_t cpu_milli = 0;  // Thousandths of a core.
  uint64_t memory_bytes = 0;

  HostResources& operator+=(const HostResources& other) {
    cpu_milli += other.cpu_milli;
    memory_bytes += other.memory_bytes;
    return *this;
  }
  friend bool operator==(const HostResources&, const HostResources&) = default;
};

// Returns why the request does not fit beside what is used, with figures; empty: it fits. A capacity of 0 is
// not known yet, and nothing is compared with it.
std::string host_problem(const HostResources& request, const HostResources& capacity,
                         const HostResources& used);

}  // namespace carve::workload

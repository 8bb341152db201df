// Checks whether a replica's cores and memory fit on a node next to those of the other replicas there. The
// function is pure and counts requested amounts, not used ones.
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
  // The result is at least 0.
  HostResources& operator-=(const HostResources& other) {
    cpu_milli -= other.cpu_milli < cpu_milli ? other.cpu_milli : cpu_milli;
    memory_bytes -= other.memory_bytes < memory_bytes ? other.memory_bytes : memory_bytes;
    return *this;
  }
  friend bool operator==(const HostResources&, const HostResources&) = default;
};

// Returns why the request does not fit next to the used amounts, with figures, or an empty string if it fits.
// A capacity of 0 is unknown and is not checked.
std::string host_problem(const HostResources& request, const HostResources& capacity,
                         const HostResources& used);

}  // namespace carve::workload

#include "workload/host_fit.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"

namespace carve::workload {
namespace {

std::string cores(uint64_t milli) {
  return milli % 1000 == 0 ? fmt::format("{}", milli / 1000)
                           : fmt::format("{:g}", static_cast<double>(milli) / 1000);
}

bool lacks(uint64_t request, uint64_t capacity, uint64_t used) {
  return request != 0 && capacity != 0 && (used > capacity || request > capacity - used);
}

uint64_t rest(uint64_t capacity, uint64_t used) { return capacity - std::min(capacity, used); }

}  // namespace

std::string host_problem(const HostResources& request, const HostResources& capacity,
                         const HostResources& used) {
  if (lacks(request.cpu_milli, capacity.cpu_milli, used.cpu_milli))
    return fmt::format("a replica requests {} cores, but only {} of {} are free", cores(request.cpu_milli),
                       cores(rest(capacity.cpu_milli, used.cpu_milli)), cores(capacity.cpu_milli));
  if (lacks(request.memory_bytes, capacity.memory_bytes, used.memory_bytes))
    return fmt::format(
        "a replica requests {} of memory, but only {} of {} are free", text(Bytes{request.memory_bytes}),
        text(Bytes{rest(capacity.memory_bytes, used.memory_bytes)}), text(Bytes{capacity.memory_bytes}));
  return "";
}

}  // namespace carve::workload

#include "node/devices/nvml_accounting.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "os/clock.h"

namespace carve::node {
namespace {

// Limit per sample. A call takes a few microseconds; on a faulty device the next sample reads the rest.
constexpr int64_t max_read_ns = 200 * os::millisecond;
constexpr size_t max_listed = 65536;

nvmlReturn_t list(const AccountingCalls& call, nvmlDevice_t device, std::vector<unsigned>& pids) {
  pids.resize(4096);
  auto count = static_cast<unsigned>(pids.size());
  nvmlReturn_t result = call.pids(device, &count, pids.data());
  if (result == NVML_ERROR_INSUFFICIENT_SIZE && count < max_listed) {
    pids.resize(count + 256);
    count = static_cast<unsigned>(pids.size());
    result = call.pids(device, &count, pids.data());
  }
  pids.resize(result == NVML_SUCCESS ? std::min<size_t>(count, pids.size()) : 0);
  return result;
}

}  // namespace

std::string Accounting::turn_on(const AccountingCalls& call, nvmlDevice_t device) {
  nvmlEnableState_t mode = NVML_FEATURE_DISABLED;
  if (call.mode == nullptr || call.set_mode == nullptr || call.pids == nullptr || call.stats == nullptr)
    return "the driver does not support accounting mode";
  nvmlReturn_t result = call.mode(device, &mode);
  if (result == NVML_SUCCESS && mode == NVML_FEATURE_ENABLED) return "";
  if (result == NVML_SUCCESS && was_on_)
    return "accounting mode was turned off; nvidia-smi -am 1 turns it on";
  if (result == NVML_SUCCESS) result = call.set_mode(device, NVML_FEATURE_ENABLED);
  switch (result) {
    case NVML_SUCCESS: return "";
    case NVML_ERROR_NOT_SUPPORTED: return "the device does not support accounting mode";
    case NVML_ERROR_NO_PERMISSION:
      return "accounting mode is off, and only root may turn it on (nvidia-smi -am 1)";
    default: return fmt::format("NVML cannot turn accounting mode on (error {})", static_cast<int>(result));
  }
}

// Returns all pids that are new or may be running, and some of the others.
std::vector<unsigned> Accounting::pids_to_read(const std::vector<unsigned>& listed) {
  const std::set<unsigned> present(listed.begin(), listed.end());
  std::erase_if(ended_, [&](const auto& known) { return !present.contains(known.first); });
  std::vector<unsigned> out;
  for (const unsigned pid : present)
    if (!ended_.contains(pid)) out.push_back(pid);
  for (size_t i = 0; i < std::min(read_again, ended_.size()); ++i) {
    auto known = ended_.lower_bound(next_again_);
    if (known == ended_.end()) known = ended_.begin();
    out.push_back(known->first);
    next_again_ = known->first + 1;
  }
  return out;
}

AccountingSample Accounting::read(const AccountingCalls& call, nvmlDevice_t device) {
  AccountingSample out;
  std::vector<unsigned> listed;
  // The driver does not return the list while accounting is off.
  if (!was_on_ || list(call, device, listed) != NVML_SUCCESS) {
    out.trouble = turn_on(call, device);
    if (!out.trouble.empty()) return out;
    was_on_ = true;
    if (list(call, device, listed) != NVML_SUCCESS) {
      out.trouble = "NVML does not list the accounted processes";
      return out;
    }
  }
  out.is_on = true;
  out.trouble.clear();
  if (!std::exchange(listed_, true)) before_.insert(listed.begin(), listed.end());
  const int64_t begun = os::monotonic_ns();
  for (const unsigned pid : pids_to_read(listed)) {
    if (os::monotonic_ns() - begun > max_read_ns) break;
    nvmlAccountingStats_t stats{};
    if (call.stats(device, pid, &stats) != NVML_SUCCESS) continue;  // The process was dropped from the ring.
    const bool is_running = stats.isRunning != 0;
    const bool ended_before = before_.erase(pid) != 0 && !is_running;
    const auto known = ended_.find(pid);
    const bool is_known = known != ended_.end() && known->second == stats.startTime;
    if (is_running)
      ended_.erase(pid);
    else
      ended_[pid] = stats.startTime;
    if (ended_before || (is_known && !is_running)) continue;
    const bool is_counted = stats.maxMemoryUsage != NVML_VALUE_NOT_AVAILABLE;
    out.processes.push_back({.pid = static_cast<int>(pid),
                             .start_us = stats.startTime,
                             .active_ms = stats.time,
                             .peak = {is_counted ? stats.maxMemoryUsage : 0},
                             .is_running = is_running});
  }
  return out;
}

}  // namespace carve::node

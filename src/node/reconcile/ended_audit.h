// Decides about processes that NVML's accounting reports after their end (node/devices/nvml_accounting.h).
//
// A process that held memory of a device with slices and never attached becomes an event: of its slice, as a
// violation, if the agent saw the process in the slice's cgroup, otherwise of the node. If a sample showed
// the process while it ran, the decision was made then.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/bytes.h"
#include "core/violation.h"

namespace carve::node {

enum class KnownAs : uint8_t {
  unattached,  // It never attached.
  attached,    // It is attached, or was.
  unknown,     // Too many attached processes ended to remember this one.
};

struct AccountedObserved {
  unsigned device = 0;    // NVML's index.
  bool is_shared = true;  // The device has slices.
  int pid = 0;
  uint64_t start_us = 0;
  uint64_t active_ms = 0;
  Bytes peak;
  bool is_running = false;
  bool is_decided = false;  // The sample shows the process, and the reconciler decided on it.
  KnownAs known_as = KnownAs::unattached;
  std::optional<uint64_t> slice;  // Where the agent saw it. No value if it did not.
  std::string slice_name;
  bool limited = true;  // That slice has isolation.
};

struct EndedFinding {
  std::optional<uint64_t> slice;  // No value if it is about the node.
  std::string slice_name;
  std::string text;
  std::optional<ViolationKind> violation;

  friend bool operator==(const EndedFinding&, const EndedFinding&) = default;
};

class EndedAudit {
 public:
  static constexpr unsigned kept_samples = 64;

  // Decides about the processes of one sample.
  std::vector<EndedFinding> judge(const std::vector<AccountedObserved>&);

 private:
  using Key = std::tuple<unsigned, int, uint64_t>;  // Device, pid, start.

  // Processes already decided on, with the number of the last sample that reported them.
  std::map<Key, uint64_t> decided_;
  uint64_t samples_ = 0;
};

}  // namespace carve::node

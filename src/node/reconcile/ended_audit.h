// Judges processes that NVML's accounting reports after their end (node/devices/nvml_accounting.h).
//
// A process that held memory on a device with slices and never attached becomes an event. If the agent saw
// the process in a slice's cgroup, the event is a violation of that slice; otherwise it is about the node. If
// a sample showed the process while it was running, the decision was made then.
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
  unattached,  // The process never attached.
  attached,    // It is or was attached.
  unknown,     // Too many attached processes have ended to remember it.
};

struct AccountedObserved {
  unsigned device = 0;    // NVML's index.
  bool is_shared = true;  // Whether the device has slices.
  int pid = 0;
  uint64_t start_us = 0;
  uint64_t active_ms = 0;
  Bytes peak;
  bool is_running = false;
  bool is_decided = false;  // Whether the reconciler has already judged the process.
  KnownAs known_as = KnownAs::unattached;
  std::optional<uint64_t> slice;  // Slice in which the agent saw the process, if it did.
  std::string slice_name;
  bool limited = true;  // Whether that slice has isolation.
};

struct EndedFinding {
  std::optional<uint64_t> slice;  // No value if the finding is about the node.
  std::string slice_name;
  std::string text;
  std::optional<ViolationKind> violation;

  friend bool operator==(const EndedFinding&, const EndedFinding&) = default;
};

class EndedAudit {
 public:
  static constexpr unsigned kept_samples = 64;

  // Judges the processes of one sample.
  std::vector<EndedFinding> judge(const std::vector<AccountedObserved>&);

 private:
  using Key = std::tuple<unsigned, int, uint64_t>;  // Device, pid, start.

  // Processes that were already judged, with the number of the last sample that reported them.
  std::map<Key, uint64_t> decided_;
  uint64_t samples_ = 0;
};

}  // namespace carve::node

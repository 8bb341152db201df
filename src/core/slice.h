// A slice: what one holder was granted on one or several devices, and its limits there. It has one part per
// device, which may be equal or different, or it has whole devices (exclusive).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/share.h"
#include "core/device.h"
#include "core/holder.h"
#include "core/words.h"

namespace carve {

// Shared memory and the ledger store these numbers, so append new ones and never renumber.
enum class Policy : uint32_t {
  fixed_share = 0,             // A hard limit, even when the rest of the device is idle.
  guaranteed_burst_share = 1,  // At least the share; idle time may be used.
  native_burst_share = 2,      // The share is a weight, not a guarantee.
};
template <>
struct Words<Policy> {
  static constexpr const char* kind = "policy";
  static constexpr std::string_view words[] = {"fixed-share", "guaranteed-burst-share", "native-burst-share"};
};

enum class LatencyClass : uint32_t { batch = 0, latency = 1 };
template <>
struct Words<LatencyClass> {
  static constexpr const char* kind = "latency class";
  static constexpr std::string_view words[] = {"batch", "latency"};
};

enum class Isolation : uint32_t {
  none = 0,  // Placed, but not limited, for programs that limit themselves.
  memory = 1,
  memory_and_compute = 2,  // The share is enforced too, by the policy.
};
template <>
struct Words<Isolation> {
  static constexpr const char* kind = "isolation";
  static constexpr std::string_view words[] = {"none", "memory", "memory+compute"};
};

enum class Strategy : uint32_t {
  binpack = 0,  // Fills one device before it uses the next.
  spread = 1,   // Uses the emptiest device first.
  first_fit = 2,
  best_fit = 3,      // Uses the node with the least CPU and compute left.
  fgd = 4,           // Fragmentation gradient descent.
  fgd_scarcity = 5,  // FGD with scarcity weights and guards. The default for many nodes.
  lookahead = 6,
};
template <>
struct Words<Strategy> {
  static constexpr const char* kind = "strategy";
  static constexpr std::string_view words[] = {"binpack", "spread",       "first-fit", "best-fit",
                                               "fgd",     "fgd-scarcity", "lookahead"};
};

// Returns the part of a device's compute that a grant guarantees. Under native-burst-share a share is a
// weight and guarantees nothing, so weights may sum to more than the device.
constexpr Share promised_share(Policy policy, Share share) {
  return policy == Policy::native_burst_share ? Share{} : share;
}

// Returns the isolation of a request that does not set it: as much as the request has limits for.
constexpr Isolation default_isolation(Share share) {
  return share.basis_points != 0 ? Isolation::memory_and_compute : Isolation::memory;
}

// Parses a strategy that works on a single node. An agent accepts only these; carve-replay accepts all
// strategies.
std::optional<Strategy> parse_node_strategy(std::string_view);
std::string node_strategy_names();  // "binpack or spread"

enum class Lifetime : uint32_t {
  processes = 0,      // The slice ends with its last process.
  until_deleted = 1,  // The slice ends when it is deleted (containers).
};
template <>
struct Words<Lifetime> {
  static constexpr const char* kind = "lifetime";
  static constexpr std::string_view words[] = {"processes", "explicit"};
};

// The unit of an integer memory request. It is a setting of the node.
enum class MemoryUnit : uint32_t { gib = 0, mib_128 = 1 };
template <>
struct Words<MemoryUnit> {
  static constexpr const char* kind = "memory unit";
  static constexpr std::string_view words[] = {"1GiB", "128MiB"};
};
constexpr Bytes size_of(MemoryUnit unit) { return unit == MemoryUnit::gib ? 1_GiB : 128_MiB; }

// A memory request as it was given: 16 units of 128 MiB. A count of 0 means that it was not in units.
struct MemoryUnits {
  uint32_t count = 0;
  MemoryUnit unit = MemoryUnit::gib;

  friend bool operator==(const MemoryUnits&, const MemoryUnits&) = default;
};

// The program that decides which slices a node grants.
enum class Bookkeeper {
  agent,       // The agent decides and users call it.
  kubernetes,  // Kubernetes decides, and the agent grants only to root, for pods and claims.
};
template <>
struct Words<Bookkeeper> {
  static constexpr const char* kind = "bookkeeper";
  static constexpr std::string_view words[] = {"agent", "kubernetes"};
};

struct SlicePart {
  Uuid device;
  Bytes memory;
  Share share;             // 0 if no share was requested.
  Bytes spill;             // Bytes beyond the quota, as managed memory in host memory; 0 if none.
  Bytes usable = {};       // Usable memory of the device at the grant, the divisor in invoices; 0 if unknown.
  Bytes native = {};       // Native memory of the device at the grant.
  std::string model = {};  // The device's name at the grant: "NVIDIA A10".

  friend bool operator==(const SlicePart&, const SlicePart&) = default;
};

// A slice part that was decided elsewhere, by Kubernetes' scheduler.
struct PlacedPart {
  Uuid device;
  Bytes memory;
  Share share;  // 0 if there is none.

  friend bool operator==(const PlacedPart&, const PlacedPart&) = default;
};

struct Slice {
  std::string name;        // Unique among live slices.
  std::string request_id;  // Chosen by the caller. A repeated id returns the same slice.
  uint32_t owner = 0;      // uid
  std::vector<SlicePart> parts;
  bool exclusive = false;  // No other slice may use the devices.
  Lifetime lifetime = Lifetime::processes;
  Isolation isolation = Isolation::memory;
  Policy policy = Policy::fixed_share;
  LatencyClass latency = LatencyClass::batch;
  std::string application;  // The application that this is a replica of. Empty if none.
  std::string account;      // The account that pays. Empty if unknown.
  std::map<std::string, std::string> labels;
  MemoryUnits memory_units;
  Holder holder;  // Only on Kubernetes.

  bool outlives_processes() const { return lifetime == Lifetime::until_deleted; }
  bool has_equal_parts() const;  // Equal in memory and share. Placed parts may differ.
  // Returns whether the share is enforced. If so, the slice is limited to it, and it is guaranteed.
  bool shares_compute() const { return isolation == Isolation::memory_and_compute; }

  friend bool operator==(const Slice&, const Slice&) = default;
};

}  // namespace carve

// Annotation carve.dev/slices of a pod: the devices and amounts of its containers' slices. It is written with
// the binding and changes only when the pod's owner requests a resize. A change has two steps: the
// coordinator writes the new amounts with `memory_before`, and removes `memory_before` when the node has
// carried out the change. If the node rejects the change, the coordinator restores the amounts. One line of
// JSON:
//
//   {"v":1,"node":"n1","containers":{"web":{"parts":[["GPU-1a2b...",2147483648,0]],"isolation":"memory",
//    "policy":"fixed-share","latency_class":"batch","unit":134217728,"units":16}}}
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/slice.h"
#include "kubernetes/format/annotation.h"

namespace carve::kubernetes {

inline constexpr const char* slices_annotation = "carve.dev/slices";
inline constexpr uint32_t slices_version = 1;

// A slice's part on one device.
struct PlacedPart {
  Uuid device;
  Bytes memory;
  Share share;  // 0 if none was requested.

  friend bool operator==(const PlacedPart&, const PlacedPart&) = default;
};
constexpr void is_row(const PlacedPart&) {}

struct PlacedSlice {
  std::vector<PlacedPart> parts;
  std::optional<bool> exclusive;  // Whole devices.
  Isolation isolation = Isolation::memory;
  Policy policy = Policy::fixed_share;
  LatencyClass latency_class = LatencyClass::batch;
  std::optional<uint64_t> unit;   // Bytes of a unit, if the memory was requested in units.
  std::optional<uint32_t> units;  // Over all devices.
  std::optional<uint64_t> spill;  // Bytes on each device.
  // Bytes on each device before a change that the node has not carried out yet.
  std::optional<uint64_t> memory_before;

  friend bool operator==(const PlacedSlice&, const PlacedSlice&) = default;
};

// Returns the memory that the slice may hold on the device now: the larger amount until a change is carried
// out.
inline Bytes held_memory(const PlacedSlice& slice, const PlacedPart& part) {
  return std::max(part.memory, Bytes{slice.memory_before.value_or(0)});
}

struct PodSlices {
  uint32_t v = slices_version;
  std::string node;
  std::map<std::string, PlacedSlice> containers;

  friend bool operator==(const PodSlices&, const PodSlices&) = default;
};

inline Result<PodSlices, std::string> read_slices(std::string_view text) {
  return read_annotation<PodSlices>(slices_annotation, text, slices_version);
}

}  // namespace carve::kubernetes

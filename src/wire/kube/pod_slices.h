// Annotation carve.dev/slices of a pod: where its containers' slices are. It is written with the binding, and
// never changes but by a wish of the pod's owner. One line of JSON:
//
//   {"v":1,"node":"n1","containers":{"web":{"parts":[["GPU-1a2b...",2147483648,0]],"isolation":"memory",
//    "policy":"fixed-share","latency_class":"batch","unit":134217728,"units":16}}}
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/slice.h"
#include "wire/kube/annotation.h"

namespace carve::kube {

inline constexpr const char* slices_annotation = "carve.dev/slices";
inline constexpr uint32_t slices_version = 1;

// A slice's part of one device.
struct PlacedPart {
  Uuid device;
  Bytes memory;
  Share share;  // 0: none was asked for.

  friend bool operator==(const PlacedPart&, const PlacedPart&) = default;
};
constexpr void is_row(const PlacedPart&) {}

struct PlacedSlice {
  std::vector<PlacedPart> parts;
  std::optional<bool> exclusive;  // Whole devices.
  Isolation isolation = Isolation::memory;
  Policy policy = Policy::fixed_share;
  LatencyClass latency_class = LatencyClass::batch;
  std::optional<uint64_t> unit;   // Bytes of a memory unit, if the memory was asked for in units.
  std::optional<uint32_t> units;  // Over all devices.
  std::optional<uint64_t> spill;  // Bytes on each device.

  friend bool operator==(const PlacedSlice&, const PlacedSlice&) = default;
};

struct PodSlices {
  uint32_t v = slices_version;
  std::string node;
  std::map<std::string, PlacedSlice> containers;

  friend bool operator==(const PodSlices&, const PodSlices&) = default;
};

inline Result<PodSlices, std::string> read_slices(std::string_view text) {
  return read_annotation<PodSlices>(slices_annotation, text, slices_version);
}

}  // namespace carve::kube

// Annotation carve.dev/wish of a pod: new amounts for slices of containers that run. Who may update
// slices.carve.dev writes it (kubectl carve set); the coordinator removes it when it has changed
// carve.dev/slices, or has refused. One line of JSON:
//
//   {"v":1,"containers":{"web":{"memory":6442450944}}}
#pragma once

#include <map>
#include <string>

#include "wire/kube/annotation.h"

namespace carve::kube {

inline constexpr const char* wish_annotation = "carve.dev/wish";
inline constexpr uint32_t wish_version = 1;

struct WishedAmounts {
  uint64_t memory = 0;  // Bytes, over all devices of the slice.
};

struct PodWish {
  uint32_t v = wish_version;
  std::map<std::string, WishedAmounts> containers;
};

inline Result<PodWish, std::string> read_wish(std::string_view text) {
  return read_annotation<PodWish>(wish_annotation, text, wish_version);
}

}  // namespace carve::kube

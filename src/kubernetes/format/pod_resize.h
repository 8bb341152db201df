// Annotation carve.dev/resize of a pod: new amounts for slices of running containers. Written by users who
// may update slices.carve.dev (kubectl carve set). The coordinator removes it after it has changed
// carve.dev/slices or rejected the request. One line of JSON:
//
//   {"v":1,"containers":{"web":{"memory":6442450944}}}
#pragma once

#include <map>
#include <string>

#include "kubernetes/format/annotation.h"

namespace carve::kubernetes {

inline constexpr const char* resize_annotation = "carve.dev/resize";
inline constexpr uint32_t resize_version = 1;

struct ResizeAmounts {
  uint64_t memory = 0;  // Bytes, over all devices of the slice.
};

struct PodResize {
  uint32_t v = resize_version;
  std::map<std::string, ResizeAmounts> containers;
};

inline Result<PodResize, std::string> read_resize(std::string_view text) {
  return read_annotation<PodResize>(resize_annotation, text, resize_version);
}

}  // namespace carve::kubernetes

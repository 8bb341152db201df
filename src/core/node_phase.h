// Whether a node runs.
#pragma once

#include <cstdint>

#include "core/words.h"

namespace carve {

enum class NodePhase : uint8_t {
  starting,  // Its devices are not listed or not measured yet.
  running,
  stopped,  // By a user, or its agent does not answer.
};
template <>
struct Words<NodePhase> {
  static constexpr const char* kind = "state of a node";
  static constexpr std::string_view words[] = {"Starting", "Running", "Stopped"};
};

}  // namespace carve

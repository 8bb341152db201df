// Whether a node is running.
#pragma once

#include <cstdint>

#include "core/words.h"

namespace carve {

enum class NodePhase : uint8_t {
  starting,  // Its devices have not been listed or measured yet.
  running,
  stopped,  // Stopped by a user, or its agent does not respond.
};
template <>
struct Words<NodePhase> {
  static constexpr const char* kind = "state of a node";
  static constexpr std::string_view words[] = {"Starting", "Running", "Stopped"};
};

}  // namespace carve

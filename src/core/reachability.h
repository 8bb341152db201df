// Whether the controller can reach the agent of a node.
#pragma once

#include "core/words.h"

namespace carve {

enum class Reachability : uint8_t {
  unknown = 0,      // No poll has ended since the controller started.
  reachable = 1,    // The last poll succeeded.
  unreachable = 2,  // The last poll failed, or its response could not be read; a message has the reason.
};
template <>
struct Words<Reachability> {
  static constexpr const char* kind = "reachability";
  static constexpr std::string_view words[] = {"unknown", "reachable", "unreachable"};
};

}  // namespace carve

// Whether a program that has ended is restarted. The words are those of a Kubernetes pod.
#pragma once

#include <cstdint>

#include "core/words.h"

namespace carve {

enum class RestartPolicy : uint8_t {
  always,
  on_failure,  // Unless its exit status is 0.
  never,
};
template <>
struct Words<RestartPolicy> {
  static constexpr const char* kind = "restart policy";
  static constexpr std::string_view words[] = {"Always", "OnFailure", "Never"};
};

}  // namespace carve

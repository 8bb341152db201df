// The vocabulary in which a pod requests slices.
#pragma once

#include <string_view>

#include "core/words.h"

namespace carve::dialects {

enum class Dialect : uint8_t { carve, ack, vke, hami, nvidia };

}  // namespace carve::dialects

namespace carve {
template <>
struct Words<dialects::Dialect> {
  static constexpr const char* kind = "dialect";
  static constexpr std::string_view words[] = {"carve", "ack", "vke", "hami", "nvidia"};
};
}  // namespace carve

#include "core/container_slot.h"

#include <fmt/format.h>

namespace carve {

std::string text(ContainerSlot slot) { return fmt::format("s{:03}", slot.number); }

std::optional<ContainerSlot> parse_container_slot(std::string_view name) {
  if (name.size() != 4 || name[0] != 's') return std::nullopt;
  ContainerSlot slot;
  for (const char c : name.substr(1)) {
    if (c < '0' || c > '9') return std::nullopt;
    slot.number = slot.number * 10 + static_cast<uint32_t>(c - '0');
  }
  return slot.number < max_container_slots ? std::optional(slot) : std::nullopt;
}

}  // namespace carve

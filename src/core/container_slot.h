// A slot of the device plugin (carve.dev/slot), which kubelet gives to a container before the container's pod
// is known. Each slot has its own attach directory, which is mounted only into that container.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace carve {

struct ContainerSlot {
  uint32_t number = 0;  // Below max_container_slots.

  friend bool operator==(const ContainerSlot&, const ContainerSlot&) = default;
  friend auto operator<=>(const ContainerSlot&, const ContainerSlot&) = default;
};

inline constexpr uint32_t max_container_slots = 256;  // Per node; the device plugin advertises all of them.

// Returns "s017". The text is used as the name of a directory, a file and a CDI device.
std::string text(ContainerSlot);

// Returns the slot with this name, exactly as text() writes it.
std::optional<ContainerSlot> parse_container_slot(std::string_view);

}  // namespace carve

// The place where the containers of one holder attach: a directory with a socket, which is mounted only into
// these containers. Its name is also that of the holder's CDI device.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "core/container_slot.h"

namespace carve {

struct AttachPoint {
  enum class Kind : uint8_t {
    slot,   // One container of a pod, which kubelet gave a slot of the device plugin.
    claim,  // The containers of all pods that share a resource claim (DRA).
  };

  AttachPoint(ContainerSlot slot) : kind(Kind::slot), name(text(slot)) {}  // NOLINT: the same thing.
  // `uid` is the claim's uid, which core/holder.h has checked.
  static AttachPoint of_claim(const std::string& uid);

  Kind kind;
  std::string name;  // "s017", "c-0b6c0e4e-1d2f-4b55-9d53-8f1f6a3f2f10"

  friend bool operator==(const AttachPoint&, const AttachPoint&) = default;
  friend auto operator<=>(const AttachPoint&, const AttachPoint&) = default;

 private:
  AttachPoint(Kind of_kind, std::string of_name) : kind(of_kind), name(std::move(of_name)) {}
};

// Returns "slot s017" or "claim UID", for messages.
std::string text(const AttachPoint&);

}  // namespace carve

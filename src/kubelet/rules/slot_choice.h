// Which slot kubelet should take: that which has been unused for longest. A runtime's cache of CDI files then
// has the most time to forget the file of the slot's container before. Pure; the caller counts the uses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/container_slot.h"

namespace carve::kubelet {

class SlotUses {
 public:
  // Notes that the slot was given to a container, or serves one, now.
  void use(ContainerSlot);
  // Returns when it was used last, as a number that grows; 0: never.
  uint64_t last(ContainerSlot slot) const { return last_[slot.number]; }

 private:
  uint64_t count_ = 0;
  uint64_t last_[max_container_slots] = {};
};

// Returns `size` names: those that must be in it, then the available ones that have been unused for longest,
// the lowest first among equals. Names that are no slots are left out; there may be fewer.
std::vector<std::string> choose_slots(const SlotUses&, const std::vector<std::string>& available,
                                      const std::vector<std::string>& must_include, size_t size);

// Returns the names of all slots: "s000" to "s255", on each node the same.
std::vector<std::string> all_slots();

}  // namespace carve::kubelet

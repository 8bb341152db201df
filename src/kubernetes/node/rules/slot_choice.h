// Chooses the slot that kubelet should take: the one that has been unused for the longest time, so that a
// runtime's cache of CDI files has had the most time to drop the file of the slot's previous container. Pure;
// the caller counts the uses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/container_slot.h"

namespace carve::kubernetes::node {

class SlotUses {
 public:
  // Records that the slot is being given to a container or is serving one.
  void use(ContainerSlot);
  // Returns a number that grows with the time of the last use. 0 means never used.
  uint64_t last(ContainerSlot slot) const { return last_[slot.number]; }

 private:
  uint64_t count_ = 0;
  uint64_t last_[max_container_slots] = {};
};

// Returns `size` names: first the required ones, then the available ones that have been unused the longest;
// ties go to the lowest slot. Invalid names are left out, so there may be fewer.
std::vector<std::string> choose_slots(const SlotUses&, const std::vector<std::string>& available,
                                      const std::vector<std::string>& must_include, size_t size);

// Returns the names of all slots: "s000" to "s255", the same on each node.
std::vector<std::string> all_slots();

}  // namespace carve::kubernetes::node

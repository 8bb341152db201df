#include "kubernetes/node/rules/slot_choice.h"

#include <algorithm>

#include "core/invariant.h"

namespace carve::kubernetes::node {

void SlotUses::use(ContainerSlot slot) {
  invariant(slot.number < max_container_slots);
  last_[slot.number] = ++count_;
}

std::vector<std::string> choose_slots(const SlotUses& uses, const std::vector<std::string>& available,
                                      const std::vector<std::string>& must_include, size_t size) {
  std::vector<std::string> out;
  for (const std::string& name : must_include)
    if (out.size() < size && parse_container_slot(name)) out.push_back(name);
  std::vector<ContainerSlot> free;
  for (const std::string& name : available)
    if (const auto slot = parse_container_slot(name); slot && std::ranges::find(out, name) == out.end())
      free.push_back(*slot);
  std::ranges::sort(free, {}, [&](ContainerSlot slot) { return std::pair(uses.last(slot), slot.number); });
  for (const ContainerSlot slot : free)
    if (out.size() < size) out.push_back(text(slot));
  invariant(out.size() <= size, "kubelet gets no more slots than it requests");
  return out;
}

std::vector<std::string> all_slots() {
  std::vector<std::string> out;
  for (uint32_t number = 0; number < max_container_slots; ++number)
    out.push_back(text(ContainerSlot{number}));
  return out;
}

}  // namespace carve::kubernetes::node

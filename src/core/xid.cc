#include "core/xid.h"

#include <fmt/format.h>

#include <algorithm>

namespace carve {
namespace {

struct Meaning {
  uint32_t code;
  bool of_program;
  const char* text;
};

constexpr Meaning meanings[] = {
    {13, true, "exception of the graphics engine"},
    {31, true, "GPU memory page fault"},
    {32, false, "corrupted push buffer"},
    {43, true, "GPU stopped processing a program"},
    {45, true, "preemptive cleanup after an earlier error"},
    {48, false, "double-bit ECC error"},
    {61, false, "breakpoint of the internal microcontroller"},
    {62, false, "halt of the internal microcontroller"},
    {63, false, "row remapping or page retirement recorded"},
    {64, false, "row remapping or page retirement failed"},
    {69, true, "exception of the graphics engine's class"},
    {74, false, "NVLink error"},
    {79, false, "GPU has fallen off the bus"},
    {92, false, "high rate of single-bit ECC errors"},
    {94, false, "contained ECC error"},
    {95, false, "uncontained ECC error"},
    {109, false, "context switch took too long"},
    {119, false, "GPU system processor did not answer"},
    {120, false, "error of the GPU system processor"},
    {140, false, "ECC error without recovery"},
};

const Meaning* meaning_of(uint32_t xid) {
  const auto* found = std::ranges::find(meanings, xid, &Meaning::code);
  return found == std::end(meanings) ? nullptr : found;
}

}  // namespace

std::vector<XidCount> listed(const XidCounts& counts) {
  std::vector<XidCount> out;
  for (const auto& [code, count] : counts) out.push_back({code, count});
  return out;
}

bool is_fault_of_program(uint32_t xid) {
  const Meaning* known = meaning_of(xid);
  return known != nullptr && known->of_program;
}

std::string xid_text(uint32_t xid) {
  const Meaning* known = meaning_of(xid);
  return known == nullptr ? fmt::format("Xid {}", xid) : fmt::format("Xid {} ({})", xid, known->text);
}

}  // namespace carve

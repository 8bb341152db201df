// Xid numbers: the errors that NVIDIA's kernel driver reports about a device.
// Source: NVIDIA, "XID Errors" (GPU deployment documentation), the catalogue of Xid messages.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace carve {

// How often one error was reported.
struct XidCount {
  uint32_t code = 0;
  uint64_t count = 0;

  friend bool operator==(const XidCount&, const XidCount&) = default;
};

using XidCounts = std::map<uint32_t, uint64_t>;  // By code.
std::vector<XidCount> listed(const XidCounts&);

// Returns whether one program's work caused the error. The driver then ends only that program's work, and the
// device stays healthy. Unknown numbers are treated as errors of the device.
bool is_fault_of_program(uint32_t xid);

// Returns "Xid 31 (GPU memory page fault)". An unknown number is not followed by a meaning.
std::string xid_text(uint32_t xid);

}  // namespace carve

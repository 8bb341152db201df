// The bars of `carve top`, which show how a device's memory and time are divided. Pure functions.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "cli/styled.h"
#include "wire/api/device.h"
#include "wire/api/slice.h"

namespace carve::cli {

// A slice's part of one device.
struct TopPart {
  const api::Slice* slice;
  const api::SlicePart* part;
  Ink ink;  // The slice's colour in bars and lists.
};

// Returns the parts that are on the device, in the order of the list.
std::vector<TopPart> parts_on(const api::Device& device, const std::vector<api::Slice>& slices);

double fraction(uint64_t part, uint64_t whole);  // 0 if the whole is 0.

// Both return a line of `width` columns. `fine` draws with block characters of Unicode, which differ by colour
// only; otherwise neighbours get different ASCII characters.
//
// Shows each slice's quota with the charged part of it filled, then the quotas of slices that the caller does
// not see, and last, as '!' in ASCII, the memory used by processes outside of slices.
StyledLine memory_bar(const api::Device& device, const std::vector<TopPart>& parts, size_t width, bool fine);
// Shows each slice's achieved share of the last second; on a device without arbitration, its granted share.
StyledLine compute_bar(const api::Device& device, const std::vector<TopPart>& parts, size_t width, bool fine);

// Returns the device's busy part of the last second, in basis points.
uint32_t busy_bp(const api::Device& device);

// Returns the newest `width` values as one character each, padded with spaces on the left. Values are in basis
// points; 10000 and more is the highest character.
std::string strip(const std::deque<uint32_t>& values, size_t width, bool fine);

}  // namespace carve::cli

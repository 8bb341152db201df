#include "kubernetes/coordinator/cache/resized_slices.h"

#include <algorithm>

namespace carve::kubernetes::coordinator {
namespace {

constexpr uint64_t max_resize_bytes = uint64_t{1} << 50;  // Exceeds any node; sums stay below 2^64.

// Returns the memory on each device, or a message.
Result<Bytes, std::string> divided(uint64_t memory, size_t devices) {
  if (memory > max_resize_bytes)
    return tl::unexpected(fmt::format("{} bytes of memory requested; request at most {}", memory,
                                      text(Bytes{max_resize_bytes}).c_str()));
  const uint64_t step = (1_MiB).count * devices;
  if (memory != 0 && memory % step == 0) return Bytes{memory / devices};
  if (devices == 1)
    return tl::unexpected(fmt::format(
        "{} bytes of memory requested; request whole MiB, such as 4Gi or 4096Mi, at least 1Mi", memory));
  return tl::unexpected(fmt::format("{} bytes of memory for {} devices must be a positive multiple of {}Mi",
                                    memory, devices, devices));
}

uint64_t total(const kubernetes::PlacedSlice& slice) {
  uint64_t out = 0;
  for (const kubernetes::PlacedPart& part : slice.parts) out += part.memory.count;
  return out;
}

// Counts the memory in the units of the request if it is still a whole number of units.
void count_units(kubernetes::PlacedSlice& slice) {
  const uint64_t memory = total(slice);
  if (!slice.unit || *slice.unit == 0 || !slice.units) return;
  const uint64_t units = memory / *slice.unit;
  if (memory % *slice.unit == 0 && units <= UINT32_MAX) {
    slice.units = static_cast<uint32_t>(units);
  } else {
    slice.unit.reset();
    slice.units.reset();
  }
}

}  // namespace

Result<kubernetes::PodSlices, std::string> resized_slices(const kubernetes::PodSlices& now,
                                                          const kubernetes::PodResize& resize) {
  kubernetes::PodSlices out = now;
  if (resize.containers.empty())
    return tl::unexpected(fmt::format("{} lists no container", kubernetes::resize_annotation));
  for (const auto& [container, amounts] : resize.containers) {
    const auto slice = out.containers.find(container);
    if (slice == out.containers.end()) {
      std::string names;
      for (const auto& [name, placed] : out.containers) names += (names.empty() ? "" : ", ") + name;
      return tl::unexpected(
          fmt::format("container {} has no slice; use one of {}", container.substr(0, 63), names));
    }
    if (slice->second.exclusive.value_or(false) || slice->second.parts.empty())
      return tl::unexpected(
          fmt::format("container {} has whole devices, whose memory cannot be changed", container));
    const Bytes before = slice->second.parts.front().memory;
    for (const kubernetes::PlacedPart& part : slice->second.parts)
      if (part.memory != before)
        return tl::unexpected(fmt::format(
            "container {} has different amounts on its devices, which cannot be changed", container));
    const auto memory = divided(amounts.memory, slice->second.parts.size());
    if (!memory) return tl::unexpected(fmt::format("container {}: {}", container, memory.error()));
    if (*memory == before) continue;
    for (kubernetes::PlacedPart& part : slice->second.parts) part.memory = *memory;
    slice->second.memory_before = before.count;
  }
  return out;
}

bool is_changing(const kubernetes::PodSlices& slices) {
  return std::ranges::any_of(slices.containers,
                             [](const auto& slice) { return slice.second.memory_before.has_value(); });
}

kubernetes::PodSlices changed_slices(const kubernetes::PodSlices& slices,
                                     const std::set<std::string>& rejected) {
  kubernetes::PodSlices out = slices;
  for (auto& [container, slice] : out.containers) {
    if (!slice.memory_before) continue;
    if (rejected.contains(container)) {
      for (kubernetes::PlacedPart& part : slice.parts) part.memory = Bytes{*slice.memory_before};
    } else {
      count_units(slice);
    }
    slice.memory_before.reset();
  }
  return out;
}

kubernetes::PodSlices larger_of(const kubernetes::PodSlices& a, const kubernetes::PodSlices& b) {
  kubernetes::PodSlices out = a;
  for (auto& [container, slice] : out.containers) {
    const auto other = b.containers.find(container);
    if (other == b.containers.end()) continue;
    for (size_t i = 0; i < std::min(slice.parts.size(), other->second.parts.size()); ++i)
      slice.parts[i].memory = std::max(slice.parts[i].memory, other->second.parts[i].memory);
  }
  return out;
}

std::string difference(const kubernetes::PodSlices& before, const kubernetes::PodSlices& after) {
  std::string out;
  for (const auto& [container, slice] : after.containers) {
    const auto old = before.containers.find(container);
    if (old == before.containers.end() || total(old->second) == total(slice)) continue;
    out += fmt::format("{}container {}: {} instead of {}", out.empty() ? "" : "; ", container,
                       text(Bytes{total(slice)}).c_str(), text(Bytes{total(old->second)}).c_str());
  }
  return out;
}

}  // namespace carve::kubernetes::coordinator

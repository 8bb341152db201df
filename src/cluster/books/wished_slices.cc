#include "cluster/books/wished_slices.h"

#include <algorithm>

namespace carve::cluster {
namespace {

constexpr uint64_t max_wished_bytes = uint64_t{1} << 50;  // No node has more; sums stay below 2^64.

// Returns the memory of each device, or a sentence.
Result<Bytes, std::string> divided(uint64_t memory, size_t devices) {
  if (memory > max_wished_bytes)
    return tl::unexpected(
        fmt::format("a memory of {} bytes; at most {}", memory, text(Bytes{max_wished_bytes}).c_str()));
  const uint64_t step = (1_MiB).count * devices;
  if (memory != 0 && memory % step == 0) return Bytes{memory / devices};
  if (devices == 1)
    return tl::unexpected(
        fmt::format("a memory of {} bytes; write whole MiB, such as 4Gi or 4096Mi, 1Mi at least", memory));
  return tl::unexpected(
      fmt::format("a memory of {} bytes does not divide equally over {} devices; ask for a "
                  "multiple of {}Mi",
                  memory, devices, devices));
}

uint64_t total(const kube::PlacedSlice& slice) {
  uint64_t out = 0;
  for (const kube::PlacedPart& part : slice.parts) out += part.memory.count;
  return out;
}

// The memory as it was asked for in units, if it still is a number of them.
void count_units(kube::PlacedSlice& slice, uint64_t memory) {
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

Result<kube::PodSlices, std::string> wished_slices(const kube::PodSlices& now, const kube::PodWish& wish) {
  kube::PodSlices out = now;
  if (wish.containers.empty())
    return tl::unexpected(fmt::format("{} names no container", kube::wish_annotation));
  for (const auto& [container, amounts] : wish.containers) {
    const auto slice = out.containers.find(container);
    if (slice == out.containers.end()) {
      std::string names;
      for (const auto& [name, placed] : out.containers) names += (names.empty() ? "" : ", ") + name;
      return tl::unexpected(
          fmt::format("container {} has no slice; name one of {}", container.substr(0, 63), names));
    }
    if (slice->second.exclusive.value_or(false) || slice->second.parts.empty())
      return tl::unexpected(
          fmt::format("container {} has whole devices, whose memory does not change", container));
    const auto memory = divided(amounts.memory, slice->second.parts.size());
    if (!memory) return tl::unexpected(fmt::format("container {}: {}", container, memory.error()));
    for (kube::PlacedPart& part : slice->second.parts) part.memory = *memory;
    count_units(slice->second, amounts.memory);
  }
  return out;
}

kube::PodSlices larger_of(const kube::PodSlices& a, const kube::PodSlices& b) {
  kube::PodSlices out = a;
  for (auto& [container, slice] : out.containers) {
    const auto other = b.containers.find(container);
    if (other == b.containers.end()) continue;
    for (size_t i = 0; i < std::min(slice.parts.size(), other->second.parts.size()); ++i)
      slice.parts[i].memory = std::max(slice.parts[i].memory, other->second.parts[i].memory);
  }
  return out;
}

std::string difference(const kube::PodSlices& before, const kube::PodSlices& after) {
  std::string out;
  for (const auto& [container, slice] : after.containers) {
    const auto old = before.containers.find(container);
    if (old == before.containers.end() || total(old->second) == total(slice)) continue;
    out += fmt::format("{}container {}: {} in place of {}", out.empty() ? "" : "; ", container,
                       text(Bytes{total(slice)}).c_str(), text(Bytes{total(old->second)}).c_str());
  }
  return out;
}

}  // namespace carve::cluster

#include "core/amounts.h"

#include <algorithm>

namespace carve {
namespace {

// Returns the field that cannot be combined with parts, or null.
const char* given_beside_parts(const Amounts& a) {
  if (a.memory_bytes) return "memory_bytes";
  if (a.memory_bp) return "memory_bp";
  if (a.memory_units) return "memory_units";
  if (a.total_memory_bytes) return "total_memory_bytes";
  if (a.share_bp) return "share_bp";
  if (a.exclusive) return "exclusive";
  if (a.devices != 1 && a.devices != a.parts.size()) return "devices";
  return nullptr;
}

// Returns the amounts of equal parts in their other form: the amounts of one device, and the number of
// devices.
Amounts of_equal_devices(const Amounts& amounts) {
  Amounts out = amounts;
  const Part& each = amounts.parts.front();
  out.memory_bytes = each.memory_bytes;
  out.memory_bp = each.memory_bp;
  out.memory_units = each.memory_units;
  out.share_bp = each.share_bp;
  out.devices = static_cast<uint32_t>(amounts.parts.size());
  out.parts.clear();
  return out;
}

Outcome<PartRequest> part_request(const Part& part, size_t index, MemoryUnit unit) {
  if (part.memory_bytes.has_value() + part.memory_bp.has_value() + part.memory_units.has_value() != 1)
    return failure(FailureKind::invalid_argument,
                   "parts[{}]: set exactly one of memory_bytes, memory_bp and memory_units", index);
  if (part.share_bp && *part.share_bp == 0)
    return failure(
        FailureKind::invalid_argument,
        "parts[{}]: a compute share must be above 0% and at most 100%; omit it to request no share", index);
  PartRequest out{.memory = OfUsable{{part.memory_bp.value_or(0)}}, .share = {part.share_bp.value_or(0)}};
  if (part.memory_bytes) out.memory = PerDevice{{*part.memory_bytes}};
  if (part.memory_units) out.memory = PerDevice{{*part.memory_units * size_of(unit).count}};
  return out;
}

Outcome<std::vector<PartRequest>> part_requests(const Amounts& amounts, MemoryUnit unit) {
  std::vector<PartRequest> out;
  for (size_t i = 0; i < amounts.parts.size(); ++i) {
    const auto part = part_request(amounts.parts[i], i, unit);
    if (!part) return tl::unexpected(part.error());
    out.push_back(*part);
  }
  return out;
}

Outcome<void> check(const Amounts& amounts) {
  if (const char* field = given_beside_parts(amounts); field != nullptr && !amounts.parts.empty())
    return failure(FailureKind::invalid_argument, "parts: cannot be combined with {}; leave out {}", field,
                   field);
  if (amounts.memory_bytes.has_value() + amounts.memory_bp.has_value() + amounts.memory_units.has_value() +
          amounts.total_memory_bytes.has_value() >
      1)
    return failure(
        FailureKind::invalid_argument,
        "memory is given more than once; give it either per device, as a percentage, in total, or in "
        "units");
  if (amounts.share_bp && *amounts.share_bp == 0)
    return failure(FailureKind::invalid_argument,
                   "a compute share must be above 0% and at most 100%; omit it to request no share");
  return {};
}

}  // namespace

bool Amounts::has_share() const {
  return share_bp.value_or(0) != 0 ||
         std::ranges::any_of(parts, [](const Part& part) { return part.share_bp.value_or(0) != 0; });
}

uint32_t Amounts::device_count() const {
  return parts.empty() ? devices : static_cast<uint32_t>(parts.size());
}

Outcome<Request> request_of(const Amounts& amounts, MemoryUnit unit) {
  if (const auto good = check(amounts); !good) return tl::unexpected(good.error());
  auto parts = part_requests(amounts, unit);
  if (!parts) return tl::unexpected(parts.error());
  if (!parts->empty() && std::ranges::count(amounts.parts, amounts.parts.front()) ==
                             static_cast<std::ptrdiff_t>(amounts.parts.size()))
    return request_of(of_equal_devices(amounts), unit);
  Request out;
  out.parts = std::move(*parts);
  if (amounts.memory_bytes) out.memory = PerDevice{{*amounts.memory_bytes}};
  if (amounts.memory_bp) out.memory = OfUsable{{*amounts.memory_bp}};
  if (amounts.total_memory_bytes) out.memory = InTotal{{*amounts.total_memory_bytes}};
  if (amounts.memory_units) {
    out.memory_units = {*amounts.memory_units, unit};
    out.memory = PerDevice{{*amounts.memory_units * size_of(unit).count}};
  }
  out.share = {amounts.share_bp.value_or(0)};
  out.spill = {amounts.spill_bytes};
  out.devices = amounts.device_count();
  out.exclusive = amounts.exclusive;
  out.isolation = amounts.isolation;
  out.policy = amounts.policy;
  out.latency = amounts.latency_class.value_or(LatencyClass::batch);
  out.strategy = amounts.strategy;
  out.models = amounts.models;
  return out;
}

}  // namespace carve

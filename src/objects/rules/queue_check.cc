#include "objects/rules/queue_check.h"

#include <algorithm>
#include <charconv>

#include "base/bytes.h"
#include "objects/error_list.h"
#include "objects/rules/service_terms.h"
#include "wire/api/json.h"

namespace carve::objects {
namespace {

constexpr uint32_t max_quota_percent = 100'000'000;  // A million devices.

// Returns the basis points of a text such as "250%", or no value if it is not a whole percentage.
std::optional<uint64_t> compute_of(std::string_view text) {
  uint32_t percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (error != std::errc() || end + 1 != text.data() + text.size() || *end != '%' || percent == 0 ||
      percent > max_quota_percent)
    return std::nullopt;
  return uint64_t{percent} * 100;
}

void check_quota(const objects::QueueQuota& quota, ErrorList& errors) {
  const bool has_amounts = !quota.memory.empty() || !quota.compute.empty();
  if ((quota.devices != 0) == has_amounts)
    return errors.add("spec.quota", "", "set either devices, or memory and compute");
  if (!has_amounts) return;
  if (const auto bytes = parse_bytes(quota.memory); !bytes)
    errors.add("spec.quota.memory", quota.memory, "{} is not an amount such as 40GiB", typed(quota.memory));
  if (!compute_of(quota.compute))
    errors.add("spec.quota.compute", quota.compute, "{} is not a whole percentage such as 250%",
               typed(quota.compute));
}

void check_groups(const std::vector<std::string>& groups, ErrorList& errors) {
  if (groups.empty() || groups.size() > max_compute_groups)
    errors.add("spec.computeGroups", "", "{} groups are given; use 1 to {}", groups.size(),
               max_compute_groups);
  for (size_t i = 0; i < std::min(groups.size(), max_compute_groups); ++i)
    if (!is_object_name(groups[i]))
      errors.add(fmt::format("spec.computeGroups[{}]", i), groups[i],
                 "{} is not a valid name; use 1 to {} characters from a-z, 0-9 and '-'", typed(groups[i]),
                 max_name_bytes);
}

}  // namespace

Result<objects::Queue, api::FieldErrors> read_queue(std::string_view json) {
  auto [queue, wrong] = api::read_partly<objects::Queue>(json, api::Reading::strict);
  ErrorList errors;
  errors.add_all(check_metadata(queue.metadata));
  const objects::QueueSpec& spec = queue.spec;
  if (queue.metadata.namespace_ != "default")
    errors.add("metadata.namespace", queue.metadata.namespace_, "queues have no namespace; leave it out");
  if (!spec.gpu.value())
    errors.add("spec.gpu", text(spec.gpu), "{} is not one of {}", typed(text(spec.gpu)),
               choice(Words<QueueGpu>::words));
  if (!spec.billing.value())
    errors.add("spec.billing", text(spec.billing), "{} is neither onDemand nor prepaid",
               typed(text(spec.billing)));
  if (spec.quota) check_quota(*spec.quota, errors);
  check_groups(spec.compute_groups, errors);
  if (errors.empty() && wrong.empty())
    if (const auto valid = workload::validated(workload_queue(queue.metadata.name, spec, 1)); !valid)
      errors.add_message("spec", "", valid.error().message);
  if (api::FieldErrors all = api::joined(std::move(wrong), errors.all()); !all.empty())
    return tl::unexpected(std::move(all));
  return std::move(queue);
}

engines::QueueTerms queue_terms(std::string name, const objects::QueueSpec& spec) {
  return {.name = std::move(name), .gpu = spec.gpu.value().value_or(QueueGpu::mgpu), .strict = spec.strict};
}

workload::Queue workload_queue(std::string name, const objects::QueueSpec& spec, uint64_t device_bytes) {
  workload::Queue out{.name = std::move(name),
                      .gpu = spec.gpu.value().value_or(QueueGpu::mgpu),
                      .quota = {},
                      .weight = spec.weight,
                      .max_running = spec.max_running,
                      .max_slices = spec.max_slices,
                      .backfill = spec.backfill};
  if (!spec.quota) return out;
  if (spec.quota->devices != 0) {
    uint64_t memory = 0;
    if (__builtin_mul_overflow(device_bytes, uint64_t{spec.quota->devices}, &memory)) memory = UINT64_MAX;
    out.quota = workload::Amount{.memory = Bytes{memory},
                                 .compute_bp = uint64_t{whole_device.basis_points} * spec.quota->devices};
    return out;
  }
  const auto memory = parse_bytes(spec.quota->memory);
  out.quota = workload::Amount{.memory = memory ? *memory : Bytes{},
                               .compute_bp = compute_of(spec.quota->compute).value_or(0)};
  return out;
}

}  // namespace carve::objects

#include "fronts/service_terms.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/decimal.h"
#include "core/request.h"
#include "fronts/error_list.h"

namespace carve::fronts {
namespace {

constexpr std::string_view memory_units_suffix = " units";

// Returns the value of a word, or nothing: it is empty, or not a word, which is an error.
template <Worded E>
std::optional<E> word(const std::string& text, const std::string& field, ErrorList& errors) {
  if (text.empty()) return std::nullopt;
  const auto value = parse<E>(text);
  if (!value) errors.add(field, text, "{} is not {}", typed(text), choice(Words<E>::words));
  return value;
}

void read_memory(const std::string& text, GpuTerms& terms, ErrorList& errors) {
  const std::string field = "spec.gpu.memory";
  if (text.ends_with('%')) {
    const auto part = parse_share(text);
    if (!part) return errors.add(field, text, "{} {}", typed(text), part.error().sentence);
    terms.memory_bp = part->basis_points;
    return;
  }
  if (text.ends_with(memory_units_suffix)) {
    const std::string_view count = std::string_view(text).substr(0, text.size() - memory_units_suffix.size());
    const auto number = leading_decimal(count);
    if (!number || number->length != count.size() || number->decimals != 0 || number->digits < 1 ||
        number->digits > max_memory_units)
      return errors.add(field, text, "{} is not 1 to {} units; try 16 units", typed(text), max_memory_units);
    terms.memory_units = static_cast<uint32_t>(number->digits);
    return;
  }
  const auto memory = parse_bytes(text);
  if (!memory) return errors.add(field, text, "{} {}", typed(text), memory.error().sentence);
  if (*memory < min_memory)
    return errors.add(field, text, "{} is too little; a slice has at least {}", typed(text),
                      carve::text(min_memory).c_str());
  terms.memory_bytes = memory->count;
}

void check_exclusive(const objects::Gpu& gpu, ErrorList& errors) {
  for (const auto& [name, text] :
       {std::pair{"memory", &gpu.memory}, {"share", &gpu.share}, {"isolation", &gpu.isolation}})
    if (!text->empty())
      errors.add(fmt::format("spec.gpu.{}", name), *text,
                 "an exclusive replica has whole devices; leave out {}", name);
}

GpuTerms read_gpu(const objects::Gpu& gpu, ErrorList& errors) {
  GpuTerms terms{.devices = gpu.devices, .exclusive = gpu.exclusive};
  if (gpu.devices < 1 || gpu.devices > max_slice_devices)
    errors.add("spec.gpu.devices", fmt::format("{}", gpu.devices), "{} is not 1 to {}", gpu.devices,
               max_slice_devices);
  terms.isolation = word<Isolation>(gpu.isolation, "spec.gpu.isolation", errors);
  terms.policy = word<Policy>(gpu.policy, "spec.gpu.policy", errors);
  if (gpu.exclusive) {
    check_exclusive(gpu, errors);
    return terms;
  }
  if (gpu.memory.empty())
    errors.add("spec.gpu.memory", "",
               "the replica has no memory; add it, as in 4GiB or 50%, or exclusive: true");
  else
    read_memory(gpu.memory, terms, errors);
  if (!gpu.share.empty()) {
    const auto share = parse_share(gpu.share);
    if (share)
      terms.share_bp = share->basis_points;
    else
      errors.add("spec.gpu.share", gpu.share, "{} {}", typed(gpu.share), share.error().sentence);
  } else if (terms.isolation == Isolation::memory_and_compute) {
    errors.add("spec.gpu.share", "", "isolation {} needs a compute share; add one, such as 30%",
               text(Isolation::memory_and_compute));
  }
  return terms;
}

// Reads request and limit by `parse_amount`, which returns a number.
template <class Parse>
void read_resource(const objects::Resource& resource, const std::string& field, Parse parse_amount,
                   uint64_t& request, uint64_t& limit, ErrorList& errors) {
  const auto read = [&](const std::string& text, const std::string& name, uint64_t& out) {
    if (text.empty()) return;
    if (const auto amount = parse_amount(text))
      out = *amount;
    else
      errors.add(name, text, "{} {}", typed(text), amount.error().sentence);
  };
  read(resource.request, field + ".request", request);
  read(resource.limit, field + ".limit", limit);
  if (resource.request.empty()) request = limit;
  if (limit != 0 && request > limit)
    errors.add(field + ".limit", resource.limit, "{} is less than the request {}; raise the limit",
               resource.limit, resource.request);
}

Result<uint64_t> parse_count(std::string_view text) {
  const auto amount = parse_bytes(text);
  if (!amount) return tl::unexpected(amount.error());
  if (amount->count == 0) return failed("is no memory; leave the field out for no limit");
  return amount->count;
}

}  // namespace

Result<uint64_t> parse_cores(std::string_view text) {
  constexpr const char* not_cores = "is not a number of cores; try 2, 1.5 or 500m";
  const auto number = leading_decimal(text);
  if (!number) return failed(not_cores);
  const std::string_view unit = text.substr(number->length);
  if ((unit != "" && unit != "m") || (unit == "m" && number->decimals != 0)) return failed(not_cores);
  if (number->decimals > 3) return failed("is finer than 0.001 cores; try 500m");
  unsigned __int128 milli = number->digits;
  if (unit.empty())
    for (unsigned i = number->decimals; i < 3; ++i) milli *= 10;
  if (milli == 0) return failed("is no core; leave the field out for no limit");
  if (milli > max_cpu_milli) return failed("is more cores than a node has");
  return static_cast<uint64_t>(milli);
}

std::string memory_text(const std::string& amount) {
  const auto bytes = parse_bytes(amount);
  if (!bytes) return amount;
  const size_t unit = std::min(amount.find_first_not_of("0123456789."), amount.size());
  const std::string_view name = std::string_view(amount).substr(unit);
  if (name.size() != 2) return carve::text(*bytes).c_str();  // Binary units have three letters.
  const bool is_small = bytes->count < Bytes{1_GiB}.count;
  const double binary = static_cast<double>(bytes->count) / (is_small ? 1 << 20 : 1 << 30);
  return fmt::format("{} {} ({:.1f} {})", std::string_view(amount).substr(0, unit), name, binary,
                     is_small ? "MiB" : "GiB");
}

std::vector<workload::Toleration> tolerations_of(const std::vector<objects::Toleration>& tolerations) {
  std::vector<workload::Toleration> out;
  for (const objects::Toleration& one : tolerations) {
    workload::Toleration& toleration = out.emplace_back();
    toleration.key = one.key;
    toleration.effect = one.effect;
    if (one.operator_ == "Equal") toleration.value = one.value;
  }
  return out;
}

Result<ReplicaTerms, api::FieldErrors> terms_of(const objects::ServiceSpec& spec) {
  ErrorList errors;
  ReplicaTerms terms;
  if (spec.gpu) terms.gpu = read_gpu(*spec.gpu, errors);
  read_resource(spec.cpu, "spec.cpu", parse_cores, terms.cpu_request_milli, terms.cpu_limit_milli, errors);
  read_resource(spec.memory, "spec.memory", parse_count, terms.memory_request_bytes, terms.memory_limit_bytes,
                errors);
  if (!errors.empty()) return tl::unexpected(errors.all());
  return terms;
}

}  // namespace carve::fronts

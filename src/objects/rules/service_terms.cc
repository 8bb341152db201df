#include "objects/rules/service_terms.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/decimal.h"
#include "core/invariant.h"
#include "core/request.h"
#include "objects/error_list.h"

namespace carve::objects {
namespace {

// Returns the enumerator for a word, or no value if it is empty. An unknown word is an error.
template <Worded E>
std::optional<E> word(const std::string& text, const std::string& field, ErrorList& errors) {
  if (text.empty()) return std::nullopt;
  const auto value = parse<E>(text);
  if (!value) errors.add(field, text, "{} is not {}", typed(text), choice(Words<E>::words));
  return value;
}

// Parses the memory and the share of one device. `of` is the path of the two fields, with a dot.
Part read_part(const std::string& of, const std::string& memory, const std::string& share,
               ErrorList& errors) {
  Part out;
  const std::string field = of + "memory";
  if (const auto parsed = parse_memory(memory); !parsed)
    errors.add(field, memory, "{} {}", typed(memory), parsed.error());
  else if (parsed->memory_bytes && Bytes{*parsed->memory_bytes} < min_memory)
    errors.add(field, memory, "{} is too little; a slice needs at least {}", typed(memory),
               carve::text(min_memory).c_str());
  else
    out = *parsed;
  if (share.empty()) return out;
  if (const auto parsed = parse_share(share))
    out.share_bp = parsed->basis_points;
  else
    errors.add(of + "share", share, "{} {}", typed(share), parsed.error().message);
  return out;
}

// Parses the parts of a slice whose devices have unequal amounts.
void read_parts(const objects::Gpu& gpu, Amounts& terms, ErrorList& errors) {
  if (gpu.parts.size() > max_slice_devices)
    return errors.add("spec.gpu.parts", "", "{} are given; a slice can have 1 to {}", gpu.parts.size(),
                      max_slice_devices);
  for (const auto& [name, text] : {std::pair{"memory", &gpu.memory}, {"share", &gpu.share}})
    if (!text->empty())
      errors.add(fmt::format("spec.gpu.{}", name), *text,
                 "each part in spec.gpu.parts sets its own; leave out {}", name);
  if (gpu.devices != 1 && gpu.devices != gpu.parts.size())
    errors.add("spec.gpu.devices", fmt::format("{}", gpu.devices),
               "{} devices are requested, but spec.gpu.parts has {}; leave out devices", gpu.devices,
               gpu.parts.size());
  for (size_t i = 0; i < gpu.parts.size(); ++i) {
    const objects::GpuPart& part = gpu.parts[i];
    const std::string of = fmt::format("spec.gpu.parts[{}].", i);
    if (part.memory.empty())
      errors.add(of + "memory", "", "the part has no memory; add an amount, such as 4GiB or 50%");
    else
      terms.parts.push_back(read_part(of, part.memory, part.share, errors));
    if (part.share.empty() != gpu.parts.front().share.empty())
      errors.add(of + "share", part.share, "request a compute share on each device or on none");
  }
}

void check_exclusive(const objects::Gpu& gpu, ErrorList& errors) {
  for (const auto& [name, text] :
       {std::pair{"memory", &gpu.memory}, {"share", &gpu.share}, {"isolation", &gpu.isolation}})
    if (!text->empty())
      errors.add(fmt::format("spec.gpu.{}", name), *text,
                 "an exclusive replica has whole devices; leave out {}", name);
  if (!gpu.parts.empty())
    errors.add("spec.gpu.parts", "", "an exclusive replica has whole devices; leave out parts");
}

Amounts read_gpu(const objects::Gpu& gpu, ErrorList& errors) {
  Amounts terms{.devices = gpu.devices, .exclusive = gpu.exclusive};
  if (gpu.devices < 1 || gpu.devices > max_slice_devices)
    errors.add("spec.gpu.devices", fmt::format("{}", gpu.devices), "{} is not between 1 and {}", gpu.devices,
               max_slice_devices);
  terms.isolation = word<Isolation>(gpu.isolation, "spec.gpu.isolation", errors);
  terms.policy = word<Policy>(gpu.policy, "spec.gpu.policy", errors);
  if (gpu.exclusive) {
    check_exclusive(gpu, errors);
    return terms;
  }
  if (!gpu.parts.empty()) {
    read_parts(gpu, terms, errors);
    terms.devices = 1;  // The number of parts.
  } else if (gpu.memory.empty()) {
    errors.add("spec.gpu.memory", "",
               "the replica has no memory; add an amount, such as 4GiB or 50%, or set exclusive: true");
  } else {
    const Part each = read_part("spec.gpu.", gpu.memory, gpu.share, errors);
    terms.memory_bytes = each.memory_bytes;
    terms.memory_bp = each.memory_bp;
    terms.memory_units = each.memory_units;
    terms.share_bp = each.share_bp;
  }
  const bool has_share = !gpu.share.empty() || (!gpu.parts.empty() && !gpu.parts.front().share.empty());
  if (!has_share && terms.isolation == Isolation::memory_and_compute)
    errors.add("spec.gpu.share", "", "isolation {} needs a compute share; add one, such as 30%",
               text(Isolation::memory_and_compute));
  return terms;
}

// Parses request and limit with `parse_amount`, which returns a number.
template <class Parse>
void read_resource(const objects::Resource& resource, const std::string& field, Parse parse_amount,
                   uint64_t& request, uint64_t& limit, ErrorList& errors) {
  const auto read = [&](const std::string& text, const std::string& name, uint64_t& out) {
    if (text.empty()) return;
    if (const auto amount = parse_amount(text))
      out = *amount;
    else
      errors.add(name, text, "{} {}", typed(text), amount.error().message);
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
  if (amount->count == 0) return failed("is zero; use more, or leave the field out");
  return amount->count;
}

bool has_one_memory(const auto& of) {
  return int{of.memory_bytes.has_value()} + int{of.memory_bp.has_value()} +
             int{of.memory_units.has_value()} ==
         1;
}

// Returns whether the amounts are one of the forms of core/amounts.h.
bool is_consistent(const Amounts& gpu) {
  const bool has_memory = gpu.memory_bytes || gpu.memory_bp || gpu.memory_units || gpu.total_memory_bytes;
  if (gpu.devices < 1 || gpu.devices > max_slice_devices) return false;
  if (gpu.exclusive) return !has_memory && !gpu.share_bp && gpu.parts.empty();
  if (gpu.parts.empty()) return has_one_memory(gpu) && !gpu.total_memory_bytes;
  return !has_memory && !gpu.share_bp && gpu.devices == 1 && gpu.parts.size() <= max_slice_devices &&
         std::ranges::all_of(gpu.parts, [&](const Part& part) {
           return has_one_memory(part) && part.share_bp.has_value() == gpu.parts.front().share_bp.has_value();
         });
}

}  // namespace

Result<uint64_t> parse_cores(std::string_view text) {
  constexpr const char* not_cores = "is not a number of cores; try 2, 1.5 or 500m";
  const auto number = leading_decimal(text);
  if (!number) return failed(not_cores);
  const std::string_view unit = text.substr(number->length);
  if ((unit != "" && unit != "m") || (unit == "m" && number->decimals != 0)) return failed(not_cores);
  if (number->decimals > 3) return failed("must be a multiple of 0.001 cores, as in 500m");
  unsigned __int128 milli = number->digits;
  if (unit.empty())
    for (unsigned i = number->decimals; i < 3; ++i) milli *= 10;
  if (milli == 0) return failed("is zero; use more, or leave the field out");
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
    toleration.effect = one.effect.value();
    if (one.operator_ == TolerationOperator::equal) toleration.value = one.value;
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
  invariant(!terms.gpu || is_consistent(*terms.gpu), "amounts without an error form a valid request");
  for (const auto& [request, limit] : {std::pair{terms.cpu_request_milli, terms.cpu_limit_milli},
                                       {terms.memory_request_bytes, terms.memory_limit_bytes}})
    invariant(limit == 0 || request <= limit, "a request does not exceed its limit");
  return terms;
}

}  // namespace carve::objects

#include "objects/tariff/tariff_check.h"

#include <charconv>
#include <optional>

#include "core/invariant.h"
#include "core/utc.h"
#include "objects/error_list.h"
#include "objects/rules/service_terms.h"

namespace carve::objects {
namespace {

// Returns the nanoseconds of "90s", "10m" or "2h", or no value for other texts or more than a day.
std::optional<bill::Ns> span_of(std::string_view text) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end + 1 != text.data() + text.size() || count < 0) return std::nullopt;
  const int64_t unit = *end == 's' ? 1 : *end == 'm' ? 60 : *end == 'h' ? 3600 : 0;
  int64_t ns = 0;
  if (unit == 0 || __builtin_mul_overflow(count, unit * bill::second_ns, &ns)) return std::nullopt;
  return ns <= bill::max_granularity_ns ? std::optional(ns) : std::nullopt;
}

bill::Ns span(const char* field, const std::string& text, ErrorList& errors) {
  if (const auto ns = span_of(text)) return *ns;
  errors.add(field, text, "{} is not a duration from 0s to 24h, such as 60s, 10m or 1h", typed(text));
  return 0;
}

bill::Millionths number(const std::string& field, const std::string& text, bill::Millionths max,
                        ErrorList& errors) {
  const auto read = bill::parse_millionths(field, text, max);
  if (read) return *read;
  errors.add_message(field, text, read.error().message);
  return {};
}

bill::Tariff tariff_of(const objects::TariffSpec& spec, ErrorList& errors) {
  bill::Tariff out{.currency = spec.currency, .units = bill::shipped_units()};
  if (const auto from = parse_utc("spec.from", spec.from))
    out.from = *from;
  else
    errors.add_message("spec.from", spec.from, from.error().message);
  if (spec.units.size() > max_tariff_units)
    errors.add("spec.units", "", "{} models are too many; use at most {}", spec.units.size(),
               max_tariff_units);
  std::map<std::string, bill::Millionths, std::less<>> named;
  for (size_t i = 0; i < std::min(spec.units.size(), max_tariff_units); ++i) {
    const objects::TariffUnits& units = spec.units[i];
    const std::string field = fmt::format("spec.units[{}]", i);
    const auto count = number(field + ".gpuHourUnits", units.gpu_hour_units, bill::max_units, errors);
    if (!named.emplace(units.model, count).second)
      errors.add(field + ".model", units.model, "{} occurs twice", typed(units.model));
    out.units.insert_or_assign(units.model, count);
  }
  out.price = number("spec.pricePerGpuHour", spec.price_per_gpu_hour, bill::max_price, errors);
  out.granularity = span("spec.granularity", spec.granularity, errors);
  out.minimum = span("spec.minimum", spec.minimum, errors);
  if (errors.empty())
    if (const auto valid = bill::Tariffs::from({out}); !valid)
      errors.add_message("spec", "", "spec: " + valid.error().message);
  return out;
}

}  // namespace

Result<bill::Tariff, api::FieldErrors> tariff_of(const objects::TariffSpec& spec) {
  ErrorList errors;
  bill::Tariff out = tariff_of(spec, errors);
  if (!errors.empty()) return tl::unexpected(errors.all());
  invariant(out.price.count >= 0 && out.granularity > 0 && out.minimum >= 0,
            "bill::Tariffs accepts every valid tariff");
  return out;
}

Result<objects::Tariff, api::FieldErrors> read_tariff(std::string_view json) {
  auto [tariff, wrong] = api::read_partly<objects::Tariff>(json, api::Reading::strict);
  ErrorList errors;
  errors.add_all(check_metadata(tariff.metadata));
  if (tariff.metadata.namespace_ != "default")
    errors.add("metadata.namespace", tariff.metadata.namespace_, "tariffs have no namespace; leave it out");
  tariff_of(tariff.spec, errors);
  if (api::FieldErrors all = api::joined(std::move(wrong), errors.all()); !all.empty())
    return tl::unexpected(std::move(all));
  return std::move(tariff);
}

}  // namespace carve::objects

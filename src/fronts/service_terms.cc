#include "fronts/service_terms.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "core/label.h"

namespace carve::fronts {
namespace {

using api::FieldErrors;

constexpr uint64_t max_cpu_milli = 1'000'000;  // 1,000 cores.

// Collects errors, each with its field.
class Checker {
 public:
  void add(std::string field, const std::string& value, const std::string& rule) {
    if (errors_.size() == api::max_field_errors) return;
    const std::string shown = value.substr(0, 60);
    errors_.push_back({.field = field,
                       .value = shown,
                       .sentence = value.empty() ? fmt::format("{}: {}", field, rule)
                                                 : fmt::format("{}: '{}' {}", field, shown, rule)});
  }
  void require(bool good, std::string field, const std::string& value, const std::string& rule) {
    if (!good) add(std::move(field), value, rule);
  }
  FieldErrors take() { return std::move(errors_); }
  bool is_empty() const { return errors_.empty(); }

 private:
  FieldErrors errors_;
};

// Reads "2", "0.5" or "500m" as thousandths of a core.
std::optional<uint64_t> parse_cpu(std::string_view text) {
  const bool milli = text.ends_with('m');
  if (milli) text.remove_suffix(1);
  const size_t dot = std::min(text.find('.'), text.size());
  std::string digits(text.substr(0, dot)), decimals(text.substr(std::min(dot + 1, text.size())));
  if (digits.empty() || digits.size() > 7 || decimals.size() > 3 || (milli && dot != text.size()) ||
      (dot != text.size() && decimals.empty()))
    return std::nullopt;
  if (!milli) digits += decimals + std::string(3 - decimals.size(), '0');
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value > max_cpu_milli)
    return std::nullopt;
  return value;
}

uint64_t cpu(const std::string& text, const char* field, Checker& checker) {
  if (text.empty()) return 0;
  const auto value = parse_cpu(text);
  checker.require(value && *value > 0, field, text, "is not a number of cores such as 2, 0.5 or 500m");
  return value.value_or(0);
}

uint64_t bytes(const std::string& text, const char* field, Checker& checker) {
  if (text.empty()) return 0;
  const auto value = parse_bytes(text);
  checker.require(value && value->count > 0, field, text,
                  "is not an amount of memory such as 4GiB or 512MiB");
  return value ? value->count : 0;
}

template <Worded E>
std::optional<E> word(const std::string& text, const char* field, Checker& checker) {
  if (text.empty()) return std::nullopt;
  const auto value = parse<E>(text);
  checker.require(value.has_value(), field, text, fmt::format("is not {}", choice(Words<E>::words)));
  return value;
}

void read_gpu_memory(const objects::Gpu& gpu, GpuTerms& out, Checker& checker) {
  constexpr const char* field = "spec.gpu.memory";
  if (gpu.exclusive) {
    checker.require(gpu.memory.empty(), field, gpu.memory,
                    "has no effect with exclusive; leave one of them out");
    return;
  }
  if (gpu.memory.empty()) return checker.add(field, "", "the memory per device is missing, such as 4GiB");
  if (gpu.memory.ends_with('%')) {
    const auto part = parse_share(gpu.memory);
    checker.require(part.has_value(), field, gpu.memory, "is not a percentage from 0.01% to 100%");
    if (part) out.memory_bp = part->basis_points;
    return;
  }
  const uint64_t amount = bytes(gpu.memory, field, checker);
  if (amount != 0) out.memory_bytes = amount;
}

GpuTerms gpu_terms(const objects::Gpu& gpu, Checker& checker) {
  GpuTerms out{.devices = gpu.devices, .exclusive = gpu.exclusive};
  read_gpu_memory(gpu, out, checker);
  if (!gpu.share.empty()) {
    const auto share = parse_share(gpu.share);
    checker.require(share.has_value(), "spec.gpu.share", gpu.share, "is not a percentage from 0.01% to 100%");
    checker.require(!gpu.exclusive, "spec.gpu.share", gpu.share,
                    "has no effect with exclusive; leave it out");
    if (share) out.share_bp = share->basis_points;
  }
  checker.require(gpu.devices >= 1 && gpu.devices <= max_slice_devices, "spec.gpu.devices",
                  fmt::format("{}", gpu.devices), fmt::format("is not 1 to {}", max_slice_devices));
  out.isolation = word<Isolation>(gpu.isolation, "spec.gpu.isolation", checker);
  out.policy = word<Policy>(gpu.policy, "spec.gpu.policy", checker);
  return out;
}

ReplicaTerms read_terms(const objects::ServiceSpec& spec, Checker& checker) {
  ReplicaTerms out;
  if (spec.gpu) out.gpu = gpu_terms(*spec.gpu, checker);
  out.cpu_limit_milli = cpu(spec.cpu.limit, "spec.cpu.limit", checker);
  out.cpu_request_milli =
      spec.cpu.request.empty() ? out.cpu_limit_milli : cpu(spec.cpu.request, "spec.cpu.request", checker);
  out.memory_limit_bytes = bytes(spec.memory.limit, "spec.memory.limit", checker);
  out.memory_request_bytes = spec.memory.request.empty()
                                 ? out.memory_limit_bytes
                                 : bytes(spec.memory.request, "spec.memory.request", checker);
  const auto below = [](uint64_t limit, uint64_t request) { return limit != 0 && limit < request; };
  if (below(out.cpu_limit_milli, out.cpu_request_milli))
    checker.add("spec.cpu.limit", spec.cpu.limit,
                fmt::format("is less than the request {}", spec.cpu.request));
  if (below(out.memory_limit_bytes, out.memory_request_bytes))
    checker.add("spec.memory.limit", spec.memory.limit,
                fmt::format("is less than the request {}", spec.memory.request));
  return out;
}

void check_labels(const std::map<std::string, std::string>& labels, const char* field, Checker& checker) {
  checker.require(labels.size() <= max_labels, field, "", fmt::format("there are more than {}", max_labels));
  for (const auto& [key, value] : labels) {
    const bool printable = std::ranges::all_of(key + value, [](char c) { return c >= ' ' && c <= '~'; });
    checker.require(
        !key.empty() && key.size() <= max_label_bytes && value.size() <= max_label_bytes && printable,
        fmt::format("{}.{}", field, key.substr(0, 60)), value,
        fmt::format("is not printable ASCII of at most {} bytes", max_label_bytes));
    checker.require(!key.starts_with("carve.dev/"), fmt::format("{}.{}", field, key.substr(0, 60)), value,
                    "has a key of ours (carve.dev/...), which only the controller sets");
  }
}

void check_metadata(const objects::Metadata& metadata, Checker& checker) {
  const std::string rule =
      fmt::format("is not a name; use 1 to {} of a-z, 0-9 and -, with a letter or a digit at both ends",
                  max_object_name_bytes);
  if (metadata.name.empty())
    checker.add("metadata.name", "", "the name is missing");
  else
    checker.require(is_object_name(metadata.name), "metadata.name", metadata.name, rule);
  checker.require(is_object_name(metadata.namespace_), "metadata.namespace", metadata.namespace_, rule);
  checker.require(metadata.account.size() <= max_label_bytes, "metadata.account", metadata.account,
                  fmt::format("has more than {} bytes", max_label_bytes));
  check_labels(metadata.labels, "metadata.labels", checker);
}

void check_run(const objects::Run& run, Checker& checker) {
  checker.require(!run.command.empty() || !run.image.empty(), "spec.run.command", "",
                  "the program is missing: a list of the program and its arguments");
  checker.require(run.command.empty() || !run.command.front().empty(), "spec.run.command", "",
                  "the program's name is empty");
  checker.require(run.workdir.empty() || run.workdir.starts_with('/'), "spec.run.workdir", run.workdir,
                  "is not an absolute path");
  size_t size = 0;
  for (const auto& [name, value] : run.env) {
    size += name.size() + value.size() + 2;
    checker.require(!name.empty() && name.find('=') == std::string::npos, "spec.run.env", name,
                    "is not a variable's name");
  }
  checker.require(size <= max_environment_bytes, "spec.run.env", "",
                  fmt::format("it has {} bytes; at most {} are passed on", size, max_environment_bytes));
}

void check_numbers(const objects::ServiceSpec& spec, Checker& checker) {
  const auto within = [&](uint32_t value, uint32_t from, uint32_t to, const char* field) {
    checker.require(value >= from && value <= to, field, fmt::format("{}", value),
                    fmt::format("is not {} to {}", from, to));
  };
  within(spec.replicas, 0, max_service_replicas, "spec.replicas");
  if (spec.port) within(*spec.port, 1, 65535, "spec.port");
  within(spec.update.max_surge, 0, max_service_replicas, "spec.update.maxSurge");
  within(spec.update.max_unavailable, 0, max_service_replicas, "spec.update.maxUnavailable");
  within(spec.update.progress_deadline_seconds, 1, 86400, "spec.update.progressDeadlineSeconds");
  within(spec.termination_grace_period_seconds, 0, max_grace_seconds, "spec.terminationGracePeriodSeconds");
  within(spec.readiness.period_seconds, 1, 300, "spec.readiness.periodSeconds");
  within(spec.readiness.timeout_seconds, 1, 60, "spec.readiness.timeoutSeconds");
  within(spec.readiness.failure_threshold, 1, 100, "spec.readiness.failureThreshold");
  checker.require(
      spec.update.max_surge + spec.update.max_unavailable > 0, "spec.update", "",
      "maxSurge and maxUnavailable are 0, so no replica can be replaced; set one of them to 1 or more");
  if (!spec.autoscale) return;
  within(spec.autoscale->max, 1, max_service_replicas, "spec.autoscale.max");
  within(spec.autoscale->min, 0, spec.autoscale->max, "spec.autoscale.min");
  within(spec.autoscale->target, 1, 1'000'000'000, "spec.autoscale.target");
  constexpr std::string_view metrics[] = {"qps", "gpuUtilization", "concurrency"};
  checker.require(std::ranges::find(metrics, spec.autoscale->metric) != std::end(metrics),
                  "spec.autoscale.metric", spec.autoscale->metric, fmt::format("is not {}", choice(metrics)));
}

}  // namespace

bool is_object_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= max_object_name_bytes && letter(name.front()) &&
         letter(name.back()) && std::ranges::all_of(name, [&](char c) { return letter(c) || c == '-'; });
}

Result<ReplicaTerms, FieldErrors> terms_of(const objects::ServiceSpec& spec) {
  Checker checker;
  ReplicaTerms out = read_terms(spec, checker);
  if (!checker.is_empty()) return tl::unexpected(checker.take());
  return out;
}

FieldErrors check(const objects::Service& service) {
  Checker checker;
  checker.require(service.api_version == objects::api_version, "apiVersion", service.api_version,
                  fmt::format("is not {}", objects::api_version));
  checker.require(service.kind == "Service", "kind", service.kind, "is not Service");
  check_metadata(service.metadata, checker);
  read_terms(service.spec, checker);
  check_run(service.spec.run, checker);
  check_numbers(service.spec, checker);
  const objects::Readiness& readiness = service.spec.readiness;
  if (readiness.http_get) {
    const std::string& path = readiness.http_get->path;
    const bool printable = std::ranges::all_of(path, [](char c) { return c > ' ' && c <= '~'; });
    checker.require(path.starts_with('/') && printable, "spec.readiness.httpGet.path", path,
                    "is not a path that begins with /");
  }
  return checker.take();
}

}  // namespace carve::fronts

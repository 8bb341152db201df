// The rules for a service's document, except those for its amounts.
#include <algorithm>
#include <charconv>

#include "core/label.h"
#include "core/request.h"
#include "objects/error_list.h"
#include "objects/rules/pool_check.h"
#include "objects/rules/service_terms.h"
#include "objects/rules/visible_check.h"

namespace carve::objects {
namespace {

using workload::max_replicas;

constexpr size_t max_image_bytes = 512;

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; });
}

// Adds an error if the number is not between `low` and `high`.
void check_range(const std::string& field, uint32_t number, uint32_t low, uint32_t high, ErrorList& errors) {
  if (number < low || number > high)
    errors.add(field, fmt::format("{}", number), "{} is not between {} and {}", number, low, high);
}

void check_object_name(const std::string& field, const std::string& name, ErrorList& errors) {
  if (!is_object_name(name))
    errors.add(field, name,
               "{} is not a valid name; use 1 to {} characters from a-z, 0-9 and -, with a letter or digit "
               "first and last",
               typed(name), max_name_bytes);
}

void check_label_key(const std::string& field, const std::string& key, ErrorList& errors) {
  if (key.empty() || key.size() > max_label_bytes || !is_printable(key) ||
      key.find_first_of("= ") != std::string::npos)
    errors.add(field, key,
               "{} is not a valid key; use 1 to {} printable ASCII characters except space and =", typed(key),
               max_label_bytes);
}

void check_run(const objects::Run& run, ErrorList& errors) {
  if (run.command.empty() && run.image.empty())
    errors.add("spec.run", "", "there is nothing to run; add command, image or both");
  if (!run.command.empty() && run.command.front().empty())
    errors.add("spec.run.command[0]", "", "the program name is empty; write its path");
  if (run.command.empty() && run.image.empty() && !run.args.empty())
    errors.add("spec.run.args", run.args.front(), "{}: args require a program; set it in spec.run.command",
               typed(run.args.front()));
  if (const std::string problem = image_problem(run.image); !problem.empty())
    errors.add("spec.run.image", run.image, "{}", problem);
  if (!run.workdir.empty() && (!run.workdir.starts_with('/') || has_control(run.workdir)))
    errors.add("spec.run.workdir", run.workdir, "{} is not an absolute path; start it with '/'",
               typed(run.workdir));
  size_t bytes = 0;
  for (const auto& [name, value] : run.env) {
    bytes += name.size() + value.size() + 2;
    if (!is_env_name(name)) errors.add("spec.run.env", name, "{} {}", typed(name), env_name_rule);
  }
  if (bytes > max_env_bytes)
    errors.add("spec.run.env", fmt::format("{} bytes", bytes), "{} bytes are too many; use at most {}", bytes,
               max_env_bytes);
}

void check_target_port(const objects::ServiceSpec& spec, ErrorList& errors) {
  if (!spec.target_port) return;
  const std::string field = "spec.targetPort", value = fmt::format("{}", *spec.target_port);
  check_range(field, *spec.target_port, 1, UINT16_MAX, errors);
  if (!spec.port) errors.add(field, value, "{} requires spec.port; add it", value);
  const uint32_t replicas = std::max(spec.replicas, spec.autoscale ? spec.autoscale->max : 0);
  if (replicas > 1)
    errors.add(
        field, value,
        "{}: only one of {} replicas can listen on this port, because they run on one machine; let the "
        "program listen on the port in its variable PORT and leave targetPort out, or use 1 replica",
        value, replicas);
}

void check_readiness(const objects::ServiceSpec& spec, ErrorList& errors) {
  const objects::Readiness& readiness = spec.readiness;
  if (readiness.http_get) {
    const std::string& path = readiness.http_get->path;
    if (!path.starts_with('/') || !is_printable(path) || path.find(' ') != std::string::npos)
      errors.add("spec.readiness.httpGet.path", path,
                 "{} is not a URL path; start it with '/', and use no spaces", typed(path));
    if (!spec.port)
      errors.add("spec.readiness.httpGet", "", "a service without a port is not probed; add spec.port");
  }
  check_range("spec.readiness.periodSeconds", readiness.period_seconds, 1, max_seconds, errors);
  check_range("spec.readiness.timeoutSeconds", readiness.timeout_seconds, 1, max_seconds, errors);
  check_range("spec.readiness.failureThreshold", readiness.failure_threshold, 1, 1000, errors);
}

void check_tolerations(const std::vector<objects::Toleration>& tolerations, ErrorList& errors) {
  if (tolerations.size() > max_tolerations)
    errors.add("spec.tolerations", "", "{} are too many; use at most {}", tolerations.size(),
               max_tolerations);
  for (size_t i = 0; i < std::min(tolerations.size(), max_tolerations); ++i) {
    const objects::Toleration& one = tolerations[i];
    const std::string field = fmt::format("spec.tolerations[{}]", i);
    if (!one.operator_.value())
      errors.add(field + ".operator", text(one.operator_), "{} is neither Equal nor Exists",
                 typed(text(one.operator_)));
    else if (one.operator_ == TolerationOperator::exists && !one.value.empty())
      errors.add(field + ".value", one.value,
                 "must be empty with operator Exists; leave it out, or use operator Equal");
    else if (one.operator_ == TolerationOperator::equal && one.key.empty())
      errors.add(field + ".key", "", "is required except with operator Exists, which then matches every key");
    if (!one.effect.empty() && !one.effect.value())
      errors.add(field + ".effect", text(one.effect), "{} is not one of {}", typed(text(one.effect)),
                 fmt::join(Words<TaintEffect>::words, ", "));
  }
}

void check_autoscale(const objects::ServiceSpec& spec, ErrorList& errors) {
  if (!spec.autoscale) return;
  const objects::Autoscale& autoscale = *spec.autoscale;
  check_range("spec.autoscale.min", autoscale.min, 1, max_replicas, errors);
  check_range("spec.autoscale.max", autoscale.max, 1, max_replicas, errors);
  if (autoscale.min > autoscale.max)
    errors.add("spec.autoscale.max", fmt::format("{}", autoscale.max), "{} is less than min, which is {}",
               autoscale.max, autoscale.min);
  const std::string metric = text(autoscale.metric);
  if (!autoscale.metric.value())
    errors.add("spec.autoscale.metric", metric, "{} is not {}", typed(metric),
               choice(Words<AutoscaleMetric>::words));
  else if (autoscale.metric != AutoscaleMetric::gpu_utilization && !spec.port)
    errors.add("spec.autoscale.metric", metric,
               "{} is measured at the service's port; add spec.port, or use gpuUtilization", typed(metric));
  if (autoscale.target == 0) errors.add("spec.autoscale.target", "0", "must be at least 1");
}

}  // namespace

std::string visible_devices_problem(const std::map<std::string, std::string>& env, uint32_t devices) {
  const auto found = env.find("CUDA_VISIBLE_DEVICES");
  if (found == env.end()) return "";
  const std::string& list = found->second;
  if (devices == 0)
    return list.empty() || list == "-1" || list == "none"
               ? ""
               : fmt::format(
                     "{} lists devices, but the program has no slice; request one, or leave the variable out",
                     typed(list));
  std::vector<bool> is_named(devices);
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    const std::string_view word = std::string_view(list).substr(at, end - at);
    uint32_t index = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), index);
    if (word.empty() || error != std::errc() || stop != word.data() + word.size() || index >= devices ||
        is_named[index])
      return fmt::format("{} is not a list of devices of the slice; use {}, or leave the variable out",
                         typed(list), devices == 1 ? "0" : fmt::format("numbers from 0 to {}", devices - 1));
    is_named[index] = true;
    at = end + 1;
  }
  return "";
}

std::string image_problem(const std::string& image) {
  if (image.size() <= max_image_bytes && is_printable(image) && !image.starts_with('-') &&
      image.find(' ') == std::string::npos)
    return "";
  return fmt::format(
      "{} is not an image; use at most {} printable ASCII characters without spaces, and no - at the "
      "beginning",
      typed(image), max_image_bytes);
}

bool is_env_name(std::string_view name) {
  return !name.empty() && is_printable(name) && name.find('=') == std::string_view::npos;
}

bool is_object_name(std::string_view name) {
  return is_name(name) && name.size() <= max_name_bytes && !name.ends_with('-');
}

api::FieldErrors check_metadata(const objects::Metadata& metadata) {
  ErrorList errors;
  check_object_name("metadata.name", metadata.name, errors);
  check_object_name("metadata.namespace", metadata.namespace_, errors);
  if (metadata.labels.size() > max_labels)
    errors.add("metadata.labels", fmt::format("{} labels", metadata.labels.size()),
               "there are {}; use at most {}", metadata.labels.size(), max_labels);
  for (const auto& [key, value] : metadata.labels) {
    check_label_key("metadata.labels", key, errors);
    if (value.size() > max_label_bytes || !is_printable(value))
      errors.add("metadata.labels." + key, value,
                 "{} is not a valid value; use at most {} printable ASCII characters", typed(value),
                 max_label_bytes);
  }
  for (const auto& [key, value] : metadata.annotations) check_label_key("metadata.annotations", key, errors);
  if (metadata.account.size() > max_label_bytes || !is_printable(metadata.account))
    errors.add("metadata.account", metadata.account,
               "{} is not a valid value; use at most {} printable ASCII characters", typed(metadata.account),
               max_label_bytes);
  return errors.all();
}

api::FieldErrors check_spec(const objects::ServiceSpec& spec) {
  ErrorList errors;
  check_range("spec.replicas", spec.replicas, 0, max_replicas, errors);
  if (!spec.pool.empty() && !is_name(spec.pool))
    errors.add("spec.pool", spec.pool, "{} is not a valid node pool name", typed(spec.pool));
  if (const auto terms = terms_of(spec); !terms) errors.add_all(terms.error());
  check_run(spec.run, errors);
  if (const auto problem = visible_devices_problem(
          spec.run.env, spec.gpu ? std::clamp(spec.gpu->devices, 1u, max_slice_devices) : 0);
      !problem.empty())
    errors.add("spec.run.env.CUDA_VISIBLE_DEVICES", spec.run.env.at("CUDA_VISIBLE_DEVICES"), "{}", problem);
  if (spec.port) check_range("spec.port", *spec.port, 1, UINT16_MAX, errors);
  check_target_port(spec, errors);
  check_readiness(spec, errors);
  const objects::Update& update = spec.update;
  check_range("spec.update.maxSurge", update.max_surge, 0, max_replicas, errors);
  check_range("spec.update.maxUnavailable", update.max_unavailable, 0, max_replicas, errors);
  if (update.max_surge == 0 && update.max_unavailable == 0)
    errors.add("spec.update", "",
               "maxSurge and maxUnavailable are both 0, so no replica could be replaced; set one to 1");
  check_range("spec.update.progressDeadlineSeconds", update.progress_deadline_seconds, 1, max_seconds,
              errors);
  check_range("spec.terminationGracePeriodSeconds", spec.termination_grace_period_seconds, 0, max_seconds,
              errors);
  check_tolerations(spec.tolerations, errors);
  check_autoscale(spec, errors);
  return errors.all();
}

api::FieldErrors check(const objects::Service& service) {
  ErrorList errors;
  if (service.api_version != objects::api_version)
    errors.add("apiVersion", service.api_version, "{} is not {}", typed(service.api_version),
               objects::api_version);
  if (service.kind != "Service") errors.add("kind", service.kind, "{} is not Service", typed(service.kind));
  errors.add_all(check_metadata(service.metadata));
  errors.add_all(check_spec(service.spec));
  return errors.all();
}

}  // namespace carve::objects

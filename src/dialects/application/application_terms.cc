#include "dialects/application/application_terms.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/decimal.h"
#include "core/request.h"
#include "objects/error_list.h"
#include "objects/rules/service_terms.h"
#include "wire/api/json_value.h"

namespace carve::dialects {
namespace {

using objects::ApplicationGpu;
using objects::ApplicationSpec;

constexpr std::string_view gpu_types[] = {"none", "mGPU", "GPU"};
constexpr uint64_t max_compute = 1'000'000;      // In devices; larger numbers count as this.
constexpr uint64_t max_mib = 1'000'000'000'000;  // Exceeds any device; larger numbers count as this.

// Volcengine's names of the policies, in the order of Carve's.
constexpr std::string_view policy_names[] = {"固定配额", "固定争抢", "争抢模式"};

// Returns the basis points of one device, or no value if the text does not have the form "3" or "0.25".
std::optional<uint64_t> parse_compute(std::string_view text) {
  const auto number = leading_decimal(text);
  if (!number || number->length != text.size() || number->digits == 0 || number->decimals > 2)
    return std::nullopt;
  const bool is_whole = number->decimals == 0 && !text.starts_with('0');
  const bool is_part = number->decimals > 0 && text.starts_with("0.");
  if (!is_whole && !is_part) return std::nullopt;
  const uint64_t unit = number->decimals == 0 ? 10'000 : number->decimals == 1 ? 1'000 : 100;
  return std::min(number->digits, max_compute) * unit;
}

// Returns the MiB, or no value if the text is neither a number like "4096" nor an amount of whole MiB.
std::optional<uint64_t> parse_mib(std::string_view text) {
  const auto number = leading_decimal(text);
  if (number && number->length == text.size() && number->decimals == 0)
    return std::min(number->digits, max_mib);
  const auto bytes = parse_bytes(text);
  if (!bytes || bytes->count % (1 << 20) != 0) return std::nullopt;
  return std::min(bytes->count >> 20, max_mib);
}

// Checks spec.gpu. Messages start with "gpu." and the field's name, as in the form.
class GpuFields {
 public:
  GpuFields(const ApplicationGpu& gpu, objects::ErrorList& errors) : gpu_(gpu), errors_(errors) {}

  std::optional<objects::Gpu> read() {
    if (gpu_.type == "mGPU") return part();
    if (gpu_.type == "GPU") return whole_devices();
    if (gpu_.type != "none")
      add("type", gpu_.type, "{} is not {}", objects::typed(gpu_.type), choice(gpu_types));
    else
      refuse_others("no GPU", /*allows_devices=*/false);
    return std::nullopt;
  }

 private:
  template <class... A>
  void add(const char* name, const std::string& value, fmt::format_string<A...> form, A&&... values) {
    errors_.add_message(fmt::format("spec.gpu.{}", name), value,
                        fmt::format("gpu.{}: ", name) + fmt::format(form, std::forward<A>(values)...));
  }

  void refuse_others(const char* what, bool allows_devices) {
    for (const auto& [name, text] :
         {std::pair{"compute", &gpu_.compute}, {"memory", &gpu_.memory}, {"policy", &gpu_.policy}})
      if (!text->empty())
        add(name, *text, "type {} has {}; leave {} out, or use type mGPU", gpu_.type, what, name);
    if (gpu_.multi_device) add("multiDevice", "true", "type {} has {}; leave it out", gpu_.type, what);
    if (gpu_.devices && !allows_devices)
      add("devices", fmt::format("{}", *gpu_.devices), "type {} has {}; leave it out", gpu_.type, what);
  }

  std::optional<objects::Gpu> whole_devices() {
    refuse_others("whole devices", /*allows_devices=*/true);
    const uint32_t devices = gpu_.devices.value_or(1);
    if (devices < 1 || devices > max_slice_devices)
      add("devices", fmt::format("{}", devices), "{} is not between 1 and {}", devices, max_slice_devices);
    return objects::Gpu{.devices = devices, .exclusive = true};
  }

  // Returns the number of devices, or 0 after an error.
  uint32_t device_count() {
    const std::string value = gpu_.devices ? fmt::format("{}", *gpu_.devices) : "";
    if (!gpu_.multi_device) {
      if (gpu_.devices.value_or(1) == 1) return 1;
      add("devices", value, "{} devices require multiDevice: true; set it, or leave devices out", value);
    } else if (!gpu_.devices) {
      add("devices", "", "is required with multiDevice; use 2 to {}", max_slice_devices);
    } else if (*gpu_.devices < 2 || *gpu_.devices > max_slice_devices) {
      add("devices", value, "{} is not between 2 and {}", value, max_slice_devices);
    } else {
      return *gpu_.devices;
    }
    return 0;
  }

  // Returns the policy, or an empty text for the node's policy.
  std::string policy() {
    const auto* const name = std::ranges::find(policy_names, gpu_.policy);
    if (name != std::end(policy_names))
      return std::string(Words<Policy>::words[name - std::begin(policy_names)]);
    if (!gpu_.policy.empty() && !parse<Policy>(gpu_.policy))
      add("policy", gpu_.policy, "{} is not {} ({})", objects::typed(gpu_.policy),
          choice(Words<Policy>::words), fmt::join(policy_names, ", "));
    return gpu_.policy;
  }

  // Returns the memory of each device. `devices` is 0 if the number is invalid.
  std::string memory(uint32_t devices) {
    if (gpu_.memory.empty()) {
      add("memory", "", "is required for type mGPU, in MiB, such as 4096");
      return "";
    }
    const auto mib = parse_mib(gpu_.memory);
    const uint64_t min_mib = gpu_.multi_device ? min_multi_device_mib : min_single_device_mib;
    if (!mib)
      add("memory", gpu_.memory, "{} is not a whole number of MiB; try 4096 or 4GiB",
          objects::typed(gpu_.memory));
    else if (*mib <= min_mib)
      add("memory", gpu_.memory, "{} MiB is too little; {} sharing needs more than {} MiB", *mib,
          gpu_.multi_device ? "multi-device" : "single-device", min_mib);
    else if (devices != 0 && *mib % devices != 0)
      add("memory", gpu_.memory,
          "{} MiB does not divide into whole MiB over {} devices; use a multiple of {}", *mib, devices,
          devices);
    else if (devices != 0)
      return fmt::format("{}MiB", *mib / devices);
    return "";
  }

  // Returns the share of each device. Empty if the application has none. `devices` is 0 if the number is
  // invalid.
  std::string share(uint32_t devices, const std::string& policy_word) {
    const std::string& compute = gpu_.compute;
    if (compute.empty()) {
      if (policy_word != text(Policy::native_burst_share))
        add("compute", "", "is required unless the policy is {}", text(Policy::native_burst_share));
      return "";
    }
    const auto points = parse_compute(compute);
    if (!points) {
      add("compute", compute,
          "{} is neither a positive whole number nor 0.01 to 0.99 with at most 2 decimals",
          compute.substr(0, 40));
      return "";
    }
    if (devices == 0) return "";
    if (*points > uint64_t{devices} * whole_device.basis_points)
      add("compute", compute, "{} is more than {} device{}; use at most {}{}", compute.substr(0, 40), devices,
          devices == 1 ? "" : "s", devices, gpu_.multi_device ? "" : ", or set multiDevice: true");
    else if (*points % devices != 0)
      add("compute", compute, "{} divided over {} devices is not a multiple of 0.01 %", compute.substr(0, 40),
          devices);
    else
      return std::string(text(Share{static_cast<uint32_t>(*points / devices)}));
    return "";
  }

  std::optional<objects::Gpu> part() {
    const uint32_t devices = device_count();
    objects::Gpu gpu{.devices = devices, .policy = policy()};
    gpu.memory = memory(devices);
    gpu.share = share(devices, gpu.policy);
    return gpu;
  }

  const ApplicationGpu& gpu_;
  objects::ErrorList& errors_;
};

void check_elastic(const ApplicationSpec& spec, const ApplicationContext& context,
                   objects::ErrorList& errors) {
  if (spec.gpu.type != "mGPU" || (!spec.elastic_container && !context.is_elastic_pool)) return;
  errors.add_message(spec.elastic_container ? "spec.elasticContainer" : "spec.pool",
                     spec.elastic_container ? "true" : spec.pool,
                     "elastic containers (VCI) do not support mGPU: only node (ECS) deployments do");
}

}  // namespace

api::PartlyRead<objects::Application> read_application(std::string_view json) {
  auto document = api::parse(json);
  const auto exact = api::parse(json, api::Decimals::as_texts);
  if (document && exact && document->is_object()) {
    for (const char* field : {"/spec/gpu/compute", "/spec/gpu/memory"}) {
      const api::Json::json_pointer path(field);
      if (!document->contains(path) || !(*document)[path].is_number()) continue;
      const api::Json& number = (*exact)[path];
      (*document)[path] = number.is_string() ? number.get<std::string>() : number.dump();
    }
    return api::read_partly<objects::Application>(document->dump(), api::Reading::strict);
  }
  return api::read_partly<objects::Application>(json, api::Reading::strict);
}

Result<ApplicationService, api::FieldErrors> service_of(const objects::Application& application,
                                                        const ApplicationContext& context) {
  objects::ErrorList errors;
  const ApplicationSpec& from = application.spec;
  if (application.api_version != objects::api_version)
    errors.add("apiVersion", application.api_version, "{} is not {}", objects::typed(application.api_version),
               objects::api_version);
  if (application.kind != "Application")
    errors.add("kind", application.kind, "{} is not Application", objects::typed(application.kind));
  errors.add_all(objects::check_metadata(application.metadata));
  check_elastic(from, context, errors);
  objects::ErrorList gpu_errors;
  const auto gpu = GpuFields(from.gpu, gpu_errors).read();
  errors.add_all(gpu_errors.all());
  ApplicationService out{.spec = {.replicas = from.replicas,
                                  .stopped = from.stopped,
                                  .pool = from.pool,
                                  .tolerations = from.tolerations,
                                  .gpu = gpu_errors.empty() ? gpu : std::nullopt,
                                  .cpu = from.cpu,
                                  .memory = from.memory,
                                  .run = from.run,
                                  .port = from.port,
                                  .readiness = from.readiness,
                                  .update = from.update,
                                  .termination_grace_period_seconds = from.termination_grace_period_seconds,
                                  .restarted_at = from.restarted_at}};
  errors.add_all(objects::check_spec(out.spec));
  if (!errors.empty()) return tl::unexpected(errors.all());
  if (from.elastic_container) out.warnings.push_back("spec.elasticContainer has no effect here");
  return out;
}

}  // namespace carve::dialects

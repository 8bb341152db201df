#include "engines/engine_pods.h"

#include <algorithm>
#include <charconv>

#include "objects/error_list.h"

namespace carve::engines {
namespace {

constexpr std::string_view mgpu_prefix = "emr.serverless.mgpu.";
constexpr std::string_view driver_amount = "spark.driver.resource.gpu.amount";
constexpr std::string_view executor_amount = "spark.executor.resource.gpu.amount";
constexpr std::string_view task_amount = "spark.task.resource.gpu.amount";
constexpr std::string_view executor_instances = "spark.executor.instances";
constexpr std::string_view executor_cores = "spark.executor.cores";
constexpr std::string_view spark_prefix = "spark.", carve_prefix = "carve.";
constexpr std::string_view worker_amount = "serverless.ray.worker.gpu.amount";
constexpr std::string_view worker_vendor = "serverless.ray.worker.gpu.vendor";
constexpr std::string_view custom_enabled = "serverless.custom.job.gpu.enabled";
constexpr std::string_view custom_amount = "serverless.custom.job.task.gpus";
constexpr uint32_t max_whole_devices = 16;  // Per pod (core/request.h).
constexpr uint64_t nano = 1'000'000'000;
constexpr uint32_t max_cpus = 4096;  // Per executor or worker.
constexpr uint32_t max_advised_cores = 64;

std::optional<uint64_t> whole_number(std::string_view text) {
  uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

// Parses "0.1", "1" or ".25" into billionths. The number must be below a million and have at most nine
// decimals.
std::optional<uint64_t> billionths(std::string_view text) {
  const size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  const std::string_view part = point == std::string_view::npos ? "" : text.substr(point + 1);
  if ((whole.empty() && part.empty()) || whole.size() > 6 || part.size() > 9) return std::nullopt;
  const auto units = whole.empty() ? std::optional<uint64_t>(0) : whole_number(whole);
  const std::string padded = std::string(part) + std::string(9 - part.size(), '0');
  const auto parts = whole_number(padded);
  if (!units || !parts) return std::nullopt;
  return *units * nano + *parts;
}

class PodReader {
 public:
  explicit PodReader(const EngineRequest& request) : request_(request), parameters_(request.parameters) {}

  Result<EnginePods, api::FieldErrors> run() {
    switch (request_.engine) {
      case JobEngine::spark: read_spark(); break;
      case JobEngine::ray: read_ray(); break;
      case JobEngine::custom: read_custom(); break;
    }
    check_vendors();
    check_keys();
    read_slices();
    if (errors_.empty()) check_contexts();
    if (!errors_.empty()) return tl::unexpected(errors_.all());
    if (slices_ > 0) out_.need.groups.push_back({.slices = slices_, .amounts = std::move(amounts_)});
    out_.need.device_memory = Bytes{request_.largest_device_bytes};
    return std::move(out_);
  }

 private:
  template <class... A>
  void refuse(std::string_view key, fmt::format_string<A...> form, A&&... values) {
    errors_.add_message(fmt::format("spec.parameters.{}", key), value_of(parameters_, key),
                        fmt::format(form, std::forward<A>(values)...));
  }

  bool has(std::string_view key) const { return parameters_.contains(std::string(key)); }

  uint32_t number(std::string_view key, uint32_t otherwise, uint32_t least, uint32_t most) {
    if (!has(key)) return otherwise;
    const std::string text = value_of(parameters_, key);
    const auto value = whole_number(text);
    if (value && *value >= least && *value <= most) return static_cast<uint32_t>(*value);
    refuse(key, "{}: {} is not a whole number from {} to {}", key, objects::typed(text), least, most);
    return otherwise;
  }

  // Parses the number of devices of each pod of a group from the engine's key.
  bool read_amount(std::string_view key) {
    const size_t errors_before = errors_.all().size();
    const uint32_t amount = number(key, 0, 0, UINT32_MAX);
    if (errors_.all().size() != errors_before) return true;  // The value has an error.
    if (amount == 0) return false;
    if (amount > 1 && request_.queue.gpu == QueueGpu::mgpu)
      refuse(key, "{} {}: a pod of an mGPU queue has one device; set it to 1", key, amount);
    else if (amount > max_whole_devices)
      refuse(key, "{} {}: a pod has at most {} devices", key, amount, max_whole_devices);
    else if (devices_ != 0 && devices_ != amount)
      refuse(key, "{} {}: pods of another role have {}, but all slices of a job must be equal", key, amount,
             devices_);
    else
      devices_ = amount;
    return true;
  }

  void add_group(PodRole role, uint32_t count, bool has_gpu) {
    out_.groups.push_back({.role = role, .count = count, .has_gpu = has_gpu});
    if (has_gpu) slices_ += count;
  }

  void read_spark() {
    const uint32_t executors = number(executor_instances, 1, 1, workload::max_job_slices);
    out_.executor_cores = number(executor_cores, 1, 1, max_cpus);
    out_.tasks_at_once = out_.executor_cores;
    const bool has_executor = read_amount(executor_amount), has_driver = read_amount(driver_amount);
    add_group(PodRole::head, 1, false);
    add_group(PodRole::executor, executors, has_executor);
    add_group(PodRole::driver, 1, has_driver);
    amount_key_ = has_driver ? driver_amount : executor_amount;
    if (has(task_amount)) read_task_amount(has_executor);
  }

  // Spark runs floor(1 / amount) tasks on one address and rejects fractions above one half (S4-9).
  void read_task_amount(bool has_executor) {
    const std::string text = value_of(parameters_, task_amount);
    const auto amount = billionths(text);
    if (!amount)
      return refuse(task_amount, "{}: {} is not a number such as 0.1", task_amount, objects::typed(text));
    if (*amount == 0) return;
    if (*amount > nano / 2 && *amount % nano != 0)
      return refuse(task_amount, "{}: {} must be at most 0.5 or a whole number", task_amount,
                    objects::typed(text));
    if (!has_executor)
      return refuse(task_amount, "{} needs {}: the tasks share the executor's device", task_amount,
                    executor_amount);
    if (*amount > nano * std::max(devices_, 1U))
      return refuse(task_amount, "{}: {} is more than the {} of {}", task_amount, objects::typed(text),
                    devices_, executor_amount);
    const uint64_t at_once = nano / std::min(*amount, nano);
    if (out_.executor_cores < at_once) {
      // If more tasks would run than a machine has cores, the amount is probably the mistake.
      const std::string way_out = at_once <= max_advised_cores
                                      ? fmt::format("{}={}", executor_cores, at_once)
                                      : fmt::format("{}={}", task_amount, part_of(out_.executor_cores));
      out_.warnings.push_back(fmt::format(
          "{} {} lets {} task{} of an executor run at the same time, but {} {} would allow {}; set {}",
          executor_cores, out_.executor_cores, out_.executor_cores, out_.executor_cores == 1 ? "" : "s",
          task_amount, text, at_once, way_out));
    }
    out_.tasks_at_once = static_cast<uint32_t>(std::min<uint64_t>(out_.executor_cores, at_once));
  }

  // Returns the largest amount, with four decimals, for which `tasks` fit on one device.
  static std::string part_of(uint32_t tasks) {
    constexpr uint32_t parts = 10'000;
    if (tasks == 1) return "1";
    std::string out = fmt::format("0.{:04}", parts / tasks);
    while (out.ends_with('0')) out.pop_back();
    return out;
  }

  void read_ray() {
    amount_key_ = worker_amount;
    const bool has_gpu = read_amount(worker_amount);
    if (const auto cpus = whole_number(value_of(parameters_, ray_cpus_key)))
      out_.tasks_at_once = static_cast<uint32_t>(std::clamp<uint64_t>(*cpus, 1, max_cpus));
    check_count("spec.workers", request_.workers, workload::max_job_slices);
    add_group(PodRole::head, 1, false);
    add_group(PodRole::worker, request_.workers, has_gpu);
    add_group(PodRole::driver, 1, false);
  }

  void read_custom() {
    amount_key_ = custom_amount;
    const std::string enabled = has(custom_enabled) ? value_of(parameters_, custom_enabled) : "";
    if (has(custom_enabled) && enabled != "true" && enabled != "false")
      refuse(custom_enabled, "{}: {} is neither true nor false", custom_enabled, objects::typed(enabled));
    bool has_gpu = read_amount(custom_amount);
    if (has_gpu && enabled == "false") {
      out_.warnings.push_back(fmt::format("{} is false: {} has no effect", custom_enabled, custom_amount));
      has_gpu = false;
    }
    if (has_gpu && enabled.empty()) refuse(custom_enabled, "{} needs {}=true", custom_amount, custom_enabled);
    if (!has_gpu && enabled == "true")
      refuse(custom_amount, "{} needs {}=1, the number of devices of each task", custom_enabled,
             custom_amount);
    check_count("spec.tasks", request_.tasks, workload::max_job_pods);
    add_group(PodRole::task, request_.tasks, has_gpu);
  }

  void check_count(const char* field, uint32_t count, uint32_t most) {
    if (count == 0 || count > most)
      errors_.add(field, fmt::format("{}", count), "{} is not a whole number from 1 to {}", count, most);
  }

  void check_vendors() {
    for (const auto& [key, value] : parameters_)
      if (key.ends_with(".gpu.vendor") && value != "nvidia.com")
        out_.warnings.push_back(
            fmt::format("{} is {}, but the vendor of all devices is nvidia.com", key, objects::typed(value)));
  }

  // All keys are passed to Spark, which ignores those that do not start with "spark."; Ray and custom jobs
  // have no keys except Carve's.
  void check_keys() {
    errors_.add_all(check_carve_keys(request_.engine, parameters_));
    const std::string_view engine = carve::text(request_.engine);
    for (const auto& [key, value] : parameters_) {
      const bool is_ours =
          key.starts_with(mgpu_prefix) || key.starts_with(carve_prefix) || is_key_of(request_.engine, key);
      const bool is_foreign = request_.engine != JobEngine::spark || !key.starts_with(spark_prefix);
      if (!is_ours && is_foreign)
        out_.warnings.push_back(
            fmt::format("{} has no effect; it is not a parameter of a {} job", key, engine));
    }
  }

  static bool is_key_of(JobEngine engine, std::string_view key) {
    if (engine == JobEngine::ray) return key == worker_amount || key == worker_vendor;
    return engine == JobEngine::custom && (key == custom_enabled || key == custom_amount);
  }

  void read_slices() {
    for (const auto& [key, value] : parameters_)
      if (key.starts_with(mgpu_prefix) && key != core_key && key != memory_key)
        refuse(key, "{}: unknown key; use {} and {}", key, core_key, memory_key);
    const std::string& queue = request_.queue.name;
    const bool has_core = has(core_key), has_memory = has(memory_key);
    const bool has_gpu = slices_ > 0;
    switch (request_.queue.gpu) {
      case QueueGpu::none:
        if (has_core || has_memory)
          refuse(has_core ? core_key : memory_key,
                 "queue {} provides no GPU: leave out {} and {}, or choose an mGPU queue", queue, core_key,
                 memory_key);
        else if (has_gpu)
          refuse(amount_key_, "queue {} provides no GPU: leave out {}, or choose a GPU queue", queue,
                 amount_key_);
        return;
      case QueueGpu::gpu:
        if (has_core || has_memory)
          refuse(has_core ? core_key : memory_key,
                 "queue {} provides whole GPUs: leave out {} and {}, or choose an mGPU queue", queue,
                 core_key, memory_key);
        amounts_ = {.devices = std::max(devices_, 1U), .exclusive = true};
        return;
      case QueueGpu::mgpu: break;
    }
    if (!has_gpu && !has_core && !has_memory)
      out_.warnings.push_back(fmt::format(
          "queue {} divides GPUs, but the job requests none, so its pods see no device; to get one, "
          "set {}{}=1, {} and {}",
          queue, request_.engine == JobEngine::custom ? fmt::format("{}=true, ", custom_enabled) : "",
          amount_key_, core_key, memory_key));
    if (has_core != has_memory) {
      const std::string_view there = has_core ? core_key : memory_key;
      const std::string_view missing = has_core ? memory_key : core_key;
      refuse(missing, "{} is set but {} is not: set both", there, missing);
    } else if (has_gpu && !has_core) {
      refuse(core_key, "queue {} divides GPUs: set {} and {}", queue, core_key, memory_key);
    }
    if (!has_gpu && (has_core || has_memory))
      refuse(amount_key_, "{} and {} need {}=1", core_key, memory_key, amount_key_);
    if (has_core) read_core();
    if (has_memory) read_memory();
  }

  void read_core() {
    const std::string text = value_of(parameters_, core_key);
    const auto core = whole_number(text);
    if (!core || *core < min_core_percent || *core > max_core_percent)
      return refuse(core_key, "{}: {} is not a whole number from {} to {}, in percent", core_key,
                    objects::typed(text), min_core_percent, max_core_percent);
    if (request_.queue.strict && *core % core_step_percent != 0 && *core != max_core_percent)
      return refuse(core_key, "{}: {} is neither a multiple of {} nor {}, as the strict queue {} requires",
                    core_key, objects::typed(text), core_step_percent, max_core_percent, request_.queue.name);
    amounts_.share_bp = static_cast<uint32_t>(*core) * 100;
  }

  void read_memory() {
    const std::string text = value_of(parameters_, memory_key);
    const auto mib = whole_number(text);
    if (!mib || *mib == 0 || *mib > max_memory_mib)
      return refuse(memory_key, "{}: {} is not a whole number of MiB from 1 to {}", memory_key,
                    objects::typed(text), max_memory_mib);
    if (request_.queue.strict && *mib < min_strict_memory_mib)
      return refuse(memory_key, "{}: {} MiB is less than {} MiB, the minimum in the strict queue {}",
                    memory_key, *mib, min_strict_memory_mib, request_.queue.name);
    const Bytes memory{*mib << 20};
    if (memory.count < request_.context_bytes)
      return refuse(memory_key, "{}: {} MiB is less than the {} that one context takes", memory_key, *mib,
                    text_of(request_.context_bytes));
    if (request_.largest_device_bytes != 0 && memory.count > request_.largest_device_bytes)
      return refuse(memory_key, "{}: {} MiB is more than the {} of the largest device", memory_key, *mib,
                    text_of(request_.largest_device_bytes));
    amounts_.memory_bytes = memory.count;
  }

  static std::string text_of(uint64_t bytes) { return std::string(carve::text(Bytes{bytes})); }

  // Every process that uses CUDA has a context in its slice. Spark's Python workers keep their contexts
  // between stages.
  void check_contexts() {
    if (request_.context_bytes == 0 || !amounts_.memory_bytes || out_.tasks_at_once < 2) return;
    const uint64_t fitting = *amounts_.memory_bytes / request_.context_bytes;
    if (fitting >= out_.tasks_at_once) return;
    const uint64_t needed_mib = ((request_.context_bytes * out_.tasks_at_once) + (1 << 20) - 1) >> 20;
    const std::string_view tasks_key = request_.engine == JobEngine::ray ? ray_cpus_key : executor_cores;
    out_.warnings.push_back(fmt::format(
        "if each of {} simultaneous tasks uses CUDA, their {} contexts of {} need {} MiB, but a slice "
        "has {} MiB, so only {} fit; set {}={} or more, or {}={}",
        out_.tasks_at_once, out_.tasks_at_once, text_of(request_.context_bytes), needed_mib,
        *amounts_.memory_bytes >> 20, fitting, memory_key, needed_mib, tasks_key, fitting));
  }

  const EngineRequest& request_;
  const Parameters& parameters_;
  std::string_view amount_key_;  // The key that requests GPUs for pods of this engine.
  uint32_t devices_ = 0;         // Devices of each slice; 0 means 1.
  uint32_t slices_ = 0;
  Amounts amounts_{.policy = Policy::fixed_share};  // Amounts of each slice. The vendor's shares are limits.
  EnginePods out_;
  objects::ErrorList errors_;
};

}  // namespace

std::string value_of(const Parameters& parameters, std::string_view key) {
  const auto found = parameters.find(std::string(key));
  return found == parameters.end() ? "" : found->second;
}

api::FieldErrors check_carve_keys(JobEngine engine, const Parameters& parameters) {
  const struct {
    std::string_view key;
    uint64_t least, most;
    std::string_view unit;
  } keys[] = {{ray_cpus_key, 1, max_cpus, ""},
              {ray_memory_key, 1, INT64_MAX, ", in bytes"},
              {ray_store_key, min_ray_object_store, INT64_MAX, ", in bytes"}};
  objects::ErrorList errors;
  for (const auto& [key, value] : parameters) {
    if (!key.starts_with(carve_prefix)) continue;
    const std::string field = "spec.parameters." + key;
    const auto* const known =
        std::ranges::find(keys, std::string_view(key), [](const auto& k) { return k.key; });
    if (engine != JobEngine::ray || known == std::end(keys)) {
      errors.add_message(field, value,
                         fmt::format("{}: unknown key; use {}, {} and {} for Ray", key, ray_cpus_key,
                                     ray_memory_key, ray_store_key));
      continue;
    }
    const auto number = whole_number(value);
    if (!number || *number < known->least || *number > known->most)
      errors.add_message(field, value,
                         fmt::format("{}: {} is not a whole number from {} to {}{}", key,
                                     objects::typed(value), known->least, known->most, known->unit));
  }
  return errors.all();
}

Result<EnginePods, api::FieldErrors> engine_pods(const EngineRequest& request) {
  return PodReader(request).run();
}

}  // namespace carve::engines

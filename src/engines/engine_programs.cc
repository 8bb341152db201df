#include "engines/engine_programs.h"

#include <fmt/format.h>

#include <algorithm>

namespace carve::engines {
namespace {

using workload::PodId;

constexpr const char* spark_driver_script = "spark.driver.resource.gpu.discoveryScript";
constexpr const char* spark_executor_script = "spark.executor.resource.gpu.discoveryScript";
// Settings that Carve fixes for each Spark job: the address of its master, and how its programs find and
// trust each other.
constexpr const char* spark_fixed_keys[] = {"spark.master",       "spark.submit.deployMode",
                                            "spark.driver.host",  "spark.driver.bindAddress",
                                            "spark.authenticate", "spark.authenticate.secret"};
constexpr const char* rapids_plugin = "com.nvidia.spark.SQLPlugin";
constexpr const char* default_executor_memory = "1g";
// For a JVM that only coordinates: a job takes 17 s from start to finish instead of 25 s (measured on 2
// cores).
constexpr const char* daemon_options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC";
constexpr uint64_t max_rapids_reserve = uint64_t{640} << 20;  // RAPIDS' own default.

// The agents' ports are below those that the kernel assigns and above those of Ray's own processes.
constexpr uint32_t ray_port = 6379, ray_dashboard_port = 8265, first_ray_agent_port = 20000;
constexpr uint64_t ray_head_memory = 1'000'000'000;
constexpr uint64_t ray_object_store = 100'000'000;            // In bytes, for a node without a slice.
constexpr uint64_t max_ray_object_store = uint64_t{2} << 30;  // Because it uses the machine's shared memory.
constexpr uint64_t default_ray_memory = 2'000'000'000;

constexpr const char* xgboost_jar = "xgboost4j-spark-gpu";
constexpr uint64_t rapids_task_memory = uint64_t{4} << 30;

std::string or_else(std::string value, std::string otherwise) {
  return value.empty() ? std::move(otherwise) : std::move(value);
}

bool is_variable(std::string_view key) { return key.find('.') == std::string_view::npos; }

// Returns the letter for a role, for short paths.
char letter(PodRole role) { return "dehwt"[static_cast<size_t>(role)]; }

std::string folder_of(const EnginePlaces& places, PodId id) {
  return fmt::format("{}-{}{}", places.job_folder, letter(id.role), id.index);
}

std::string discovery_script(const EnginePlaces& places) {
  return fmt::format("{}/{}", places.scripts, discovery_script_name);
}

bool has_prefix(const std::string& key, std::string_view prefix) { return key.starts_with(prefix); }

// The configuration of a Spark application: the user's values, and Carve's values for keys that the user did
// not set.
Parameters spark_configuration(const objects::JobSpec& spec, const EnginePods& pods,
                               const EnginePlaces& places) {
  Parameters out;
  for (const auto& [key, value] : spec.parameters)
    if (!has_prefix(key, "emr.serverless.mgpu.")) out[key] = value;
  for (const objects::DerivedParameter& derived : derived_parameters(spec, pods))
    if (!is_variable(derived.key)) out[derived.key] = derived.value;
  if (std::ranges::find(pods.groups, PodRole::driver, &PodGroup::role)->has_gpu)
    out[spark_driver_script] = discovery_script(places);
  out["spark.driver.host"] = "127.0.0.1";
  out["spark.driver.bindAddress"] = "127.0.0.1";
  out["spark.authenticate"] = "true";
  out["spark.authenticate.secret"] = places.secret;
  return out;
}

// Returns the text in the format of Java's properties files.
std::string property_text(const std::string& text, std::string_view escaped) {
  std::string out;
  for (const char c : text) {
    if (escaped.find(c) != std::string_view::npos || (out.empty() && c == ' ')) out += '\\';
    out += c;
  }
  return out;
}

std::string properties(const Parameters& parameters) {
  std::string out;
  for (const auto& [key, value] : parameters)
    out += fmt::format("{}={}\n", property_text(key, "\\:!"), property_text(value, "\\"));
  return out;
}

std::map<std::string, std::string> spark_environment(const objects::JobSpec& spec, const std::string& folder,
                                                     const EnginePlaces& places) {
  return {{"SPARK_HOME", spec.engine_home},
          {"SPARK_LOCAL_IP", "127.0.0.1"},
          {"SPARK_LOCAL_DIRS", folder},
          {"SPARK_DAEMON_MEMORY", "256m"},
          {"SPARK_DAEMON_JAVA_OPTS", fmt::format("{} -Djava.io.tmpdir={}", daemon_options, folder)},
          {"TMPDIR", folder},
          {"PYSPARK_PYTHON", or_else(spec.python, "python3")},
          {"PYSPARK_DRIVER_PYTHON", or_else(spec.python, "python3")},
          {"_SPARK_AUTH_SECRET", places.secret}};
}

std::vector<std::string> spark_command(const objects::JobSpec& spec, const EnginePods& pods, PodId id,
                                       const EnginePlaces& places) {
  const std::string spark_class = spec.engine_home + "/bin/spark-class";
  const std::string master = fmt::format("spark://127.0.0.1:{}", places.port);
  if (id.role == PodRole::head)
    return {spark_class, "org.apache.spark.deploy.master.Master", "--host",       "127.0.0.1",
            "--port",    fmt::format("{}", places.port),          "--webui-port", "0"};
  if (id.role == PodRole::executor)
    return {
        spark_class,    "org.apache.spark.deploy.worker.Worker",
        "--host",       "127.0.0.1",
        "--port",       "0",
        "--webui-port", "0",
        "--cores",      fmt::format("{}", pods.executor_cores),
        "--memory",     or_else(value_of(spec.parameters, "spark.executor.memory"), default_executor_memory),
        master};
  std::vector<std::string> out{spec.engine_home + "/bin/spark-submit",
                               "--master",
                               master,
                               "--deploy-mode",
                               "client",
                               "--properties-file",
                               folder_of(places, id) + "/configuration"};
  out.insert(out.end(), spec.run.command.begin(), spec.run.command.end());
  return out;
}

PodProgram spark_program(const objects::JobSpec& spec, const EnginePods& pods, PodId id,
                         const EnginePlaces& places) {
  const std::string folder = folder_of(places, id);
  PodProgram out{.command = spark_command(spec, pods, id, places),
                 .env = spark_environment(spec, folder, places)};
  const std::string script =
      value_of(spec.parameters, id.role == PodRole::driver ? spark_driver_script : spark_executor_script);
  if (!script.empty()) out.env[std::string(discovery_script_variable)] = script;
  constexpr const char* common = "-Dspark.authenticate=true -Dspark.port.maxRetries=0";
  if (id.role == PodRole::driver) {
    out.env["CARVE_CONFIGURATION"] = properties(spark_configuration(spec, pods, places));
    return out;
  }
  out.env["SPARK_MASTER_OPTS"] = fmt::format("{} -Dspark.master.rest.enabled=false", common);
  out.env["SPARK_WORKER_OPTS"] = common;
  out.env["SPARK_WORKER_DIR"] = folder + "/work";
  const bool has_gpu = std::ranges::find(pods.groups, PodRole::executor, &PodGroup::role)->has_gpu &&
                       !pods.need.groups.empty();
  if (has_gpu)
    out.env["SPARK_WORKER_OPTS"] =
        fmt::format("{} -Dspark.worker.resource.gpu.amount={} -Dspark.worker.resource.gpu.discoveryScript={}",
                    common, pods.need.groups.front().amounts.devices, discovery_script(places));
  return out;
}

std::string ray_folder(const objects::JobSpec& spec) { return or_else(spec.engine_home, "/usr/bin"); }

std::vector<std::string> ray_start(const objects::JobSpec& spec) {
  return {ray_folder(spec) + "/ray", "start", "--block", "--node-ip-address=127.0.0.1",
          "--disable-usage-stats"};
}

// A driver that starts before the workers have joined sees a cluster without GPUs.
std::vector<std::string> ray_driver(const objects::JobSpec& spec, const EnginePods& pods,
                                    const EnginePlaces& places) {
  const auto workers = std::ranges::find(pods.groups, PodRole::worker, &PodGroup::role);
  const uint32_t count = workers == pods.groups.end() ? 0 : workers->count;
  std::vector<std::string> out = {ray_folder(spec) + "/python3", places.scripts + "/ray-driver",
                                  fmt::format("{}", count)};
  out.insert(out.end(), spec.run.command.begin(), spec.run.command.end());
  return out;
}

std::vector<std::string> ray_command(const objects::JobSpec& spec, const EnginePods& pods, PodId id,
                                     const EnginePlaces& places) {
  if (id.role == PodRole::driver) return ray_driver(spec, pods, places);
  std::vector<std::string> out = ray_start(spec);
  out.push_back(fmt::format("--temp-dir={}", folder_of(places, id)));
  if (id.role == PodRole::head) {
    out.push_back(fmt::format("--object-store-memory={}", ray_object_store));
    for (const std::string& word :
         {std::string("--head"), std::string("--num-gpus=0"), std::string("--num-cpus=1"),
          fmt::format("--port={}", ray_port), fmt::format("--memory={}", ray_head_memory),
          std::string("--dashboard-host=127.0.0.1"), fmt::format("--dashboard-port={}", ray_dashboard_port)})
      out.push_back(word);
    return out;
  }
  const bool has_gpu = std::ranges::find(pods.groups, PodRole::worker, &PodGroup::role)->has_gpu;
  const auto derived = derived_parameters(spec, pods);
  const auto store = std::ranges::find(derived, ray_store_key, &objects::DerivedParameter::key);
  out.push_back("--object-store-memory=" +
                (store != derived.end() ? store->value : value_of(spec.parameters, ray_store_key)));
  for (const std::string& word :
       {fmt::format("--address=127.0.0.1:{}", ray_port),
        fmt::format("--num-gpus={}", has_gpu ? pods.need.groups.front().amounts.devices : 0),
        fmt::format("--num-cpus={}", or_else(value_of(spec.parameters, ray_cpus_key), "1")),
        fmt::format("--memory={}", or_else(value_of(spec.parameters, ray_memory_key),
                                           fmt::format("{}", default_ray_memory))),
        fmt::format("--dashboard-agent-listen-port={}", first_ray_agent_port + id.index)})
    out.push_back(word);
  return out;
}

PodProgram ray_program(const objects::JobSpec& spec, const EnginePods& pods, PodId id,
                       const EnginePlaces& places) {
  PodProgram out{.env = {{"RAY_ADDRESS", fmt::format("127.0.0.1:{}", ray_port)},
                         {"RAY_AUTH_MODE", "token"},
                         {"RAY_AUTH_TOKEN", places.secret},
                         {"RAY_USAGE_STATS_ENABLED", "0"},
                         {"TMPDIR", folder_of(places, id)}}};
  const bool is_head = id.role == PodRole::head;
  if (is_head) {
    const std::string python = ray_folder(spec) + "/python3";
    out.command = {python, places.scripts + "/forward-port", "bind", fmt::format("{}", places.port)};
    out.env["CARVE_FORWARD_PYTHON"] = python;
    out.env["CARVE_FORWARD_TO"] = fmt::format("{}", ray_dashboard_port);
  }
  for (const std::string& word :
       {places.scripts + "/cluster-network", std::string(is_head ? "begin" : "join"),
        folder_of(places, {PodRole::head, 0})})
    out.command.push_back(word);
  const auto words = ray_command(spec, pods, id, places);
  out.command.insert(out.command.end(), words.begin(), words.end());
  return out;
}

}  // namespace

PodProgram pod_program(const objects::JobSpec& spec, const std::string& job, const EnginePods& pods, PodId id,
                       const EnginePlaces& places) {
  PodProgram out;
  switch (spec.engine.value().value_or(JobEngine::custom)) {
    case JobEngine::spark: out = spark_program(spec, pods, id, places); break;
    case JobEngine::ray: out = ray_program(spec, pods, id, places); break;
    case JobEngine::custom: out.command = spec.run.command; break;
  }
  out.env["CARVE_JOB"] = job;
  out.env["CARVE_ROLE"] = text(id.role);
  out.env["CARVE_INDEX"] = fmt::format("{}", id.index);
  if (id.role == PodRole::task) {
    out.env["CARVE_TASK_INDEX"] = fmt::format("{}", id.index);
    out.env["CARVE_TASK_COUNT"] = fmt::format("{}", pods.groups.front().count);
    return out;
  }
  const auto group = std::ranges::find(pods.groups, id.role, &PodGroup::role);
  if (group != pods.groups.end() && group->has_gpu)
    for (const objects::DerivedParameter& derived : derived_parameters(spec, pods))
      if (is_variable(derived.key)) out.env[derived.key] = derived.value;
  const std::string folder = folder_of(places, id);
  out.command.insert(out.command.begin(), {places.scripts + "/pod-folder", folder});
  out.cleanup = {"rm", "-rf", folder};
  return out;
}

namespace {

// Collects derived parameters that the user did not set. A key without a dot is an environment variable.
class Deriver {
 public:
  Deriver(const objects::JobSpec& spec, const EnginePods& pods) : spec_(spec), pods_(pods) {}

  void derive(std::string_view name, std::string value, const char* reason) {
    const std::string key(name);
    const bool is_set = is_variable(key) ? spec_.run.env.contains(key) : spec_.parameters.contains(key);
    if (!is_set) out_.push_back({key, std::move(value), reason});
  }

  void derive_ray() {
    derive(ray_cpus_key, "1", "number of one-CPU tasks that a worker runs at the same time");
    derive(ray_memory_key, fmt::format("{}", default_ray_memory),
           "otherwise a node claims the whole machine");
    const uint64_t store = has_slices() ? smallest_memory() / 8 : ray_object_store;
    derive(ray_store_key, fmt::format("{}", std::clamp(store, min_ray_object_store, max_ray_object_store)),
           "an eighth of the slice, at least 75 MiB");
    derive_frameworks(pods_.tasks_at_once);
  }

  void derive_spark() {
    const auto executors = std::ranges::find(pods_.groups, PodRole::executor, &PodGroup::role);
    derive("spark.executor.cores", fmt::format("{}", pods_.executor_cores), "cores of one Worker");
    derive("spark.cores.max", fmt::format("{}", uint64_t{pods_.executor_cores} * executors->count),
           "cores of all executors");
    derive("spark.executor.memory", default_executor_memory, "memory of one Worker");
    derive("spark.ui.enabled", "false", "its web page would open a port");
    if (!has_slices()) return;
    derive_frameworks(pods_.tasks_at_once);
    if (value_of(spec_.parameters, "spark.plugins").find(rapids_plugin) != std::string::npos) derive_rapids();
  }

  std::vector<objects::DerivedParameter> result() { return std::move(out_); }

 private:
  bool has_slices() const { return workload::gpu_of(pods_.need) == QueueGpu::mgpu; }
  uint64_t smallest_memory() const {
    uint64_t out = UINT64_MAX;
    for (const workload::SliceGroup& group : pods_.need.groups)
      out = std::min(out, workload::amount_on(group.amounts, 0, pods_.need.device_memory).memory.count);
    return out;
  }

  // RAPIDS' pool is a fraction of the device's memory as the executor sees it, which is the slice's memory.
  // XGBoost allocates outside of that pool, so the pool gets half of the slice.
  void derive_rapids() {
    const uint64_t memory = workload::first_amount(pods_.need).memory.count;
    derive("spark.rapids.memory.gpu.reserve", fmt::format("{}", std::min(max_rapids_reserve, memory / 8)),
           "an eighth of the slice, at most 640 MiB");
    derive("spark.rapids.sql.concurrentGpuTasks",
           fmt::format("{}", std::clamp<uint64_t>(memory / rapids_task_memory, 1, pods_.tasks_at_once)),
           "one per 4 GiB of the slice, at most the number of simultaneous tasks");
    const bool has_xgboost =
        value_of(spec_.parameters, "spark.jars").find(xgboost_jar) != std::string::npos ||
        value_of(spec_.parameters, "spark.jars.packages").find(xgboost_jar) != std::string::npos;
    if (!has_xgboost) return;
    derive("spark.rapids.memory.gpu.allocFraction", "0.5",
           "half of the slice; XGBoost allocates outside the pool");
    derive("spark.rapids.memory.gpu.maxAllocFraction", "0.5",
           "half of the slice; XGBoost allocates outside the pool");
  }

  // By default, JAX takes three quarters of the memory for each process, and TensorFlow all of it.
  void derive_frameworks(uint32_t tasks_at_once) {
    if (!has_slices()) return;
    if (tasks_at_once > 1)
      derive("XLA_PYTHON_CLIENT_PREALLOCATE", "false", "simultaneous tasks share the slice");
    else
      derive("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.87",
             "seven eighths of the slice; the rest is for the context");
    derive("TF_FORCE_GPU_ALLOW_GROWTH", "true", "the processes in a slice share its memory");
  }

  const objects::JobSpec& spec_;
  const EnginePods& pods_;
  std::vector<objects::DerivedParameter> out_;
};

}  // namespace

std::vector<objects::DerivedParameter> derived_parameters(const objects::JobSpec& spec,
                                                          const EnginePods& pods) {
  Deriver deriver(spec, pods);
  const auto engine = spec.engine.value().value_or(JobEngine::custom);
  if (engine == JobEngine::ray) deriver.derive_ray();
  if (engine == JobEngine::spark) deriver.derive_spark();
  return deriver.result();
}

std::vector<std::string> replaced_parameters(const objects::JobSpec& spec) {
  constexpr std::string_view own_variables[] = {"CARVE_JOB", "CARVE_ROLE", "CARVE_INDEX", "CARVE_TASK_INDEX",
                                                "CARVE_TASK_COUNT"};
  std::vector<std::string> out;
  for (const std::string_view name : own_variables)
    if (spec.run.env.contains(std::string(name)))
      out.push_back(fmt::format("variable {} has no effect; each program of a job gets its own", name));
  if (spec.engine.value() != JobEngine::spark) return out;
  for (const char* key : spark_fixed_keys)
    if (spec.parameters.contains(key))
      out.push_back(fmt::format("{} has no effect; each job gets its own master, addresses and secret", key));
  return out;
}

}  // namespace carve::engines

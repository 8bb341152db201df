#include "render/job_manifests.h"

#include <algorithm>
#include <set>

#include "dialects/pod/keys.h"
#include "kubernetes/format/quantity.h"
#include "objects/rules/cluster_check.h"
#include "yaml/yaml_text.h"

namespace carve::render {
namespace {

using api::Json;

constexpr const char* image_word = "IMAGE";  // The user replaces it if the job has no image.
constexpr uint32_t basis_points_per_percent = 100;
// The field in which Kubernetes stores the task index of a pod of an indexed Job.
constexpr const char* index_field = "metadata.annotations['batch.kubernetes.io/job-completion-index']";

// Quotes the words for a shell.
std::string shell_text(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    const bool is_plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
      return std::isalnum(c) != 0 ||
             std::string_view("-_./:=,+@%").find(static_cast<char>(c)) != std::string_view::npos;
    });
    if (is_plain) {
      out += word;
      continue;
    }
    out += '\'';
    for (const char c : word) c == '\'' ? out += "'\\''" : out += c;
    out += '\'';
  }
  return out;
}

class JobRendering {
 public:
  JobRendering(const objects::Metadata& metadata, const objects::JobSpec& spec,
               const engines::EnginePods& pods)
      : metadata_(metadata), spec_(spec), pods_(pods) {}

  Manifests run() {
    warn_of_the_rest();
    std::string text;
    switch (spec_.engine.value().value_or(JobEngine::custom)) {
      case JobEngine::custom: text = yaml::yaml_text(indexed_job()); break;
      case JobEngine::ray: text = yaml::yaml_text(ray_job()); break;
      case JobEngine::spark: text = spark_command() + yaml::yaml_text(spark_template()); break;
    }
    return {.text = std::move(text), .warnings = std::move(warnings_)};
  }

  Manifests run_cluster() {
    warn_of_the_rest();
    return {.text = yaml::yaml_text({{"apiVersion", "ray.io/v1"},
                                     {"kind", "RayCluster"},
                                     {"metadata", metadata()},
                                     {"spec", ray_cluster()}}),
            .warnings = std::move(warnings_)};
  }

  Json indexed_job() const {
    const engines::PodGroup& tasks = pods_.groups.front();
    Json task = tasks.has_gpu ? container("task", pods_.need.groups.front().amounts) : container("task");
    task["command"] = spec_.run.command;
    if (!spec_.run.workdir.empty()) task["workingDir"] = spec_.run.workdir;
    task["env"] = variables();
    task["env"].push_back(
        {{"name", "CARVE_TASK_INDEX"}, {"valueFrom", {{"fieldRef", {{"fieldPath", index_field}}}}}});
    task["env"].push_back({{"name", "CARVE_TASK_COUNT"}, {"value", fmt::format("{}", tasks.count)}});
    Json spec{{"completionMode", "Indexed"}, {"completions", tasks.count},
              {"parallelism", tasks.count},  {"backoffLimitPerIndex", spec_.retries},
              {"maxFailedIndexes", 0},       {"ttlSecondsAfterFinished", spec_.ttl_seconds_after_finished}};
    if (spec_.deadline_seconds != 0) spec["activeDeadlineSeconds"] = spec_.deadline_seconds;
    spec["template"] = pod(std::move(task));
    spec["template"]["spec"]["restartPolicy"] = "Never";
    return {{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"metadata", metadata()}, {"spec", spec}};
  }

 private:
  std::string name() const { return metadata_.name.empty() ? text(spec_.engine) + "-job" : metadata_.name; }

  Json metadata() const {
    Json out{{"name", name()}};
    if (metadata_.namespace_ != objects::Metadata().namespace_) out["namespace"] = metadata_.namespace_;
    if (!metadata_.labels.empty()) out["labels"] = metadata_.labels;
    return out;
  }

  static Json limits(const Amounts& amounts) {
    if (amounts.exclusive) return {{dialects::keys::devices, amounts.devices}};
    return {{dialects::keys::memory, kubernetes::quantity_of_bytes(amounts.memory_bytes.value_or(0))},
            {dialects::keys::compute, amounts.share_bp.value_or(0) / basis_points_per_percent}};
  }

  Json annotations() const {
    Json out = Json::object();
    if (workload::gpu_of(pods_.need) == QueueGpu::mgpu)
      out[dialects::keys::policy] = text(Policy::fixed_share);
    return out;
  }

  Json variables() const {
    Json out = Json::array();
    for (const auto& [key, value] : spec_.run.env)
      if (key != "PATH") out.push_back({{"name", key}, {"value", value}});
    return out;
  }

  Json container(const char* container_name) const {
    return {{"name", container_name}, {"image", spec_.run.image.empty() ? image_word : spec_.run.image}};
  }
  Json container(const char* container_name, const Amounts& amounts) const {
    Json out = container(container_name);
    out["resources"]["limits"] = limits(amounts);
    return out;
  }

  // Returns the template of a pod with this container.
  Json pod(Json container) const {
    Json out = Json::object();
    if (container.contains("resources") && !annotations().empty())
      out["metadata"]["annotations"] = annotations();
    out["spec"]["containers"] = Json::array({std::move(container)});
    return out;
  }

  // The fields are those of KubeRay's RayCluster, ray.io/v1: headGroupSpec and workerGroupSpecs, each with
  // rayStartParams and a pod template.
  Json ray_cluster() const {
    const auto workers = std::ranges::find(pods_.groups, PodRole::worker, &engines::PodGroup::role);
    Json head{{"rayStartParams", {{"num-gpus", "0"}, {"dashboard-host", "0.0.0.0"}}}};
    head["template"] = pod(with_variables(container("ray-head")));
    Json groups = Json::array();
    if (!workers->has_gpu) groups.push_back(ray_group("workers", workers->count, 0, container("ray-worker")));
    const std::vector<workload::SliceGroup>& slices = pods_.need.groups;
    for (size_t i = 0; i < slices.size(); ++i)
      groups.push_back(ray_group(slices.size() == 1 ? "workers" : fmt::format("workers-{}", i),
                                 slices[i].slices, slices[i].amounts.devices,
                                 container("ray-worker", slices[i].amounts)));
    return {{"headGroupSpec", head}, {"workerGroupSpecs", groups}};
  }

  Json ray_group(const std::string& group_name, uint32_t count, uint32_t devices, Json worker) const {
    Json parameters{{"num-gpus", fmt::format("{}", devices)}};
    for (const auto& [key, word] : {std::pair{engines::ray_cpus_key, "num-cpus"},
                                    {engines::ray_memory_key, "memory"},
                                    {engines::ray_store_key, "object-store-memory"}})
      if (const std::string value = engines::value_of(spec_.parameters, key); !value.empty())
        parameters[word] = value;
    return {{"groupName", group_name},      {"replicas", count},
            {"minReplicas", count},         {"maxReplicas", count},
            {"rayStartParams", parameters}, {"template", pod(with_variables(std::move(worker)))}};
  }

  Json with_variables(Json container) const {
    if (Json all = variables(); !all.empty()) container["env"] = std::move(all);
    return container;
  }

  // The fields are those of KubeRay's RayJob: entrypoint and rayClusterSpec.
  Json ray_job() const {
    Json spec{{"entrypoint", shell_text(spec_.run.command)},
              {"shutdownAfterJobFinishes", true},
              {"ttlSecondsAfterFinished", spec_.ttl_seconds_after_finished}};
    if (spec_.deadline_seconds != 0) spec["activeDeadlineSeconds"] = spec_.deadline_seconds;
    if (spec_.retries != 0) spec["backoffLimit"] = spec_.retries;
    spec["rayClusterSpec"] = ray_cluster();
    return {{"apiVersion", "ray.io/v1"}, {"kind", "RayJob"}, {"metadata", metadata()}, {"spec", spec}};
  }

  static std::string template_key(PodRole role) {
    return fmt::format("spark.kubernetes.{}.podTemplateFile", text(role));
  }

  // Returns the container's name in the user's template, or "spark".
  std::string spark_container() const {
    for (const engines::PodGroup& group : pods_.groups)
      if (const std::string named = engines::value_of(
              spec_.parameters,
              fmt::format("spark.kubernetes.{}.podTemplateContainerName", text(group.role)));
          group.has_gpu && !named.empty())
        return named;
    return "spark";
  }

  Json spark_template() const {
    Json out{{"apiVersion", "v1"}, {"kind", "Pod"}};
    const std::string container_name = spark_container();
    const Json made = pod(with_variables(
        pods_.need.groups.empty() ? container(container_name.c_str())
                                  : container(container_name.c_str(), pods_.need.groups.front().amounts)));
    for (const auto& [key, value] : made.items()) out[key] = value;
    return out;
  }

  // The names spark.kubernetes.* are from Spark's page "Running Spark on Kubernetes". If a GPU amount is set,
  // Spark itself requests `VENDOR/gpu` from Kubernetes, so the amounts are only in the template. The number
  // of concurrent tasks then follows from the number of cores that Spark assumes, and the pod requests all of
  // them.
  std::string spark_command() const {
    std::vector<std::string> words{"spark-submit", "--master", "k8s://https://SERVER", "--deploy-mode",
                                   "cluster"};
    const auto add = [&](const std::string& key, const std::string& value) {
      words.emplace_back("--conf");
      words.push_back(key + "=" + value);
    };
    add("spark.kubernetes.container.image", image_word);
    std::set<std::string> replaced;  // Keys of the user's templates, which are merged instead.
    std::string merges;
    for (const engines::PodGroup& group : pods_.groups) {
      if (!group.has_gpu) continue;
      const std::string key = template_key(group.role);
      const std::string users = engines::value_of(spec_.parameters, key);
      const std::string merged = fmt::format("{}-{}.yaml", name(), text(group.role));
      add(key, users.empty() ? name() + ".yaml" : merged);
      if (users.empty()) continue;
      replaced.insert(key);
      merges += fmt::format("#   kubectl patch --local -f {} --patch-file {}.yaml -o yaml > {}\n",
                            shell_text({users}), name(), merged);
    }
    const bool has_fewer_tasks = pods_.tasks_at_once < pods_.executor_cores;
    for (const auto& [key, value] : spec_.parameters)
      if (key.starts_with("spark.") && key.find(".resource.gpu.") == std::string::npos &&
          !replaced.contains(key) && !(has_fewer_tasks && key == "spark.executor.cores"))
        add(key, value);
    if (has_fewer_tasks) {
      add("spark.executor.cores", fmt::format("{}", pods_.tasks_at_once));
      add("spark.kubernetes.executor.request.cores", fmt::format("{}", pods_.executor_cores));
    }
    words.insert(words.end(), spec_.run.command.begin(), spec_.run.command.end());
    return fmt::format("# Save this template as {}.yaml{} and run:\n{}#   {}\n", name(),
                       merges.empty() ? ""
                                      : fmt::format(", merge it into yours (whose container is named {}),",
                                                    spark_container()),
                       merges, shell_text(words));
  }

  void warn_of_the_rest() {
    if (spec_.run.image.empty())
      warnings_.push_back(fmt::format("the image is unknown; replace {} with its name", image_word));
    if (spec_.engine.value() == JobEngine::spark)
      for (const auto& [field, value] :
           {std::pair{"deadlineSeconds", spec_.deadline_seconds}, {"retries", spec_.retries}})
        if (value != 0)
          warnings_.push_back(
              fmt::format("spec.{} {} is not rendered; spark-submit has no such limit", field, value));
    if (spec_.priority != 0) warnings_.emplace_back("spec.priority is not rendered; use a PriorityClass");
    if (!metadata_.account.empty())
      warnings_.emplace_back("metadata.account is not rendered; usage is billed to the namespace");
    warnings_.push_back(fmt::format("queue {} is not rendered; use Kueue or a ResourceQuota", spec_.queue));
  }

  const objects::Metadata& metadata_;
  const objects::JobSpec& spec_;
  const engines::EnginePods& pods_;
  std::vector<std::string> warnings_;
};

}  // namespace

Json indexed_job(const objects::Metadata& metadata, const objects::JobSpec& spec,
                 const engines::EnginePods& pods) {
  return JobRendering(metadata, spec, pods).indexed_job();
}

Manifests job_manifests(const objects::Metadata& metadata, const objects::JobSpec& spec,
                        const engines::EnginePods& pods) {
  return JobRendering(metadata, spec, pods).run();
}

Manifests cluster_manifests(const objects::Metadata& metadata, const objects::RayClusterSpec& spec,
                            const engines::EnginePods& pods) {
  const objects::JobSpec job = objects::job_of_cluster(spec);
  return JobRendering(metadata, job, pods).run_cluster();
}

}  // namespace carve::render

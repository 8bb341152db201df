#include "objects/rules/job_check.h"

#include <algorithm>

#include "objects/error_list.h"
#include "objects/rules/service_terms.h"
#include "wire/api/json.h"

namespace carve::objects {
namespace {

void check_metadata_of(objects::Metadata metadata, ErrorList& errors) {
  if (metadata.name.empty()) metadata.name = "unnamed";
  errors.add_all(check_metadata(metadata));
}

// Checks a path; an empty one counts as absent.
void check_path(const char* field, const std::string& path, ErrorList& errors) {
  constexpr size_t max_path_bytes = 4095;  // PATH_MAX of Linux without the terminating NUL.
  if (path.empty()) return;
  if (!path.starts_with('/')) return errors.add(field, path, "{} is not an absolute path", typed(path));
  if (path.size() > max_path_bytes)
    return errors.add(field, path, "{} bytes are too many; use at most {}", path.size(), max_path_bytes);
  const bool is_plain =
      std::ranges::none_of(path, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
  if (!is_plain) errors.add(field, "", "the path has a control character, such as a new line");
}

void check_run(const objects::JobSpec& spec, ErrorList& errors) {
  const objects::Run& run = spec.run;
  if (const std::string problem = image_problem(run.image); !problem.empty())
    errors.add("spec.run.image", run.image, "{}", problem);
  if (!run.args.empty())
    errors.add("spec.run.args", run.args.front(),
               "{}: jobs do not support args; add them to spec.run.command", typed(run.args.front()));
  check_path("spec.run.workdir", run.workdir, errors);
  size_t bytes = 0;
  for (const auto& [name, value] : run.env) {
    bytes += name.size() + value.size() + 2;
    if (!is_env_name(name)) errors.add("spec.run.env", name, "{} {}", typed(name), env_name_rule);
  }
  if (bytes > max_env_bytes)
    errors.add("spec.run.env", "", "{} bytes are too many; use at most {}", bytes, max_env_bytes);
}

void check_parameters(const engines::Parameters& parameters, ErrorList& errors) {
  size_t bytes = 0;
  for (const auto& [key, value] : parameters) {
    bytes += key.size() + value.size();
    if (!engines::is_parameter_key(key))
      errors.add("spec.parameters", key, "{} is not a valid parameter name", typed(key));
    if (value.find_first_of(std::string_view("\n\0", 2)) != std::string::npos)
      errors.add(fmt::format("spec.parameters.{}", key), "",
                 "the value must not contain a line feed or a NUL character");
  }
  if (bytes > engines::max_parameters_bytes)
    errors.add("spec.parameters", "", "{} bytes are too many; use at most {}", bytes,
               engines::max_parameters_bytes);
}

// The number of programs is set by `workers` for Ray and by `tasks` for custom jobs; the other engines use
// other fields.
void check_counts(const objects::JobSpec& spec, ErrorList& errors) {
  const auto engine = spec.engine.value();
  if (!engine) return;
  const auto refuse = [&](const char* field, uint32_t count) {
    const char* way_out = *engine == JobEngine::spark ? "spec.parameters: spark.executor.instances"
                          : *engine == JobEngine::ray ? "spec.workers"
                                                      : "spec.tasks";
    errors.add(field, fmt::format("{}", count), "{} has no effect on a {} job; set {}", count,
               text(spec.engine), way_out);
  };
  constexpr uint32_t not_set = 1;
  if (*engine != JobEngine::ray && spec.workers != not_set) refuse("spec.workers", spec.workers);
  if (*engine != JobEngine::custom && spec.tasks != not_set) refuse("spec.tasks", spec.tasks);
}

}  // namespace

api::FieldErrors check_programs(const objects::Metadata& metadata, const objects::JobSpec& spec) {
  ErrorList errors;
  check_metadata_of(metadata, errors);
  if (spec.queue.empty())
    errors.add("spec.queue", "", "is required; list the queues with 'carve get queues'");
  check_run(spec, errors);
  check_parameters(spec.parameters, errors);
  for (const auto& [field, path] :
       {std::pair{"spec.engineHome", &spec.engine_home}, {"spec.python", &spec.python}})
    check_path(field, *path, errors);
  // engine_home is added to PATH, where colons separate folders.
  if (spec.engine_home.find(':') != std::string::npos)
    errors.add("spec.engineHome", spec.engine_home, "{} has a colon, which separates the folders of PATH",
               typed(spec.engine_home));
  return errors.all();
}

Result<objects::Job, api::FieldErrors> read_job(std::string_view json) {
  auto [job, wrong] = api::read_partly<objects::Job>(json, api::Reading::strict);
  ErrorList errors;
  const objects::JobSpec& spec = job.spec;
  errors.add_all(check_programs(job.metadata, spec));
  if (!spec.engine.value())
    errors.add("spec.engine", text(spec.engine), "{} is not one of {}", typed(text(spec.engine)),
               choice(Words<JobEngine>::words));
  if (spec.run.command.empty()) errors.add("spec.run.command", "", "is required: the program to run");
  check_counts(spec, errors);
  if (spec.retries > workload::max_job_retries)
    errors.add("spec.retries", fmt::format("{}", spec.retries), "{} is not a whole number from 0 to {}",
               spec.retries, workload::max_job_retries);
  if (api::FieldErrors all = api::joined(std::move(wrong), errors.all()); !all.empty())
    return tl::unexpected(std::move(all));
  return std::move(job);
}

engines::EngineRequest engine_request(const objects::JobSpec& spec, engines::QueueTerms queue) {
  return {.engine = spec.engine.value().value_or(JobEngine::custom),
          .parameters = spec.parameters,
          .queue = std::move(queue),
          .workers = spec.workers,
          .tasks = spec.tasks};
}

}  // namespace carve::objects

// `carve submit spark|ray|custom -q QUEUE -- PROGRAM ARGUMENT...`
#include <unistd.h>

#include <cstdlib>
#include <set>

#include "cli/documents.h"
#include "cli/jobs.h"
#include "cli/time_span.h"
#include "cli/verbs.h"
#include "objects/job_object.h"
#include "wire/api/controller.h"

namespace carve::cli {
namespace {

struct SubmitOptions {
  objects::JobSpec spec;
  std::string name, name_space = "default", parameter_file, home, deadline, ttl = "7d";
  std::vector<std::string> assignments, variables;
  bool wait = false, render = false;
};

// Variables of the caller that its programs and their engines need.
constexpr const char* passed_variables[] = {"PATH",        "JAVA_HOME",       "PYTHONPATH",
                                            "VIRTUAL_ENV", "LD_LIBRARY_PATH", "HADOOP_CONF_DIR"};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Returns the path of the program in the caller's PATH; empty if there is none.
std::string found_program(const std::string& name) {
  std::istringstream folders(variable("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const std::string path = folder + "/" + name;
        folder.starts_with('/') && access(path.c_str(), X_OK) == 0)
      return path;
  return "";
}

// Returns the output of the command without the line end; empty if it fails.
std::string printed(const std::string& command) {
  std::string out;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  char buffer[512];
  while (const size_t got = fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, got);
  if (pclose(pipe) != 0) return "";
  return out.substr(0, out.find('\n'));
}

bool find_spark(Context& context, SubmitOptions& options) {
  objects::JobSpec& spec = options.spec;
  spec.python = found_program("python3");
  spec.engine_home = !options.home.empty() ? options.home : variable("SPARK_HOME");
  if (spec.engine_home.empty())
    spec.engine_home =
        printed("python3 -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))' 2>/dev/null");
  if (!spec.engine_home.empty() && access((spec.engine_home + "/bin/spark-class").c_str(), X_OK) == 0)
    return true;
  return context.refuse(
      spec.engine_home.empty()
          ? "Spark was not found: set --spark-home or SPARK_HOME, or install pyspark for the python3 in PATH"
          : fmt::format(
                "{}: no executable bin/spark-class; set --spark-home or SPARK_HOME to Spark's directory",
                spec.engine_home));
}

bool find_ray(Context& context, SubmitOptions& options) {
  const std::string ray = found_program("ray");
  if (ray.empty())
    return context.refuse(
        "Ray was not found: PATH contains no program 'ray'; run pip install 'ray[default]'");
  options.spec.engine_home = ray.substr(0, ray.rfind('/'));
  options.spec.python = found_program("python3");
  return true;
}

bool read_assignments(Context& context, SubmitOptions& options) {
  std::set<std::string> keys;  // Set by --conf. They may override keys of the --params file.
  for (const std::string& word : options.assignments) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      return context.refuse(fmt::format("--conf '{}': must be KEY=VALUE", word));
    const std::string key = word.substr(0, equals), value = word.substr(equals + 1);
    if (!keys.insert(key).second)
      print_warnings({fmt::format("--conf {} is given twice; the last value, '{}', is used", key, value)});
    options.spec.parameters[key] = value;
  }
  for (const std::string& word : options.variables) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      return context.refuse(fmt::format("--env '{}': must be NAME=VALUE", word));
    options.spec.run.env[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return true;
}

// Passes the file to the controller, which parses its three forms.
bool read_parameter_file(Context& context, SubmitOptions& options) {
  if (options.parameter_file.empty()) return true;
  const auto text = read_documents(context, options.parameter_file);
  if (!text) return false;
  const auto read = context.controller().send<api::JobParameters>("POST", "/v1/parameters", *text);
  answered(context, read, [&](const api::JobParameters& found) {
    options.spec.parameters = found.parameters;
    print_warnings(found.warnings);
  });
  return read.has_value();
}

bool complete(Context& context, SubmitOptions& options) {
  objects::JobSpec& spec = options.spec;
  spec.run.command = context.program;
  if (spec.run.command.empty())
    return context.refuse(
        "no program is given; add it after --, as in carve submit custom -q QUEUE -- PROGRAM ARGUMENT...");
  // Rendered manifests name the engine's image, so the engine need not be installed on this machine.
  if (!options.render && spec.engine == JobEngine::spark && !find_spark(context, options)) return false;
  if (!options.render && spec.engine == JobEngine::ray && !find_ray(context, options)) return false;
  char folder[4096] = "";
  if (!options.render && getcwd(folder, sizeof folder) != nullptr) spec.run.workdir = folder;
  if (!options.render)  // The variables belong to this machine.
    for (const char* name : passed_variables)
      if (const std::string value = variable(name); !value.empty()) spec.run.env[name] = value;
  if (!options.deadline.empty()) spec.deadline_seconds = seconds_of(options.deadline);
  spec.ttl_seconds_after_finished = seconds_of(options.ttl);
  return read_parameter_file(context, options) && read_assignments(context, options);
}

void submit(Context& context, SubmitOptions options) {
  if (!complete(context, options)) return;
  const objects::Job document{.api_version = std::string(objects::api_version),
                              .kind = "Job",
                              .metadata = {.name = options.name, .namespace_ = options.name_space},
                              .spec = options.spec};
  if (options.render)
    return answered(context, context.controller().post<api::Rendered>("/v1/render", document),
                    [](const auto& rendered) {
                      print_warnings(rendered.warnings);
                      fmt::print("{}", rendered.manifests);
                    });
  const auto applied = context.controller().post<api::AppliedList>("/v1/jobs", document);
  answered(context, applied, [&](const api::AppliedList& list) {
    for (const api::AppliedObject& job : list.items) {
      print_warnings(job.warnings);
      if (job.action == "unchanged") {  // A job that is submitted twice runs once.
        fmt::print(stderr,
                   "carve: job {0} already exists with the same program and parameters; run carve delete "
                   "job/{0}, or give another --name\n",
                   job.name);
        context.status = failed_status;
        continue;
      }
      fmt::print("{}\n", job.name);
      if (options.wait) wait_for_job(context, name_of(job));
    }
  });
}

}  // namespace

void add_submit(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("submit", "Submit a job to a queue; print its name");
  auto options = std::make_shared<SubmitOptions>();
  objects::JobSpec& spec = options->spec;
  verb->add_option_function<std::string>(
          "ENGINE",
          [options](const std::string& word) { options->spec.engine = Word<JobEngine>::from(word); },
          "Engine of the job: spark, ray or custom")
      ->required()
      ->check(CLI::IsMember({"spark", "ray", "custom"}));
  verb->add_option("-q,--queue", spec.queue, "The queue")->required();
  verb->add_option("--compute-group", spec.compute_group, "Compute group of the queue")
      ->capture_default_str();
  verb->add_option("--conf", options->assignments,
                   "Parameter of the engine, or an mGPU parameter; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  verb->add_option("--params", options->parameter_file,
                   "File with one parameter per line, as KEY=VALUE, 'KEY': 'VALUE' or set KEY = VALUE")
      ->type_name("FILE");
  verb->add_option("--workers", spec.workers, "Number of workers of a Ray job, 1 to 1024")
      ->capture_default_str();
  verb->add_option("--tasks", spec.tasks, "Number of tasks of a custom job, 1 to 1024")
      ->capture_default_str();
  verb->add_option("--name", options->name, "Name of the job [ENGINE-NUMBER]");
  verb->add_option("-n,--namespace", options->name_space, "Namespace of the object")->capture_default_str();
  verb->add_option("--priority", spec.priority,
                   "Priority in the queue; the job with the higher number runs first")
      ->capture_default_str();
  verb->add_option("--retries", spec.retries, "Maximum number of restarts of a failed program, 0 to 100")
      ->capture_default_str();
  verb->add_option("--deadline", options->deadline,
                   "Maximum time from the job's admission to its end [no limit]")
      ->check(check_time_span);
  verb->add_option("--ttl", options->ttl, "Time from the job's end to its deletion")
      ->check(check_time_span)
      ->capture_default_str();
  verb->add_option("-e,--env", options->variables, "Environment variable of the job's programs; repeatable")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  verb->add_option("--spark-home", options->home,
                   "Spark's directory [SPARK_HOME, otherwise the pyspark of the python3 in PATH]")
      ->type_name("PATH");
  verb->add_flag("--wait", options->wait, "Print the job's output until it ends, and exit with its status");
  verb->add_flag("--render", options->render, "Print manifests for Kubernetes and submit nothing");
  verb->footer("  carve submit custom -q train --tasks 3 --params job.sql --wait -- python3 train.py");
  verb->callback([&context, options] { submit(context, *options); });
}

}  // namespace carve::cli

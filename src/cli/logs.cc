// `carve logs NAME`: the output of the programs of an object, or of a slice's detached program.
#include <unistd.h>

#include "cli/detached_programs.h"
#include "cli/services.h"
#include "cli/time_span.h"
#include "cli/verbs.h"
#include "core/escaped.h"
#include "objects/job_object.h"
#include "wire/api/percent.h"

namespace carve::cli {
namespace {

struct LogOptions {
  std::string name, name_space = "default", role;
  std::optional<uint32_t> replica;
  bool previous = false, follow = false, has_times = false;
  std::optional<uint32_t> tail;
  std::string since;  // Empty for all.
};

// Prints a program's output. On a terminal its control characters are escaped, because they could change how
// other programs' output is shown.
void print_output(std::string_view text) {
  if (isatty(STDOUT_FILENO) == 1)
    fmt::print("{}", escaped(text, "\t\n"));
  else
    fmt::print("{}", text);
}

// Returns the object. A name without a kind is a service, or a job if there is no such service. It must not
// also be the name of a slice with a detached program; `is_slice` is whether there is one.
std::optional<ObjectName> object_of(Context& context, const LogOptions& options, bool is_slice) {
  if (options.name.find('/') != std::string::npos)
    return required_object(context, {options.name}, options.name_space);
  const client::Client controller = context.controller();
  const ObjectName job{objects::Kind::job, options.name, options.name_space};
  ObjectName service = job;
  service.kind = objects::Kind::service;
  const bool is_job = !controller.text(object_path(service)) && controller.text(object_path(job));
  if (is_slice) {
    context.refuse(fmt::format("there is a {0} and a slice '{1}'; use {0}/{1} or slice/{1}",
                               is_job ? "job" : "service", options.name));
    return std::nullopt;
  }
  return is_job ? job : service;
}

// Returns whether the name without a kind is the name of a service or a job.
bool is_object(Context& context, const LogOptions& options) {
  const client::Client controller = context.controller();
  for (const objects::Kind kind : {objects::Kind::service, objects::Kind::job})
    if (controller.text(object_path({kind, options.name, options.name_space}))) return true;
  return false;
}

// Returns the slice's name if the output of its detached program is to be printed. The controller need not
// run then.
std::optional<std::string> slice_of(Context& context, const LogOptions& options, bool& is_slice) {
  constexpr std::string_view kind = "slice/";
  if (options.name.starts_with(kind)) return options.name.substr(kind.size());
  is_slice = has_detached_program(context, options.name);
  if (is_slice && !is_object(context, options)) return options.name;
  return std::nullopt;
}

// Prints lines until the stream ends. The end is not an error if the object was deleted or its job has ended.
void follow_logs(Context& context, const ObjectName& object, const std::string& query) {
  bool is_complete = false;
  const client::WatchEnd ended = context.controller().watch(
      object_path(object, "logs", query + "&follow=true"), "", [&](const auto& line) {
        if (line.type == objects::log_end_event)
          is_complete = true;
        else
          print_output(line.data + "\n");
      });
  if (is_complete) return;
  complain(ended.problem);
  context.status = context.problem_status;
}

}  // namespace

void add_logs(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("logs", "Print the output of an object's programs or of a slice's detached program");
  auto options = std::make_shared<LogOptions>();
  verb->add_option("NAME", options->name, "Name of a service, job or slice, or KIND/NAME")->required();
  verb->add_option("--role", options->role,
                   "Role of a job's programs: driver, executor, head, worker or task [all]");
  verb->add_option("-i,--replica", options->replica, "Index of one replica or pod [all]");
  verb->add_flag("-p,--previous", options->previous,
                 "Print the output of the previous attempt, before the last restart");
  verb->add_flag(
      "-f,--follow", options->follow,
      "Also print each new line, until Ctrl-C, the end of the job or program, or the deletion of the object");
  verb->add_option(
      "--tail", options->tail,
      "Number of last lines of each replica [all; without -f, at most 200000 in the newest 10 MiB]");
  verb->add_option("--since", options->since,
                   "Only lines from this long ago until now, such as 90s, 10m, 2h or 1d [all]")
      ->type_name("TIME")
      ->check(check_time_span);
  verb->add_flag("--timestamps", options->has_times,
                 "Begin each line with the time at which it was read, in UTC");
  verb->add_option("-n,--namespace", options->name_space, "Namespace of the object")->capture_default_str();
  verb->footer(
      "  carve logs demo --tail 20 --since 10m\n  carve logs application/web -i 0\n  carve logs -f "
      "slice/train");
  verb->callback([&context, options] {
    std::string query = fmt::format("previous={}", options->previous);
    if (options->tail) query += fmt::format("&tail={}", *options->tail);
    if (options->replica) query += fmt::format("&replica={}", *options->replica);
    if (options->has_times) query += "&timestamps=true";
    if (!options->role.empty()) query += "&role=" + api::percent_encoded(options->role);
    bool is_slice = false;
    if (const auto slice = slice_of(context, *options, is_slice)) {
      if (options->replica || !options->role.empty())
        return (void)context.refuse("a slice has one program; leave out --replica and --role");
      print_logs(context, *slice,
                 {.follow = options->follow,
                  .previous = options->previous,
                  .tail = options->tail,
                  .since = std::chrono::seconds(options->since.empty() ? 0 : seconds_of(options->since)),
                  .has_times = options->has_times});
      return;
    }
    if (!options->since.empty()) query += fmt::format("&sinceSeconds={}", seconds_of(options->since));
    const auto object = object_of(context, *options, is_slice);
    if (!object) return;
    if (options->follow) return follow_logs(context, *object, query);
    answered(context, context.controller().text(object_path(*object, "logs", query)),
             [](const auto& text) { print_output(text); });
  });
}

}  // namespace carve::cli

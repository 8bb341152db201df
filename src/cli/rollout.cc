// `carve rollout status|history|undo|restart KIND/NAME`: the revisions of a workload.
#include "cli/edit_form.h"
#include "cli/object_output.h"
#include "cli/services.h"
#include "cli/verbs.h"
#include "objects/revision.h"
#include "wire/api/json_value.h"

namespace carve::cli {
namespace {

struct RolloutOptions {
  std::vector<std::string> words;
  std::string name_space = "default";
  uint32_t revision = 0;
  unsigned timeout_seconds = 600;
  bool no_wait = false;
};
using Options = std::shared_ptr<RolloutOptions>;

std::string gpu_of(const objects::RevisionView& revision) {
  if (!revision.gpu) return "-";
  const objects::Gpu& gpu = *revision.gpu;
  if (gpu.exclusive) return fmt::format("{} whole", gpu.devices);
  std::string parts;
  for (const objects::GpuPart& part : gpu.parts)
    parts += fmt::format("{}{}{}", parts.empty() ? "" : ",", part.memory,
                         part.share.empty() ? "" : ":" + part.share);
  if (!parts.empty()) return parts;
  return fmt::format("{}{}{}", gpu.memory, gpu.share.empty() ? "" : " " + gpu.share,
                     gpu.devices > 1 ? fmt::format(" x{}", gpu.devices) : "");
}

void show_history(Context& context, const ObjectName& object) {
  const std::string target = object_path(object, "revisions");
  if (context.json())
    return answered(context, context.controller().text(target),
                    [](const auto& text) { fmt::print("{}\n", api::indented(text)); });
  answered(context, context.controller().get<objects::RevisionList>(target), [](const auto& list) {
    std::vector<std::vector<std::string>> rows;
    for (const objects::RevisionView& r : list.items)
      rows.push_back({fmt::format("{}{}", r.revision, &r == &list.items.back() ? " (present)" : ""),
                      r.created_at, harmless(gpu_of(r)), r.image.empty() ? "-" : harmless(r.image),
                      cut(harmless(fmt::format("{}", fmt::join(r.command, " "))), 60)});
    fmt::print("{}", table({"REVISION", "CREATED", "GPU", "IMAGE", "COMMAND"}, rows));
  });
}

// Prints the object with the spec of the revision, as a document that can be applied.
void show_revision(Context& context, const ObjectName& object, uint32_t revision) {
  const std::string target = object_path(object, fmt::format("revisions/{}", revision));
  answered(context, context.controller().text(target), [&](const std::string& text) {
    const auto json = api::parse(text);
    if (!json) return complain({.title = "revision", .detail = json.error()});
    const std::string document = user_form(*json).dump();
    context.json() ? fmt::print("{}\n", api::indented(document)) : fmt::print("{}", yaml_of(document));
  });
}

void wait(Context& context, const ObjectName& object, const Options& options) {
  if (!options->no_wait && wait_for_workload(context, object, options->timeout_seconds))
    fmt::print("{} is up to date\n", object.text());
}

void undo(Context& context, const ObjectName& object, const Options& options) {
  const auto undone = context.controller().post<objects::Service>(object_path(object, "undo"),
                                                                  objects::UndoRequest{options->revision});
  answered(context, undone, [&](const auto&) {
    fmt::print(
        "{} returns to {}\n", object.text(),
        options->revision == 0 ? "its previous revision" : fmt::format("revision {}", options->revision));
    wait(context, object, options);
  });
}

void restart(Context& context, const ObjectName& object, const Options& options) {
  answered(context,
           context.controller().post<objects::Service>(object_path(object, "restart"), api::Nothing{}),
           [&](const auto&) {
             fmt::print("{} restarts\n", object.text());
             wait(context, object, options);
           });
}

CLI::App* add_verb(CLI::App* rollout, Context& context, const Options& options, const char* name,
                   const char* help, std::function<void(const ObjectName&)> act) {
  CLI::App* verb = rollout->add_subcommand(name, help);
  verb->add_option("KIND/NAME", options->words, "The object: service/NAME, or service NAME")->required();
  verb->add_option("-n,--namespace", options->name_space, "Namespace of the object")->capture_default_str();
  verb->callback([&context, options, act = std::move(act)] {
    if (const auto object = required_object(context, options->words, options->name_space)) act(*object);
  });
  return verb;
}

void add_waiting(CLI::App* verb, const Options& options) {
  verb->add_flag("--no-wait", options->no_wait, "Do not wait");
  verb->add_option("--timeout", options->timeout_seconds, "Maximum wait in seconds")->capture_default_str();
}

}  // namespace

void add_rollout(CLI::App& app, Context& context) {
  CLI::App* rollout =
      app.add_subcommand("rollout", "Watch a rollout, list revisions, return to a revision, or restart");
  rollout->require_subcommand(1);
  const auto options = std::make_shared<RolloutOptions>();
  CLI::App* status = add_verb(rollout, context, options, "status", "Wait until the current revision runs",
                              [=, &context](const ObjectName& object) { wait(context, object, options); });
  status->add_option("--timeout", options->timeout_seconds, "Maximum wait in seconds")->capture_default_str();
  CLI::App* history =
      add_verb(rollout, context, options, "history", "List the kept revisions, or print the document of one",
               [=, &context](const ObjectName& object) {
                 if (options->revision == 0) return show_history(context, object);
                 show_revision(context, object, options->revision);
               });
  history->add_option("--revision", options->revision, "Revision of which to print the document [none]");
  add_output(history, context);
  CLI::App* back = add_verb(rollout, context, options, "undo", "Return to an earlier revision",
                            [=, &context](const ObjectName& object) { undo(context, object, options); });
  back->add_option("--to-revision", options->revision, "Revision to return to [the previous one]");
  add_waiting(back, options);
  CLI::App* again = add_verb(rollout, context, options, "restart", "Replace every replica, one by one",
                             [=, &context](const ObjectName& object) { restart(context, object, options); });
  add_waiting(again, options);
  rollout->footer(
      "  carve rollout history service/demo\n  carve rollout history service/demo --revision 2\n  carve "
      "rollout undo service/demo --to-revision 2");
}

}  // namespace carve::cli

// `carve apply -f FILE` and `carve delete KIND NAME`.
#include <fstream>
#include <iostream>
#include <iterator>

#include "cli/services.h"
#include "cli/verbs.h"
#include "wire/api/controller.h"

namespace carve::cli {
namespace {

constexpr unsigned default_wait_seconds = 600;

struct ApplyOptions {
  std::string file, dialect = "auto";
  bool dry_run = false, wait = false;
  unsigned timeout_seconds = default_wait_seconds;
};

Result<std::string, std::string> read_text(const std::string& file) {
  if (file == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::ifstream in(file);
  if (!in)
    return tl::unexpected(fmt::format("{}: cannot be read; name a file, or - for standard input", file));
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void apply(Context& context, const ApplyOptions& options) {
  const auto text = read_text(options.file);
  if (!text) {
    fmt::print(stderr, "carve: {}\n", text.error());
    context.status = failed_status;
    return;
  }
  const std::string target = fmt::format("/v1/documents?dialect={}{}", percent_encoded(options.dialect),
                                         options.dry_run ? "&dryRun=true" : "");
  answered(context, context.controller().send<api::AppliedList>("POST", target, *text),
           [&](const auto& list) {
             for (const api::AppliedObject& object : list.items) {
               for (const std::string& warning : object.warnings)
                 fmt::print(stderr, "carve: warning: {}\n", harmless(warning));
               if (!context.json()) fmt::print("{} {}\n", name_of(object).text(), object.action);
             }
             if (context.json()) print_json(list);
             if (!options.wait || options.dry_run) return;
             for (const api::AppliedObject& object : list.items)
               if (objects::text_of(name_of(object).kind).is_workload)
                 wait_for_workload(context, name_of(object), options.timeout_seconds, false);
           });
}

}  // namespace

void add_apply(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("apply", "Create or change what documents ask for (JSON or YAML)");
  auto options = std::make_shared<ApplyOptions>();
  verb->add_option("-f,--file", options->file, "The file, or - for standard input")
      ->required()
      ->type_name("FILE");
  verb->add_option("--dialect", options->dialect, "How the documents are written")
      ->check(CLI::IsMember({"auto", "carve", "eas", "ack", "vke", "kubernetes"}))
      ->capture_default_str();
  verb->add_flag("--dry-run", options->dry_run, "Check the documents and keep nothing");
  verb->add_flag("--wait", options->wait, "Wait until the programs run");
  verb->add_option("--timeout", options->timeout_seconds, "Longest wait, in seconds")->capture_default_str();
  add_output(verb, context);
  verb->footer("  carve apply -f examples/service.yaml --wait");
  verb->callback([&context, options] { apply(context, *options); });
}

void add_delete(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("delete", "Delete objects: their programs are stopped, their slices end");
  auto words = std::make_shared<std::vector<std::string>>();
  auto name_space = std::make_shared<std::string>("default");
  verb->add_option("KIND/NAME", *words, "The object: service/NAME, or service NAME")->required();
  verb->add_option("-n,--namespace", *name_space, "Its namespace")->capture_default_str();
  verb->footer("  carve delete service/demo");
  verb->callback([&context, words, name_space] {
    const auto object = required_object(context, *words, *name_space);
    if (!object) return;
    answered(context, context.controller().remove<objects::Service>(object_path(*object)),
             [&](const auto&) { fmt::print("{} deleted\n", object->text()); });
  });
}

}  // namespace carve::cli

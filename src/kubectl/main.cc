// kubectl-carve: with it on PATH, `kubectl carve` shows what Carve does in a cluster.
#include <CLI/CLI.hpp>

#include "kubectl/table.h"
#include "kubectl/translate.h"
#include "kubectl/verbs.h"
#include "os/input_file.h"
#include "wire/objects/object.h"

namespace {

using namespace carve;
using kubectl::failed_status, kubectl::usage_status;

struct TranslateOptions {
  std::string file, unit, form;
};

int translate(const TranslateOptions& options) {
  const auto text = os::read_input(options.file, objects::max_document_bytes);
  if (!text) {
    fmt::print(stderr, "kubectl-carve: {}\n", text.error());
    return failed_status;
  }
  fronts::PodSettings settings;
  settings.unit = parse<MemoryUnit>(options.unit);
  const auto translated = kubectl::translate(*text, settings);
  if (!translated) {
    for (const api::FieldError& error : translated.error())
      fmt::print(stderr, "kubectl-carve: {}\n", error.sentence);
    return failed_status;
  }
  for (const std::string& warning : translated->warnings)
    fmt::print(stderr, "kubectl-carve: warning: {}\n", warning);
  const kubectl::Form form = options.form == "yaml" ? kubectl::Form::yaml : kubectl::Form::json;
  for (size_t i = 0; i < translated->documents.size(); ++i)
    fmt::print("{}{}", i == 0 ? "" : "---\n", kubectl::document_text(translated->documents[i], form));
  return 0;
}

struct VerbRow {
  const char* name;
  const char* help;
  const char* example;
  int (*show)(const kubectl::VerbOptions&);
  enum class Takes { nothing, pod, devices, group, amounts, document } takes = Takes::nothing;
};
using Takes = VerbRow::Takes;

constexpr VerbRow verb_rows[] = {
    {.name = "nodes",
     .help = "Print the nodes with their settings, what is used, and what is pending",
     .example = "kubectl carve nodes -o wide",
     .show = kubectl::show_nodes,
     .takes = Takes::group},
    {.name = "devices",
     .help = "Print the devices with what is used of them, and the cluster's sum",
     .example = "kubectl carve devices",
     .show = kubectl::show_devices},
    {.name = "slices",
     .help = "Print the slices of pods, a row a container",
     .example = "kubectl carve slices -n default",
     .show = kubectl::show_slices},
    {.name = "explain",
     .help = "Print why a pod waits, or where manifests would go",
     .example = "kubectl carve explain web-0 -n default",
     .show = kubectl::show_explanation,
     .takes = Takes::pod},
    {.name = "consolidate",
     .help = "Print which slices would have to move to empty devices; none is moved",
     .example = "kubectl carve consolidate --devices 2",
     .show = kubectl::show_consolidation,
     .takes = Takes::devices},
    {.name = "top",
     .help = "Print what devices and slices use now, as the nodes' agents measure it",
     .example = "kubectl carve top -n default",
     .show = kubectl::show_top},
    {.name = "set",
     .help = "Change the memory of a running pod's slice",
     .example = "kubectl carve set web-0 --memory 6Gi",
     .show = kubectl::set_slice,
     .takes = Takes::amounts},
    {.name = "snapshot",
     .help = "Print nodes and slices as carve-replay --snapshot reads them",
     .example = "kubectl carve snapshot > fleet.json",
     .show = kubectl::show_snapshot,
     .takes = Takes::document},
    {.name = "settings",
     .help = "Print the cluster's settings and what is pending",
     .example = "kubectl carve settings",
     .show = kubectl::show_settings},
    {.name = "doctor",
     .help = "Print each part of the installation as deployed, deploying or failed",
     .example = "kubectl carve doctor",
     .show = kubectl::show_doctor}};

// Adds the options that all verbs have which ask the cluster.
void add_verb(CLI::App& app, const VerbRow& row, kubectl::VerbOptions& options, std::string& form,
              bool& is_watching, int& status) {
  CLI::App* const verb = app.add_subcommand(row.name, row.help);
  const bool has_forms = row.takes != Takes::amounts && row.takes != Takes::document;
  if (has_forms)
    verb->add_option("-o,--output", form, "The form of the output")
        ->check(CLI::IsMember({"table", "wide", "json", "yaml"}))
        ->default_val("table");
  if (row.takes != Takes::document)
    verb->add_option("-n,--namespace", options.name_space,
                     row.takes == Takes::pod || row.takes == Takes::amounts
                         ? "The namespace of the pod [default]"
                         : "The namespace of pods [all]")
        ->type_name("NAMESPACE");
  if (row.takes != Takes::amounts)
    verb->add_option("-l,--selector", options.selector, "A label selector of nodes")->type_name("SELECTOR");
  verb->add_option("--kubeconfig", options.kubectl.kubeconfig, "As kubectl's")->type_name("FILE");
  verb->add_option("--context", options.kubectl.context, "As kubectl's")->type_name("NAME");
  CLI::Option* watch = nullptr;
  if (has_forms) watch = verb->add_flag("-w,--watch", is_watching, "Also print what changes, until Ctrl-C");
  if (row.takes == Takes::pod) {
    CLI::App* const one = verb->add_option_group("what");
    one->add_option("pod", options.pod, "The pod")->type_name("POD");
    one->add_option("-f,--file", options.file, "Manifests (YAML or JSON), or - for standard input")
        ->type_name("FILE")
        ->excludes(watch);
    one->require_option(1);
  }
  if (row.takes == Takes::amounts) {
    verb->add_option("pod", options.pod, "The pod")->required()->type_name("POD");
    verb->add_option("-c,--container", options.container, "The container [the only one with a slice]")
        ->type_name("CONTAINER");
    verb->add_option("--memory", options.memory,
                     "Memory of the slice over all its devices, such as 6Gi or 6144Mi")
        ->required()
        ->type_name("SIZE");
  }
  if (row.takes == Takes::group)
    verb->add_option("--by", options.by,
                     "The label of a node pool: its nodes are grouped, and marked if they differ")
        ->type_name("LABEL");
  if (row.takes == Takes::devices)
    verb->add_option("--devices", options.devices, "Number of further devices to empty, 1 to 1024")
        ->type_name("K")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
  verb->footer(std::string("  ") + row.example);
  verb->callback([&options, &form, &is_watching, &status, show = row.show] {
    options.form = form == "wide"   ? kubectl::Form::wide
                   : form == "json" ? kubectl::Form::json
                   : form == "yaml" ? kubectl::Form::yaml
                                    : kubectl::Form::table;
    status = is_watching ? kubectl::watch(show, options) : show(options);
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Slices of GPUs in a Kubernetes cluster. On PATH it is also `kubectl carve`.",
               "kubectl-carve");
  app.require_subcommand(1);
  app.set_version_flag("--version", CARVE_VERSION);
  int status = 0;
  TranslateOptions options;
  CLI::App* const verb =
      app.add_subcommand("translate", "Print what the cluster would make of manifests, without a cluster");
  verb->add_option("-f,--file", options.file, "The manifests (YAML or JSON), or - for standard input")
      ->required()
      ->type_name("FILE");
  verb->add_option("--memory-unit", options.unit, "What an integer of aliyun.com/gpu-mem counts")
      ->check(CLI::IsMember({"1GiB", "128MiB"}))
      ->default_val("1GiB");
  verb->add_option("-o,--output", options.form, "json or yaml")
      ->check(CLI::IsMember({"json", "yaml"}))
      ->default_val("json");
  verb->footer("  kubectl carve translate -f examples/statefulset.yaml --memory-unit 128MiB");
  verb->callback([&] { status = translate(options); });
  kubectl::VerbOptions verb_options;
  std::string form;
  bool is_watching = false;
  for (const VerbRow& row : verb_rows) add_verb(app, row, verb_options, form, is_watching, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    const auto verbs = app.get_subcommands();
    fmt::print(stderr, "kubectl-carve: {}\nTry 'kubectl carve {}--help'.\n", error.what(),
               verbs.empty() ? "" : verbs.front()->get_name() + " ");
    return usage_status;
  }
  return status;
}

// kubectl-carve: if it is on PATH, `kubectl carve` shows Carve's objects in a cluster.
#include <CLI/CLI.hpp>

#include <algorithm>

#include "kubernetes/cli/command_line.h"
#include "kubernetes/cli/table.h"
#include "kubernetes/cli/translate.h"
#include "kubernetes/cli/verbs.h"
#include "os/input_file.h"
#include "wire/api/json.h"

namespace {

using namespace carve;
using kubernetes::cli::failed_status, kubernetes::cli::usage_status;

struct TranslateOptions {
  std::string file, unit, form;
  bool allows_unknown = false;
  bool uses_claims = false;  // Translate to resource claims.
};

int translate(const TranslateOptions& options) {
  const auto text = os::read_input(options.file, api::max_document_bytes);
  if (!text) {
    fmt::print(stderr, "kubectl-carve: {}\n", text.error());
    return failed_status;
  }
  dialects::PodSettings settings;
  settings.unit = parse<MemoryUnit>(options.unit);
  settings.has_other_makers = true;
  settings.allows_unknown_gpu_requests = options.allows_unknown;
  const auto translated = options.uses_claims ? kubernetes::cli::translate_to_claims(*text, settings)
                                              : kubernetes::cli::translate(*text, settings);
  if (!translated) {
    for (const api::FieldError& error : translated.error())
      fmt::print(stderr, "kubectl-carve: {}\n", error.message);
    return failed_status;
  }
  for (const std::string& warning : translated->warnings)
    fmt::print(stderr, "kubectl-carve: warning: {}\n", warning);
  const kubernetes::cli::Form form =
      options.form == "yaml" ? kubernetes::cli::Form::yaml : kubernetes::cli::Form::json;
  for (size_t i = 0; i < translated->documents.size(); ++i)
    fmt::print("{}{}", i == 0 ? "" : "---\n", kubernetes::cli::document_text(translated->documents[i], form));
  return 0;
}

struct VerbRow {
  const char* name;
  const char* help;
  const char* example;
  int (*show)(const kubernetes::cli::VerbOptions&);
  enum class Takes {
    nothing,
    pod,
    devices,
    nodes,
    group,
    amounts,
    document,
    installation
  } takes = Takes::nothing;
};
using Takes = VerbRow::Takes;

constexpr VerbRow verb_rows[] = {
    {.name = "nodes",
     .help = "Print the nodes with their settings, usage and pending changes",
     .example = "kubectl carve nodes -o wide",
     .show = kubernetes::cli::show_nodes,
     .takes = Takes::group},
    {.name = "devices",
     .help = "Print the devices with their usage, and the cluster's total",
     .example = "kubectl carve devices",
     .show = kubernetes::cli::show_devices,
     .takes = Takes::nodes},
    {.name = "slices",
     .help = "Print the slices of pods, one row per container",
     .example = "kubectl carve slices -n default",
     .show = kubernetes::cli::show_slices},
    {.name = "explain",
     .help = "Print why a pod is waiting, or where the pods of manifests would be placed",
     .example = "kubectl carve explain web-0 -n default",
     .show = kubernetes::cli::show_explanation,
     .takes = Takes::pod},
    {.name = "consolidate",
     .help = "Print which slices would have to move so that devices become empty; nothing is moved",
     .example = "kubectl carve consolidate --devices 2",
     .show = kubernetes::cli::show_consolidation,
     .takes = Takes::devices},
    {.name = "top",
     .help = "Print the current usage of devices and slices, as measured by the nodes' agents",
     .example = "kubectl carve top -n default",
     .show = kubernetes::cli::show_top,
     .takes = Takes::nodes},
    {.name = "set",
     .help = "Change the memory of a running pod's slice",
     .example = "kubectl carve set web-0 --memory 6Gi",
     .show = kubernetes::cli::set_slice,
     .takes = Takes::amounts},
    {.name = "snapshot",
     .help = "Print nodes and slices as carve-replay --snapshot reads them",
     .example = "kubectl carve snapshot > fleet.json",
     .show = kubernetes::cli::show_snapshot,
     .takes = Takes::document},
    {.name = "settings",
     .help = "Print the cluster's settings and pending changes",
     .example = "kubectl carve settings",
     .show = kubernetes::cli::show_settings,
     .takes = Takes::installation},
    {.name = "doctor",
     .help = "Print each part of the installation as deployed, deploying or failed",
     .example = "kubectl carve doctor",
     .show = kubernetes::cli::show_doctor,
     .takes = Takes::installation}};

// Options that are passed on to kubectl.
constexpr std::pair<const char*, const char*> passed_options[] = {{"--as", "NAME"},
                                                                  {"--as-group", "GROUP"},
                                                                  {"--as-uid", "UID"},
                                                                  {"--cluster", "NAME"},
                                                                  {"--user", "NAME"},
                                                                  {"--token", "TOKEN"},
                                                                  {"-s,--server", "URL"},
                                                                  {"--request-timeout", "TIME"},
                                                                  {"--certificate-authority", "FILE"}};

void add_kubectl_options(CLI::App& verb, kubernetes::cli::KubectlOptions& options) {
  verb.add_option("--kubeconfig", options.kubeconfig, "As kubectl's")->type_name("FILE");
  verb.add_option("--context", options.context, "As kubectl's")->type_name("NAME");
  for (const auto& [name, type] : passed_options) {
    const std::string word = std::string(name).substr(std::string(name).find("--"));
    verb.add_option_function<std::vector<std::string>>(
            name,
            [&options, word](const std::vector<std::string>& values) {
              for (const std::string& value : values) options.more.push_back(word + "=" + value);
            },
            "As kubectl's")
        ->type_name(type)
        ->allow_extra_args(false)
        ->take_all();
  }
}

// Returns a message if the output format is unknown.
std::string read_form(const std::string& text, kubernetes::cli::VerbOptions& options) {
  constexpr std::string_view json_path = "jsonpath=";
  if (text.starts_with(json_path)) {
    options.form = kubernetes::cli::Form::json_path;
    options.path_template = text.substr(json_path.size());
    return "";
  }
  const std::pair<const char*, kubernetes::cli::Form> forms[] = {{"table", kubernetes::cli::Form::table},
                                                                 {"wide", kubernetes::cli::Form::wide},
                                                                 {"json", kubernetes::cli::Form::json},
                                                                 {"yaml", kubernetes::cli::Form::yaml},
                                                                 {"name", kubernetes::cli::Form::name}};
  for (const auto& [word, form] : forms) {
    if (text != word) continue;
    options.form = form;
    return "";
  }
  return fmt::format("'{}' is not table, wide, json, yaml, name or jsonpath=TEMPLATE", text);
}

void add_output_options(CLI::App& verb, kubernetes::cli::VerbOptions& options, bool& is_watching) {
  verb.add_option_function<std::string>(
          "-o,--output",
          [&options](const std::string& text) {
            if (const std::string problem = read_form(text, options); !problem.empty())
              throw CLI::ValidationError("--output", problem);
          },
          "Output format: table, wide, json, yaml, name, jsonpath=TEMPLATE [table]")
      ->type_name("FORM");
  verb.add_flag("-w,--watch", is_watching, "Keep running and print changes until Ctrl-C");
  verb.add_flag_callback(
      "--no-headers", [&options] { options.headings = kubernetes::cli::Headings::hidden; },
      "Leave out the headings");
}

// Adds the verb's own arguments.
void add_arguments(CLI::App& verb, const VerbRow& row, kubernetes::cli::VerbOptions& options) {
  if (row.takes == Takes::pod) {
    CLI::App* const one = verb.add_option_group("what");
    one->add_option("pod", options.pod, "Pod, as NAME or pod/NAME")->type_name("POD");
    one->add_option("-f,--file,--filename", options.file, "Manifests (YAML or JSON), or - for standard input")
        ->type_name("FILE")
        ->excludes(verb.get_option("--watch"));
    one->require_option(1);
  }
  if (row.takes == Takes::amounts) {
    verb.add_option("pod", options.pod, "Pod, as NAME or pod/NAME")->required()->type_name("POD");
    verb.add_option("-c,--container", options.container,
                    "Container of the slice [the only container with a slice]")
        ->type_name("CONTAINER");
    verb.add_option("--memory", options.memory,
                    "Memory of the slice over all its devices, such as 6Gi or 6144Mi")
        ->required()
        ->type_name("SIZE");
  }
  if (row.takes == Takes::nodes || row.takes == Takes::group)
    verb.add_option("node", options.nodes, "Names of nodes [all]")->type_name("NODE");
  if (row.takes == Takes::group)
    verb.add_option("--by", options.by,
                    "Group nodes by this label, and mark those that differ from their group")
        ->type_name("LABEL");
  if (row.takes == Takes::devices)
    verb.add_option("--devices", options.devices, "Number of additional devices to empty, 1 to 1024")
        ->type_name("K")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
}

// Adds the options that all verbs share.
void add_verb(CLI::App& app, const VerbRow& row, kubernetes::cli::VerbOptions& options, bool& is_watching,
              int& status) {
  CLI::App* const verb = app.add_subcommand(row.name, row.help);
  if (row.takes != Takes::amounts && row.takes != Takes::document)
    add_output_options(*verb, options, is_watching);
  if (row.takes != Takes::document && row.takes != Takes::installation) {
    CLI::Option* const name_space = verb->add_option("-n,--namespace", options.name_space,
                                                     row.takes == Takes::pod || row.takes == Takes::amounts
                                                         ? "Namespace of the pod [the context's]"
                                                         : "Namespace of the pods [all]")
                                        ->type_name("NAMESPACE");
    if (row.takes != Takes::pod && row.takes != Takes::amounts)
      verb->add_flag_callback(
              "-A,--all-namespaces", [] {}, "All namespaces; this is the default")
          ->excludes(name_space);
  }
  if (row.takes != Takes::amounts && row.takes != Takes::installation)
    verb->add_option("-l,--selector", options.selector, "Label selector for nodes")->type_name("SELECTOR");
  add_kubectl_options(*verb, options.kubectl);
  add_arguments(*verb, row, options);
  verb->footer(std::string("  ") + row.example);
  verb->callback([&options, &is_watching, &status, show = row.show] {
    status = is_watching ? kubernetes::cli::watch(show, options) : show(options);
  });
}

int complete(CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> candidates;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (words.size() <= 1) candidates.push_back(each->get_name());
    if (words.size() <= 1 || each->get_name() != words.front()) continue;
    for (const CLI::Option* option : each->get_options())
      for (const std::string& name : option->get_lnames()) candidates.push_back("--" + name);
  }
  fmt::print("{}", kubernetes::cli::completions(candidates, words.empty() ? "" : words.back()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Inspect and change slices of GPUs in a Kubernetes cluster. If it is on PATH, `kubectl carve` runs it.",
      "kubectl-carve");
  app.require_subcommand(1);
  app.set_version_flag("--version", CARVE_VERSION);
  int status = 0;
  TranslateOptions options;
  CLI::App* const verb =
      app.add_subcommand("translate", "Print how the webhook would change manifests, without a cluster");
  verb->add_option("-f,--file,--filename", options.file,
                   "The manifests (YAML or JSON), or - for standard input")
      ->required()
      ->type_name("FILE");
  verb->add_option("--memory-unit", options.unit, "Memory unit of aliyun.com/gpu-mem")
      ->check(CLI::IsMember({"1GiB", "128MiB"}))
      ->default_val("1GiB");
  verb->add_option("-o,--output", options.form, "Output format: json or yaml")
      ->check(CLI::IsMember({"json", "yaml"}))
      ->default_val("json");
  verb->add_flag(
      dialects::allow_unknown_gpu_option, options.allows_unknown,
      "Accept GPU requests that Carve does not support, like the same option of carve-coordinator");
  verb->add_flag("--claims", options.uses_claims,
                 "Print resource claim templates (DRA), and pods that use them instead of limits");
  verb->footer("  kubectl carve translate -f examples/statefulset.yaml --memory-unit 128MiB");
  verb->callback([&] { status = translate(options); });
  kubernetes::cli::VerbOptions verb_options;
  bool is_watching = false;
  for (const VerbRow& row : verb_rows) add_verb(app, row, verb_options, is_watching, status);
  app.add_subcommand("version", "Print the version")->callback([] {
    fmt::print("kubectl-carve {}\n", CARVE_VERSION);
  });
  app.add_subcommand("completion", "Print a script that completes `kubectl carve`")
      ->footer(
          "Save it on PATH and make it executable:\n  kubectl carve completion > "
          "~/bin/kubectl_complete-carve")
      ->callback([] { fmt::print("{}", kubernetes::cli::completion_script); });

  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && words.front() == "__complete") return complete(app, {words.begin() + 1, words.end()});
  std::vector<std::string> verbs{"help"};
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
    verbs.push_back(each->get_name());
  const auto arranged = kubernetes::cli::arranged(std::move(words), verbs);
  try {
    if (!arranged) throw CLI::ParseError(arranged.error(), usage_status);
    app.parse(std::vector<std::string>(arranged->rbegin(), arranged->rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    const auto given = app.get_subcommands();
    fmt::print(stderr, "kubectl-carve: {}\nTry 'kubectl carve {}--help'.\n", error.what(),
               given.empty() ? "" : given.front()->get_name() + " ");
    return usage_status;
  }
  return status;
}

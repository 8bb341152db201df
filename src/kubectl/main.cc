// kubectl-carve: with it on PATH, `kubectl carve` shows what Carve does in a cluster.
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <iterator>

#include "kubectl/translate.h"

namespace {

using namespace carve;

constexpr int failed_status = 1, usage_status = 2;

struct TranslateOptions {
  std::string file, unit;
};

Result<std::string, std::string> read_text(const std::string& file) {
  if (file == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::ifstream in(file);
  if (!in)
    return tl::unexpected(fmt::format("{}: cannot be read; name a file, or - for standard input", file));
  return std::string(std::istreambuf_iterator<char>(in), {});
}

int translate(const TranslateOptions& options) {
  const auto text = read_text(options.file);
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
  for (size_t i = 0; i < translated->documents.size(); ++i)
    fmt::print("{}{}\n", i == 0 ? "" : "---\n", translated->documents[i]);
  return 0;
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
  verb->footer("  kubectl carve translate -f examples/statefulset.yaml --memory-unit 128MiB");
  verb->callback([&] { status = translate(options); });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : usage_status;
  }
  return status;
}

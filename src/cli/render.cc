// `carve render -f FILE`: prints documents as Kubernetes manifests.
#include "cli/documents.h"
#include "cli/verbs.h"

namespace carve::cli {

void add_render(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand(
      "render", "Print services, applications, jobs and Ray clusters as Kubernetes manifests");
  auto options = std::make_shared<DocumentOptions>();
  add_documents(verb, *options);
  verb->footer("  carve render -f examples/service.yaml | kubectl apply -f -");
  verb->callback([&context, options] {
    const auto text = read_documents(context, options->file);
    if (!text) return;
    answered(context,
             context.controller().send<api::Rendered>("POST", "/v1/render?" + query_of(*options), *text),
             [](const api::Rendered& rendered) {
               print_warnings(rendered.warnings);
               fmt::print("{}", rendered.manifests);
             });
  });
}

}  // namespace carve::cli

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
    bool is_first = true;
    for_each_file(context, *options, [&](const DocumentFile& file) {
      answered_for(
          context, file,
          context.controller().send<api::Rendered>("POST", "/v1/render?" + query_of(*options), file.text),
          [&](const api::Rendered& rendered) {
            print_warnings(rendered.warnings);
            fmt::print("{}{}", is_first ? "" : "---\n", rendered.manifests);
            is_first = false;
          });
    });
  });
}

}  // namespace carve::cli

// `carve scale KIND/NAME --replicas N`.
#include "cli/services.h"
#include "cli/verbs.h"

namespace carve::cli {
namespace {

// The part of the object that the verb changes (RFC 7396).
struct ScaleSpec {
  uint32_t replicas = 1;
};
struct ScalePatch {
  ScaleSpec spec;
};

struct ScaleOptions {
  std::vector<std::string> words;
  std::string name_space = "default";
  uint32_t replicas = 1;
  bool wait = false;
  unsigned timeout_seconds = 600;
};

}  // namespace

void add_scale(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("scale", "Change the number of replicas");
  auto options = std::make_shared<ScaleOptions>();
  verb->add_option("KIND/NAME", options->words, "The object: service/NAME, or service NAME")->required();
  verb->add_option("--replicas", options->replicas, "How many, 0 to 64")->required();
  verb->add_option("-n,--namespace", options->name_space, "Its namespace")->capture_default_str();
  verb->add_flag("--wait", options->wait, "Wait until they run");
  verb->add_option("--timeout", options->timeout_seconds, "Longest wait, in seconds")->capture_default_str();
  verb->footer("  carve scale service/demo --replicas 3");
  verb->callback([&context, options] {
    const auto object = parse_object(options->words);
    if (!object || object->name.empty()) {
      fmt::print(stderr, "carve: {}\n",
                 object ? "name the object: carve scale service/NAME" : object.error());
      context.status = usage_status;
      return;
    }
    answered(context,
             context.controller().patch<objects::Service>(service_path(object->name, "", options->name_space),
                                                          ScalePatch{{options->replicas}}),
             [&](const auto& service) {
               fmt::print("service/{} scaled to {}\n", service.metadata.name, options->replicas);
               if (options->wait)
                 wait_for_service(context, object->name, options->name_space, options->timeout_seconds,
                                  false);
             });
  });
}

}  // namespace carve::cli

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
  std::string wait;  // Empty: not at all.
};

}  // namespace

void add_scale(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("scale", "Change the number of replicas");
  auto options = std::make_shared<ScaleOptions>();
  verb->add_option("KIND/NAME", options->words, "The object: service/NAME, or service NAME")->required();
  verb->add_option("--replicas", options->replicas, "How many, 0 to 64")->required();
  verb->add_option("-n,--namespace", options->name_space, "Its namespace")->capture_default_str();
  add_wait(verb, options->wait, "Wait until they run, at most so long");
  verb->footer("  carve scale service/demo --replicas 3");
  verb->callback([&context, options] {
    const auto object = required_object(context, options->words, options->name_space);
    if (!object) return;
    answered(
        context,
        context.controller().patch<objects::Service>(object_path(*object), ScalePatch{{options->replicas}}),
        [&](const auto&) {
          fmt::print("{} scaled to {}\n", object->text(), options->replicas);
          if (!options->wait.empty()) wait_for_workload(context, *object, seconds_of(options->wait), false);
        });
  });
}

}  // namespace carve::cli

// `carve scale KIND/NAME --replicas N`.
#include <optional>

#include "cli/services.h"
#include "cli/verbs.h"
#include "objects/ray_cluster_object.h"

namespace carve::cli {
namespace {

// The part of the object that this command changes (RFC 7396).
struct ScaleSpec {
  uint32_t replicas = 1;
};
struct ScalePatch {
  ScaleSpec spec;
};

struct WorkersSpec {
  std::vector<objects::RayWorkers> workers;
};
struct WorkersPatch {
  WorkersSpec spec;
};

struct ScaleOptions {
  std::vector<std::string> words;
  std::string name_space = "default";
  uint32_t replicas = 1;
  std::optional<uint32_t> group;  // Worker group of a Ray cluster.
  std::string wait;               // Empty for no wait.
};

bool refuse_scaling(Context& context, const std::string& message) {
  context.refuse(message);
  return false;
}

// Returns whether the options select a worker group of the cluster. They may omit it if there is only one.
bool has_group(Context& context, const ObjectName& object, const ScaleOptions& options, size_t groups) {
  if (!options.group && groups > 1)
    return refuse_scaling(
        context, fmt::format("{} has {} worker groups; select one with --group, from 0 to {}", object.text(),
                             groups, groups - 1));
  if (options.group && *options.group >= groups)
    return refuse_scaling(context,
                          fmt::format("--group {}: {} has {} worker group{}, counted from 0", *options.group,
                                      object.text(), groups, groups == 1 ? "" : "s"));
  return true;
}

void scale_cluster(Context& context, const ObjectName& object, const ScaleOptions& options) {
  if (!options.wait.empty()) {
    refuse_scaling(context,
                   "--wait is only for services; carve get rayclusters -w shows the workers of a cluster");
    return;
  }
  const client::Client controller = context.controller();
  answered(context, controller.get<objects::RayCluster>(object_path(object)), [&](const auto& cluster) {
    WorkersPatch patch{{cluster.spec.workers}};
    if (!has_group(context, object, options, patch.spec.workers.size())) return;
    patch.spec.workers[options.group.value_or(0)].replicas = options.replicas;
    answered(context, controller.patch<objects::RayCluster>(object_path(object), patch),
             [&](const auto&) { fmt::print("{} scaled to {}\n", object.text(), options.replicas); });
  });
}

}  // namespace

void add_scale(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("scale", "Change the number of replicas");
  auto options = std::make_shared<ScaleOptions>();
  verb->add_option("KIND/NAME", options->words,
                   "The object: service/NAME, application/NAME or raycluster/NAME; or KIND NAME")
      ->required();
  verb->add_option("--replicas", options->replicas,
                   "Number of replicas, 0 to 64, or of workers of a Ray cluster, 1 to 1024")
      ->required();
  verb->add_option("--group", options->group, "Index of a worker group of a Ray cluster, counted from 0");
  verb->add_option("-n,--namespace", options->name_space, "Namespace of the object")->capture_default_str();
  add_wait(verb, options->wait, "Wait until the replicas run, but no longer than this");
  verb->footer("  carve scale service/demo --replicas 3");
  verb->callback([&context, options] {
    const auto object = required_object(context, options->words, options->name_space);
    if (!object) return;
    if (object->kind == objects::Kind::ray_cluster) return scale_cluster(context, *object, *options);
    if (!objects::text_of(object->kind).is_workload) {
      refuse_scaling(context, fmt::format("{}: only services, applications and Ray clusters have replicas",
                                          object->text()));
      return;
    }
    if (options->group) {
      refuse_scaling(context, "--group is only for Ray clusters; leave it out");
      return;
    }
    answered(
        context,
        context.controller().patch<objects::Service>(object_path(*object), ScalePatch{{options->replicas}}),
        [&](const auto&) {
          fmt::print("{} scaled to {}\n", object->text(), options->replicas);
          if (!options->wait.empty()) wait_for_workload(context, *object, seconds_of(options->wait));
        });
  });
}

}  // namespace carve::cli

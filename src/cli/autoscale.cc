// `carve autoscale KIND/NAME` and `carve eas autoscale NAME`: the number of replicas follows the load.
#include <algorithm>
#include <charconv>
#include <iterator>

#include "cli/services.h"
#include "cli/verbs.h"

namespace carve::cli {
namespace {

using objects::AutoscaleMetric;

// The part of the object that these commands change (RFC 7396).
struct ScalingSpec {
  objects::Autoscale autoscale;
};
struct ScalingPatch {
  ScalingSpec spec;
};
constexpr const char* no_autoscale = R"({"spec":{"autoscale":null}})";

struct AutoscaleOptions {
  std::vector<std::string> words;
  std::string name_space = "default";
  objects::Autoscale autoscale;
  uint32_t qps = 0, concurrency = 0, utilization = 0;
  bool off = false;
};

struct EasAutoscaleOptions {
  std::vector<std::string> words;    // NAME, or rm NAME.
  std::vector<std::string> changes;  // For example, min=1.
};

void set_autoscale(Context& context, const ObjectName& object, const objects::Autoscale& autoscale) {
  answered(context,
           context.controller().patch<objects::Service>(object_path(object), ScalingPatch{{autoscale}}),
           [&](const auto&) {
             fmt::print("{} has {} to {} replicas; the target of each is {} {}\n", object.text(),
                        autoscale.min, autoscale.max, text(autoscale.metric), autoscale.target);
           });
}

void remove_autoscale(Context& context, const ObjectName& object) {
  answered(context, context.controller().send<objects::Service>("PATCH", object_path(object), no_autoscale),
           [&](const objects::Service& service) {
             fmt::print("{} has {} replicas, regardless of load\n", object.text(), service.spec.replicas);
           });
}

void scale_by_load(Context& context, const AutoscaleOptions& options) {
  const auto object = required_object(context, options.words, options.name_space);
  if (!object) return;
  if (options.off) return remove_autoscale(context, *object);
  objects::Autoscale wanted = options.autoscale;
  if (options.concurrency != 0) wanted.metric = AutoscaleMetric::concurrency;
  if (options.utilization != 0) wanted.metric = AutoscaleMetric::gpu_utilization;
  wanted.target = std::max({options.qps, options.concurrency, options.utilization});
  if (wanted.target == 0) {
    context.refuse("no load per replica is given; add --qps, --concurrency or --gpu-utilization");
    return;
  }
  set_autoscale(context, *object, wanted);
}

// Sets the field of one -D option; returns an error message if it is invalid.
std::string set_field(objects::Autoscale& autoscale, const std::string& change) {
  const size_t equals = std::min(change.find('='), change.size());
  const std::string name = change.substr(0, equals);
  uint32_t* field = nullptr;
  if (name == "min") field = &autoscale.min;
  if (name == "max") field = &autoscale.max;
  for (const auto& [strategy, metric] : {std::pair("strategies.qps", AutoscaleMetric::qps),
                                         {"strategies.concurrency", AutoscaleMetric::concurrency},
                                         {"strategies.gpu", AutoscaleMetric::gpu_utilization}})
    if (name == strategy) {
      field = &autoscale.target;
      autoscale.metric = metric;
    }
  if (field == nullptr)
    return fmt::format("-D{}: '{}' is not min, max, strategies.qps, strategies.concurrency or strategies.gpu",
                       harmless(change), harmless(name));
  const char* begin = change.data() + std::min(equals + 1, change.size());
  const char* end = change.data() + change.size();
  const auto read = std::from_chars(begin, end, *field);
  if (read.ec == std::errc{} && read.ptr == end) return "";
  return fmt::format("-D{}: '{}' is not a whole number", harmless(change), harmless(std::string(begin, end)));
}

void scale_eas_service(Context& context, const EasAutoscaleOptions& options) {
  const bool removes = options.words.size() == 2 && options.words.front() == "rm";
  if (options.words.size() != 1 && !removes) {
    context.refuse("give one service: carve eas autoscale NAME -Dmin=1 ..., or carve eas autoscale rm NAME");
    return;
  }
  const ObjectName object = eas_object(options.words.back());
  if (removes) return remove_autoscale(context, object);
  objects::Autoscale wanted;
  wanted.target = 0;
  for (const std::string& change : options.changes)
    if (const std::string wrong = set_field(wanted, change); !wrong.empty()) {
      context.refuse(wrong);
      return;
    }
  if (wanted.target == 0) {
    context.refuse("no load per replica is given; add it, as in -Dstrategies.qps=10");
    return;
  }
  set_autoscale(context, object, wanted);
}

}  // namespace

void add_eas_autoscale(CLI::App& eas, Context& context) {
  CLI::App* verb = eas.add_subcommand("autoscale", "Adjust the number of replicas to the load");
  auto options = std::make_shared<EasAutoscaleOptions>();
  verb->add_option("NAME", options->words, "Service to scale; 'rm NAME' stops its autoscaling")
      ->required()
      ->expected(1, 2);
  verb->add_option(
          "-D", options->changes,
          "Field to set: min, max, strategies.qps, strategies.concurrency or strategies.gpu (percent)")
      ->type_name("FIELD=VALUE");
  verb->footer("  carve eas autoscale demo -Dmin=1 -Dmax=5 -Dstrategies.qps=10");
  verb->callback([&context, options] { scale_eas_service(context, *options); });
}

void add_autoscale(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("autoscale", "Adjust the number of replicas to the load");
  auto options = std::make_shared<AutoscaleOptions>();
  verb->add_option("KIND/NAME", options->words, "The object: service/NAME, or service NAME")->required();
  verb->add_option("--min", options->autoscale.min, "Minimum number of replicas")->capture_default_str();
  verb->add_option("--max", options->autoscale.max, "Maximum number of replicas, up to 64")
      ->capture_default_str();
  auto* load = verb->add_option_group("load", "Target load per replica");
  load->add_option("--qps", options->qps, "Requests per second");
  load->add_option("--concurrency", options->concurrency, "Concurrent requests");
  load->add_option("--gpu-utilization", options->utilization,
                   "GPU utilization, in percent of the replica's share");
  load->add_flag("--off", options->off, "Stop autoscaling; spec.replicas applies again");
  load->require_option(1);
  verb->add_option("-n,--namespace", options->name_space, "Namespace of the object")->capture_default_str();
  verb->footer("  carve autoscale service/demo --min 1 --max 5 --qps 10");
  verb->callback([&context, options] { scale_by_load(context, *options); });
}

}  // namespace carve::cli

// `carve wait`: waits for objects of the controller (object_wait.h).
#include "cli/object_wait.h"
#include "cli/time_span.h"
#include "cli/verbs.h"
#include "cli/wait_goal.h"

namespace carve::cli {

void add_wait_verb(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("wait", "Wait until objects have reached a state, or are gone");
  auto options = std::make_shared<ObjectWaitOptions>();
  verb->add_option("KIND/NAME", options->words, "The objects: service/NAME..., or service NAME...")
      ->required();
  verb->add_option(
          "--for", options->goal,
          "State to wait for: condition=NAME[=VALUE], delete, or jsonpath=PATH[=VALUE]. Ready, Complete and "
          "Failed follow from the phase")
      ->type_name("STATE")
      ->check([](const std::string& text) {
        const auto goal = parse_wait_goal(text);
        return goal ? std::string() : goal.error();
      });
  verb->add_option("-n,--namespace", options->name_space, "Namespace of the objects")->capture_default_str();
  verb->add_option("--timeout", options->timeout, "Maximum wait for all of them, such as 90s or 10m")
      ->type_name("TIME")
      ->check(check_time_span)
      ->capture_default_str();
  verb->footer(
      "  carve wait --for=condition=Ready service/demo --timeout 60s\n"
      "  carve wait --for=delete service/demo\n"
      "  carve wait --for=jsonpath='{.status.phase}'=Succeeded job/custom-5");
  verb->callback([&context, options] { wait_for_objects(context, *options); });
}

}  // namespace carve::cli

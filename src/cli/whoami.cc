// `carve whoami` and `carve auth can-i VERB KIND`: who the agent and the controller take the caller for, and what it may
// do.
#include "cli/services.h"
#include "cli/verbs.h"
#include "wire/api/identity.h"
#include "wire/api/percent.h"

namespace carve::cli {
namespace {

void print_agent(const api::Identity& identity) {
  fmt::print("{:<12} {} (uid {})\n", "user", harmless(identity.user), identity.uid);
  fmt::print("{:<12} {}\n", "operator",
             identity.is_operator ? fmt::format("yes: {}", harmless(identity.reason)) : "no");
}

void print_controller(const api::SessionView& session) {
  fmt::print("{:<12} account {}, role {}\n", "controller",
             session.account.empty() ? "-" : harmless(session.account), harmless(session.role));
}

// A program that does not respond is no error if the other one does.
void print_identity(Context& context) {
  const auto agent = context.agent().whoami();
  const auto controller = context.controller().get<api::SessionView>("/v1/session");
  if (!agent && !controller) {
    complain(agent.error());
    context.status = failed_status;
    return;
  }
  if (context.json())
    return print_json(api::WhoAmI{.agent = agent ? std::optional(*agent) : std::nullopt,
                                  .controller = controller ? std::optional(*controller) : std::nullopt});
  const auto detail = [](const api::Problem& problem) {
    return problem.detail.empty() ? problem.title : problem.detail;
  };
  if (agent)
    print_agent(*agent);
  else
    fmt::print("{:<12} {}\n", "agent", detail(agent.error()));
  if (controller)
    print_controller(*controller);
  else
    fmt::print("{:<12} {}\n", "controller", detail(controller.error()));
  if (agent && !agent->limits.empty()) fmt::print("\n{}", limits_table({.items = agent->limits}));
}

struct CanI {
  std::string verb, kind, name, name_space = "default";
};

void print_access(Context& context, CanI wanted) {
  if (const size_t slash = wanted.kind.find('/'); slash != std::string::npos) {
    wanted.name = wanted.kind.substr(slash + 1);
    wanted.kind.resize(slash);
  }
  if (!objects::parse_kind(wanted.kind)) {
    context.refuse(unknown_kind(wanted.kind));
    return;
  }
  const std::string path =
      fmt::format("/v1/access?verb={}&kind={}&name={}&namespace={}", api::percent_encoded(wanted.verb),
                  api::percent_encoded(wanted.kind), api::percent_encoded(wanted.name),
                  api::percent_encoded(wanted.name_space));
  answered(context, context.controller().get<api::Access>(path), [&](const api::Access& access) {
    if (!access.is_allowed) context.status = failed_status;
    if (context.json()) return print_json(access);
    fmt::print("{}\n", !access.is_allowed        ? "no"
                       : access.objects == "own" ? "yes, for your own objects"
                                                 : "yes");
    if (!access.is_allowed) fmt::print(stderr, "carve: {}\n", harmless(access.reason));
  });
}

}  // namespace

void add_whoami(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("whoami", "Show your user, rights, limits, and your role in the controller");
  add_output(verb, context);
  verb->footer("  carve whoami");
  verb->callback([&context] { print_identity(context); });
}

void add_auth(CLI::App& app, Context& context) {
  CLI::App* auth = app.add_subcommand("auth", "Check what you may do in the controller");
  auth->require_subcommand(1);
  CLI::App* verb =
      auth->add_subcommand("can-i", "Check whether you may use a verb on a kind of objects or on one object");
  auto wanted = std::make_shared<CanI>();
  verb->add_option("VERB", wanted->verb, "get, list, watch, create, apply, update, patch, scale or delete")
      ->required();
  verb->add_option("KIND", wanted->kind, "A kind, such as services, or KIND/NAME")->required();
  verb->add_option("-n,--namespace", wanted->name_space, "The object's namespace")->capture_default_str();
  add_output(verb, context);
  verb->footer(
      "Exit status: 0 yes, 1 no or failed, 2 the command line is wrong.\n  carve auth can-i delete "
      "service/demo");
  verb->callback([&context, wanted] { print_access(context, *wanted); });
}

}  // namespace carve::cli

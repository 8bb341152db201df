// `carve token create|ls|rm`: tokens for callers over TCP.
#include "cli/time_span.h"
#include "cli/verbs.h"
#include "wire/api/controller.h"
#include "wire/api/percent.h"

namespace carve::cli {
namespace {

// Reads a number of days, "30d" or "30".
Result<uint32_t, std::string> days_of(const std::string& word) {
  const auto span = parse_time_span(word, 'd');
  if (!span) return tl::unexpected(span.error());
  if (*span % day != std::chrono::seconds(0))
    return tl::unexpected(fmt::format("'{}' is not a whole number of days, such as 30d", word));
  return static_cast<uint32_t>(*span / day);
}

std::string check_days(const std::string& word) {
  const auto days = days_of(word);
  return days ? std::string() : days.error();
}

void add_create(CLI::App* token, Context& context) {
  CLI::App* verb = token->add_subcommand("create", "Create a token and print it once");
  auto request = std::make_shared<api::TokenRequest>();
  verb->add_option("NAME", request->name, "The token's name")->required();
  verb->add_option("--role", request->role, "Role of the callers that use the token")
      ->check(CLI::IsMember({"viewer", "user", "operator"}))
      ->capture_default_str();
  verb->add_option("--account", request->account, "Account whose objects the token may change [your own]");
  auto expires = std::make_shared<std::string>("30d");
  verb->add_option("--expires", *expires, "Validity of the token in whole days; 0 means no limit")
      ->check(check_days)
      ->capture_default_str();
  verb->footer("  carve token create ci --role user --expires 90d");
  verb->callback([&context, request, expires] {
    request->days = *days_of(*expires);
    answered(context, context.controller().post<api::TokenMade>("/v1/tokens", *request),
             [&](const auto& made) {
               fmt::print("{}\n", made.token);
               if (context.screen.terminal) fmt::print(stderr, "Save it now: it is not shown again.\n");
             });
  });
}

void add_list(CLI::App* token, Context& context) {
  CLI::App* verb = token->add_subcommand(
      "ls", "List the tokens, and the sessions of browsers that are signed in to the console");
  add_output(verb, context);
  verb->callback([&context] {
    answered(context, context.controller().get<api::TokenList>("/v1/tokens"), [&](const auto& list) {
      if (context.json()) return print_json(list);
      std::vector<std::vector<std::string>> rows;
      const uint64_t now = utc_now_ns();
      for (const api::TokenView& t : list.items)
        rows.push_back({t.name, t.session ? "session" : "token", t.role, t.account,
                        age(now - std::min(now, t.created_ns)),
                        t.expires_ns == 0    ? "never"
                        : t.expires_ns > now ? age(t.expires_ns - now)
                                             : "expired"});
      fmt::print("{}", table({"NAME", "KIND", "ROLE", "ACCOUNT", "AGE", "EXPIRES IN"}, rows));
    });
  });
}

void add_remove(CLI::App* token, Context& context) {
  CLI::App* verb =
      token->add_subcommand("rm", "Remove tokens and end sessions; requests that use them are then rejected");
  auto names = std::make_shared<std::vector<std::string>>();
  verb->add_option("NAME", *names, "The tokens and sessions")->required();
  verb->callback([&context, names] {
    for (const std::string& name : *names)
      answered(context, context.controller().remove<api::Nothing>("/v1/tokens/" + api::percent_encoded(name)),
               [&](const auto&) { fmt::print("{}\n", name); });
  });
}

}  // namespace

void add_token(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("token", "Create, list and remove tokens of the controller's API");
  verb->require_subcommand(1);
  add_create(verb, context);
  add_list(verb, context);
  add_remove(verb, context);
}

}  // namespace carve::cli

// `carve audit`: the requests that changed something, or attempted to, from the agent and the controller.
#include <algorithm>

#include "cli/verbs.h"
#include "os/user.h"
#include "wire/api/audit.h"

namespace carve::cli {
namespace {

struct AuditOptions {
  std::string user;
  bool only_failed = false;
};

// Callers are "root" and "uid 1000", with " in slice NAME" for a process in a slice, and "account NAME".
bool is_of(const api::AuditEntry& entry, const std::string& user) {
  if (user.empty()) return true;
  const auto uid = os::user_id(user);
  const std::string caller = entry.caller.substr(0, entry.caller.find(" in slice "));
  return caller == user || caller == "uid " + user || caller == "account " + user ||
         (uid && caller == os::uid_text(*uid));
}

void add(std::vector<api::AuditEntry>& all, const api::AuditList& list, const AuditOptions& options) {
  for (const api::AuditEntry& entry : list.items)
    if (is_of(entry, options.user) && (!options.only_failed || entry.status >= 400)) all.push_back(entry);
}

void print_audit(Context& context, const AuditOptions& options) {
  const auto agent = context.agent().audit();
  const auto controller = context.controller().get<api::AuditList>("/v1/audit");
  if (!agent && !controller) {
    complain(agent.error());
    context.status = failed_status;
    return;
  }
  api::AuditList out;
  if (agent) add(out.items, *agent, options);
  if (controller) add(out.items, *controller, options);
  std::ranges::stable_sort(out.items, {}, &api::AuditEntry::time_ns);
  if (context.json()) return print_json(out);
  std::vector<std::vector<std::string>> rows;
  for (const api::AuditEntry& entry : out.items)
    rows.push_back(
        {clock_text(entry.time_ns), harmless(entry.caller), harmless(entry.verb), harmless(entry.object),
         entry.status < 400      ? "ok"
         : entry.message.empty() ? fmt::format("refused ({})", entry.status)
                                 : fmt::format("refused ({}): {}", entry.status, harmless(entry.message))});
  fmt::print("{}", table({"TIME", "BY", "VERB", "OBJECT", "RESULT"}, rows));
}

}  // namespace

void add_audit(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("audit",
                                      "List the newest requests that changed something or attempted to: "
                                      "yours, or all if you are an operator");
  auto options = std::make_shared<AuditOptions>();
  verb->add_option("--user", options->user, "Only requests of this user, uid or account");
  verb->add_flag("--failed", options->only_failed, "Only requests that were refused");
  add_output(verb, context);
  verb->footer("  carve audit --user anna --failed");
  verb->callback([&context, options] { print_audit(context, *options); });
}

}  // namespace carve::cli

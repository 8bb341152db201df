// The verbs of `carve`. Each file registers one verb with its help and its options. The table in main.cc has
// the order of `carve --help`. Exit statuses:
//
//   0 done    1 rejected by the agent or the system    2 the command line is wrong
//   `carve run` uses the shell's conventions: the program's own status; 128 + N if signal N ended it;
//   126 if it cannot be executed; 127 if there is no such program; 125 if carve itself failed.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "cli/terminal.h"
#include "client/agent_client.h"
#include "wire/api/json.h"
#include "wire/api/problem.h"

namespace carve::cli {

inline constexpr int failed_status = 1;
inline constexpr int usage_status = 2;

void print_warning(const std::string& warning);  // On standard error.

// The state that main() passes to every verb.
struct Context {
  std::string socket_flag;           // --socket
  std::string controller_flag;       // --controller
  std::string context_flag;          // --context
  std::string output = "table";      // -o table|json, on verbs that read.
  std::vector<std::string> program;  // The words after "--".
  Screen screen;
  int status = 0;
  int problem_status = failed_status;

  client::AgentClient agent() const { return client::AgentClient(client::find_socket(socket_flag)); }
  // Returns the controller that the options, the variables or the user's contexts select. Ends the program if they are
  // wrong.
  client::Client controller() const;
  bool json() const { return output == "json"; }

  // Reports that the command line is wrong. Returns false, for callers that return whether they succeeded.
  bool refuse(const std::string& message);
};

void add_up(CLI::App& app, Context& context);
void add_down(CLI::App& app, Context& context);
void add_console(CLI::App& app, Context& context);
void add_backup(CLI::App& app, Context& context);
void add_restore(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
void add_apply(CLI::App& app, Context& context);
void add_diff(CLI::App& app, Context& context);
void add_edit(CLI::App& app, Context& context);
void add_submit(CLI::App& app, Context& context);
void add_cancel(CLI::App& app, Context& context);
void add_bill(CLI::App& app, Context& context);
void add_usage(CLI::App& app, Context& context);
void add_history(CLI::App& app, Context& context);
void add_render(CLI::App& app, Context& context);
void add_get(CLI::App& app, Context& context);
void add_describe(CLI::App& app, Context& context);
void add_scale(CLI::App& app, Context& context);
void add_autoscale(CLI::App& app, Context& context);
void add_eas_autoscale(CLI::App& eas, Context& context);
void add_rollout(CLI::App& app, Context& context);
void add_delete(CLI::App& app, Context& context);
void add_logs(CLI::App& app, Context& context);
void add_eas(CLI::App& app, Context& context);
void add_token(CLI::App& app, Context& context);
void add_ps(CLI::App& app, Context& context);
void add_top(CLI::App& app, Context& context);
void add_devices(CLI::App& app, Context& context);
void add_show(CLI::App& app, Context& context);
void add_stop(CLI::App& app, Context& context);
void add_exec(CLI::App& app, Context& context);
void add_wait(CLI::App& app, Context& context);
void add_set(CLI::App& app, Context& context);
void add_node(CLI::App& app, Context& context);
void add_whoami(CLI::App& app, Context& context);
void add_audit(CLI::App& app, Context& context);
void add_auth(CLI::App& app, Context& context);
void add_context(CLI::App& app, Context& context);
void add_limit(CLI::App& app, Context& context);
void add_label(CLI::App& app, Context& context);
void add_cordon(CLI::App& app, Context& context);  // Also adds uncordon.
void add_drain(CLI::App& app, Context& context);

// Print the output of `carve ps` and `show`, for `get` and `describe` of slices.
struct OutputOptions;  // cli/output_format.h
void get_slices(Context& context, const std::string& name, const OutputOptions& output);
void show_slice(Context& context, const std::string& name);
void add_trace(CLI::App& app, Context& context);
void add_thaw(CLI::App& app, Context& context);
void add_slice(CLI::App& app, Context& context);
void add_explain(CLI::App& app, Context& context);
void add_consolidate(CLI::App& app, Context& context);
void add_doctor(CLI::App& app, Context& context);
void add_events(CLI::App& app, Context& context);
void add_completion(CLI::App& app, Context& context);
void add_help(CLI::App& app, Context& context);
void add_version(CLI::App& app, Context& context);
void add_hook(CLI::App& app, Context& context);

// Ends the slices, waits until each has ended, and calls `report` with its name.
enum class StopWait { none, until_ended };
void stop_slices(Context& context, const client::AgentClient& agent, const std::vector<std::string>& names,
                 StopWait wait, const std::function<void(const std::string&)>& report);
void print_name(const std::string&);
// Returns whether the slice has ended. A later slice with the same name is a different slice.
client::Answer<bool> has_ended(const client::AgentClient& agent, const std::string& name,
                               uint64_t created_ns);

// Adds -o to a verb that can print in these formats.
void add_output(CLI::App* verb, Context& context, const std::vector<std::string>& forms = {"table", "json"});

// Prints "carve: DETAIL" on standard error, followed by the reasons.
void complain(const api::Problem& problem);

// Calls `act` with the answer, or prints the problem and sets the exit status.
template <class T, class Act>
void answered(Context& context, const client::Answer<T>& answer, Act act) {
  if (answer) {
    act(*answer);
  } else {
    complain(answer.error());
    context.status = context.problem_status;
  }
}

// Returns the table of limits: what is held, and the limit.
std::string limits_table(const api::LimitList& list);

// Prints a document as JSON, indented by two spaces.
template <api::Document T>
void print_json(const T& document) {
  fmt::print("{}\n", api::write(document, 2));
}

}  // namespace carve::cli

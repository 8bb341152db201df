// `carve exec NAME -- PROGRAM`: runs another process in the slice of a running program. Only the slice's
// owner, root and the agent's user see the slice, and a process inside a slice may not call the agent, so a
// program cannot leave its own slice this way.
#include "cli/unknown_words.h"
#include "cli/variables.h"
#include "cli/verbs.h"
#include "runner/runner.h"
#include "wire/api/slice.h"

namespace carve::cli {
namespace {

int exec_in(const Context& context, const std::string& slice, const std::vector<std::string>& program,
            const Variables& variables) {
  const client::AgentClient agent = context.agent();
  return runner::run({.agent = agent,
                      .slice = slice,
                      .program = program,
                      .say = [](const std::string& message) { fmt::print(stderr, "carve: {}\n", message); },
                      .complain = complain,
                      .joins = true,
                      .prepare = [&] { return set_variables(variables); }});
}

struct ExecOptions {
  VariableOptions variables;
  bool is_interactive = false, has_terminal = false;
};

}  // namespace

void add_exec(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand(
      "exec", "Run another program in a running slice: carve exec NAME -- PROGRAM [ARGUMENT...]");
  auto options = std::make_shared<ExecOptions>();
  add_variable_options(verb, options->variables);
  verb->add_flag("-i,--interactive", options->is_interactive, "Accepted as in docker; has no effect");
  verb->add_flag("-t,--tty", options->has_terminal, "Accepted as in docker; has no effect");
  verb->prefix_command();
  verb->footer(
      "The program shares the slice's memory quota, compute share and cgroup. It has your terminal,\n"
      "standard input, environment and folder. Exit status: as for carve run.\n"
      "  carve exec train -- nvidia-smi\n"
      "  carve exec -it train -- bash");
  verb->callback([&context, verb, options] {
    context.problem_status = context.status = runner::failed_status;
    std::vector<std::string> words = verb->remaining();
    if (!words.empty() && words.front().starts_with('-'))
      return fmt::print(stderr, "carve: {}\n", unknown_option(*verb, words.front()));
    words.insert(words.end(), context.program.begin(), context.program.end());
    if (words.size() < 2)
      return fmt::print(stderr, "carve: a slice and a program are required, as in carve exec NAME -- bash\n");
    const std::string slice = words.front();
    words.erase(words.begin());
    const auto variables = to_variables(options->variables);
    if (!variables) return fmt::print(stderr, "carve: {}\n", variables.error());
    context.status = exec_in(context, slice, words, *variables);
  });
}

}  // namespace carve::cli

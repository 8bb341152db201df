// `carve hook NAME`: called by a container runtime as the OCI hook createRuntime (runtime-spec, section
// "POSIX-platform Hooks"), not by users. The runtime writes the container's state to standard input. The
// agent uses the pid in the state to find the cgroup of the slice's processes. If the hook fails, the runtime
// stops the container, which would otherwise run outside its slice.
#include <iostream>
#include <iterator>

#include "cli/verbs.h"
#include "wire/api/json.h"
#include "wire/api/problem.h"
#include "wire/api/slice.h"

namespace carve::cli {
namespace {

// The fields of the OCI state document that the agent needs.
struct ContainerState {
  std::string id;
  uint32_t pid = 0;
};

constexpr size_t max_state_bytes = 1 << 20;

}  // namespace

void add_hook(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("hook", "")->group("");
  auto name = std::make_shared<std::string>();
  verb->add_option("NAME", *name)->required();
  verb->callback([&context, name] {
    std::string input;
    char block[4096];
    while (std::cin.read(block, sizeof block), std::cin.gcount() > 0 && input.size() < max_state_bytes)
      input.append(block, static_cast<size_t>(std::cin.gcount()));
    const auto state = api::read<ContainerState>(input, api::Reading::lenient);
    if (!state || state->pid == 0) {
      fmt::print(stderr, "carve: slice {}: cannot read a pid from the container runtime's state: {}\n", *name,
                 state ? "the pid is 0" : state.error());
      context.status = failed_status;
      return;
    }
    answered(context, context.agent().add_container(*name, {.pid = state->pid, .id = state->id}),
             [](const auto&) {});
  });
}

}  // namespace carve::cli

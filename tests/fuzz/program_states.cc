// The state file of a program belongs to its user, who may write any bytes to it (runner/supervisor_state.h).
// A parsed state has a phase and an exit text, and the next start has a delay within its limits.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "own_folder.h"
#include "runner/supervisor_state.h"
#include "workload/restart.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carve;
  std::ofstream(own_folder() / runner::state_file_name, std::ios::binary)
      << std::string_view(reinterpret_cast<const char*>(data), size);
  const auto seen = runner::read_program(own_folder());
  if (!seen) {
    if (seen.error().message.empty()) abort();
    return 0;
  }
  const runner::SupervisorState& state = seen->state;
  if (seen->is_supervised || seen->phase() == runner::ProgramPhase::running)
    abort();  // There is no lock file.
  if (runner::exit_text(state).size() > 100) abort();
  const int64_t ran = workload::between(state.started_ns, state.ended_ns);
  const unsigned failures = workload::failures_after(state.attempt, ran);
  const int64_t delay = workload::backoff_ns(failures);
  if (ran < 0 || delay < workload::min_backoff_ns || delay > workload::max_backoff_ns) abort();
  if (workload::after(state.ended_ns, delay) < state.ended_ns) abort();
  return 0;
}

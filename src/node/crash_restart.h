// Restarts the agent after a crash, in the same container. Otherwise kubelet would restart the container, and
// wait 10 s, 20 s, ... up to 5 min before each further restart. No new program would get its device in the
// meantime. An agent that exits by itself is not restarted: its exit status is the result.
#pragma once

#include <cstdint>
#include <optional>

namespace carve::node {

inline constexpr int64_t first_restart_delay_ns = 100'000'000;
inline constexpr int64_t max_restart_delay_ns = 5'000'000'000;
// An agent that ran for this long was healthy: the next crash counts as the first one.
inline constexpr int64_t healthy_run_ns = 60'000'000'000;
// After these crashes, which take 26 s, kubelet takes over, so that the container shows CrashLoopBackOff.
inline constexpr unsigned max_crashes = 10;

class RestartDelay {
 public:
  // Returns how long to wait after a crash, or nullopt if the agent should no longer be restarted.
  std::optional<int64_t> after_crash(int64_t ran_ns);

 private:
  unsigned crashes_ = 0;  // Since the last healthy run.
};

// Forks the agent and restarts it after each crash. Returns nullopt in the agent. In its parent, returns the
// exit status of the last agent, or 128 + N if signal N ended it. SIGTERM and SIGINT are passed on to the
// agent. Must be called before the first thread starts.
std::optional<int> restart_after_crashes();

}  // namespace carve::node

// Restarts the agent after a crash in the same container. Otherwise kubelet would restart the container, with
// back-offs of 10 s, 20 s, ... up to 5 min, during which no new program would get its device. An agent that
// exits by itself is not restarted, and its exit status is returned.
#pragma once

#include <cstdint>
#include <optional>

namespace carve::node {

inline constexpr int64_t first_restart_delay_ns = 100'000'000;
inline constexpr int64_t max_restart_delay_ns = 5'000'000'000;
// An agent that ran for this long was healthy, so the next crash counts as the first one.
inline constexpr int64_t healthy_run_ns = 60'000'000'000;
// After this many crashes, which take 26 s, kubelet takes over, so that the container is shown in
// CrashLoopBackOff.
inline constexpr unsigned max_crashes = 10;

class RestartDelay {
 public:
  // Returns how long to wait after a crash; nullopt if the agent should not be restarted again.
  std::optional<int64_t> after_crash(int64_t ran_ns);

 private:
  unsigned crashes_ = 0;  // Crashes since the last healthy run.
};

// Forks the agent and restarts it after each crash. In the agent, returns nullopt. In its parent, returns the
// exit status of the last agent, or 128 + N if signal N ended it. SIGTERM and SIGINT are passed on to the
// agent. Must be called before the first thread starts.
std::optional<int> restart_after_crashes();

}  // namespace carve::node

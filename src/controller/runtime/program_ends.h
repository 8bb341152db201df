// Waits for the ends of programs, with one pidfd each, so that an end is noticed when it happens rather than
// at the next periodic turn. An idle controller makes no system call for a running program.
//
// A program's processes are read from its supervisor's state, which the program's user can write. A program
// can therefore end the wait at most once a second; its other ends are noticed in the next turn. If a process
// cannot be watched because no descriptor is left or its number is forged, its end is noticed only in its
// supervisor's state.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "os/fd.h"
#include "os/process.h"
#include "os/wakeup.h"

namespace carve::controller {

inline constexpr int64_t min_wake_interval_ns = 1'000'000'000;  // Per program. Equals the shortest back-off.

// Returns whether the end of a program's process ends the wait. `woke_ns` is the last time at which it did,
// or 0.
constexpr bool may_wake(int64_t woke_ns, int64_t now_ns) {
  return woke_ns == 0 || now_ns - woke_ns >= min_wake_interval_ns;
}

class ProgramEnds {
 public:
  ProgramEnds();
  ~ProgramEnds();
  ProgramEnds(const ProgramEnds&) = delete;
  ProgramEnds& operator=(const ProgramEnds&) = delete;

  // Returns whether the process has ended. From the first call on, watches this process instead of the
  // program's previous one.
  bool has_ended(const std::string& program, const os::ProcessId&);
  void forget(const std::string& program);
  size_t watched() const { return names_.size(); }

  enum class Woken : uint8_t { at_interval, by_call, by_end };
  // Waits until a watched process ends, wake() is called, or the interval is over.
  Woken wait(int64_t interval_ns);
  // Ends the current wait, or the next one. May be called from any thread.
  void wake();

 private:
  struct Known {
    os::ProcessId process;
    os::Fd pidfd;  // Empty if the process has ended or cannot be watched.
    bool has_ended = false;
    int64_t woke_ns = 0;
  };
  void watch(const std::string& program, Known&);
  void close(Known&);
  bool take_end(int pidfd, int64_t now_ns);

  const os::Fd poll_;
  const os::Wakeup woken_;
  std::map<std::string, Known> known_;
  std::map<int, std::string> names_;  // Keyed by pidfd.
};

}  // namespace carve::controller

// Inspects processes (inspection.h) in a child process, because a hostile process can block reads of its
// files for as long as it lives. A blocked read ends only with its reader, so the reader is a process that
// can be killed: `carved --inspect-processes`.
//
//   deadline   250 ms for the first attempt, 1 s for the second; then the child is killed and replaced
//   late       after the second attempt the process counts as late, and its group pauses: every further
//              inspection in the group is reported as late, without a read, for 10 s, then 20 s, up to 160 s
//   group      a slice, or the user of a process in no slice; groups take turns, so a group's inspections
//              wait at most 1.25 s for each other group between two of its pauses
//
// An inspection of an ordinary process takes about 0.1 ms.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "node/inspect/inspection.h"
#include "os/loop.h"

namespace carve::node {

inline constexpr int64_t first_inspection_ns = 250'000'000;
inline constexpr int64_t second_inspection_ns = 1'000'000'000;
inline constexpr int64_t min_inspection_pause_ns = 10'000'000'000;
inline constexpr int64_t max_inspection_pause_ns = 160'000'000'000;

// Runs the child: responds to requests from a SOCK_SEQPACKET socket until its other end is closed. Returns
// the exit status.
int run_inspector(int socket);

// A running child.
struct InspectorChild {
  os::Fd socket;  // Connected to its standard input.
  os::Fd pidfd;
  pid_t pid = 0;  // 0 if it is not a child of this process (tests).
};
// Starts this executable as the child. Returns no value if no process or descriptor is available.
std::optional<InspectorChild> start_inspector_child();

class Inspector {
 public:
  using Done = std::function<void(const Inspection&)>;
  struct Hooks {
    std::function<std::optional<InspectorChild>()> start = start_inspector_child;
    // Called when a process is late for the first time. `group` is the group of the inspection.
    std::function<void(const Inspection&, uint64_t group)> late = nullptr;
    std::function<int64_t()> now_ns;  // Uses CLOCK_MONOTONIC if not set.
  };
  // All functions must be called on the loop, which must outlive this object.
  Inspector(os::Loop&, Hooks);
  ~Inspector();
  Inspector(const Inspector&) = delete;
  Inspector& operator=(const Inspector&) = delete;

  void on_late(std::function<void(const Inspection&, uint64_t group)> late) { hooks_.late = std::move(late); }

  // Reads the files again and calls `done` after this function has returned. `done` is dropped if the
  // inspector is destroyed.
  void inspect(const os::ProcessId&, uint64_t group, Done done);
  // Returns the last inspection of the process, or null.
  const Inspection* known(const os::ProcessId&) const;
  // Returns the command from the last inspection. If there is none, or the process has since executed another
  // program, returns its name in brackets. Does not block.
  std::string command_of(const os::ProcessId&) const;
  // Returns whether the process has ended or still has the name that it had at its inspection. Does not
  // block.
  static bool shows_its_program(const Inspection&);

  // Opens the report page that the process has mapped. May be called only before the loop runs. Waits at most
  // `second_inspection_ns`; empty if there is no page or the process is late.
  os::Fd open_report_page(const os::ProcessId&);

  // Ends attempts that are past their deadline. The loop calls this every 50 ms while an attempt runs.
  void tick();

 private:
  struct Request {
    os::ProcessId process;
    Done done;
    unsigned attempts = 0;
  };
  struct Group {
    std::deque<Request> waiting;
    int64_t paused_until_ns = 0;
    int64_t pause_ns = 0;  // Duration of the last pause.
  };
  bool has_child();
  void drop_child();
  void next();
  void receive();
  void tick_later();
  void fail(Request, uint64_t group);  // The attempt timed out, or the child ended.
  void answer_late(const os::ProcessId&, const Done&);
  void keep(Inspection);

  os::Loop& loop_;
  Hooks hooks_;
  std::optional<InspectorChild> child_;
  std::map<uint64_t, Group> groups_;
  std::optional<Request> running_;  // The request that the child is handling.
  uint64_t running_group_ = 0;
  bool was_sent_ = false;    // Whether the running request was sent to a child.
  int64_t deadline_ns_ = 0;  // For the running request.
  bool ticks_ = false;
  std::map<os::ProcessId, Inspection> known_;
  std::map<pid_t, os::Fd> ended_children_;                            // Killed, but not waited for yet.
  std::shared_ptr<const int> lives_ = std::make_shared<const int>();  // The loop's timers check it.
};

}  // namespace carve::node

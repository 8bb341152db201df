// Inspects processes (inspection.h) in a child process, because a hostile process can keep its files from
// being read for as long as it lives. A read that waits for it can be ended only by the end of the reader, so
// the reader is a process that can be killed: `carved --inspect-processes`.
//
//   deadline   250 ms for the first attempt, 1 s for the second; then the child is killed and replaced
//   late       after the second attempt the process counts as late, and its group pauses: every further
//              inspection in the group is answered as late, without a read, for 10 s, then 20 s, up to 160 s
//   group      a slice, or the user of a process in no slice; groups take turns, so the inspections of one
//   group
//              wait for at most 1.25 s of each other group's between two pauses
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

// The child: answers the requests from a SOCK_SEQPACKET socket until its other end closes. Returns the exit
// status.
int run_inspector(int socket);

// A running child.
struct InspectorChild {
  os::Fd socket;  // To its standard input.
  os::Fd pidfd;
  pid_t pid = 0;  // 0: not a child of this process (tests).
};
// Starts this executable as the child; no value if there is no process or descriptor left.
std::optional<InspectorChild> start_inspector_child();

class Inspector {
 public:
  using Done = std::function<void(const Inspection&)>;
  struct Hooks {
    std::function<std::optional<InspectorChild>()> start = start_inspector_child;
    // A process is late, for the first time. `group` is that of the inspection.
    std::function<void(const Inspection&, uint64_t group)> late = nullptr;
    std::function<int64_t()> now_ns;  // CLOCK_MONOTONIC if it is not set.
  };
  // All functions are called on the loop, which must outlive this object.
  Inspector(os::Loop&, Hooks);
  ~Inspector();
  Inspector(const Inspector&) = delete;
  Inspector& operator=(const Inspector&) = delete;

  void on_late(std::function<void(const Inspection&, uint64_t group)> late) { hooks_.late = std::move(late); }

  // Reads the files anew and calls `done`, never before this function returns. `done` is dropped if the
  // inspector ends.
  void inspect(const os::ProcessId&, uint64_t group, Done done);
  // Returns the last inspection of the process, or null.
  const Inspection* known(const os::ProcessId&) const;
  // Returns the command of the last inspection, or else the process's name in brackets. Does not block.
  std::string command_of(const os::ProcessId&) const;

  // Opens the report page that the process has mapped, before the loop runs. Waits for `second_inspection_ns`
  // at most; empty if there is no page or the process is late.
  os::Fd open_report_page(const os::ProcessId&);

  // Ends the attempts that are over their deadline. The loop calls it every 50 ms while one runs.
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
    int64_t pause_ns = 0;  // Of the last pause.
  };
  bool has_child();
  void drop_child();
  void next();
  void receive();
  void tick_later();
  void fail(Request, uint64_t group);  // The attempt took too long, or the child ended.
  void answer_late(const os::ProcessId&, const Done&);
  void keep(Inspection);

  os::Loop& loop_;
  Hooks hooks_;
  std::optional<InspectorChild> child_;
  std::map<uint64_t, Group> groups_;
  std::optional<Request> running_;  // The child reads for this one.
  uint64_t running_group_ = 0;
  bool was_sent_ = false;    // The running one reached a child.
  int64_t deadline_ns_ = 0;  // Of the running one.
  bool ticks_ = false;
  std::map<os::ProcessId, Inspection> known_;
  std::map<pid_t, os::Fd> ended_children_;                            // Killed, not yet waited for.
  std::shared_ptr<const int> lives_ = std::make_shared<const int>();  // The loop's timers look at it.
};

}  // namespace carve::node

// One thread for calls that may block, for example to an agent that does not respond, a driver, or a
// database. It runs tasks in order, and a periodic function (its turn) in between. A result is passed to the
// loop with Loop::post() or LoopPoster.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

namespace carve::os {

struct WorkerSettings {
  // Runs the turn and returns the time until the next one, in ns. The first turn runs soon after the start.
  // Null if there are only tasks.
  std::function<int64_t()> turn = nullptr;
  std::function<void()> begin = nullptr;  // Runs in the thread before everything else.
  // How long the destructor waits for current work. After that it leaves the thread behind, so tasks and the
  // turn must own the data that they use. Negative means that it waits without a limit.
  int64_t end_patience_ns = -1;
};

class Worker {
 public:
  using Task = std::function<void()>;

  explicit Worker(WorkerSettings = {});
  ~Worker();  // Drops the waiting tasks, and waits for current work.
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // These functions are thread-safe.
  void run(Task);                // Runs the task when the tasks before it have ended.
  void wake();                   // Runs the turn early, when the waiting tasks have ended.
  void stop();                   // Drops the waiting tasks. No further task or turn begins.
  size_t waiting_tasks() const;  // Does not include the current one.

 private:
  struct Shared;
  const std::shared_ptr<Shared> shared_;
  const int64_t end_patience_ns_;
  std::thread thread_;
};

}  // namespace carve::os

// One thread for calls that may block: an agent that does not respond, a driver, a database. It runs tasks in
// order, and its own turn in between. A result is passed to the loop with Loop::post() or LoopPoster.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

namespace carve::os {

struct WorkerSettings {
  // Returns the time until the next turn, in ns. The first turn runs soon after the start. Null if there are
  // only tasks.
  std::function<int64_t()> turn = nullptr;
  std::function<void()> begin = nullptr;  // Runs in the thread before everything else.
  // How long the destructor waits for current work. After that it leaves the thread behind, so tasks and turn
  // must own what they use. Negative means until it ends.
  int64_t end_patience_ns = -1;
};

class Worker {
 public:
  using Task = std::function<void()>;

  explicit Worker(WorkerSettings = {});
  ~Worker();  // Drops the waiting tasks, and waits for current work.
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Thread-safe.
  void run(Task);                // Runs the task when those before it have ended.
  void wake();                   // Runs the turn early, when the current tasks have ended.
  void stop();                   // Drops the waiting tasks. No other task or turn begins.
  size_t waiting_tasks() const;  // Without the current one.

 private:
  struct Shared;
  const std::shared_ptr<Shared> shared_;
  const int64_t end_patience_ns_;
  std::thread thread_;
};

}  // namespace carve::os

// Threads for work that users can make slow: large documents, users' files, the kernel's list of locks. The
// loop continues in the meantime.
//
// Only one task of each caller (`key`) runs at a time; its other tasks wait. A task that is not finished in
// time is late: its caller gets a response, and its thread is left running, because a thread that waits for a
// file system cannot be ended. While `max_late` threads are late, no task is started. While the system cannot
// create another thread, tasks wait.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "os/loop.h"

namespace carve::os {

class Workers {
 public:
  using Act = std::function<void()>;

  static constexpr size_t max_running = 2, max_waiting = 256, max_waiting_of_key = 32, max_late = 16;
  static constexpr int64_t default_patience_ns = 10'000'000'000;
  static constexpr int64_t without_limit_ns = INT64_MAX;  // The patience of tasks that are never late.

  explicit Workers(Loop&, int64_t patience_ns = default_patience_ns);
  // Waits at most 2 s for the running tasks, so `work` must own the data that it uses. After that, no result
  // is delivered.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Called on the loop. Runs `work` in a thread. Then runs, on the loop, the function that `work` returned,
  // or `late` if `work` was not finished in time. Returns false, and does nothing, if too many tasks wait.
  bool run(const std::string& key, std::function<Act()> work, Act late);

  size_t running() const { return running_; }
  bool is_idle() const { return tasks_.empty(); }  // No task waits or runs, and every result was delivered.

 private:
  struct Shared;
  struct Task {
    std::string key;
    std::function<Act()> work;
    Act late;
    int64_t came_ns = 0;
    int64_t begun_ns = 0;  // 0 while it waits.
    bool is_late = false;
  };
  void begin_next();
  // Returns false if the system cannot create another thread.
  bool begin(uint64_t number, const std::function<Act()>& work);
  void finish();
  void end_late();

  Loop& loop_;
  const int64_t patience_ns_;
  std::shared_ptr<Shared> shared_;
  uint64_t next_ = 1;
  std::map<uint64_t, Task> tasks_;                              // In the order of their arrival.
  size_t running_ = 0, late_ = 0;                               // Threads.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // Shows the loop's timers, which may outlive
                                                                // this object, whether it still exists.
};

}  // namespace carve::os

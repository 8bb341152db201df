// Threads for work that users can make slow: large documents, and files of theirs. The loop goes on
// meanwhile.
//
// Each caller (`key`) has one task at a time; its others wait. A task that is not finished in time is late:
// its caller gets an answer, and its thread is left alone, because nothing ends a thread that waits for a
// file system. While `max_late` threads are late, no task is begun.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "http/message.h"
#include "os/fd.h"
#include "os/loop.h"

namespace carve::controller {

class Workers {
 public:
  using Act = std::function<void()>;
  using Answer = std::function<http::Response()>;

  static constexpr size_t max_running = 2, max_waiting = 256, max_waiting_of_key = 32, max_late = 16;
  static constexpr int64_t default_patience_ns = 10'000'000'000;

  explicit Workers(os::Loop&, int64_t patience_ns = default_patience_ns);
  ~Workers();  // Waits at most 2 s for the tasks that run.
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Runs `work` in a thread and then, on the loop, what it returned; `late` in place of that if it was not
  // finished in time. Returns false, and does nothing, if too many tasks wait.
  bool run(const std::string& key, std::function<Act()> work, Act late);

  // Returns a response that comes when `work` has run in a thread, from what it returned, on the loop.
  http::Response answer_later(const std::string& key, std::function<Answer()> work);

  size_t running() const { return running_; }

 private:
  struct Shared;
  struct Task {
    std::string key;
    std::function<Act()> work;
    Act late;
    int64_t came_ns = 0;
    int64_t begun_ns = 0;  // 0: it waits.
    bool is_late = false;
  };
  void begin_next();
  void finish();
  void end_late();

  os::Loop& loop_;
  const int64_t patience_ns_;
  std::shared_ptr<Shared> shared_;
  uint64_t next_ = 1;
  std::map<uint64_t, Task> tasks_;                              // In the order of their coming.
  size_t running_ = 0, late_ = 0;                               // Threads.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // Timers of the loop outlive this object.
};

}  // namespace carve::controller

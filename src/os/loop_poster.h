// Calls from any thread into the thread of a loop, in order. A poster may outlive its loop, so a thread that
// is left behind in a call may hold one. Calls that it posts after the end of the loop are dropped.
#pragma once

#include <functional>
#include <memory>

namespace carve::os {

class LoopPoster {
 public:
  LoopPoster();

  void post(std::function<void()> call) const;

 private:
  friend class Loop;
  struct Shared;
  int fd() const;    // Readable while calls wait.
  void run() const;  // Runs the waiting calls, in the loop's thread.
  void end() const;  // Drops the waiting calls and all later ones.

  std::shared_ptr<Shared> shared_;
};

}  // namespace carve::os

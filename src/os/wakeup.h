// A descriptor that any thread makes readable, for a thread that waits in poll() or epoll_wait(). A loop's
// thread is called with Loop::post().
#pragma once

#include "os/fd.h"

namespace carve::os {

class Wakeup {
 public:
  Wakeup();

  bool is_open() const { return static_cast<bool>(fd_); }  // False if no descriptor was available.
  int fd() const { return fd_.get(); }
  void set() const;  // Thread-safe, also while the descriptor is readable.
  // Makes the descriptor unreadable again. Returns whether set() was called since the last call.
  bool take() const;

 private:
  Fd fd_;  // An eventfd.
};

}  // namespace carve::os

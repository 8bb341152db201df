// A descriptor that any thread can make readable, to wake a thread that waits in poll() or epoll_wait(). To
// wake a loop's thread, use Loop::post().
#pragma once

#include "os/fd.h"

namespace carve::os {

class Wakeup {
 public:
  Wakeup();

  bool is_open() const { return static_cast<bool>(fd_); }  // False if no descriptor was available.
  int fd() const { return fd_.get(); }
  void set() const;  // Thread-safe. May also be called while the descriptor is readable.
  // Makes the descriptor unreadable again. Returns whether set() was called since the last call of take().
  bool take() const;

 private:
  Fd fd_;  // An eventfd.
};

}  // namespace carve::os

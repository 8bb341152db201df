#include "os/loop_calls.h"

#include <sys/eventfd.h>

namespace carve::os {

LoopCalls::LoopCalls(Loop& loop) : loop_(loop), posted_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  loop_.watch(posted_.get(), EPOLLIN, [this](uint32_t) { run(); });
}

LoopCalls::~LoopCalls() { loop_.forget(posted_.get()); }

void LoopCalls::post(std::function<void()> call) {
  const MutexLock lock(mutex_);
  calls_.push_back(std::move(call));
  eventfd_write(posted_.get(), 1);
}

void LoopCalls::run() {
  eventfd_t count = 0;
  eventfd_read(posted_.get(), &count);
  std::vector<std::function<void()>> calls;
  {
    const MutexLock lock(mutex_);
    calls.swap(calls_);
  }
  for (const auto& call : calls) call();
}

}  // namespace carve::os

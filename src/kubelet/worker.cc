#include "kubelet/worker.h"

namespace carve::kubelet {

Worker::Worker(std::function<int64_t()> turn) : turn_(std::move(turn)), thread_([this] { run(); }) {}

Worker::~Worker() {
  {
    const os::MutexLock lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Worker::wake() {
  const os::MutexLock lock(mutex_);
  is_woken_ = true;
  changed_.notify_all();
}

bool Worker::wait(int64_t ns) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(ns);
  const os::MutexLock lock(mutex_);
  while (!is_woken_ && !ends_)
    if (!changed_.wait_until(mutex_, until)) break;
  is_woken_ = false;
  return !ends_;
}

void Worker::run() {
  int64_t interval = 0;
  while (wait(interval)) interval = turn_();
}

}  // namespace carve::kubelet

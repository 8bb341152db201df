#include "os/job_thread.h"

#include <csignal>

namespace carve::os {

JobThread::JobThread(Loop& loop, size_t max_waiting) : max_waiting_(max_waiting), calls_(loop) {
  // The loop handles signals.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

JobThread::~JobThread() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

bool JobThread::post(Job job) {
  const MutexLock lock(mutex_);
  if (waiting_.size() >= max_waiting_) return false;
  waiting_.push_back(std::move(job));
  ++unfinished_;
  changed_.notify_all();
  return true;
}

void JobThread::run() {
  for (;;) {
    Job job;
    {
      const MutexLock lock(mutex_);
      while (waiting_.empty() && !ends_) changed_.wait(mutex_);
      if (ends_) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
    }
    calls_.post([this, done = job()] {
      --unfinished_;
      if (done) done();
    });
  }
}

}  // namespace carve::os

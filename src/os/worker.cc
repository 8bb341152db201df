#include "os/worker.h"

#include <chrono>
#include <deque>
#include <limits>
#include <utility>

#include "os/clock.h"
#include "os/mutex.h"
#include "os/thread_start.h"

namespace carve::os {
namespace {

constexpr int64_t never = std::numeric_limits<int64_t>::max();

std::chrono::steady_clock::time_point at(int64_t monotonic_time_ns) {
  return std::chrono::steady_clock::now() + std::chrono::nanoseconds(monotonic_time_ns - monotonic_ns());
}

}  // namespace

// Outlives the worker if its thread is left behind. While `mutex` is held, no other lock is taken.
struct Worker::Shared {
  mutable Mutex mutex;
  ConditionVariable changed;
  std::deque<Task> tasks GUARDED_BY(mutex);
  bool is_woken GUARDED_BY(mutex) = false;
  bool stops GUARDED_BY(mutex) = false;
  bool has_ended GUARDED_BY(mutex) = false;

  void run(const WorkerSettings&) EXCLUDES(mutex);
  bool wait(int64_t turn_ns, Task& task) EXCLUDES(mutex);
  bool is_due(int64_t turn_ns) EXCLUDES(mutex);
};

// Waits until there is something to do. Takes the next task if there is one. Returns false when the worker
// ends.
bool Worker::Shared::wait(int64_t turn_ns, Task& task) {
  const MutexLock lock(mutex);
  while (!stops && !is_woken && tasks.empty() && monotonic_ns() < turn_ns)
    if (turn_ns == never)
      changed.wait(mutex);
    else
      changed.wait_until(mutex, at(turn_ns));
  if (stops) return false;
  if (tasks.empty()) return true;
  task = std::move(tasks.front());
  tasks.pop_front();
  return true;
}

// A turn that was woken runs after all waiting tasks; a turn that is due runs after the current task.
bool Worker::Shared::is_due(int64_t turn_ns) {
  const MutexLock lock(mutex);
  if (stops) return false;
  const bool was_woken = tasks.empty() && std::exchange(is_woken, false);
  return was_woken || monotonic_ns() >= turn_ns;
}

void Worker::Shared::run(const WorkerSettings& settings) {
  if (settings.begin) settings.begin();
  int64_t turn_ns = settings.turn ? 0 : never;
  for (Task task; wait(turn_ns, task);) {
    if (task) std::exchange(task, nullptr)();
    if (is_due(turn_ns) && settings.turn) turn_ns = monotonic_ns() + settings.turn();
  }
}

Worker::Worker(WorkerSettings settings)
    : shared_(std::make_shared<Shared>()), end_patience_ns_(settings.end_patience_ns) {
  thread_ = start_thread([shared = shared_, settings = std::move(settings)]() mutable {
    shared->run(settings);
    settings = {};  // Destroys the settings before the thread counts as ended.
    const MutexLock lock(shared->mutex);
    shared->has_ended = true;
    shared->changed.notify_all();
  });
}

Worker::~Worker() {
  stop();
  bool has_ended = end_patience_ns_ < 0;
  if (!has_ended) {
    const auto deadline = at(monotonic_ns() + end_patience_ns_);
    const MutexLock lock(shared_->mutex);
    while (!shared_->has_ended && shared_->changed.wait_until(shared_->mutex, deadline)) {}
    has_ended = shared_->has_ended;
  }
  if (has_ended)
    thread_.join();
  else
    thread_.detach();
}

void Worker::run(Task task) {
  const MutexLock lock(shared_->mutex);
  if (shared_->stops) return;
  shared_->tasks.push_back(std::move(task));
  shared_->changed.notify_all();
}

void Worker::wake() {
  const MutexLock lock(shared_->mutex);
  shared_->is_woken = true;
  shared_->changed.notify_all();
}

void Worker::stop() {
  std::deque<Task> dropped;  // Destroyed without holding the lock, with everything that they own.
  const MutexLock lock(shared_->mutex);
  shared_->stops = true;
  dropped.swap(shared_->tasks);
  shared_->changed.notify_all();
}

size_t Worker::waiting_tasks() const {
  const MutexLock lock(shared_->mutex);
  return shared_->tasks.size();
}

}  // namespace carve::os

#include "controller/workers.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>
#include <vector>

#include "controller/api/api_call.h"
#include "os/clock.h"
#include "os/mutex.h"

namespace carve::controller {
namespace {

constexpr int64_t late_check_interval_ns = 200 * os::millisecond;
constexpr std::chrono::seconds end_patience{2};

}  // namespace

// Outlives the workers if a thread never returns. No other lock is taken with `mutex` held.
struct Workers::Shared {
  os::Mutex mutex;
  os::ConditionVariable changed;
  std::vector<std::pair<uint64_t, Act>> finished GUARDED_BY(mutex);
  size_t threads GUARDED_BY(mutex) = 0;
  os::Fd ready{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  void carry_out(uint64_t number, std::function<Act()> work) EXCLUDES(mutex) {
    Act act = work();
    work = nullptr;  // What it holds ends before the thread counts as ended.
    const os::MutexLock lock(mutex);
    finished.emplace_back(number, std::move(act));
    --threads;
    changed.notify_all();
    eventfd_write(ready.get(), 1);
  }
};

Workers::Workers(os::Loop& loop, int64_t patience_ns)
    : loop_(loop), patience_ns_(patience_ns), shared_(std::make_shared<Shared>()) {
  loop_.watch(shared_->ready.get(), EPOLLIN, [this](uint32_t) { finish(); });
  loop_.every(std::min(late_check_interval_ns, patience_ns), [this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) end_late();
  });
}

Workers::~Workers() {
  loop_.forget(shared_->ready.get());
  const auto deadline = std::chrono::steady_clock::now() + end_patience;
  const os::MutexLock lock(shared_->mutex);
  while (shared_->threads > late_ && shared_->changed.wait_until(shared_->mutex, deadline)) {}
}

bool Workers::run(const std::string& key, std::function<Act()> work, Act late) {
  const auto waiting = std::ranges::count_if(
      tasks_, [&](const auto& one) { return one.second.key == key && one.second.begun_ns == 0; });
  if (static_cast<size_t>(waiting) >= max_waiting_of_key || tasks_.size() >= max_waiting || late_ >= max_late)
    return false;
  tasks_.emplace(
      next_++,
      Task{.key = key, .work = std::move(work), .late = std::move(late), .came_ns = os::monotonic_ns()});
  begin_next();
  return true;
}

void Workers::begin_next() {
  for (auto& [number, task] : tasks_) {
    if (running_ >= max_running || late_ >= max_late) return;
    if (task.begun_ns != 0) continue;
    const bool has_other = std::ranges::any_of(
        tasks_, [&](const auto& one) { return one.second.begun_ns != 0 && one.second.key == task.key; });
    if (has_other) continue;
    task.begun_ns = os::monotonic_ns();
    ++running_;
    {
      const os::MutexLock lock(shared_->mutex);
      ++shared_->threads;
    }
    // The loop handles signals.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([shared = shared_, number = number, work = std::exchange(task.work, nullptr)]() mutable {
      shared->carry_out(number, std::move(work));
    }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
}

void Workers::finish() {
  eventfd_t count = 0;
  eventfd_read(shared_->ready.get(), &count);
  std::vector<std::pair<uint64_t, Act>> finished;
  {
    const os::MutexLock lock(shared_->mutex);
    finished.swap(shared_->finished);
  }
  for (auto& [number, act] : finished) {
    const auto task = tasks_.find(number);
    if (task == tasks_.end()) continue;
    const bool was_late = task->second.is_late;
    --(was_late ? late_ : running_);
    tasks_.erase(task);
    if (!was_late && act) act();
  }
  begin_next();
}

void Workers::end_late() {
  const int64_t now = os::monotonic_ns();
  std::vector<Act> late;
  for (auto task = tasks_.begin(); task != tasks_.end();) {
    Task& one = task->second;
    const bool waits = one.begun_ns == 0;
    if (one.is_late || now - (waits ? one.came_ns : one.begun_ns) < patience_ns_) {
      ++task;
      continue;
    }
    late.push_back(std::move(one.late));
    if (waits) {
      task = tasks_.erase(task);
      continue;
    }
    one.is_late = true;
    --running_;
    ++late_;
    ++task;
  }
  for (const Act& act : late)
    if (act) act();
  begin_next();
}

http::Response Workers::answer_later(const std::string& key, std::function<Answer()> work) {
  struct Waiting {
    http::LaterAnswer* to = nullptr;  // Null: the caller is gone, or has its answer.
    void answer(http::Response response) {
      if (http::LaterAnswer* const receiver = std::exchange(to, nullptr))
        receiver->answer(std::move(response));
    }
  };
  auto shared_work = std::make_shared<std::function<Answer()>>(std::move(work));
  return {.content = http::LaterContent{.begin = [this, key, shared_work](http::LaterAnswer& to) {
            auto waiting = std::make_shared<Waiting>(Waiting{.to = &to});
            const bool begun = run(
                key,
                [waiting, shared_work]() -> Act {
                  Answer answer = std::exchange(*shared_work, nullptr)();
                  return [waiting, answer = std::move(answer)] {
                    if (waiting->to != nullptr) waiting->answer(answer());
                  };
                },
                [waiting] {
                  waiting->answer(refuse(FailureKind::unavailable,
                                         "the request took too long; check the file system, or send less"));
                });
            if (!begun)
              waiting->answer(refuse(FailureKind::resource_exhausted,
                                     "too many large requests wait; send one at a time"));
            return std::shared_ptr<void>(waiting.get(), [waiting](void*) { waiting->to = nullptr; });
          }}};
}

}  // namespace carve::controller

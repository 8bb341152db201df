// The thread of usage.db: it copies the usage records of all nodes every 5 s and before an invoice, compares
// budgets with what was used, sums up the GPU-hours of jobs, and makes invoices, which may read millions of
// records. The loop is notified of a finished invoice through an eventfd.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "controller/api/api_call.h"
#include "controller/controller_options.h"
#include "controller/objects/object_registry.h"
#include "os/fd.h"
#include "os/mutex.h"

namespace carve::controller {

class BillingThread {
 public:
  // `path`: of usage.db, which the thread opens.
  BillingThread(std::string path, std::vector<NodeAddress>, ObjectRegistry&);
  ~BillingThread();  // Waits for what is under way: a call of an agent, at most 5 s, or an invoice.
  BillingThread(const BillingThread&) = delete;
  BillingThread& operator=(const BillingThread&) = delete;

  using Answer = std::function<void(http::Response)>;
  // Makes an invoice; deliver() calls `answer` with it, unless the returned value was destroyed before.
  // Refuses at once if `max_waiting_invoices` wait.
  std::shared_ptr<void> ask(BillQuery, bill::Tariffs, BillForm, Answer) EXCLUDES(mutex_);
  // Returns the GPU-hours of the job or cluster with this uid as of the last copy, if it was admitted.
  std::optional<JobHours> hours(const std::string& uid) const { return hours_.find(uid); }
  // Becomes readable when an invoice is finished.
  int ready_fd() const { return ready_.get(); }
  // Calls the answers of all that are finished. On the thread that asks.
  void deliver() EXCLUDES(mutex_);

  static constexpr size_t max_waiting_invoices = 16;

 private:
  struct Task {
    BillQuery query;
    bill::Tariffs tariffs;
    BillForm form = BillForm::json;
    Answer answer;
    std::weak_ptr<void> wanted;  // Expired: the caller is gone.
    http::Response response = {};
  };
  void run() EXCLUDES(mutex_);
  // Waits until a task comes, the interval is over or the thread is to end; returns the task, if there is
  // one.
  std::unique_ptr<Task> wait(int64_t interval_ns) EXCLUDES(mutex_);
  void finish(std::unique_ptr<Task>) EXCLUDES(mutex_);
  bool ends() EXCLUDES(mutex_);

  const std::string path_;
  const std::vector<NodeAddress> nodes_;
  ObjectRegistry& objects_;
  const os::Fd ready_;
  KnownJobHours hours_;
  os::Mutex mutex_;
  os::ConditionVariable woken_;
  std::deque<std::unique_ptr<Task>> waiting_ GUARDED_BY(mutex_);
  std::deque<std::unique_ptr<Task>> finished_ GUARDED_BY(mutex_);
  bool ends_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace carve::controller

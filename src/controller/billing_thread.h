// The thread of usage.db: it copies the usage records of all nodes every 5 s and before an invoice, compares
// budgets with usage, sums up the GPU-hours of jobs, and makes invoices, which may read millions of records.
// A finished invoice is sent from the loop.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controller/api/api_call.h"
#include "controller/billing/gpu_hours.h"
#include "controller/billing/usage_copy.h"
#include "controller/controller_options.h"
#include "controller/objects/object_registry.h"
#include "os/clock.h"
#include "os/loop.h"
#include "os/worker.h"

namespace carve::controller {

class BillingThread {
 public:
  // `path` is the path of usage.db, which the thread opens.
  BillingThread(const os::Loop&, std::string path, std::vector<NodeAddress>, ObjectRegistry&);
  ~BillingThread();  // Waits for the work in progress: a call of an agent, at most 5 s, or an invoice.
  BillingThread(const BillingThread&) = delete;
  BillingThread& operator=(const BillingThread&) = delete;

  using Answer = std::function<void(http::Response)>;
  // Computes an invoice and passes it to `answer` on the loop, unless the returned value is destroyed first.
  // Rejects the request if `max_waiting_invoices` invoices are already waiting.
  std::shared_ptr<void> ask(BillQuery, bill::Tariffs, BillForm, Answer);
  // Returns the GPU-hours of the job or cluster with this uid as of the last copy; no value if it was never
  // admitted.
  std::optional<JobHours> hours(const std::string& uid) const { return hours_.find(uid); }

  // Returns the GPU-hours since this object was created, as of the last copy.
  std::vector<GpuHours::Sum> gpu_hours() const { return gpu_hours_.sums(); }

  // For the nodes of a cluster, which other threads read: the position of a node's copy, and a step of it. The
  // functions are called back in this object's thread.
  void find_position(const std::string& node, std::function<void(Outcome<CopyPosition>)>);
  void write(const std::string& node, CopyWrite, std::function<void(Outcome<void>)>);

  static constexpr size_t max_waiting_invoices = 16;

 private:
  struct Books;  // Used only by the thread.
  int64_t turn();
  http::Response invoice(const BillQuery&, const bill::Tariffs&, BillForm);

  const os::Loop& loop_;
  const std::vector<NodeAddress> nodes_;
  ObjectRegistry& objects_;
  KnownJobHours hours_;
  GpuHours gpu_hours_{os::utc_ns()};
  std::atomic<size_t> waiting_invoices_ = 0;
  const std::unique_ptr<Books> books_;
  os::Worker worker_;  // Declared last because its thread uses the other members.
};

}  // namespace carve::controller

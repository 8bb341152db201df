#include "controller/billing_thread.h"

#include <sys/eventfd.h>

#include <chrono>
#include <set>

#include "client/client.h"
#include "controller/billing/bill_report.h"
#include "controller/billing/budget_status.h"
#include "controller/billing/usage_copy.h"
#include "controller/objects/job_form.h"
#include "controller/objects/present_tariffs.h"
#include "os/capabilities.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/process.h"

namespace carve::controller {
namespace {

using K = FailureKind;

constexpr int64_t copy_interval_ns = 5 * os::second;
constexpr client::Settings client_settings{.patience = std::chrono::seconds(5),
                                           .socket_option = "--node NAME=SOCKET"};

ledger::Stamp stamp_now() {
  static const std::string boot = os::boot_id();
  return {os::utc_ns(), boot, os::monotonic_ns()};
}

// The usage records of an agent, over its API.
class AgentUsage final : public UsageSource {
 public:
  explicit AgentUsage(const std::string& socket) : client_(socket, client_settings) {}
  Outcome<std::vector<ledger::UsageRecord>> after(uint64_t id) override {
    return page(fmt::format("/v1/usage?after={}", id));
  }
  Outcome<std::vector<ledger::UsageRecord>> of(const std::vector<uint64_t>& ids) override {
    return page(fmt::format("/v1/usage?ids={}", fmt::join(ids, ",")));
  }

 private:
  struct UsagePage {
    std::vector<ledger::UsageRecord> records;
    uint64_t last = 0;
  };
  Outcome<std::vector<ledger::UsageRecord>> page(const std::string& target) {
    auto answer = client_.get<UsagePage>(target);
    if (!answer) return failure(K::unavailable, "{}", answer.error().detail);
    return std::move(answer->records);
  }

  const client::Client client_;
};

bool is_prepaid(const ObjectRegistry& objects, const std::string& queue) {
  const auto object = objects.find(queue_key(queue));
  return object && queue_spec(*object).billing == "prepaid";
}

// Copies the records of these nodes. A node that does not answer is told once, until it answers.
void copy_from(UsageStore& store, const std::vector<NodeAddress>& nodes, const ObjectRegistry& objects,
               std::set<std::string>& silent) {
  for (const NodeAddress& node : nodes) {
    AgentUsage source(node.socket);
    const auto done =
        copy_usage(store, node.name, source,
                   {.is_prepaid = [&](const std::string& queue) { return is_prepaid(objects, queue); },
                    .now = stamp_now()});
    if (done)
      silent.erase(node.name);
    else if (silent.insert(node.name).second)
      os::log::warning("node {}: usage records are not copied: {}", node.name, done.error().sentence);
  }
}

// Copies before an invoice, so that it has what was granted a moment ago. A node that did not answer last is
// left to the next round, because it may hold up the invoice for as long as the client is patient.
void copy_from_answering(UsageStore& store, std::vector<NodeAddress> nodes, const ObjectRegistry& objects,
                         std::set<std::string>& silent) {
  std::erase_if(nodes, [&](const NodeAddress& node) { return silent.contains(node.name); });
  copy_from(store, nodes, objects, silent);
}

// Writes what has been used of each budget.
void compare_budgets(UsageStore& store, ObjectRegistry& objects) {
  const ledger::Stamp now = stamp_now();
  const UtcMonth month = month_of(now.utc_ns);
  for (const auto& budget : objects.list(objects::Kind::budget)) {
    const auto spec = api::read<objects::BudgetSpec>(budget->spec, api::Reading::lenient);
    if (!spec) continue;
    const auto tariffs = present_tariffs(objects);
    const auto bill =
        make_bill(store, tariffs,
                  {.window = {.from = month.from_ns, .to = month.to_ns}, .account = spec->account}, now);
    if (!bill) {
      os::log::warning("budget {}: {}", budget->key.name, bill.error().sentence);
      continue;
    }
    const std::string status = api::write(budget_status(*spec, bill->total, month));
    if (status == budget->status) continue;
    const auto written = objects.update(budget->key, [&](Object& object) -> Outcome<void> {
      object.status = status;
      return {};
    });
    if (!written && written.error().kind != K::not_found) os::log::error("{}", written.error().sentence);
  }
}

// Returns the jobs and clusters that were admitted.
std::vector<BilledJob> billed_jobs(const ObjectRegistry& objects) {
  std::vector<BilledJob> out;
  for (const objects::Kind kind : queued_kinds)
    for (const auto& object : objects.list(kind)) {
      const auto status = api::read<objects::JobStatus>(object->status, api::Reading::lenient);
      if (!status || status->admitted_at.empty()) continue;
      out.push_back({.uid = object->uid,
                     .kind = std::string(objects::text_of(kind).singular),
                     .name_space = object->key.namespace_,
                     .name = object->key.name,
                     .created_ns = object->created_ns,
                     .is_finished = !status->finished_at.empty()});
    }
  return out;
}

http::Response response_of(const Outcome<api::Bill>& bill, BillForm form, const std::string& line) {
  if (!bill) return refuse(bill.error());
  if (form == BillForm::csv) return {200, "text/csv; charset=utf-8", csv_of(bill->lines)};
  if (form == BillForm::line && bill->lines.empty())
    return refuse(
        K::not_found,
        fmt::format("no invoice line {} in this time; carve bill --lines shows the ids", line.substr(0, 80)));
  return document(*bill);
}

}  // namespace

BillingThread::BillingThread(std::string path, std::vector<NodeAddress> nodes, ObjectRegistry& objects)
    : path_(std::move(path)),
      nodes_(std::move(nodes)),
      objects_(objects),
      ready_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { run(); }) {}

BillingThread::~BillingThread() {
  {
    const os::MutexLock lock(mutex_);
    ends_ = true;
    woken_.notify_all();
  }
  thread_.join();
}

std::shared_ptr<void> BillingThread::ask(BillQuery query, bill::Tariffs tariffs, BillForm form,
                                         Answer answer) {
  auto wanted = std::make_shared<int>();
  const os::MutexLock lock(mutex_);
  auto task = std::make_unique<Task>(Task{.query = std::move(query),
                                          .tariffs = std::move(tariffs),
                                          .form = form,
                                          .answer = std::move(answer),
                                          .wanted = wanted});
  if (waiting_.size() < max_waiting_invoices) {
    waiting_.push_back(std::move(task));
    woken_.notify_all();
    return wanted;
  }
  task->response = refuse(K::resource_exhausted,
                          fmt::format("{} invoices are being made; try again later", max_waiting_invoices));
  finished_.push_back(std::move(task));
  eventfd_write(ready_.get(), 1);
  return wanted;
}

void BillingThread::deliver() {
  eventfd_t count = 0;
  eventfd_read(ready_.get(), &count);
  std::deque<std::unique_ptr<Task>> finished;
  {
    const os::MutexLock lock(mutex_);
    finished.swap(finished_);
  }
  for (const auto& task : finished)
    if (!task->wanted.expired()) task->answer(std::move(task->response));
}

std::unique_ptr<BillingThread::Task> BillingThread::wait(int64_t interval_ns) {
  const os::MutexLock lock(mutex_);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(interval_ns);
  while (waiting_.empty() && !ends_ && woken_.wait_until(mutex_, deadline)) {}
  if (waiting_.empty()) return nullptr;
  auto task = std::move(waiting_.front());
  waiting_.pop_front();
  return task;
}

void BillingThread::finish(std::unique_ptr<Task> task) {
  const os::MutexLock lock(mutex_);
  finished_.push_back(std::move(task));
  eventfd_write(ready_.get(), 1);
}

bool BillingThread::ends() {
  const os::MutexLock lock(mutex_);
  return ends_;
}

void BillingThread::run() {
  (void)os::keep_capabilities({});
  auto opened = UsageStore::open(path_, os::utc_ns() / os::second);
  if (!opened)
    os::log::error("{}", opened.error().sentence);
  else if (!opened->moved_aside.empty())
    os::log::error(
        "the usage database was damaged ({}); it was moved to {}, and a new one copies what the agents have",
        opened->damage, opened->moved_aside);
  std::set<std::string> silent;
  int64_t next_copy_ns = 0;
  std::vector<bill::Tariff> known_tariffs;
  while (!ends()) {
    const int64_t now_ns = os::monotonic_ns();
    if (opened && now_ns >= next_copy_ns) {
      copy_from(opened->store, nodes_, objects_, silent);
      compare_budgets(opened->store, objects_);
      const bill::Tariffs tariffs = present_tariffs(objects_);
      if (known_tariffs != tariffs.all()) hours_.forget_final();
      known_tariffs = tariffs.all();
      if (const auto done = hours_.update(opened->store, tariffs, billed_jobs(objects_), stamp_now()); !done)
        os::log::warning("GPU-hours of jobs: {}", done.error().sentence);
      next_copy_ns = os::monotonic_ns() + copy_interval_ns;
    }
    auto task = wait(std::max<int64_t>(next_copy_ns - os::monotonic_ns(), os::millisecond));
    if (!task) continue;
    if (!opened) {
      task->response = refuse(opened.error());
    } else if (!task->wanted.expired()) {
      copy_from_answering(opened->store, nodes_, objects_, silent);
      task->response = response_of(make_bill(opened->store, task->tariffs, task->query, stamp_now()),
                                   task->form, task->query.line);
    }
    finish(std::move(task));
  }
}

}  // namespace carve::controller

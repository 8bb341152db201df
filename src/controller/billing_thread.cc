#include "controller/billing_thread.h"

#include <chrono>
#include <map>
#include <optional>
#include <set>

#include "client/agent_client.h"
#include "controller/billing/allocation_report.h"
#include "controller/billing/bill_report.h"
#include "controller/billing/budget_status.h"
#include "controller/billing/usage_copy.h"
#include "controller/objects/job_form.h"
#include "controller/objects/present_tariffs.h"
#include "objects/node_object.h"
#include "os/capabilities.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/process.h"

namespace carve::controller {
namespace {

constexpr int64_t copy_interval_ns = 5 * os::second;
constexpr client::Settings client_settings{.patience = std::chrono::seconds(5),
                                           .socket_option = "--node NAME=SOCKET"};

ledger::Stamp stamp_now() { return {os::utc_ns(), os::boot_id(), os::monotonic_ns()}; }

// The usage records of an agent, over its API.
class AgentUsage final : public UsageSource {
 public:
  explicit AgentUsage(const std::string& socket) : agent_(socket, client_settings) {}
  Outcome<std::vector<ledger::UsageRecord>> after(uint64_t id) override {
    return records(agent_.usage_after(id));
  }
  Outcome<std::vector<ledger::UsageRecord>> of(const std::vector<uint64_t>& ids) override {
    return records(agent_.usage_of(ids));
  }

 private:
  static Outcome<std::vector<ledger::UsageRecord>> records(client::Answer<ledger::UsagePage> page) {
    if (!page) return failure(FailureKind::unavailable, "{}", page.error().detail);
    return std::move(page->records);
  }

  const client::AgentClient agent_;
};

bool is_prepaid(const ObjectRegistry& objects, const std::string& queue) {
  const auto object = objects.find(queue_key(queue));
  return object && queue_spec(*object).billing == QueueBilling::prepaid;
}

// Copies the records of these nodes and counts their GPU-hours. A node that does not respond is logged once
// until it responds again.
void copy_from(UsageStore& store, const std::vector<NodeAddress>& nodes, const ObjectRegistry& objects,
               std::set<std::string>& silent, GpuHours& hours) {
  const bill::Tariffs tariffs = present_tariffs(objects);
  for (const NodeAddress& node : nodes) {
    AgentUsage source(node.socket);
    const ledger::Stamp now = stamp_now();
    const auto done =
        copy_usage(store, node.name, source,
                   {.is_prepaid = [&](const std::string& queue) { return is_prepaid(objects, queue); },
                    .now = now,
                    .written = [&](const std::vector<UsageRow>& rows) { hours.count(rows, tariffs, now); }});
    if (done)
      silent.erase(node.name);
    else if (silent.insert(node.name).second)
      os::log::warning("node {}: cannot copy the usage records: {}", node.name, done.error().message);
  }
}

// Copies before an invoice, so that it includes recent grants. Skips nodes that did not respond last time,
// because they could delay the invoice beyond the client's timeout.
void copy_from_answering(UsageStore& store, std::vector<NodeAddress> nodes, const ObjectRegistry& objects,
                         std::set<std::string>& silent, GpuHours& hours) {
  std::erase_if(nodes, [&](const NodeAddress& node) { return silent.contains(node.name); });
  copy_from(store, nodes, objects, silent, hours);
}

// Writes the current usage of each budget.
void compare_budgets(UsageStore& store, ObjectRegistry& objects) {
  const ledger::Stamp now = stamp_now();
  const UtcMonth month = month_of(now.utc_ns);
  for (const auto& budget : objects.list(objects::Kind::budget)) {
    const auto& spec = budget->spec.as<objects::BudgetSpec>();
    const auto tariffs = present_tariffs(objects);
    const auto bill = make_bill(
        store, tariffs, {.window = {.from = month.from_ns, .to = month.to_ns}, .account = spec.account}, now);
    if (!bill) {
      os::log::warning("budget {}: {}", budget->key.name, bill.error().message);
      continue;
    }
    const TypedJson status = budget_status(spec, bill->total, month);
    if (status == budget->status) continue;
    const auto written = objects.update(budget->key, [&](Object& object) -> Outcome<void> {
      object.status = status;
      return {};
    });
    if (!written && written.error().kind != FailureKind::not_found)
      os::log::error("{}", written.error().message);
  }
}

// Returns the number of devices of each node. A node keeps its devices while it isn't reachable.
std::map<std::string, uint32_t> devices_of(const ObjectRegistry& objects) {
  std::map<std::string, uint32_t> out;
  for (const auto& object : objects.list(objects::Kind::node)) {
    const auto& status = object->status.as<objects::NodeStatus>();
    if (status.devices.empty()) continue;
    out[object->key.name] = static_cast<uint32_t>(status.devices.size());
  }
  return out;
}

// Returns the jobs and clusters that were admitted.
std::vector<BilledJob> billed_jobs(const ObjectRegistry& objects) {
  std::vector<BilledJob> out;
  for (const objects::Kind kind : queued_kinds)
    for (const auto& object : objects.list(kind)) {
      const auto& status = object->status.as<objects::JobStatus>();
      if (status.admitted_at.empty()) continue;
      out.push_back({.uid = object->uid,
                     .kind = std::string(objects::text_of(kind).singular),
                     .name_space = object->key.namespace_,
                     .name = object->key.name,
                     .created_ns = object->created_ns,
                     .is_finished = !status.finished_at.empty()});
    }
  return out;
}

http::Response response_of(const Outcome<api::Bill>& bill, BillForm form, const std::string& line) {
  if (!bill) return refuse(bill.error());
  if (form == BillForm::csv) return {200, "text/csv; charset=utf-8", csv_of(bill->lines)};
  if (form == BillForm::csv_sums) return {200, "text/csv; charset=utf-8", csv_of_sums(*bill)};
  if (form == BillForm::line && bill->lines.empty())
    return refuse(FailureKind::not_found,
                  fmt::format("there is no invoice line {} in this period; carve bill --lines shows the ids",
                              line.substr(0, 80)));
  return document(*bill);
}

}  // namespace

// usage.db, which is opened when it is first needed, and the state that the thread keeps between two copies.
struct BillingThread::Books {
  explicit Books(std::string where) : path(std::move(where)) {}

  Outcome<UsageStore::Opened>& open() {
    if (opened) return *opened;
    opened = UsageStore::open(path, os::utc_ns() / os::second);
    if (!*opened)
      os::log::error("{}", opened->error().message);
    else if (!(*opened)->moved_aside.empty())
      os::log::error(
          "the usage database was damaged ({}); it was moved to {}, and a new one is filled from the agents' "
          "records",
          (*opened)->damage, (*opened)->moved_aside);
    return *opened;
  }

  const std::string path;
  std::optional<Outcome<UsageStore::Opened>> opened;
  std::set<std::string> silent;  // Nodes that did not respond last time.
  std::vector<bill::Tariff> tariffs;
};

BillingThread::BillingThread(const os::Loop& loop, std::string path, std::vector<NodeAddress> nodes,
                             ObjectRegistry& objects)
    : loop_(loop),
      nodes_(std::move(nodes)),
      objects_(objects),
      books_(std::make_unique<Books>(std::move(path))),
      worker_({.turn = [this] { return turn(); }, .begin = [] { (void)os::keep_capabilities({}); }}) {}

BillingThread::~BillingThread() = default;

std::shared_ptr<void> BillingThread::ask(BillQuery query, bill::Tariffs tariffs, BillForm form,
                                         Answer answer) {
  auto wanted = std::make_shared<int>();
  const auto reply = [&loop = loop_, held = std::weak_ptr(wanted),
                      answer = std::move(answer)](http::Response response) {
    loop.post([held, answer, response = std::make_shared<http::Response>(std::move(response))] {
      if (!held.expired()) answer(std::move(*response));
    });
  };
  if (waiting_invoices_ >= max_waiting_invoices) {
    reply(refuse(FailureKind::resource_exhausted,
                 fmt::format("{} invoices are being computed; try again later", max_waiting_invoices)));
    return wanted;
  }
  ++waiting_invoices_;
  worker_.run([this, query = std::move(query), tariffs = std::move(tariffs), form, reply,
               held = std::weak_ptr(wanted)] {
    --waiting_invoices_;
    if (!held.expired()) reply(invoice(query, tariffs, form));
  });
  return wanted;
}

void BillingThread::find_position(const std::string& node, std::function<void(Outcome<CopyPosition>)> found) {
  worker_.run([this, node, found = std::move(found)] {
    auto& opened = books_->open();
    found(opened ? opened->store.position(node) : tl::unexpected(opened.error()));
  });
}

void BillingThread::write(const std::string& node, CopyWrite write,
                          std::function<void(Outcome<void>)> written) {
  worker_.run([this, node, write = std::move(write), written = std::move(written)] {
    auto& opened = books_->open();
    if (!opened) return written(tl::unexpected(opened.error()));
    const auto count = [this](const std::vector<UsageRow>& rows) {
      gpu_hours_.count(rows, present_tariffs(objects_), stamp_now());
    };
    written(write_copy(opened->store, node, write, count));
  });
}

http::Response BillingThread::invoice(const BillQuery& query, const bill::Tariffs& tariffs, BillForm form) {
  auto& opened = books_->open();
  if (!opened) return refuse(opened.error());
  copy_from_answering(opened->store, nodes_, objects_, books_->silent, gpu_hours_);
  if (form == BillForm::allocations) {
    const auto report = make_allocations(opened->store, tariffs, query, stamp_now());
    return report ? document(*report) : refuse(report.error());
  }
  return response_of(make_bill(opened->store, tariffs, query, stamp_now()), form, query.line);
}

// Copies the nodes' usage since the last turn and updates everything derived from it.
int64_t BillingThread::turn() {
  auto& opened = books_->open();
  if (!opened) return copy_interval_ns;
  copy_from(opened->store, nodes_, objects_, books_->silent, gpu_hours_);
  if (const auto done = opened->store.record_inventory(devices_of(objects_), os::utc_ns()); !done)
    os::log::warning("number of devices: {}", done.error().message);
  compare_budgets(opened->store, objects_);
  const bill::Tariffs tariffs = present_tariffs(objects_);
  if (books_->tariffs != tariffs.all()) hours_.forget_final();
  books_->tariffs = tariffs.all();
  if (const auto done = hours_.update(opened->store, tariffs, billed_jobs(objects_), stamp_now()); !done)
    os::log::warning("GPU-hours of jobs: {}", done.error().message);
  return copy_interval_ns;
}

}  // namespace carve::controller

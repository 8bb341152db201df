#include "controller/usage_thread.h"

#include <random>

#include "controller/cluster/budget_publisher.h"
#include "core/utc.h"
#include "kubernetes/api/client/curl_client.h"
#include "os/capabilities.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/process.h"

namespace carve::controller {
namespace {

// The store of the billing thread. The results are passed on in this thread's loop.
class BillingBooks final : public UsageBooks {
 public:
  BillingBooks(BillingThread& billing, const os::LoopPoster& poster) : billing_(billing), poster_(poster) {}

  void find_position(const std::string& node, std::function<void(Outcome<CopyPosition>)> found) override {
    billing_.find_position(node, here(std::move(found)));
  }
  void write(const std::string& node, CopyWrite write, std::function<void(Outcome<void>)> written) override {
    billing_.write(node, std::move(write), here(std::move(written)));
  }

 private:
  template <class T>
  std::function<void(T)> here(std::function<void(T)> act) {
    return [poster = poster_, act = std::move(act)](T result) {
      poster.post([act, result = std::make_shared<T>(std::move(result))] { act(std::move(*result)); });
    };
  }

  BillingThread& billing_;
  const os::LoopPoster poster_;
};

std::unique_ptr<kubernetes::ApiClient> connect(os::Loop& loop, const ClusterNode& node,
                                               const std::string& token) {
  return std::make_unique<kubernetes::CurlApiClient>(
      loop,
      kubernetes::Connection{.server = "https://" + node.reader.address,
                             .ca_pem = "",
                             .key_pin = node.reader.key,
                             .token = token},
      kubernetes::CurlClientSettings{.user_agent = "carve-controller", .answer_bytes = max_page_bytes});
}

// Returns the used-up budgets of this month. Logs the number of those that do not fit once.
kubernetes::UsedBudgets used_now(const ObjectRegistry& objects, size_t& reported) {
  std::vector<BudgetState> budgets;
  for (const auto& object : objects.list(objects::Kind::budget))
    budgets.push_back({.name = object->key.name,
                       .spec = object->spec.as<objects::BudgetSpec>(),
                       .status = object->status.as<objects::BudgetStatus>()});
  size_t left_out = 0;
  auto out = used_budgets(budgets, text_utc(month_of(os::utc_ns()).to_ns), left_out);
  if (left_out != std::exchange(reported, left_out) && left_out != 0)
    os::log::error("{} used-up budgets do not fit ConfigMap {}; their accounts can create pods", left_out,
                   kubernetes::budgets_name);
  return out;
}

}  // namespace

UsageThread::UsageThread(Settings settings, BillingThread& billing, const ObjectRegistry& objects,
                         EventInbox& events)
    : thread_([this, settings = std::move(settings), &billing, &objects, &events] {
        run(settings, billing, objects, events);
      }) {}

UsageThread::~UsageThread() {
  loop_.post([this] { loop_.stop(); });
  thread_.join();
}

ClusterUsage::Figures UsageThread::figures() const {
  const os::MutexLock lock(mutex_);
  return figures_;
}

void UsageThread::run(const Settings& settings, BillingThread& billing, const ObjectRegistry& objects,
                      EventInbox& events) {
  (void)os::keep_capabilities({});
  kubernetes::CurlApiClient client(loop_, settings.connection, {.user_agent = "carve-controller"});
  BillingBooks books(billing, loop_.poster());
  ClusterUsage usage(client, books,
                     {.account = settings.account,
                      .schedule = {.interval_ns = settings.interval_ns},
                      .local_nodes = settings.local_nodes,
                      .seed = std::random_device()()},
                     {.connect = [this](const ClusterNode& node,
                                        const std::string& token) { return connect(loop_, node, token); },
                      .now =
                          [] {
                            return ledger::Stamp{os::utc_ns(), os::boot_id(), os::monotonic_ns()};
                          },
                      .note =
                          [&events](const std::string& node, const ChangeEvent& event) {
                            events.add({node_key(node), event});
                          }});
  size_t left_out = 0;
  const BudgetPublisher budgets(client, settings.account.name_space,
                                [&] { return used_now(objects, left_out); });
  std::string problem;
  loop_.every(os::second, [&] {
    if (const std::string now = usage.problem(); now != std::exchange(problem, now) && !now.empty())
      os::log::warning("--kubernetes-nodes: the cluster cannot be followed: {}", now);
    const os::MutexLock lock(mutex_);
    figures_ = usage.figures();
  });
  loop_.run();
}

}  // namespace carve::controller

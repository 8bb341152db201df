#include "controller/cluster_thread.h"

#include <unistd.h>

#include <future>
#include <random>

#include "controller/objects/secret_text.h"
#include "kubernetes/api/client/curl_client.h"
#include "os/capabilities.h"
#include "os/clock.h"
#include "os/log.h"

namespace carve::controller {
namespace {

constexpr const char* lease_name = "carve-controller";
constexpr std::chrono::milliseconds poll_interval(20);
constexpr std::chrono::seconds end_patience(4);

// Returns an identity that no other process has: the host's name and random characters.
std::string own_identity() {
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  const auto secret = random_secret();
  return fmt::format("{}_{}", host, secret ? secret->substr(0, 16) : fmt::format("{}", getpid()));
}

// Returns the time with the six decimals of Kubernetes' MicroTime.
std::string time_text() {
  constexpr size_t with_microseconds = std::string_view("2026-01-31T10:20:30.000000").size();
  return os::rfc3339(os::utc_ns(), os::Decimals::nanoseconds).substr(0, with_microseconds) + "Z";
}

}  // namespace

ClusterThread::ClusterThread(kubernetes::Connection connection)
    : client_(std::make_unique<kubernetes::CurlApiClient>(
          loop_, connection,
          kubernetes::CurlClientSettings{.user_agent = "carve-controller/" CARVE_VERSION})),
      caller_(loop_.poster(), *client_),
      objects_(caller_) {
  thread_ = std::thread([this, connection = std::move(connection)] {
    (void)os::keep_capabilities({});
    start(connection);
    loop_.run();
    reconciler_.reset();
    lease_.reset();
  });
}

void ClusterThread::start(const kubernetes::Connection& connection) {
  lease_ = std::make_unique<kubernetes::LeaseHolder>(
      *client_,
      kubernetes::LeaseHolder::Settings{.name_space = connection.name_space,
                                        .name = lease_name,
                                        .identity = own_identity(),
                                        .time_text = time_text},
      [this](bool is_held) {
        os::log::info("{}", is_held ? "this controller holds the Lease and acts on the cluster"
                                    : "this controller does not hold the Lease; it serves its API");
        if (is_held) reconciler_->take_over();
      });
  reconciler_ = std::make_unique<ClusterReconciler>(
      *client_, objects_,
      ClusterReconciler::Settings{.may_write = [this] { return lease_->is_held(); },
                                  .utc_ns = os::utc_ns,
                                  .seed = std::random_device()()});
}

Outcome<void> ClusterThread::wait_for_objects() {
  const int64_t end = os::monotonic_ns() + max_start_ns;
  std::string problem = "no answer";
  while (os::monotonic_ns() < end) {
    auto asked = std::make_shared<std::promise<std::string>>();
    auto answer = asked->get_future();
    loop_.post(
        [this, asked] { asked->set_value(reconciler_->is_complete() ? "" : "x" + reconciler_->problem()); });
    if (answer.wait_for(std::chrono::seconds(5)) != std::future_status::ready) break;
    const std::string found = answer.get();
    if (found.empty()) return {};
    if (found.size() > 1) problem = found.substr(1);
    std::this_thread::sleep_for(poll_interval);
  }
  return failure(
      FailureKind::unavailable,
      "the API server's objects cannot be listed: {}; check the address, the custom resources and the "
      "rights of this program",
      problem);
}

Outcome<std::unique_ptr<ClusterThread>> ClusterThread::begin(kubernetes::Connection connection) {
  std::unique_ptr<ClusterThread> out(new ClusterThread(std::move(connection)));
  if (auto ready = out->wait_for_objects(); !ready) return tl::unexpected(ready.error());
  return out;
}

void ClusterThread::end() {
  auto released = std::make_shared<std::promise<void>>();
  auto over = released->get_future();
  loop_.post([this, released] { lease_->release([released] { released->set_value(); }); });
  (void)over.wait_for(end_patience);
  loop_.post([this] { loop_.stop(); });
}

ClusterThread::~ClusterThread() {
  end();
  thread_.join();
}

}  // namespace carve::controller

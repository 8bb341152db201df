#include "controller/agent_link.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>

#include "client/client.h"
#include "core/invariant.h"
#include "os/capabilities.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/log.h"
#include "os/mutex.h"
#include "wire/api/slice.h"

namespace carve::controller {
namespace {

constexpr client::Settings settings{.patience = std::chrono::seconds(5),
                                    .socket_option = "--node NAME=SOCKET"};

void carry_out(const client::Client& client, const AgentRequest& request) {
  if (request.change)
    if (const auto changed = client.patch<api::Node>("/v1/node", *request.change); !changed)
      os::log::warning("the agent does not change its settings: {}", changed.error().detail);
  for (const std::string& name : request.ended_slices)
    if (const auto ended = client.remove<api::Slice>("/v1/slices/" + name); !ended)
      os::log::warning("slice {}: not ended: {}", name, ended.error().detail);
}

}  // namespace

// What the loop and the link's thread share. No other lock is taken with `mutex` held.
struct AgentLink::Shared {
  explicit Shared(std::string socket) : client(std::move(socket), settings) {}

  void run() EXCLUDES(mutex);
  Result<AgentReport, std::string> report() const;

  const client::Client client;
  const os::Fd ready{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::atomic<bool> stopping = false;  // Also read between two calls of a poll.
  os::Mutex mutex;
  os::ConditionVariable changed;
  bool asked GUARDED_BY(mutex) = false;
  AgentRequest request GUARDED_BY(mutex);  // Of the poll that is asked for.
  std::optional<Poll> ended GUARDED_BY(mutex);
};

Result<AgentReport, std::string> AgentLink::Shared::report() const {
  auto version = client.get<api::Version>("/v1/version");
  if (!version) return tl::unexpected(version.error().detail);
  if (stopping) return tl::unexpected(std::string("the controller ends"));
  auto devices = client.get<api::DeviceList>("/v1/devices");
  if (!devices) return tl::unexpected(devices.error().detail);
  if (stopping) return tl::unexpected(std::string("the controller ends"));
  auto slices = client.get<api::SliceList>("/v1/slices");
  if (!slices) return tl::unexpected(slices.error().detail);
  if (stopping) return tl::unexpected(std::string("the controller ends"));
  auto node = client.get<api::Node>("/v1/node");
  if (!node) return tl::unexpected(node.error().detail);
  return AgentReport{.version = std::move(*version),
                     .devices = std::move(devices->devices),
                     .slices = std::move(slices->slices),
                     .node = std::move(*node)};
}

void AgentLink::Shared::run() {
  (void)os::keep_capabilities({});  // It reads what an agent answers, and needs none.
  for (;;) {
    AgentRequest wanted;
    {
      const os::MutexLock lock(mutex);
      while (!asked && !stopping) changed.wait(mutex);
      if (stopping) return;
      wanted = std::move(request);
      request = {};
    }
    carry_out(client, wanted);
    auto answer = report();
    const os::MutexLock lock(mutex);
    ended = Poll{.ended_ns = os::utc_ns(), .answer = std::move(answer)};
    asked = false;
    const uint64_t one = 1;
    // The counter is never full: it counts the polls since the loop took one, and holds 2^64 - 2.
    const ssize_t written = write(ready.get(), &one, sizeof one);
    invariant(written == sizeof one);
  }
}

AgentLink::AgentLink(std::string socket) : shared_(std::make_unique<Shared>(std::move(socket))) {
  // The loop handles signals.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([shared = shared_.get()] { shared->run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

AgentLink::~AgentLink() {
  stop();
  thread_.join();
}

void AgentLink::stop() {
  const os::MutexLock lock(shared_->mutex);
  shared_->stopping = true;
  shared_->changed.notify_all();
}

bool AgentLink::begin_poll(AgentRequest request) {
  const os::MutexLock lock(shared_->mutex);
  if (shared_->asked) return false;
  shared_->asked = true;
  shared_->request = std::move(request);
  shared_->changed.notify_all();
  return true;
}

int AgentLink::ready_fd() const { return shared_->ready.get(); }

std::optional<Poll> AgentLink::take() {
  uint64_t count = 0;
  if (read(shared_->ready.get(), &count, sizeof count) < 0) return std::nullopt;
  const os::MutexLock lock(shared_->mutex);
  return std::exchange(shared_->ended, std::nullopt);
}

}  // namespace carve::controller

#include "controller/agent_link.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>

#include "client/client.h"
#include "os/clock.h"
#include "os/fd.h"
#include "wire/api/slice.h"

namespace carve::controller {
namespace {

constexpr client::Settings settings{.patience = std::chrono::seconds(5),
                                    .socket_option = "--node NAME=SOCKET"};

}  // namespace

struct AgentLink::Shared {
  explicit Shared(std::string socket) : client(std::move(socket), settings) {}

  void run();
  Result<AgentReport, std::string> report() const;

  const client::Client client;
  const os::Fd ready{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::atomic<bool> ending = false;
  std::mutex mutex;  // Of the members below; no other lock is taken while it is held.
  std::condition_variable changed;
  bool asked = false;
  std::optional<Poll> ended;
};

Result<AgentReport, std::string> AgentLink::Shared::report() const {
  auto version = client.get<api::Version>("/v1/version");
  if (!version) return tl::unexpected(version.error().detail);
  if (ending) return tl::unexpected(std::string("the controller ends"));
  auto devices = client.get<api::DeviceList>("/v1/devices");
  if (!devices) return tl::unexpected(devices.error().detail);
  if (ending) return tl::unexpected(std::string("the controller ends"));
  const auto slices = client.get<api::SliceList>("/v1/slices");
  if (!slices) return tl::unexpected(slices.error().detail);
  return AgentReport{.version = std::move(*version),
                     .devices = std::move(devices->devices),
                     .slices = static_cast<uint32_t>(slices->slices.size())};
}

void AgentLink::Shared::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return asked || ending; });
      if (ending) return;
    }
    auto answer = report();
    const std::lock_guard lock(mutex);
    ended = Poll{.ended_ns = os::utc_ns(), .answer = std::move(answer)};
    asked = false;
    const uint64_t one = 1;
    // The counter cannot be full: the next poll begins after the loop has asked again.
    [[maybe_unused]] const ssize_t written = write(ready.get(), &one, sizeof one);
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
  const std::lock_guard lock(shared_->mutex);
  shared_->ending = true;
  shared_->changed.notify_all();
}

bool AgentLink::begin_poll() {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->asked) return false;
  shared_->asked = true;
  shared_->changed.notify_all();
  return true;
}

int AgentLink::ready_fd() const { return shared_->ready.get(); }

std::optional<Poll> AgentLink::take() {
  uint64_t count = 0;
  if (read(shared_->ready.get(), &count, sizeof count) < 0) return std::nullopt;
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->ended, std::nullopt);
}

}  // namespace carve::controller

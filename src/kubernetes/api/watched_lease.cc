#include "kubernetes/api/watched_lease.h"

namespace carve::kubernetes {

WatchedLease::WatchedLease(ApiClient& client, std::string path, std::string host,
                           std::function<void(bool)> changed)
    : client_(client), path_(std::move(path)), changed_(std::move(changed)), view_(std::move(host)) {
  poll();
}

// A request times out after two poll intervals, so that the next one is only slightly late.
void WatchedLease::poll() {
  timer_ = client_.after(lease_poll_ns, [this] { poll(); });
  const bool is_held_now = is_held();
  if (!call_) {
    const Nanoseconds sent = client_.now();
    call_ = client_.send({.target = path_, .deadline_ns = 2 * lease_poll_ns},
                         [this, sent](const ApiAnswer& answer) { answered(answer, sent); });
  }
  if (is_held_now == was_held_) return;
  was_held_ = is_held_now;
  changed_(is_held_now);
}

void WatchedLease::answered(const ApiAnswer& answer, Nanoseconds sent) {
  call_.reset();
  problem_ = answer.problem;
  if (answer.status != 200) return;
  const auto lease = read_lease(answer.body);
  if (!lease) {
    problem_ = lease.error();
    return;
  }
  view_.take(*lease, sent);
  const bool is_held_now = is_held();
  if (is_held_now == was_held_) return;
  was_held_ = is_held_now;
  changed_(is_held_now);
}

}  // namespace carve::kubernetes

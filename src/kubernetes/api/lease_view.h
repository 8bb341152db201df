// Tracks whether a Lease (coordination.k8s.io/v1) names this machine's holder and was renewed recently. Work
// that only one coordinator may do requires is_held(), which fences off the other coordinator.
//
// The clocks of two machines are never compared. The time of a renewal is estimated as the time when the last
// request was sent whose response did not show the renewal, so the estimate is never too late. The holder
// loses the Lease leaseDurationSeconds (15) after the last renewal. is_held() becomes false after 10 s, so a
// write of at most 2 s that began before then has ended when the next holder starts. Pure: time is an
// argument.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kubernetes/api/api_client.h"

namespace carve::kubernetes {

inline constexpr Nanoseconds lease_trust_ns = 10 * second_ns;
inline constexpr Nanoseconds max_fenced_write_ns = 2 * second_ns;
inline constexpr Nanoseconds lease_poll_ns = second_ns;  // How often to read the Lease.
// With a shorter Lease, another holder could start during a write that the fence has allowed.
inline constexpr unsigned min_lease_seconds = (lease_trust_ns + max_fenced_write_ns) / second_ns + 1;

struct Lease {
  std::string holder;        // "HOST_uuid" as client-go writes it. Empty if the Lease is free.
  std::string renew_time;    // Kept as text, because only changes matter.
  std::string acquire_time;  // Also text; each new holder changes it, also one that held the Lease before.
  unsigned duration_seconds = 0;
  std::string resource_version;
};

// Parses a Lease. Fails with a message.
Result<Lease, std::string> read_lease(std::string_view json);

class LeaseView {
 public:
  // `host` is the part of the holder's name before "_uuid".
  explicit LeaseView(std::string host) : host_(std::move(host)) {}

  // Takes the response to a request that was sent at `sent`. Ignored if a later request has already been
  // answered.
  void take(const Lease&, Nanoseconds sent);

  // Returns whether a write of at most max_fenced_write_ns may begin now.
  bool is_held(Nanoseconds now) const { return held_until_ && now < *held_until_; }
  // Returns when the Lease stops being held, or no value if it is not held.
  std::optional<Nanoseconds> held_until() const { return held_until_; }
  // Returns a text that changes whenever the Lease has had another holder. Empty if unknown.
  std::string term() const;
  // Returns why the Lease is not held, if the Lease itself shows the reason.
  const std::string& problem() const { return problem_; }

 private:
  bool names_this_host(const std::string& holder) const;

  const std::string host_;
  std::optional<Lease> last_;
  Nanoseconds last_sent_ = 0;
  std::optional<Nanoseconds> held_until_;
  std::string problem_ = "the Lease has not been read";
};

}  // namespace carve::kubernetes

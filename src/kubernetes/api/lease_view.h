// Whether a Lease (coordination.k8s.io/v1) names this machine's holder and was renewed recently. Work that
// only one program may do requires is_held(): it is the fence between two coordinators.
//
// Clocks of two machines are not compared. A renewal counts from the time when the last request was sent
// whose response did not show it yet, so the estimate never makes it too young. The holder loses the Lease
// leaseDurationSeconds (15) after the last renewal. is_held() becomes false after 10 s, so a write of at most
// 2 s that began before has ended when the next holder begins. Pure: time is an argument.
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
// A shorter Lease could end during a write that the fence has allowed.
inline constexpr unsigned min_lease_seconds = (lease_trust_ns + max_fenced_write_ns) / second_ns + 1;

struct Lease {
  std::string holder;        // "HOST_uuid" as client-go writes it. Empty if the Lease is free.
  std::string renew_time;    // As text, since only changes of it matter.
  std::string acquire_time;  // Also as text. Each new holder, also a returning one, writes another.
  unsigned duration_seconds = 0;
  std::string resource_version;
};

// Reads the object Lease. Fails with a message.
Result<Lease, std::string> read_lease(std::string_view json);

class LeaseView {
 public:
  // `host` is the part of the holder's name before "_uuid".
  explicit LeaseView(std::string host) : host_(std::move(host)) {}

  // Takes the response to a request that was sent at `sent`. A response is ignored if a later request has
  // been answered already.
  void take(const Lease&, Nanoseconds sent);

  // Returns whether a write of at most max_fenced_write_ns may begin now.
  bool is_held(Nanoseconds now) const { return held_until_ && now < *held_until_; }
  // Returns when the Lease stops being held, or no value if it is not held.
  std::optional<Nanoseconds> held_until() const { return held_until_; }
  // Returns a text that changes when another holder has had the Lease; empty if unknown.
  std::string term() const;
  // Returns why the Lease is not held, if the Lease shows it.
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

// Whether a Lease (coordination.k8s.io/v1) names this machine's holder, and was renewed a short time ago.
// What only one program may do is done only while is_held() is true: the fence of two coordinators.
//
// Clocks of two machines are not compared. A renewal counts from the sending of the last request whose answer
// did not have it yet, so it is never younger than it is taken for. The Lease's holder loses it
// leaseDurationSeconds (15) after the last renewal; is_held() is false 10 s after it, so a write of at most
// 2 s that began before is over when the next holder begins. Pure: time is an argument.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/api_client.h"

namespace carve::kube {

inline constexpr Nanoseconds lease_trust_ns = 10 * second_ns;
inline constexpr Nanoseconds max_fenced_write_ns = 2 * second_ns;
inline constexpr Nanoseconds lease_poll_ns = second_ns;  // How often the Lease is to be read.
// A shorter one could end during a write that the fence has let through.
inline constexpr unsigned min_lease_seconds = (lease_trust_ns + max_fenced_write_ns) / second_ns + 1;

struct Lease {
  std::string holder;        // "HOST_uuid" as client-go writes it; empty: it is free.
  std::string renew_time;    // As text: only whether it changes counts.
  std::string acquire_time;  // The same. A holder that comes, or comes again, writes another one.
  unsigned duration_seconds = 0;
  std::string resource_version;
};

// Reads the object Lease. Fails with a sentence.
Result<Lease, std::string> read_lease(std::string_view json);

class LeaseView {
 public:
  // `host`: what the holder's name has before "_uuid".
  explicit LeaseView(std::string host) : host_(std::move(host)) {}

  // Takes what a request that was sent at `sent` has answered. An answer to a request that was sent before
  // that of an earlier answer is ignored.
  void take(const Lease&, Nanoseconds sent);

  // Returns whether a write of at most max_fenced_write_ns may begin now.
  bool is_held(Nanoseconds now) const { return held_until_ && now < *held_until_; }
  // Returns the end of the time for which the Lease is held; no value: it is not.
  std::optional<Nanoseconds> held_until() const { return held_until_; }
  // Returns what is the same as long as no other holder was there; empty: the Lease does not say.
  std::string term() const;
  // Returns why it is not held, as far as the Lease says.
  const std::string& problem() const { return problem_; }

 private:
  bool names_this_host(const std::string& holder) const;

  const std::string host_;
  std::optional<Lease> last_;
  Nanoseconds last_sent_ = 0;
  std::optional<Nanoseconds> held_until_;
  std::string problem_ = "the Lease has not been read";
};

}  // namespace carve::kube

// Acquires a Lease (coordination.k8s.io/v1) and renews it, so that only one of several replicas acts.
//
// The clocks of two machines are never compared. The holder may act for lease_trust of its last renewal, counted
// from when the renewal was sent. Another replica takes the Lease when it has not changed for its whole duration,
// counted from when this replica saw it change. A write that the holder begins is therefore over (max_write)
// before another replica acts: 3 + 2 < 6 s. A dead holder is replaced at most 6 s after its last renewal was
// seen, plus two polls: 8 s.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kubernetes/api/api_client.h"
#include "kubernetes/api/lease_view.h"

namespace carve::kubernetes {

class LeaseHolder {
 public:
  static constexpr unsigned duration_seconds = 6;
  static constexpr Nanoseconds trust_ns = 3 * second_ns;
  static constexpr Nanoseconds max_write_ns = 2 * second_ns;  // The longest write that the Lease protects.
  static constexpr Nanoseconds poll_ns = second_ns;

  struct Settings {
    std::string name_space, name;
    std::string identity;                    // Unique for each process.
    std::function<std::string()> time_text;  // The UTC time, as in renewTime: "2026-01-31T10:20:30.000000Z".
  };

  // Starts immediately. `changed` is called in the client's callbacks, at most poll_ns after is_held() changed.
  LeaseHolder(ApiClient&, Settings, std::function<void(bool is_held)> changed);

  // Returns whether a write of at most max_write_ns may begin now. Check it before each write.
  bool is_held() const { return client_.now() < held_until_; }
  // Returns the identity of the holder. Empty if there is none or it is unknown.
  const std::string& holder() const { return last_.holder; }
  // Returns why the last request failed. Empty if it did not.
  const std::string& problem() const { return problem_; }
  // Gives the Lease up, so that another replica takes it with its next poll. `then` is called when the response
  // has arrived, or immediately if the Lease is not held. Afterwards the Lease is not acquired again.
  void release(std::function<void()> then);

 private:
  void poll();
  void step();
  void read();
  void write(bool acquires);
  void create();
  void read_answered(const ApiAnswer&);
  void write_answered(const ApiAnswer&, Nanoseconds sent);
  bool is_free() const;
  void report();
  std::string path() const;
  std::string body(const std::string& holder, const std::string& acquired) const;

  ApiClient& client_;
  const Settings settings_;
  const std::function<void(bool)> changed_;
  Lease last_;
  Nanoseconds changed_at_ = 0;  // When `last_` was first seen.
  Nanoseconds held_until_ = 0;
  bool is_known_ = false;  // `last_` is the newest version that this replica knows.
  bool is_released_ = false;
  bool was_held_ = false;
  std::string problem_;
  std::unique_ptr<ApiCall> call_, timer_;
};

}  // namespace carve::kubernetes

#include "kubernetes/api/lease_holder.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace carve::kubernetes {

LeaseHolder::LeaseHolder(ApiClient& client, Settings settings, std::function<void(bool)> changed)
    : client_(client), settings_(std::move(settings)), changed_(std::move(changed)) {
  poll();
}

std::string LeaseHolder::path() const {
  return fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases", settings_.name_space);
}

std::string LeaseHolder::body(const std::string& holder, const std::string& acquired) const {
  nlohmann::json out = {{"apiVersion", "coordination.k8s.io/v1"},
                        {"kind", "Lease"},
                        {"metadata", {{"name", settings_.name}, {"namespace", settings_.name_space}}},
                        {"spec",
                         {{"holderIdentity", holder},
                          {"leaseDurationSeconds", duration_seconds},
                          {"acquireTime", acquired},
                          {"renewTime", settings_.time_text()}}}};
  if (is_known_) out["metadata"]["resourceVersion"] = last_.resource_version;
  return out.dump();
}

void LeaseHolder::poll() {
  timer_ = client_.after(poll_ns, [this] { poll(); });
  report();
  if (!call_ && !is_released_) step();
}

void LeaseHolder::step() {
  if (!is_known_) return read();
  if (last_.holder == settings_.identity) return write(false);
  if (is_free()) return write(true);
  read();
}

// Returns whether the holder has not renewed the Lease for its duration, or has given it up.
bool LeaseHolder::is_free() const {
  return last_.holder.empty() || client_.now() - changed_at_ >= last_.duration_seconds * second_ns;
}

void LeaseHolder::report() {
  if (is_held() == was_held_) return;
  was_held_ = !was_held_;
  changed_(was_held_);
}

void LeaseHolder::read() {
  call_ = client_.send({.target = path() + "/" + settings_.name, .deadline_ns = max_write_ns},
                       [this](const ApiAnswer& answer) { read_answered(answer); });
}

void LeaseHolder::read_answered(const ApiAnswer& answer) {
  const auto ended = std::move(call_);
  problem_ = answer.problem;
  if (answer.status == 404) {
    problem_.clear();
    return create();
  }
  if (answer.status != 200) return;
  auto lease = read_lease(answer.body);
  if (!lease) {
    problem_ = lease.error();
    return;
  }
  if (lease->resource_version != last_.resource_version) changed_at_ = client_.now();
  last_ = std::move(*lease);
  is_known_ = true;
  if (!is_released_ && is_free()) write(true);
}

void LeaseHolder::create() {
  const Nanoseconds sent = client_.now();
  is_known_ = false;
  call_ = client_.send({.method = "POST",
                        .target = path(),
                        .body = body(settings_.identity, settings_.time_text()),
                        .deadline_ns = max_write_ns},
                       [this, sent](const ApiAnswer& answer) { write_answered(answer, sent); });
}

void LeaseHolder::write(bool acquires) {
  const Nanoseconds sent = client_.now();
  const std::string acquired = acquires ? settings_.time_text() : last_.acquire_time;
  call_ = client_.send({.method = "PUT",
                        .target = path() + "/" + settings_.name,
                        .body = body(settings_.identity, acquired),
                        .deadline_ns = max_write_ns},
                       [this, sent](const ApiAnswer& answer) { write_answered(answer, sent); });
}

// A write whose response is lost may have been carried out, so the Lease is read again before the next one.
void LeaseHolder::write_answered(const ApiAnswer& answer, Nanoseconds sent) {
  const auto ended = std::move(call_);
  const auto lease = answer.is_success() ? read_lease(answer.body) : tl::unexpected(answer.problem);
  is_known_ = lease.has_value();
  problem_ = lease ? "" : lease.error();
  if (lease) {
    last_ = *lease;
    changed_at_ = client_.now();
    held_until_ = last_.holder == settings_.identity && !is_released_ ? sent + trust_ns : 0;
  }
  report();
}

void LeaseHolder::release(std::function<void()> then) {
  const bool was_held = is_held() && is_known_;
  is_released_ = true;
  held_until_ = 0;
  report();
  if (!was_held) return then();
  call_ = client_.send({.method = "PUT",
                        .target = path() + "/" + settings_.name,
                        .body = body("", last_.acquire_time),
                        .deadline_ns = max_write_ns},
                       [this, then = std::move(then)](const ApiAnswer&) {
                         const auto ended = std::move(call_);
                         then();
                       });
}

}  // namespace carve::kubernetes

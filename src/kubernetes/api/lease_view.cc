#include "kubernetes/api/lease_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/invariant.h"
#include "kubernetes/api/json_walk.h"

namespace carve::kubernetes {
namespace {

constexpr size_t uuid_chars = 36;
constexpr unsigned max_lease_seconds = 86'400;  // Prevents overflow of sums.

class LeaseWalk final : public JsonWalk {
 public:
  Lease lease;
  std::string kind;

 private:
  void value(std::span<const JsonLevel> path, const std::string& text) override {
    if (is_path(path, {"kind"})) kind = text;
    if (is_path(path, {"metadata", "resourceVersion"})) lease.resource_version = text;
    if (is_path(path, {"spec", "holderIdentity"})) lease.holder = text;
    if (is_path(path, {"spec", "renewTime"})) lease.renew_time = text;
    if (is_path(path, {"spec", "acquireTime"})) lease.acquire_time = text;
    if (is_path(path, {"spec", "leaseDurationSeconds"})) lease.duration_seconds = seconds(text);
  }
  // Returns 0 if the text is not a number of seconds.
  static unsigned seconds(const std::string& text) {
    if (text.empty() || text.size() > 6 || !std::ranges::all_of(text, ::isdigit)) return 0;
    return std::min(static_cast<unsigned>(std::stoul(text)), max_lease_seconds);
  }
};

}  // namespace

Result<Lease, std::string> read_lease(std::string_view json) {
  LeaseWalk walk;
  if (!walk.read(json)) return tl::unexpected("a Lease: " + walk.problem());
  if (walk.kind != "Lease")
    return tl::unexpected(fmt::format("'{}' is not a Lease", walk.kind.substr(0, 80)));
  return std::move(walk.lease);
}

bool LeaseView::names_this_host(const std::string& holder) const {
  return holder.size() == host_.size() + 1 + uuid_chars && holder.starts_with(host_) &&
         holder[host_.size()] == '_';
}

std::string LeaseView::term() const {
  if (!last_ || last_->holder.empty() || last_->acquire_time.empty()) return "";
  return last_->holder + " " + last_->acquire_time;
}

void LeaseView::take(const Lease& lease, Nanoseconds sent) {
  if (last_ && sent < last_sent_) return;
  const bool is_ours = names_this_host(lease.holder);
  const bool is_renewed = last_ && (last_->holder != lease.holder || last_->renew_time != lease.renew_time);
  const bool is_long_enough = lease.duration_seconds >= min_lease_seconds;
  if (!is_ours || !is_long_enough)
    held_until_.reset();
  else if (is_renewed)
    held_until_ = last_sent_ + lease_trust_ns;
  problem_.clear();
  if (lease.holder.empty())
    problem_ = "the Lease has no holder";
  else if (!is_ours)
    problem_ =
        fmt::format("the Lease is held by {}, not by this host ({})", lease.holder.substr(0, 253), host_);
  else if (!is_long_enough)
    problem_ = fmt::format("leaseDurationSeconds is {}; it must be at least {} for a fence of {} s",
                           lease.duration_seconds, min_lease_seconds, lease_trust_ns / second_ns);
  else if (!held_until_)
    problem_ = "no renewal of the Lease has been seen";
  invariant(held_until_.has_value() == problem_.empty(), "a Lease that is not held has a reason");
  invariant(!held_until_ || (is_ours && is_long_enough), "another host's Lease is never held");
  last_ = lease;
  last_sent_ = sent;
}

}  // namespace carve::kubernetes

#include "node/limits/kept_limits.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/label.h"
#include "os/directory.h"
#include "os/process.h"
#include "wire/api/json.h"

namespace carve::node {
namespace {

constexpr size_t max_name_bytes = 253;
constexpr size_t max_file_bytes = 1 << 20;

struct StoredLimits {
  std::vector<api::Limit> limits;
};

bool is_name(const std::string& text) {
  return text.size() <= max_name_bytes &&
         std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c < 127; });
}

Outcome<void> check_holder(const api::Limit& limit) {
  if (limit.user.empty() == limit.account.empty())
    return failure(FailureKind::invalid_argument, "limit: exactly one of user and account is required");
  if (!is_name(limit.user + limit.account))
    return failure(FailureKind::invalid_argument,
                   "limit: the name must have at most {} printable ASCII characters and no space",
                   max_name_bytes);
  if (limit.user == api::every_user || limit.user.empty()) {
    if (limit.uid)
      return failure(FailureKind::invalid_argument, "limit.uid: only the limit of one user has a uid");
    return {};
  }
  if (!limit.uid)
    return failure(FailureKind::invalid_argument, "limit.uid is required for user '{}'", limit.user);
  return {};
}

// Applies one amount of a change.
template <class T>
Outcome<void> apply(std::optional<T>& amount, const std::optional<T>& given, const char* name,
                    const std::vector<std::string>& unlimited) {
  const bool removes = std::ranges::count(unlimited, name) != 0;
  if (given && removes)
    return failure(FailureKind::invalid_argument,
                   "{} has a limit in the request and is also in unlimited; give only one", name);
  if (given) amount = given;
  if (removes) amount.reset();
  return {};
}

Outcome<void> apply(api::Limit& limit, const api::LimitChange& change) {
  constexpr std::string_view names[] = {"memory", "share", "slices", "devices"};
  for (const std::string& name : change.unlimited)
    if (std::ranges::find(names, name) == std::end(names))
      return failure(FailureKind::invalid_argument, "unlimited: '{}' is not an amount; use {}",
                     name.substr(0, 80), fmt::join(names, ", "));
  limit.user = change.limit.user;  // The user may have a new name.
  if (const auto good = apply(limit.memory, change.limit.memory, "memory", change.unlimited); !good)
    return good;
  if (const auto good = apply(limit.share, change.limit.share, "share", change.unlimited); !good) return good;
  if (const auto good = apply(limit.slices, change.limit.slices, "slices", change.unlimited); !good)
    return good;
  return apply(limit.devices, change.limit.devices, "devices", change.unlimited);
}

}  // namespace

std::string key_of(const api::Limit& limit) {
  if (!limit.account.empty()) return "account:" + limit.account;
  return limit.uid ? fmt::format("user:{}", *limit.uid) : "user:" + limit.user;
}

std::string holder_text(const api::Limit& limit) {
  if (!limit.account.empty()) return "account " + limit.account;
  return limit.user == api::every_user ? "every user" : "user " + limit.user;
}

std::string amounts_text(const api::Limit& limit) {
  std::vector<std::string> out;
  if (limit.memory) out.push_back(fmt::format("{} of memory", text(*limit.memory).c_str()));
  if (limit.share) out.push_back(fmt::format("{} of compute", text(*limit.share).c_str()));
  if (limit.slices) out.push_back(fmt::format("{} slices", *limit.slices));
  if (limit.devices) out.push_back(fmt::format("{} devices", *limit.devices));
  return out.empty() ? "unlimited" : fmt::format("{}", fmt::join(out, ", "));
}

Outcome<KeptLimits> KeptLimits::open(const std::string& path) {
  KeptLimits out;
  out.path_ = path;
  const auto text = os::read_file(path, max_file_bytes);
  if (!text) {
    if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) return out;
    return failure(FailureKind::unavailable, "cannot read {}: {}", path, strerror(errno));
  }
  auto stored = api::read<StoredLimits>(*text, api::Reading::strict);
  if (!stored)
    return failure(FailureKind::unavailable, "cannot read {}: {}; remove the file and set the limits again",
                   path, stored.error());
  out.limits_ = std::move(stored->limits);
  return out;
}

Outcome<void> KeptLimits::keep(std::vector<api::Limit> next) {
  if (const auto kept = os::replace_file(path_, api::write(StoredLimits{next}) + "\n"); !kept) return kept;
  limits_ = std::move(next);
  return {};
}

Outcome<api::Limit> KeptLimits::change(const api::LimitChange& change) {
  if (const auto good = check_holder(change.limit); !good) return tl::unexpected(good.error());
  std::vector<api::Limit> next = limits_;
  const std::string key = key_of(change.limit);
  auto at = std::ranges::find(next, key, key_of);
  if (at == next.end()) {
    if (next.size() == max_limits)
      return failure(FailureKind::resource_exhausted,
                     "there are {} limits, which is the maximum; remove one first", max_limits);
    next.push_back({.user = change.limit.user,
                    .uid = change.limit.uid,
                    .account = change.limit.account,
                    .memory = {},
                    .share = {},
                    .slices = {},
                    .devices = {}});
    at = std::prev(next.end());
  }
  if (const auto good = apply(*at, change); !good) return tl::unexpected(good.error());
  api::Limit changed = *at;
  if (const auto kept = keep(std::move(next)); !kept) return tl::unexpected(kept.error());
  return changed;
}

Outcome<api::Limit> KeptLimits::remove(const std::string& key) {
  std::vector<api::Limit> next = limits_;
  const auto at = std::ranges::find(next, key, key_of);
  if (at == next.end())
    return failure(FailureKind::not_found, "there is no limit '{}'; carve limit ls lists the limits",
                   key.substr(0, 80));
  api::Limit removed = *at;
  next.erase(at);
  if (const auto kept = keep(std::move(next)); !kept) return tl::unexpected(kept.error());
  return removed;
}

}  // namespace carve::node

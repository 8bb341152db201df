// The limits of users and accounts. They are stored in STATE/limits.json and survive a restart. A change replaces the
// file in one step, so an agent that is killed has either the old limits or the new ones.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/failure.h"
#include "wire/api/limit.h"

namespace carve::node {

inline constexpr size_t max_limits = 1000;

// Returns the name of a limit in paths: "user:*", "user:1000", "account:team-a".
std::string key_of(const api::Limit&);
// Returns a text for events: "user anna", "every user", "account team-a".
std::string holder_text(const api::Limit&);

std::string amounts_text(const api::Limit&);  // "16 GiB of memory, 4 slices"

class KeptLimits {
 public:
  // Fails if the file cannot be read, because without its limits the agent would grant too much.
  static Outcome<KeptLimits> open(const std::string& path);

  std::span<const api::Limit> all() const { return limits_; }
  // Sets amounts of a limit, and returns the limit. If this fails, nothing is changed.
  Outcome<api::Limit> change(const api::LimitChange&);
  // Removes the limit with this key, and returns it.
  Outcome<api::Limit> remove(const std::string& key);

 private:
  Outcome<void> keep(std::vector<api::Limit>);

  std::string path_;
  std::vector<api::Limit> limits_;
};

}  // namespace carve::node

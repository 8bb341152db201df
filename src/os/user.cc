#include "os/user.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace carve::os {

std::string user_name(uint32_t uid) {
  std::vector<char> space(16384);
  passwd entry{};
  passwd* found = nullptr;
  getpwuid_r(uid, &entry, space.data(), space.size(), &found);
  return found != nullptr ? found->pw_name : std::to_string(uid);
}

std::optional<uint32_t> user_id(const std::string& name) {
  std::vector<char> space(16384);
  passwd entry{};
  passwd* found = nullptr;
  getpwnam_r(name.c_str(), &entry, space.data(), space.size(), &found);
  return found != nullptr ? std::optional<uint32_t>(found->pw_uid) : std::nullopt;
}

std::optional<uint32_t> group_id(const std::string& name) {
  // An entry contains the names of all members.
  constexpr size_t max_entry_bytes = 4 << 20;
  group entry{};
  group* found = nullptr;
  std::vector<char> space(16384);
  while (getgrnam_r(name.c_str(), &entry, space.data(), space.size(), &found) == ERANGE &&
         space.size() < max_entry_bytes)
    space.resize(space.size() * 2);
  return found != nullptr ? std::optional<uint32_t>(found->gr_gid) : std::nullopt;
}

std::string uid_text(uint32_t uid) { return uid == 0 ? "root" : fmt::format("uid {}", uid); }

Cause cause_of_user(uint32_t uid) {
  return {.who = uid_text(uid), .has_reserve = uid == 0 || uid == geteuid()};
}

}  // namespace carve::os

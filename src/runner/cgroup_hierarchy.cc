#include "runner/cgroup_hierarchy.h"

#include <algorithm>
#include <sstream>
#include <vector>

namespace carve::runner {
namespace {

struct CgroupMount {
  std::string root;   // The mounted part of the hierarchy: "/", "/docker/1a2b".
  std::string point;  // "/sys/fs/cgroup/cpu,cpuacct"
  bool is_v2 = false;
  std::vector<std::string> controllers;  // The controllers of a v1 hierarchy, among other options.
};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  std::istringstream words{std::string(text)};
  for (std::string word; std::getline(words, word, separator);) out.push_back(word);
  return out;
}

// Returns the path without the escapes of proc(5), such as "\040" for a blank.
std::string unescaped(const std::string& text) {
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 3 >= text.size() || !is_octal(text[i + 1]) || !is_octal(text[i + 2]) ||
        !is_octal(text[i + 3])) {
      out += text[i];
      continue;
    }
    out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
    i += 3;
  }
  return out;
}

// Parses "ID PARENT MAJOR:MINOR ROOT MOUNT OPTIONS [TAGS] - TYPE SOURCE OPTIONS" (proc(5)).
std::optional<CgroupMount> read_mount(const std::string& line) {
  const size_t dash = line.find(" - cgroup");
  if (dash == std::string::npos) return std::nullopt;
  const std::vector<std::string> front = split(line, ' '), back = split(line.substr(dash + 3), ' ');
  if (front.size() < 6 || back.size() < 3) return std::nullopt;
  return CgroupMount{.root = unescaped(front[3]),
                     .point = unescaped(front[4]),
                     .is_v2 = back[0] == "cgroup2",
                     .controllers = split(back[2], ',')};
}

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// Returns this process's path in the v1 hierarchy of the controller, or in the v2 tree.
std::optional<std::string> own_path(std::string_view cgroup, bool is_v2, std::string_view controller) {
  for (const std::string& line : split(cgroup, '\n')) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_v2_line = line.starts_with("0::");
    if (is_v2 ? is_v2_line : !is_v2_line && has(split(controllers, ','), controller))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

std::string directory_in(const CgroupMount& mount, const std::string& path) {
  const std::string root = mount.root == "/" ? "" : mount.root;
  const bool is_below = path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/') &&
                        path.find("/..") == std::string::npos;
  const std::string below = is_below ? path.substr(root.size()) : "";
  return mount.point + (below == "/" ? "" : below);
}

std::optional<OwnCgroup> find_own_cgroup(const std::vector<CgroupMount>& mounts, std::string_view cgroup,
                                         std::string_view controller) {
  for (const bool is_v2 : {false, true})
    for (const CgroupMount& mount : mounts) {
      if (mount.is_v2 != is_v2 || (!is_v2 && !has(mount.controllers, controller))) continue;
      const auto path = own_path(cgroup, is_v2, controller);
      if (path)
        return OwnCgroup{.version = is_v2 ? CgroupVersion::v2 : CgroupVersion::v1,
                         .directory = directory_in(mount, *path)};
    }
  return std::nullopt;
}

}  // namespace

OwnCgroups find_own_cgroups(std::string_view mountinfo, std::string_view cgroup) {
  std::vector<CgroupMount> mounts;
  for (const std::string& line : split(mountinfo, '\n'))
    if (auto mount = read_mount(line)) mounts.push_back(std::move(*mount));
  return {.cpu = find_own_cgroup(mounts, cgroup, "cpu"), .memory = find_own_cgroup(mounts, cgroup, "memory")};
}

}  // namespace carve::runner

#include "kubernetes/node/rules/runtime_capability.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "kubernetes/api/json_walk.h"

namespace carve::kubernetes::node {
namespace {

// Reads one value from a JSON document.
class ValueWalk final : public kubernetes::JsonWalk {
 public:
  explicit ValueWalk(const char* key) : key_(key) {}
  std::optional<std::string> found;

 private:
  void value(std::span<const kubernetes::JsonLevel> path, const std::string& text) override {
    if (kubernetes::is_path(path, {key_})) found = text;
  }
  const char* key_;
};

std::optional<std::string> value_of(std::string_view json, const char* key) {
  ValueWalk walk(key);
  if (!walk.read(json)) return std::nullopt;
  return walk.found;
}

struct Release {
  unsigned major = 0, minor = 0;
  friend auto operator<=>(const Release&, const Release&) = default;
};

// Returns the first two numbers of a version, such as 2.4 for "v2.4.2", or no value for other text.
std::optional<Release> release_of(std::string_view version) {
  if (version.starts_with('v')) version.remove_prefix(1);
  Release out;
  const char* const end = version.data() + version.size();
  const auto major = std::from_chars(version.data(), end, out.major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return std::nullopt;
  const auto minor = std::from_chars(major.ptr + 1, end, out.minor);
  return minor.ec == std::errc() ? std::optional(out) : std::nullopt;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    if (end > 0) out.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return out;
}

// Collects the sources of the mounts at /run/carve.
class MountWalk final : public kubernetes::JsonWalk {
 public:
  std::vector<std::string> sources;

 private:
  static bool is_mount(std::span<const kubernetes::JsonLevel> path) {
    return path.size() >= 3 && path[0].key == "runtimeSpec" && path[1].key == "mounts" && path[2].is_list;
  }
  void value(std::span<const kubernetes::JsonLevel> path, const std::string& text) override {
    if (path.size() != 4 || !is_mount(path)) return;
    if (path[3].key == "destination") is_here_ = text == "/run/carve";
    if (path[3].key == "source") source_ = text;
  }
  void closed(std::span<const kubernetes::JsonLevel> path) override {
    if (path.size() != 3 || !is_mount(path)) return;
    if (is_here_) sources.push_back(source_);
    is_here_ = false;
    source_.clear();
  }

  bool is_here_ = false;
  std::string source_;
};

}  // namespace

RuntimeCapability capability_of(const RuntimeFacts& facts) {
  const auto said = value_of(facts.config, "enableCDI");
  if (said == "true") return {.has_cdi = true, .message = ""};
  const std::string shown = fmt::format("{} {}", facts.name.substr(0, 40), facts.version.substr(0, 40));
  if (said)
    return {.has_cdi = false,
            .message = fmt::format("{} has CDI disabled; set enable_cdi = true in its configuration", shown)};
  const auto release = release_of(facts.version);
  if ((facts.name == "containerd" && release >= Release{2, 0}) ||
      (facts.name == "cri-o" && release >= Release{1, 23}))
    return {.has_cdi = true, .message = ""};
  return {
      .has_cdi = false,
      .message = fmt::format("{} has no CDI; use containerd 1.7 with enable_cdi, containerd 2.0 or newer, "
                             "or CRI-O 1.23 or newer",
                             shown)};
}

std::optional<uint32_t> pid_of(std::string_view info) {
  const auto text = value_of(info, "pid");
  if (!text) return std::nullopt;
  uint32_t pid = 0;
  const auto read = std::from_chars(text->data(), text->data() + text->size(), pid);
  if (read.ec != std::errc() || read.ptr != text->data() + text->size() || pid < 2) return std::nullopt;
  return pid;
}

bool has_attach_directory(std::string_view mountinfo, std::string_view slot) {
  const std::string ending = fmt::format("/attach/{}", slot);
  while (!mountinfo.empty()) {
    const size_t end = std::min(mountinfo.find('\n'), mountinfo.size());
    const auto words = words_of(mountinfo.substr(0, end));
    // The fields are mount id, parent, device, root in its filesystem, mount point.
    if (words.size() > 4 && words[4] == "/run/carve" && words[3].ends_with(ending)) return true;
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
  }
  return false;
}

bool mounts_attach_directory(std::string_view info, std::string_view slot) {
  MountWalk walk;
  const std::string ending = fmt::format("/attach/{}", slot);
  return walk.read(info) && std::ranges::any_of(walk.sources, [&](const std::string& source) {
           return source.ends_with(ending);
         });
}

std::string mounted_attach_point(std::string_view info) {
  constexpr std::string_view folder = "/attach/";
  MountWalk walk;
  if (!walk.read(info) || walk.sources.empty()) return "";
  const std::string& source = walk.sources.back();  // It hides the earlier ones.
  const size_t at = source.rfind(folder);
  const std::string name = at == std::string::npos ? "" : source.substr(at + folder.size());
  return name.find('/') == std::string::npos ? name : "";
}

}  // namespace carve::kubernetes::node

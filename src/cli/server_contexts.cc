#include "cli/server_contexts.h"

#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "os/directory.h"
#include "os/process.h"
#include "wire/api/json.h"

namespace carve::cli {
namespace {

constexpr size_t max_contexts_bytes = 1 << 20;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

std::string contexts_path() {
  const std::string folder = variable("XDG_CONFIG_HOME");
  return (folder.empty() ? variable("HOME") + "/.config" : folder) + "/carve/contexts.json";
}

Outcome<ServerContexts> read_contexts(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    // HOME may be that of another user, whose folders this user may not search.
    if (errno == ENOENT || errno == ENOTDIR || errno == EACCES) return ServerContexts{};
    return failure(FailureKind::unavailable, "cannot read {}: {}", path, strerror(errno));
  }
  if (info.st_uid != geteuid() || (info.st_mode & 077) != 0)
    return failure(
        FailureKind::permission_denied,
        "{} contains tokens, but other users may read or change it; make it yours only: chown {} {} && chmod "
        "600 {}",
        path, geteuid(), path, path);
  const auto text = os::read_file(path, max_contexts_bytes);
  if (!text) return failure(FailureKind::unavailable, "cannot read {}: {}", path, strerror(errno));
  auto read = api::read<ServerContexts>(*text, api::Reading::strict);
  if (!read)
    return failure(FailureKind::unavailable, "cannot read {}: {}; remove the file and add the contexts again",
                   path, read.error());
  return std::move(*read);
}

Outcome<void> write_contexts(const std::string& path, const ServerContexts& contexts) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::filesystem::create_directories(folder.parent_path(), error);
  if (!error && mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return failure(FailureKind::unavailable, "cannot create {}: {}", folder.string(), strerror(errno));
  if (error)
    return failure(FailureKind::unavailable, "cannot create {}: {}", folder.parent_path().string(),
                   error.message());
  return os::replace_file(path, api::write(contexts, 2) + "\n", 0600);
}

Outcome<ServerContext> find_context(const ServerContexts& all, const std::string& name) {
  const auto found = std::ranges::find(all.contexts, name, &ServerContext::name);
  if (found != all.contexts.end()) return *found;
  std::vector<std::string> names;
  for (const ServerContext& one : all.contexts) names.push_back(one.name);
  if (names.empty())
    return failure(FailureKind::not_found, "there is no context '{}'; add it with carve context add", name);
  return failure(FailureKind::not_found, "there is no context '{}'; the contexts are {}", name,
                 fmt::join(names, ", "));
}

}  // namespace carve::cli

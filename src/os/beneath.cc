#include "os/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>

namespace carve::os {
namespace {

constexpr int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// Returns whether each component is a name, which is not empty, not ".." and has no NUL.
bool has_names_only(const std::string& path) {
  return !path.empty() && path.front() != '/' && path.back() != '/' && path.find("//") == std::string::npos &&
         ("/" + path + "/").find("/../") == std::string::npos && path.find('\0') == std::string::npos;
}

Fd refuse() {
  errno = ENOENT;
  return Fd();
}

}  // namespace

Fd open_beneath(int folder, const std::string& path) {
  if (!has_names_only(path)) return refuse();
  open_how how{};
  how.flags = flags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const long fd = syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how);
  if (fd >= 0) return Fd(static_cast<int>(fd));
  return errno == ENOSYS || errno == EPERM ? walk_beneath(folder, path) : Fd();
}

std::optional<std::string> read_beneath(int folder, const std::string& path, size_t max_bytes) {
  const Fd fd = open_beneath(folder, path);
  struct stat seen {};
  if (!fd || fstat(fd.get(), &seen) != 0) return std::nullopt;
  if (!S_ISREG(seen.st_mode)) {
    errno = EINVAL;
    return std::nullopt;
  }
  std::string out;
  char buffer[16384];
  while (out.size() < max_bytes) {
    const ssize_t got = read(fd.get(), buffer, std::min(sizeof buffer, max_bytes - out.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    out.append(buffer, static_cast<size_t>(got));
  }
  return out;
}

Fd walk_beneath(int folder, const std::string& path) {
  if (!has_names_only(path)) return refuse();
  Fd held;
  int at = folder;
  for (size_t begin = 0;;) {
    const size_t end = path.find('/', begin);
    const bool last = end == std::string::npos;
    const std::string name = path.substr(begin, end - begin);
    Fd next(openat(at, name.c_str(), flags | O_NOFOLLOW | (last ? 0 : O_DIRECTORY)));
    if (!next || last) return next;
    held = std::move(next);
    at = held.get();
    begin = end + 1;
  }
}

}  // namespace carve::os

#include "os/directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "os/clock.h"
#include "os/process.h"

namespace carve::os {

namespace {

tl::unexpected<Failure> trouble_with(const std::string& path) {
  return failure(FailureKind::unavailable, "cannot write {}: {}; nothing was changed", path, strerror(errno));
}

Outcome<void> replace(const std::string& path, const std::string& text, unsigned mode, int (*sync)(int fd)) {
  const std::string fresh = path + ".new";
  {
    const Fd fd(open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!fd || write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        (sync != nullptr && sync(fd.get()) != 0))
      return trouble_with(path);
  }
  if (rename(fresh.c_str(), path.c_str()) != 0) return trouble_with(path);
  return {};
}

}  // namespace

Outcome<void> replace_file(const std::string& path, const std::string& text, unsigned mode) {
  if (auto replaced = replace(path, text, mode, fsync); !replaced) return replaced;
  const Fd folder(open(path.substr(0, path.rfind('/')).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || fsync(folder.get()) != 0) return trouble_with(path);
  return {};
}

Outcome<void> replace_unsynced_file(const std::string& path, const std::string& text, unsigned mode) {
  return replace(path, text, mode, nullptr);
}

namespace {

bool is_own(const struct stat& info) { return info.st_uid == 0 || info.st_uid == geteuid(); }

// Checks the owner, because a user who may write to a directory can replace every socket and file in it.
Outcome<void> check_owner(const std::string& path) {
  struct stat link {
  }, info{};
  if (lstat(path.c_str(), &link) != 0 || stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return failure(FailureKind::unavailable, "{} is not a directory", path);
  for (const struct stat* one : {&link, &info})
    if (!is_own(*one))
      return failure(FailureKind::permission_denied,
                     "{} belongs to uid {}, which may replace the files in it; choose another directory, or "
                     "run as its owner",
                     path, one->st_uid);
  const bool is_sticky = (info.st_mode & S_ISVTX) != 0;
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !is_sticky)
    return failure(
        FailureKind::permission_denied,
        "other users may write in {} (mode {:04o}); run 'chmod go-w {}', or choose another directory", path,
        info.st_mode & 07777, path);
  return {};
}

}  // namespace

Outcome<void> make_directory(const std::string& path, unsigned mode) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    if (mkdir(path.substr(0, at).c_str(), 0755) != 0 && errno != EEXIST)
      return failure(FailureKind::unavailable, "cannot create the directory {}: {}", path.substr(0, at),
                     strerror(errno));
  if (mkdir(path.c_str(), mode) != 0 && errno != EEXIST)
    return failure(FailureKind::unavailable, "cannot create the directory {}: {}", path, strerror(errno));
  if (const auto safe = check_owner(path); !safe) return safe;
  if (access(path.c_str(), W_OK) != 0)
    return failure(FailureKind::permission_denied,
                   "no permission to write in {}; choose another directory, or run as its owner", path);
  return {};
}

Outcome<Fd> hold_lock(const std::string& path, const std::string& holder, const std::string& what,
                      unsigned mode) {
  Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd) return failure(FailureKind::unavailable, "cannot open {}: {}", path, strerror(errno));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    std::string pid = read_file(path).value_or("");
    while (!pid.empty() && pid.back() == '\n') pid.pop_back();
    return failure(FailureKind::failed_precondition, "another {}, process {}, is using {}; stop it first",
                   holder, pid, what);
  }
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(fd.get(), 0) != 0 || write(fd.get(), pid.data(), pid.size()) < 0)
    return failure(FailureKind::unavailable, "cannot write {}: {}", path, strerror(errno));
  return fd;
}

Outcome<Fd> wait_for_lock(const std::string& path, const std::string& holder, const std::string& what,
                          int64_t patience_ns) {
  const int64_t until = monotonic_ns() + patience_ns;
  for (;;) {
    auto lock = hold_lock(path, holder, what);
    if (lock || lock.error().kind != FailureKind::failed_precondition || monotonic_ns() >= until) return lock;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace carve::os

#include "controller/runtime/program_directory.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "os/capabilities.h"
#include "os/clock.h"

namespace carve::controller {
namespace {

constexpr mode_t directory_mode = 02750;
constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
constexpr gid_t no_group = 65534;

Outcome<os::Fd> open_folder(const std::string& path) {
  os::Fd folder(open(path.c_str(), folder_flags));
  if (!folder) return failure(FailureKind::unavailable, "{}: {}", path, strerror(errno));
  return folder;
}

// Waits for a child. Returns whether it exited with status 0.
bool has_succeeded(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Deletes the contents of the working directory.
void remove_content() {
  std::error_code failed;
  std::vector<std::filesystem::path> entries;
  for (std::filesystem::directory_iterator entry(".", failed), end; !failed && entry != end;
       entry.increment(failed))
    entries.push_back(entry->path());
  for (const auto& path : entries) std::filesystem::remove_all(path, failed);
}

}  // namespace

bool is_program_name(const std::string& name) {
  return !name.empty() && name.size() <= 200 && name.front() != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

Outcome<os::Fd> make_program_directory(const std::string& folder, const std::string& name, uid_t uid) {
  const auto programs = open_folder(folder);
  if (!programs) return tl::unexpected(programs.error());
  const auto trouble = [&](const char* what) {
    return failure(FailureKind::unavailable, "{}/{}: {}: {}", folder, name, what, strerror(errno));
  };
  if (mkdirat(programs->get(), name.c_str(), 0700) != 0 && errno != EEXIST) return trouble("cannot be made");
  os::Fd made(openat(programs->get(), name.c_str(), folder_flags));
  struct stat seen {};
  if (!made || fstat(made.get(), &seen) != 0) return trouble("cannot be opened");
  if (seen.st_uid == uid && (seen.st_mode & 07777) == directory_mode) return made;
  // The directory is new, or the launcher was killed before it gave the directory to the user.
  if (seen.st_uid != geteuid())
    return failure(FailureKind::failed_precondition, "{}/{} belongs to the uid {}; remove it", folder, name,
                   seen.st_uid);
  if (fchmod(made.get(), directory_mode) != 0 || fchown(made.get(), uid, getegid()) != 0)
    return trouble("its owner cannot be changed");
  return made;
}

Outcome<ProgramDirectory> open_program_directory(const std::string& folder, const std::string& name) {
  ProgramDirectory out{.fd = os::Fd(open((folder + "/" + name).c_str(), folder_flags))};
  if (!out.fd && errno == ENOENT) return out;
  struct stat seen {};
  if (!out.fd || fstat(out.fd.get(), &seen) != 0)
    return failure(FailureKind::unavailable, "{}/{}: {}", folder, name, strerror(errno));
  out.uid = seen.st_uid;
  return out;
}

bool become_user(uid_t uid) {
  const bool changed =
      uid == geteuid() || (setgroups(0, nullptr) == 0 && setgid(no_group) == 0 && setuid(uid) == 0);
  return changed && os::keep_capabilities({}).has_value();
}

Outcome<void> remove_program_directory(const std::string& folder, const std::string& name) {
  const auto programs = open_folder(folder);
  if (!programs) return tl::unexpected(programs.error());
  auto directory = open_program_directory(folder, name);
  if (!directory) return tl::unexpected(directory.error());
  if (!directory->fd) return {};
  const std::string hidden = fmt::format(".ended-{}-{}", name, os::utc_ns());
  if (renameat(programs->get(), name.c_str(), programs->get(), hidden.c_str()) != 0)
    return failure(FailureKind::unavailable, "{}/{} cannot be renamed: {}", folder, name, strerror(errno));
  return detach([&] {
    const pid_t child = fork();
    if (child == 0) {
      if (become_user(directory->uid) && fchdir(directory->fd.get()) == 0) remove_content();
      _exit(0);
    }
    if (child > 0) has_succeeded(child);
    unlinkat(programs->get(), hidden.c_str(), AT_REMOVEDIR);
  });
}

Outcome<void> detach(const std::function<void()>& act) {
  const pid_t middle = fork();
  if (middle == 0) {
    const pid_t process = fork();
    if (process == 0) {
      act();
      _exit(0);
    }
    _exit(process < 0 ? 1 : 0);
  }
  if (middle < 0 || !has_succeeded(middle))
    return failure(FailureKind::unavailable, "cannot start a process; the machine has too many processes");
  return {};
}

}  // namespace carve::controller

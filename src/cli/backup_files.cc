#include "cli/backup_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "os/clock.h"
#include "os/directory.h"
#include "os/fd.h"
#include "os/process.h"
#include "sqlite/copy.h"
#include "wire/api/json.h"

namespace carve::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* manifest = "backup.json";
constexpr mode_t private_folder = 0700;

tl::unexpected<Failure> trouble(const std::string& path, int error) {
  return failure(FailureKind::unavailable, "{}: {}", path, std::strerror(error));
}

bool is_database(const std::string& name) { return name.ends_with(".db"); }

// Returns whether a file is part of a backup. A lock is valid only while its program runs. SQLite's other files belong
// to a moment that the copy of the database replaces.
bool is_kept(const std::string& name) {
  constexpr std::string_view left_out[] = {"-wal", "-shm", "-journal", ".lock"};
  return name != "lock" && name != manifest &&
         !std::ranges::any_of(left_out, [&](std::string_view end) { return name.ends_with(end); });
}

// Returns the names of the regular files in a folder, in order. The user of a program may have put a link there, which
// root must not follow.
Outcome<std::vector<std::string>> regular_files(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (fs::is_regular_file(at->symlink_status())) names.push_back(at->path().filename());
  if (error) return trouble(folder, error.value());
  std::ranges::sort(names);
  return names;
}

// Copies a file that is not a database. Returns false if there is none of this name any more.
Outcome<bool> copy_file(const std::string& from, const std::string& to) {
  const os::Fd source(open(from.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!source && errno == ENOENT) return false;
  if (!source) return trouble(from, errno);
  const os::Fd target(open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!target) return trouble(to, errno);
  char buffer[1 << 16];
  for (;;) {
    const ssize_t read_now = read(source.get(), buffer, sizeof buffer);
    if (read_now < 0) return trouble(from, errno);
    if (read_now == 0) break;
    for (ssize_t done = 0; done < read_now;) {
      const ssize_t written = write(target.get(), buffer + done, static_cast<size_t>(read_now - done));
      if (written < 0) return trouble(to, errno);
      done += written;
    }
  }
  if (fsync(target.get()) != 0) return trouble(to, errno);
  return true;
}

Outcome<bool> copy(const std::string& from, const std::string& to) {
  if (!is_database(from)) return copy_file(from, to);
  if (auto copied = sqlite::copy_database(from, to); !copied) return tl::unexpected(copied.error());
  return true;
}

Outcome<void> make_folder(const std::string& path) {
  if (mkdir(path.c_str(), private_folder) != 0) return trouble(path, errno);
  return {};
}

uint64_t size_of(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : size;
}

Outcome<BackupPart> copy_part(const BackupPart& part, const std::string& to) {
  std::error_code error;
  const std::string state = fs::canonical(part.state, error);
  if (error) return trouble(part.state, error.value());
  BackupPart out{.program = part.program, .state = state, .files = {}};
  const auto names = regular_files(state);
  if (!names) return tl::unexpected(names.error());
  if (auto made = make_folder(to); !made) return tl::unexpected(made.error());
  for (const std::string& name : *names) {
    if (!is_kept(name)) continue;
    const std::string copied_to = fmt::format("{}/{}", to, name);
    const auto copied = copy(fmt::format("{}/{}", state, name), copied_to);
    if (!copied) return tl::unexpected(copied.error());
    if (*copied) out.files.push_back({.name = name, .bytes = size_of(copied_to)});
  }
  if (std::ranges::none_of(out.files, [](const BackupFile& file) { return is_database(file.name); }))
    return failure(FailureKind::not_found, "{}: there is no database of the {} there", state, part.program);
  return out;
}

Outcome<Backup> fill_backup(const std::vector<BackupPart>& parts, const std::string& folder, int64_t now_ns) {
  Backup backup{
      .version = CARVE_VERSION, .created = os::rfc3339(now_ns, os::Decimals::milliseconds), .parts = {}};
  for (const BackupPart& part : parts) {
    auto copied = copy_part(part, fmt::format("{}/{}", folder, part.program));
    if (!copied) return tl::unexpected(copied.error());
    backup.parts.push_back(std::move(*copied));
  }
  const auto written = os::replace_file(fmt::format("{}/{}", folder, manifest), api::write(backup, 2) + "\n");
  if (!written) return tl::unexpected(written.error());
  return backup;
}

// Fails if a file of the backup is not as it was written.
Outcome<void> check_part(const std::string& folder, const BackupPart& part) {
  for (const BackupFile& file : part.files) {
    const std::string path = fmt::format("{}/{}", folder, file.name);
    if (file.name.empty() || file.name.find('/') != std::string::npos || !is_kept(file.name))
      return failure(FailureKind::invalid_argument, "{}: '{}' is not a file of a backup", folder,
                     file.name.substr(0, 80));
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0) return trouble(path, errno);
    if (!S_ISREG(status.st_mode) || static_cast<uint64_t>(status.st_size) != file.bytes)
      return failure(FailureKind::failed_precondition, "{}: it has {} bytes; the backup was written with {}",
                     path, status.st_size, file.bytes);
  }
  return {};
}

// A new folder that only this user can change, in a folder that another user may own. It is used by its descriptor,
// because the other user can replace the name.
struct PrivateFolder {
  os::Fd fd;
  std::string path() const { return fmt::format("/proc/self/fd/{}", fd.get()); }
};

Outcome<PrivateFolder> make_private_folder(int parent, const std::string& name) {
  if (mkdirat(parent, name.c_str(), private_folder) != 0) return trouble(name, errno);
  PrivateFolder out{os::Fd(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC))};
  struct stat status {};
  if (!out.fd || fstat(out.fd.get(), &status) != 0) return trouble(name, errno);
  if (status.st_uid != geteuid() || (status.st_mode & 077) != 0)
    return failure(FailureKind::failed_precondition, "{}: another user has replaced it", name);
  return out;
}

// Copies the files to `to`. They belong to the owner of the state folder afterwards.
Outcome<void> stage(const std::string& folder, const BackupPart& part, const PrivateFolder& to,
                    const struct stat& owner) {
  for (const BackupFile& file : part.files) {
    const std::string path = fmt::format("{}/{}", to.path(), file.name);
    const auto copied = copy(fmt::format("{}/{}", folder, file.name), path);
    if (!copied) return tl::unexpected(copied.error());
    if (!*copied) return trouble(file.name, ENOENT);
    if (lchown(path.c_str(), owner.st_uid, owner.st_gid) != 0) return trouble(file.name, errno);
  }
  return {};
}

// Removes a private folder with its files.
void remove(const PrivateFolder& folder, int parent, const std::string& name) {
  std::error_code ignored;
  for (const auto& file : fs::directory_iterator(folder.path(), ignored)) fs::remove(file.path(), ignored);
  unlinkat(parent, name.c_str(), AT_REMOVEDIR);
}

// Opens the state folder, which is created if it is missing.
Outcome<os::Fd> open_state(const BackupPart& part) {
  struct stat status {};
  if (lstat(part.state.c_str(), &status) != 0 && errno == ENOENT)
    if (auto made = os::make_directory(part.state, part.program == "agent" ? 0711 : private_folder); !made)
      return tl::unexpected(made.error());
  os::Fd state(open(part.state.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!state) return trouble(part.state, errno);
  return state;
}

}  // namespace

Outcome<Backup> write_backup(const std::vector<BackupPart>& parts, const std::string& to, int64_t now_ns) {
  const std::string partial = to + ".partial";
  if (fs::exists(fs::symlink_status(to)))
    return failure(FailureKind::already_exists, "{} exists; name a new folder, such as {}-2", to, to);
  if (mkdir(partial.c_str(), private_folder) != 0) {
    if (errno != EEXIST) return trouble(partial, errno);
    return failure(FailureKind::already_exists, "{} exists; remove it if no other backup is writing it",
                   partial);
  }
  auto backup = fill_backup(parts, partial, now_ns);
  std::error_code ignored;
  if (backup && rename(partial.c_str(), to.c_str()) != 0) backup = trouble(to, errno);
  if (!backup) fs::remove_all(partial, ignored);
  return backup;
}

Outcome<Backup> read_backup(const std::string& folder) {
  const std::string path = fmt::format("{}/{}", folder, manifest);
  const auto text = os::read_file(path);
  if (!text)
    return failure(FailureKind::not_found, "{}: {}; a backup is a folder that 'carve backup' has written",
                   path, std::strerror(errno));
  auto backup = api::read<Backup>(*text, api::Reading::strict);
  if (!backup) return failure(FailureKind::invalid_argument, "{}: {}", path, backup.error());
  return std::move(*backup);
}

Outcome<std::string> restore_part(const std::string& backup, const BackupPart& part, int64_t now_ns) {
  const std::string folder = fmt::format("{}/{}", backup, part.program);
  const std::string time = os::rfc3339(now_ns, os::Decimals::milliseconds);
  const std::string staged_name = "restore-" + time, former_name = "before-restore-" + time;
  const auto state = open_state(part);
  if (!state) return tl::unexpected(state.error());
  const std::string lock = part.program == "agent" ? "lock" : "controller.lock";
  const auto held =
      os::hold_lock(fmt::format("{}/{}", part.state, lock), part.program, "the state " + part.state);
  if (!held) return tl::unexpected(held.error());
  struct stat owner {};
  if (fstat(state->get(), &owner) != 0 || fchown(held->get(), owner.st_uid, owner.st_gid) != 0)
    return trouble(part.state, errno);
  if (auto checked = check_part(folder, part); !checked) return tl::unexpected(checked.error());
  const auto staged = make_private_folder(state->get(), staged_name);
  if (!staged) return tl::unexpected(staged.error());
  if (auto copied = stage(folder, part, *staged, owner); !copied) {
    remove(*staged, state->get(), staged_name);
    return tl::unexpected(copied.error());
  }
  const auto present = regular_files(part.state);
  if (!present) return tl::unexpected(present.error());
  const auto former = make_private_folder(state->get(), former_name);
  if (!former) return tl::unexpected(former.error());
  const auto move = [](const std::string& name, int from, int to) {
    return renameat(from, name.c_str(), to, name.c_str()) == 0;
  };
  for (const std::string& name : *present)
    if (name != lock && !move(name, state->get(), former->fd.get()))
      return trouble(part.state + "/" + name, errno);
  for (const BackupFile& file : part.files)
    if (!move(file.name, staged->fd.get(), state->get())) return trouble(part.state + "/" + file.name, errno);
  unlinkat(state->get(), staged_name.c_str(), AT_REMOVEDIR);
  const bool had_none = unlinkat(state->get(), former_name.c_str(), AT_REMOVEDIR) == 0;
  return had_none ? std::string() : fmt::format("{}/{}", part.state, former_name);
}

}  // namespace carve::cli

#include "runner/liveness_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <sstream>

namespace carve::runner {
namespace {

struct flock whole_lock(short type) {
  struct flock out {};
  out.l_type = type;
  out.l_whence = SEEK_SET;
  return out;
}

// Parses "PID START BOOT".
std::optional<os::ProcessId> read_process(const os::Fd& file) {
  char text[128] = "";
  if (pread(file.get(), text, sizeof text - 1, 0) <= 0) return std::nullopt;
  std::istringstream words(text);
  os::ProcessId process;
  std::string boot_id;
  if (!(words >> process.pid >> process.start >> boot_id) || boot_id != os::boot_id()) return std::nullopt;
  return process;
}

}  // namespace

os::Fd hold_liveness_file(const std::string& path, std::optional<os::ProcessId>& former) {
  os::Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  const struct flock lock = whole_lock(F_WRLCK);
  if (!file || fcntl(file.get(), F_OFD_SETLK, &lock) != 0) return {};
  former = read_process(file);
  if (former)
    if (const auto now = os::stat_of(former->pid); now && now->id != *former) former.reset();
  const auto own = os::stat_of(getpid());
  const std::string text = fmt::format("{} {} {}\n", getpid(), own ? own->id.start : 0, os::boot_id());
  if (ftruncate(file.get(), 0) != 0 ||
      pwrite(file.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    return {};
  return file;
}

std::optional<os::ProcessId> living_supervisor(const std::string& path) {
  const os::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct flock wanted = whole_lock(F_RDLCK);
  if (!file || fcntl(file.get(), F_OFD_GETLK, &wanted) != 0 || wanted.l_type == F_UNLCK) return std::nullopt;
  const auto process = read_process(file);
  return process ? process : os::ProcessId{};  // It holds the lock but has not written yet.
}

bool signal_session(const os::ProcessId& supervisor, int signal) {
  if (supervisor.pid <= 0) return false;
  bool found = false;
  for (const os::ProcessStat& process : os::all_processes()) {
    if (process.id.pid == supervisor.pid) continue;
    if (process.session != supervisor.pid && process.parent != supervisor.pid) continue;
    os::send_signal(os::open_process(process.id), signal);
    found = true;
  }
  return found;
}

}  // namespace carve::runner

#include "node/claims.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <sstream>

#include "os/directory.h"
#include "os/lock_list.h"
#include "wire/shm/shared_blocks.h"

namespace carve::node {
namespace {

std::string file_of(const std::string& folder, const Device& device) {
  return folder + "/" + text(device.uuid);
}

// Returns the process that holds a lock on the file, which this user cannot open; empty if there is none. A
// line of /proc/locks looks like "1: FLOCK ADVISORY WRITE 1234 00:1a:567 0 EOF".
std::string holder_of(const std::string& file) {
  struct stat info {};
  if (stat(file.c_str(), &info) != 0) return {};
  const std::string wanted =
      fmt::format("{:02x}:{:02x}:{}", major(info.st_dev), minor(info.st_dev), info.st_ino);
  for (const size_t first : shm::first_lock_pieces) {
    std::string list;
    os::read_lock_list(first, [&](const char* text, size_t size) { list.append(text, size); });
    std::istringstream lines(list);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream fields(line);
      std::string number, kind, advisory, access, pid, inode;
      fields >> number >> kind >> advisory >> access >> pid >> inode;
      if (kind == "FLOCK" && inode == wanted) return pid;
    }
  }
  return {};
}

}  // namespace

std::string claims_folder(const Surroundings& s) {
  if (s.uid == 0) return root_claims;
  return (s.xdg_runtime_dir.empty() ? fmt::format("/tmp/carve-{}", s.uid) : s.xdg_runtime_dir + "/carve") +
         "/claims";
}

Outcome<std::vector<os::Fd>> claim(const std::vector<Device>& devices, const std::string& folder,
                                   const std::string& roots) {
  std::vector<os::Fd> held;
  if (devices.empty()) return held;
  // Other users may see which devices are claimed but cannot open the files.
  if (const auto made = os::make_directory(folder, 0755); !made) return tl::unexpected(made.error());
  for (const Device& device : devices) {
    const std::string what = fmt::format("device {} ({})", device.index, text(device.uuid));
    auto lock = os::wait_for_lock(file_of(folder, device), "agent", what);
    if (!lock) return tl::unexpected(lock.error());
    held.push_back(std::move(*lock));
    const std::string other = folder == roots ? "" : holder_of(file_of(roots, device));
    if (!other.empty())
      return failure(
          FailureKind::failed_precondition,
          "root's agent, process {}, already uses {}; use its socket, or simulate devices with --sim", other,
          what);
  }
  return held;
}

Outcome<std::vector<os::Fd>> claim_set(const std::string& set) {
  auto lock = os::wait_for_lock(set + "/agent.lock", "agent", "the simulated devices in " + set);
  if (!lock) return tl::unexpected(lock.error());
  std::vector<os::Fd> held;
  held.push_back(std::move(*lock));
  return held;
}

}  // namespace carve::node

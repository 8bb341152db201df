#include "controller/runtime/port_registry.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace carve::controller {
namespace {

constexpr unsigned registry_mode = 0666;

// Opens the file and creates it if it is missing. In /tmp another user may have put a link or a FIFO in its
// place.
os::Fd open_registry(const std::string& path) {
  constexpr int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  os::Fd file(open(path.c_str(), flags));
  if (!file) {
    file = os::Fd(open(path.c_str(), flags | O_CREAT | O_EXCL, registry_mode));
    if (file) fchmod(file.get(), registry_mode);          // Independent of the umask.
    if (!file) file = os::Fd(open(path.c_str(), flags));  // Another controller created it in the meantime.
  }
  struct stat seen {};
  if (!file || fstat(file.get(), &seen) != 0 || !S_ISREG(seen.st_mode)) return {};
  return file;
}

bool lock(const os::Fd& file, uint32_t port, short type) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = port;
  range.l_len = 1;
  return fcntl(file.get(), F_OFD_SETLK, &range) == 0;
}

}  // namespace

std::vector<std::string> PortRegistry::machine_files() { return {"/run/carve/ports", "/tmp/carve-ports"}; }

PortRegistry::PortRegistry(const std::vector<std::string>& files) {
  for (const std::string& path : files)
    if (os::Fd file = open_registry(path)) files_.push_back(std::move(file));
}

bool PortRegistry::reserve(uint32_t port) {
  for (size_t i = 0; i < files_.size(); ++i) {
    if (lock(files_[i], port, F_WRLCK)) continue;
    while (i > 0) lock(files_[--i], port, F_UNLCK);
    return false;
  }
  reserved_.insert(port);
  return true;
}

void PortRegistry::keep(uint32_t first, uint32_t last, const std::vector<uint32_t>& used) {
  for (const uint32_t port : used)
    if (!reserved_.contains(port)) reserve(port);  // After a restart, for ports in the records.
  std::erase_if(reserved_, [&](uint32_t port) {
    if (port < first || port > last || std::ranges::find(used, port) != used.end()) return false;
    for (const os::Fd& file : files_) lock(file, port, F_UNLCK);
    return true;
  });
}

}  // namespace carve::controller

#include "node/pages/shared_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "os/process.h"

namespace carve::node {
namespace {

constexpr size_t page = 4096;
constexpr int size_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr const char* heartbeat_name = "heartbeat";

constexpr size_t in_pages(size_t size) { return (size + page - 1) & ~(page - 1); }

template <class T>
Outcome<Mapped<T>> map(int fd, const std::string& what) {
  void* at = mmap(nullptr, in_pages(sizeof(T)), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return failure(FailureKind::unavailable, "cannot map {}: {}", what, strerror(errno));
  return Mapped<T>(static_cast<T*>(at));
}

// Opens the directory through a detached mount of this process, which no other process can make writable.
os::Fd read_only_clone(int directory) {
  os::Fd clone(static_cast<int>(
      syscall(SYS_open_tree, directory, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  if (!clone) return {};
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  if (syscall(SYS_mount_setattr, clone.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0)
    return {};
  return clone;
}

std::string control_name(const std::string& slice) { return slice + ".ctl"; }
std::string state_file_name(const std::string& slice) { return slice + ".state"; }

}  // namespace

template <class T>
void Mapped<T>::unmap(T* at) {
  if (at != nullptr) munmap(at, in_pages(sizeof(T)));
}
template class Mapped<shm::Control>;
template class Mapped<shm::Report>;
template class Mapped<shm::Heartbeat>;

namespace {

Outcome<Report> mapped(os::Fd fd) {
  auto mapping = map<shm::Report>(fd.get(), "a report");
  if (!mapping) return tl::unexpected(mapping.error());
  return Report{std::move(fd), std::move(*mapping)};
}

}  // namespace

Outcome<Report> make_report() {
  os::Fd fd(memfd_create(shm::report_page_name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ftruncate(fd.get(), in_pages(sizeof(shm::Report))) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, size_seals) != 0)
    return failure(FailureKind::unavailable, "cannot create a report page: {}", strerror(errno));
  auto report = mapped(std::move(fd));
  if (!report) return report;
  report->page->magic = shm::report_magic;
  report->page->layout = shm::layout_version;
  return report;
}

Outcome<Report> adopt_report(os::Fd fd) {
  struct stat info {};
  // The page's content is not used, because the slice can write it; the kernel reports its size and seals.
  const bool known = fstat(fd.get(), &info) == 0 && (fcntl(fd.get(), F_GET_SEALS) & size_seals) == size_seals;
  if (!known || info.st_size != static_cast<off_t>(in_pages(sizeof(shm::Report))))
    return failure(FailureKind::unavailable, "the descriptor is not a report page of layout {}",
                   shm::layout_version);
  return mapped(std::move(fd));
}

Outcome<RuntimeDir> RuntimeDir::open(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return failure(FailureKind::unavailable, "cannot create the directory {}: {}", path, strerror(errno));
  RuntimeDir dir;
  dir.path_ = path;
  dir.directory_ = os::Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info {};
  if (!dir.directory_ || fstat(dir.directory_.get(), &info) != 0)
    return failure(FailureKind::unavailable, "cannot open the directory {}: {}", path, strerror(errno));
  if (info.st_uid != geteuid() || (info.st_mode & 077) != 0)
    return failure(FailureKind::permission_denied,
                   "{} must be owned by this user and have mode 0700, because it holds the slices' limits",
                   path);
  struct statfs system {};
  dir.in_memory_ = fstatfs(dir.directory_.get(), &system) == 0 && system.f_type == TMPFS_MAGIC;
  dir.clone_ = read_only_clone(dir.directory_.get());
  return dir;
}

Outcome<Mapped<shm::Control>> RuntimeDir::make_control(const std::string& slice) {
  const std::string name = control_name(slice);
  unlinkat(directory_.get(), name.c_str(), 0);
  const os::Fd fd(
      openat(directory_.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  // Uses fallocate, so that a full file system is an error here rather than a SIGBUS later.
  if (!fd || posix_fallocate(fd.get(), 0, in_pages(sizeof(shm::Control))) != 0)
    return failure(FailureKind::unavailable, "cannot create {}/{}: {}", path_, name, strerror(errno));
  auto control = map<shm::Control>(fd.get(), path_ + "/" + name);
  if (!control) return control;
  (*control)->magic = shm::control_magic;
  (*control)->layout = shm::layout_version;
  return control;
}

Outcome<Mapped<shm::Control>> map_control(const os::Fd& file, const std::string& name) {
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0 ||
      info.st_size != static_cast<off_t>(in_pages(sizeof(shm::Control))))
    return failure(FailureKind::not_found, "there is no control page {}", name);
  auto control = map<shm::Control>(file.get(), name);
  if (!control) return control;
  if ((*control)->magic != shm::control_magic || (*control)->layout != shm::layout_version)
    return failure(FailureKind::failed_precondition, "{} does not have this agent's layout, {}", name,
                   shm::layout_version);
  return control;
}

Outcome<Mapped<shm::Control>> RuntimeDir::adopt_control(const std::string& slice) {
  return map_control(control_file(slice), path_ + "/" + control_name(slice));
}

os::Fd RuntimeDir::control_file(const std::string& slice) const {
  return os::Fd(openat(directory_.get(), control_name(slice).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
}

bool RuntimeDir::is_present() const {
  struct stat there {
  }, ours{};
  return lstat(path_.c_str(), &there) == 0 && fstat(directory_.get(), &ours) == 0 &&
         there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
}

Outcome<Mapped<shm::Heartbeat>> RuntimeDir::heartbeat() {
  const os::Fd fd(openat(directory_.get(), heartbeat_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd || posix_fallocate(fd.get(), 0, page) != 0)
    return failure(FailureKind::unavailable, "cannot create {}/{}: {}", path_, heartbeat_name,
                   strerror(errno));
  return map<shm::Heartbeat>(fd.get(), path_ + "/" + heartbeat_name);
}

os::Fd RuntimeDir::control_descriptor(const std::string& slice) const {
  const int from = clone_ ? clone_.get() : directory_.get();
  return os::Fd(openat(from, control_name(slice).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
}

os::Fd RuntimeDir::heartbeat_descriptor() const {
  const int from = clone_ ? clone_.get() : directory_.get();
  return os::Fd(openat(from, heartbeat_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
}

Outcome<void> RuntimeDir::write_state_file(const std::string& slice, const std::string& text) {
  return write(state_file_name(slice), text);
}

Outcome<void> RuntimeDir::write(const std::string& name, const std::string& text) {
  const std::string fresh = name + ".new";
  const os::Fd fd(
      openat(directory_.get(), fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      renameat(directory_.get(), fresh.c_str(), directory_.get(), name.c_str()) != 0)
    return failure(FailureKind::unavailable, "cannot write {}/{}: {}", path_, name, strerror(errno));
  return {};
}

std::string RuntimeDir::read_state_file(const std::string& slice) const {
  return read(state_file_name(slice));
}

std::string RuntimeDir::read(const std::string& name) const {
  return os::read_file(path_ + "/" + name).value_or("");
}

std::vector<std::string> RuntimeDir::state_files() const {
  std::vector<std::string> out;
  DIR* listing = opendir(path_.c_str());
  if (listing == nullptr) return out;
  constexpr std::string_view ending = ".state";
  while (const dirent* entry = readdir(listing)) {
    const std::string_view name = entry->d_name;
    if (name.ends_with(ending)) out.emplace_back(name.substr(0, name.size() - ending.size()));
  }
  closedir(listing);
  return out;
}

void RuntimeDir::remove(const std::string& slice) {
  unlinkat(directory_.get(), control_name(slice).c_str(), 0);
  unlinkat(directory_.get(), state_file_name(slice).c_str(), 0);
}

}  // namespace carve::node

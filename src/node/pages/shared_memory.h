// The agent's side of the slices' shared memory (wire/shm/layout.h).
//
// Control and heartbeat pages are files in the runtime directory SOCKET.run (0700). A restarted agent finds
// them there, and its changes are visible to slices that have mapped them. A slice gets descriptors that
// cannot be made writable again, because they are opened through a read-only clone of the directory's mount
// (needs Linux 5.12 and root). A plain memfd could be reopened for writing through /proc/self/fd. An ordinary
// user may not create the clone, so its agent passes plain read-only descriptors. They protect only against
// accidents, as `carve doctor` reports.
//
// A report page is a memfd with a sealed size. If it were a file, its slice could truncate it and thereby
// kill the agent with SIGBUS. It has no name, so the fd store (fd_store.h) holds it across a restart of the
// agent.
#pragma once

#include <memory>
#include <string>

#include "core/failure.h"
#include "os/fd.h"
#include "wire/shm/layout.h"

namespace carve::node {

// A mapping with one owner.
template <class T>
class Mapped {
 public:
  Mapped() = default;
  explicit Mapped(T* at) : at_(at) {}
  Mapped(Mapped&& other) noexcept : at_(std::exchange(other.at_, nullptr)) {}
  Mapped& operator=(Mapped&& other) noexcept {
    std::swap(at_, other.at_);
    return *this;
  }
  ~Mapped() { unmap(at_); }
  T* operator->() const { return at_; }
  T& operator*() const { return *at_; }
  explicit operator bool() const { return at_ != nullptr; }

 private:
  static void unmap(T* at);
  T* at_ = nullptr;
};

struct Report {
  os::Fd fd;
  Mapped<shm::Report> page;
};
// Maps the control page of an open file.
Outcome<Mapped<shm::Control>> map_control(const os::Fd& file, const std::string& name);
Outcome<Report> make_report();
Outcome<Report> adopt_report(os::Fd fd);  // Checks the seals and the size.

class RuntimeDir {
 public:
  // Creates the directory if it is missing. Fails if another user owns it or may write to it.
  static Outcome<RuntimeDir> open(const std::string& path);

  // Creates a new control page for this slice and replaces a page that was left over.
  Outcome<Mapped<shm::Control>> make_control(const std::string& slice);
  Outcome<Mapped<shm::Control>> adopt_control(const std::string& slice);
  Outcome<Mapped<shm::Heartbeat>> heartbeat();  // The existing page, or a new one.

  // Opens the control page for reading and writing; empty if there is none.
  os::Fd control_file(const std::string& slice) const;
  // Returns whether the directory still exists at its path.
  bool is_present() const;
  // Returns the descriptor that is passed to a slice. It stays read-only if `sealed()`.
  os::Fd control_descriptor(const std::string& slice) const;
  os::Fd heartbeat_descriptor() const;
  bool sealed() const { return static_cast<bool>(clone_); }
  bool in_memory() const { return in_memory_; }  // On a tmpfs, so the pages cost no disk writes.

  // Stores what the next agent needs to know about a slice. The file is replaced atomically.
  Outcome<void> write_state_file(const std::string& slice, const std::string& text);
  // Writes any file of the directory in the same way.
  Outcome<void> write(const std::string& name, const std::string& text);
  std::string read(const std::string& name) const;              // Empty if there is none.
  std::string read_state_file(const std::string& slice) const;  // Empty if there is none.
  std::vector<std::string> state_files() const;                 // Names of all slices with a state file.
  void remove(const std::string& slice);

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  os::Fd directory_;
  os::Fd clone_;  // The same directory through a read-only mount.
  bool in_memory_ = false;
};

}  // namespace carve::node

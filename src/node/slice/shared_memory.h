// The shared pages of slices (wire/shm/layout.h) as the agent holds them.
//
// Control and Heartbeat are files in the runtime directory SOCKET.run (0700): a restarted agent finds them
// there, and slices that mapped them see what it writes. They reach a slice as descriptors that cannot be
// made writable again: opened through a read-only clone of the directory's mount (Linux 5.12, root). A plain
// memfd can be reopened writable through /proc/self/fd. Run as an ordinary user the clone is not permitted
// and a plain read-only descriptor goes out: it protects against accidents, and `carve doctor` says so.
//
// A Report is a memfd with its size sealed: were it a file, its slice could truncate it and the agent would
// die of SIGBUS. It has no name, so a fd store (fd_store.h) holds it over a restart of the agent.
#pragma once

#include <memory>
#include <string>

#include "core/failure.h"
#include "node/os/fd.h"
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

// The name of the Report's memfd, by which /proc/PID/maps shows who has it mapped.
inline constexpr const char* report_name = "carve-report";

struct Report {
  Fd fd;
  Mapped<shm::Report> page;
};
Outcome<Report> make_report();
Outcome<Report> adopt_report(Fd fd);  // Checks seals and size.

class RuntimeDir {
 public:
  // Makes the directory where it is missing; refuses one that belongs to somebody else or that others may
  // write.
  static Outcome<RuntimeDir> open(const std::string& path);

  // A fresh Control for this slice, replacing what is left of an earlier one.
  Outcome<Mapped<shm::Control>> make_control(const std::string& slice);
  Outcome<Mapped<shm::Control>> adopt_control(const std::string& slice);
  Outcome<Mapped<shm::Heartbeat>> heartbeat();  // The one that is there, or a new one.

  // What goes to a slice: read-only for good where `sealed()`.
  Fd control_descriptor(const std::string& slice) const;
  Fd heartbeat_descriptor() const;
  bool sealed() const { return static_cast<bool>(clone_); }
  bool in_memory() const { return in_memory_; }  // A tmpfs: the pages cost no disk writes.

  // What the agent notes beside the pages, for its successor. Replaced as a whole or not at all.
  Outcome<void> write_state_file(const std::string& slice, const std::string& text);
  std::string read_state_file(const std::string& slice) const;  // Empty: none.
  std::vector<std::string> state_files() const;                 // All slices that have a note.
  void remove(const std::string& slice);

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  Fd directory_;
  Fd clone_;  // The same directory through a read-only mount.
  bool in_memory_ = false;
};

}  // namespace carve::node

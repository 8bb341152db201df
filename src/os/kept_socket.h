// A listening socket whose file is recreated if it was removed or replaced. The program can only be reached
// by that path. Without the file it would keep running, but no new client could connect.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "core/failure.h"
#include "os/fd.h"

namespace carve::os {

class KeptSocket {
 public:
  // The file must exist when the object is constructed. `make` binds another socket there, and `serve` uses
  // it instead of the old one.
  KeptSocket(std::string path, std::function<Outcome<Fd>()> make, std::function<void(Fd)> serve);

  // Checks that the file exists. This is one system call, to be made every second. Returns a message for each
  // loss, and one message if the socket cannot be recreated.
  std::optional<std::string> check();

 private:
  struct FileId {
    dev_t device = 0;
    ino_t inode = 0;
    friend bool operator==(const FileId&, const FileId&) = default;
  };
  std::optional<FileId> present() const;

  const std::string path_;
  const std::function<Outcome<Fd>()> make_;
  const std::function<void(Fd)> serve_;
  std::optional<FileId> file_;
  bool failed_ = false;  // The failure has been reported.
};

}  // namespace carve::os

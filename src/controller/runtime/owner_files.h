// Stores the owners of programs in files, one for each program (controller/services/program_owner.h). The
// folder belongs to the controller, so programs cannot write to it. The files are not synced to disk, because
// programs do not survive a power loss either.
#pragma once

#include <set>
#include <string>

#include "controller/services/program_owner.h"
#include "core/failure.h"

namespace carve::controller {

class OwnerFiles {
 public:
  // The folder is created with the first file. `programs` is the folder with the programs' directories.
  OwnerFiles(std::string folder, std::string programs)
      : folder_(std::move(folder)), programs_(std::move(programs)) {}

  Outcome<void> write(const std::string& program, const ProgramOwner&) const;
  void remove(const std::string& program) const;
  // Returns the programs that have a file or a directory.
  std::set<std::string> programs() const;
  // Returns the program's owner. An unreadable file counts as missing.
  ProgramOwner read(const std::string& program) const;

 private:
  std::string path_of(const std::string& program) const;

  const std::string folder_, programs_;
};

}  // namespace carve::controller

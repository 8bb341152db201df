// The owners of programs in files, one for each program (controller/services/program_owner.h). The folder
// belongs to the controller: a program cannot write there.
#pragma once

#include <map>
#include <string>

#include "controller/services/program_owner.h"
#include "core/failure.h"

namespace carve::controller {

class OwnerFiles {
 public:
  // `folder` is made with the first file. `programs` has the programs' directories.
  OwnerFiles(std::string folder, std::string programs)
      : folder_(std::move(folder)), programs_(std::move(programs)) {}

  Outcome<void> write(const std::string& program, const ProgramOwner&) const;
  void remove(const std::string& program) const;
  // Returns the owners of all programs that have a file or a directory. A file that cannot be read is as
  // none.
  std::map<std::string, ProgramOwner> read_all() const;

 private:
  std::string path_of(const std::string& program) const;

  const std::string folder_, programs_;
};

}  // namespace carve::controller

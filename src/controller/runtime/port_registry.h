// Reserves ports among the controllers of all users of this machine: a controller locks byte N of a shared
// file to reserve port N. The kernel releases the locks when the controller ends.
//
// Any user can lock any byte, so a reservation is not proof of ownership. It only keeps controllers from
// choosing the same port; the owner of a replica's listener is checked in addition (port_owner.h).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "os/fd.h"

namespace carve::controller {

class PortRegistry {
 public:
  // Returns the machine's file in a folder that root creates, and the file for controllers that may not write
  // there.
  static std::vector<std::string> machine_files();

  // Ignores files that cannot be opened or are not regular files.
  explicit PortRegistry(const std::vector<std::string>& files);

  // Returns false if another controller has reserved the port.
  bool reserve(uint32_t port);
  // Releases the reserved ports from `first` to `last` that are not in `used`.
  void keep(uint32_t first, uint32_t last, const std::vector<uint32_t>& used);

 private:
  std::vector<os::Fd> files_;
  std::set<uint32_t> reserved_;
};

}  // namespace carve::controller

// Reservations of ports among the controllers of this machine, of all users: locks on bytes of a file that
// every controller opens, byte N for port N. The kernel releases the locks of a controller that ends.
//
// Any user can lock any byte, so a reservation proves nothing. It only keeps controllers from choosing the
// same port; the owner of a replica's listener is checked anyway (port_owner.h).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "os/fd.h"

namespace carve::controller {

class PortRegistry {
 public:
  // Returns the machine's file, in a folder that root makes, and the file of controllers that may not write
  // there.
  static std::vector<std::string> machine_files();

  // A file is not used if it cannot be opened or is not a regular file.
  explicit PortRegistry(const std::vector<std::string>& files);

  // Returns false if another controller has the port.
  bool reserve(uint32_t port);
  // Releases the reserved ports from `first` to `last` that are not in `used`.
  void keep(uint32_t first, uint32_t last, const std::vector<uint32_t>& used);

 private:
  std::vector<os::Fd> files_;
  std::set<uint32_t> reserved_;
};

}  // namespace carve::controller

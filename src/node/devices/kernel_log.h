// Reads the kernel driver's messages about errors of a device (Xid). NVML reports the device and the number
// of an error; the process that caused it appears only in the kernel's log:
//
//   NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, name=python3, Ch 00000008, intr 10000000. MMU Fault: ...
//   NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
//
// Sources: NVIDIA, "XID Errors"; /dev/kmsg: Documentation/ABI/testing/dev-kmsg of Linux. Only root may write
// to it. `name` is chosen by the program, but comes after the process id.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/failure.h"
#include "os/fd.h"

namespace carve::node {

// The PCI address of a device without its function.
struct PciAddress {
  uint32_t domain = 0, bus = 0, device = 0;

  friend bool operator==(const PciAddress&, const PciAddress&) = default;
};

// Parses "00000000:3B:00.0" (NVML's form) or "0000:3b:00" (the kernel driver's form).
std::optional<PciAddress> parse_pci_address(std::string_view);

struct XidRecord {
  PciAddress device;
  uint32_t code = 0;
  std::optional<pid_t> pid;  // In the kernel's own pid namespace; no value if the driver did not know it.
  std::string process;       // Process name, for display; empty if the driver did not know it.
};

// Parses one line of the log, with or without the prefix of /dev/kmsg. Returns no value if it reports no Xid.
std::optional<XidRecord> parse_xid(std::string_view line);

// Reads the lines of a log that were written after open().
class KernelLog {
 public:
  // Opens /dev/kmsg or a growing ordinary file and skips its existing lines, so Xids reported while no agent
  // was running are not read.
  static Outcome<KernelLog> open(const std::string& path);

  // Returns the Xids since the last call, oldest first. Reads at most 1,024 lines or 64 KiB; the next call
  // reads the rest.
  std::vector<XidRecord> read();

 private:
  explicit KernelLog(os::Fd fd) : fd_(std::move(fd)) {}

  os::Fd fd_;
  std::string line_;  // Beginning of a line whose end was not read yet.
};

}  // namespace carve::node

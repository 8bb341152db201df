// carve-sim fault DIR KIND [--device N] ...: injects a fault into a device, and clears it.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>

#include "abi/cuda_values.h"
#include "sim/model/device_engine.h"
#include "sim/model/memory.h"
#include "sim/set/set.h"
#include "sim/tool/profile.h"
#include "sim/tool/tool_verbs.h"

namespace carve::sim {
namespace {

// Returns the result that a process gets after an Xid, according to NVIDIA's list of Xid messages: 13 and 31
// are faults of the program, 48, 63, 64, 94 and 95 are memory errors, 74 is an NVLink error, and 79 is a
// device that has fallen off the bus.
uint32_t result_of(uint64_t xid) {
  switch (xid) {
    case 13: return CUDA_ERROR_LAUNCH_FAILED;
    case 31: return CUDA_ERROR_ILLEGAL_ADDRESS;
    case 48:
    case 63:
    case 64:
    case 94:
    case 95: return CUDA_ERROR_ECC_UNCORRECTABLE;
    case 74: return CUDA_ERROR_NVLINK_UNCORRECTABLE;
    default: return CUDA_ERROR_UNKNOWN;
  }
}

uint64_t size(const std::string& text) {
  for (const auto& [unit, shift] : {std::pair{"KiB", 10}, {"MiB", 20}, {"GiB", 30}})
    if (text.ends_with(unit)) return whole_number(text.substr(0, text.size() - 3), "--above") << shift;
  throw Usage("'" + text + "' is not a size; write a size such as 512MiB");
}

// Returns the slot of a process that uses the set.
uint32_t client_of(Set& set, uint64_t wanted) {
  for (uint32_t slot = 0; slot < max_clients; ++slot)
    if (int found = 0; alive(set, slot, set.file->clients[slot].generation, &found) &&
                       static_cast<uint64_t>(found) == wanted)
      return slot;
  throw Refused("process " + std::to_string(wanted) + " does not use this set");
}

std::string name_of_process(uint64_t pid) {
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/comm"), name);
  return name;
}

// Writes the line that the kernel driver writes to the kernel's log, in the form of /dev/kmsg: priority,
// number, microseconds, flags. If no process is given, the line names an unknown process. The form is
// documented in NVIDIA's "XID Errors".
void log_xid(const std::string& dir, const Device& d, uint64_t code, std::optional<uint64_t> pid,
             uint64_t now) {
  char address[32];
  std::snprintf(address, sizeof address, "%04x:%02x:%02x", d.facts.pci_domain, d.facts.pci_bus,
                d.facts.pci_device);
  std::ostringstream line;
  line << "3," << d.faults.xid_serial << ',' << now / 1000 << ",-;NVRM: Xid (PCI:" << address
       << "): " << code;
  if (pid)
    line << ", pid=" << *pid << ", name=" << name_of_process(*pid);
  else
    line << ", pid='<unknown>', name=<unknown>";
  line << ", simulated\n";
  std::ofstream(dir + "/kernel.log", std::ios::app) << line.str();
}

}  // namespace

int fault(const Arguments& arguments) {
  if (arguments.words.size() < 2)
    throw Usage(
        "fault takes a directory and one of out-of-memory, xid CODE, hung-kernel, slow-nvml TIME, "
        "device-lost, mig, mps, no-accounting or clear");
  const std::string &dir = arguments.words[0], &kind = arguments.words[1];
  Set set;
  if (open_set(dir.c_str(), &set) != Opened::yes)
    throw Refused("cannot open a device set of this release in " + dir);
  const auto option = [&](const char* name) -> const std::string* {
    const auto found = arguments.options.find(name);
    return found == arguments.options.end() ? nullptr : &found->second;
  };
  const std::string* argument = arguments.words.size() > 2 ? &arguments.words[2] : nullptr;
  unsigned first = 0, last = set.count - 1;
  if (const std::string* device = option("device")) {
    const uint64_t n = whole_number(*device, "--device");
    if (n >= set.count)
      throw Refused("--device " + *device + ": the set has devices 0 to " + std::to_string(set.count - 1));
    first = last = static_cast<unsigned>(n);
  }
  for (unsigned i = first; i <= last; ++i) {
    Device& d = *set.devices[i];
    const Locked lock(d, tool_timeout);
    if (!lock.held()) throw Refused(set_stopped);
    const uint64_t now = now_ns();
    advance(d, now);
    if (kind == "out-of-memory") {
      if (const std::string* above = option("above"))
        d.faults.out_of_memory_above = size(*above);
      else if (const std::string* count = option("count"))
        d.faults.out_of_memory = static_cast<int64_t>(whole_number(*count, "--count"));
      else
        d.faults.out_of_memory = -1;
    } else if (kind == "xid") {
      if (!argument) throw Usage("xid takes the code, for example: fault " + dir + " xid 31");
      const uint64_t code = whole_number(*argument, "xid");
      std::optional<uint64_t> pid;
      if (const std::string* text = option("pid")) pid = whole_number(*text, "--pid");
      raise_xid(d, code, result_of(code), pid ? client_of(set, *pid) : max_clients, now);
      log_xid(dir, d, code, pid, now);
      if (code == 79) d.faults.lost = 1;
    } else if (kind == "hung-kernel") {
      d.faults.hang = 1;
    } else if (kind == "slow-nvml") {
      d.faults.slow_nvml_ns = argument ? nanoseconds(*argument, "slow-nvml") : 500'000'000;
    } else if (kind == "device-lost") {
      raise_xid(d, 79, result_of(79), max_clients, now);
      log_xid(dir, d, 79, std::nullopt, now);
      d.faults.lost = 1;
    } else if (kind == "mig") {
      d.faults.mig = 1;
    } else if (kind == "mps") {
      d.faults.mps = 1;
    } else if (kind == "no-accounting") {
      d.faults.no_accounting = 1;
    } else if (kind == "clear") {
      d.faults.out_of_memory = 0;
      d.faults.out_of_memory_above = 0;
      d.faults.hang = d.faults.lost = d.faults.mig = d.faults.mps = d.faults.no_accounting = 0;
      d.faults.slow_nvml_ns = 0;
      release_hung(d, now);
    } else {
      throw Usage("'" + kind +
                  "' is not a fault; use out-of-memory, xid, hung-kernel, slow-nvml, device-lost, mig, mps, "
                  "no-accounting or clear");
    }
  }
  return 0;
}

}  // namespace carve::sim

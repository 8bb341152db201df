// carve-sim fault DIR KIND [--device N] ...: breaks a device on command, and restores it.
#include <functional>
#include <iostream>

#include "abi/cuda_values.h"
#include "sim/model/device_engine.h"
#include "sim/model/memory.h"
#include "sim/set/set.h"
#include "sim/tool/profile.h"
#include "sim/tool/tool_verbs.h"

namespace carve::sim {
namespace {

// Returns the result that a process gets after an Xid, by NVIDIA's list of Xid messages: 13 and 31 are the
// program's own fault, 48, 63, 64, 94, 95 are memory, 79 is a device that fell off the bus, 74 the NVLink.
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
  throw Usage("'" + text + "' is not a size; a valid size is 512MiB");
}

const std::string* option(const Arguments& arguments, const char* name) {
  const auto found = arguments.options.find(name);
  return found == arguments.options.end() ? nullptr : &found->second;
}

void refuse_allocations(Faults& faults, const Arguments& arguments) {
  if (const std::string* above = option(arguments, "above"))
    faults.out_of_memory_above = size(*above);
  else if (const std::string* count = option(arguments, "count"))
    faults.out_of_memory = static_cast<int64_t>(whole_number(*count, "--count"));
  else
    faults.out_of_memory = -1;
}

// Returns the process's slot in the set. Throws if the process does not use the set.
uint32_t client_of(const Set& set, const std::string& pid) {
  const uint64_t wanted = whole_number(pid, "--pid");
  uint32_t client = max_clients;
  for (uint32_t slot = 0; slot < max_clients; ++slot)
    if (int found = 0; alive(set, slot, set.file->clients[slot].generation, &found) &&
                       static_cast<uint64_t>(found) == wanted)
      client = slot;
  if (client == max_clients) throw Refused("process " + pid + " does not use this set");
  return client;
}

void clear_faults(Device& d, uint64_t now) {
  d.faults.out_of_memory = 0;
  d.faults.out_of_memory_above = 0;
  d.faults.hang = d.faults.lost = d.faults.mig = d.faults.mps = 0;
  d.faults.slow_nvml_ns = 0;
  release_hung(d, now);
}

}  // namespace

int fault(const Arguments& arguments) {
  if (arguments.words.size() < 2)
    throw Usage(
        "fault takes a directory and one of out-of-memory, xid CODE, hung-kernel, slow-nvml TIME, "
        "device-lost, mig, mps, clear");
  const std::string &dir = arguments.words[0], &kind = arguments.words[1];
  Set set;
  if (open_set(dir.c_str(), &set) != Opened::yes) throw Refused(dir + " holds no device set of this release");
  const std::string* argument = arguments.words.size() > 2 ? &arguments.words[2] : nullptr;
  unsigned first = 0, last = set.count - 1;
  if (const std::string* device = option(arguments, "device")) {
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
      refuse_allocations(d.faults, arguments);
    } else if (kind == "xid") {
      if (!argument) throw Usage("xid takes the code, for example: fault " + dir + " xid 31");
      const uint64_t code = whole_number(*argument, "xid");
      const std::string* pid = option(arguments, "pid");
      const uint32_t client = pid != nullptr ? client_of(set, *pid) : max_clients;
      raise_xid(d, code, result_of(code), client, now);
      if (code == 79) d.faults.lost = 1;
    } else if (kind == "hung-kernel") {
      d.faults.hang = 1;
    } else if (kind == "slow-nvml") {
      d.faults.slow_nvml_ns = argument ? nanoseconds(*argument, "slow-nvml") : 500'000'000;
    } else if (kind == "device-lost") {
      raise_xid(d, 79, result_of(79), max_clients, now);
      d.faults.lost = 1;
    } else if (kind == "mig") {
      d.faults.mig = 1;
    } else if (kind == "mps") {
      d.faults.mps = 1;
    } else if (kind == "clear") {
      clear_faults(d, now);
    } else {
      throw Usage(
          "'" + kind +
          "' is not a fault; use out-of-memory, xid, hung-kernel, slow-nvml, device-lost, mig, mps or clear");
    }
  }
  return 0;
}

}  // namespace carve::sim

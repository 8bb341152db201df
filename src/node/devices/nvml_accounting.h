// NVML's accounting mode: the driver keeps the peak memory and the times of the processes that used a device,
// also after their end, in a ring of the newest (4,000 on current drivers). So a process that lives for less
// than the interval between two samples becomes known after its end.
//
// Source: NVIDIA, nvml.h of CUDA 13, "Accounting Statistics": Kepler and newer, off after the driver was
// loaded, turned on by root, not supported in MIG mode, "no negative impact on the GPU performance". Only the
// last ended process with a given pid is reported.
//
// Not measured on a real device: the clock of `startTime`. The header calls it a CPU timestamp in
// microseconds, and DCGM treats it as UTC.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "abi/nvml.h"
#include "base/bytes.h"

namespace carve::node {

// Null if the driver does not have it.
struct AccountingCalls {
  decltype(&nvmlDeviceGetAccountingMode) mode = nullptr;
  decltype(&nvmlDeviceSetAccountingMode) set_mode = nullptr;
  decltype(&nvmlDeviceGetAccountingPids) pids = nullptr;
  decltype(&nvmlDeviceGetAccountingStats) stats = nullptr;
};

struct AccountedProcess {
  int pid = 0;
  uint64_t start_us = 0;   // As the driver reports it.
  uint64_t active_ms = 0;  // Time with a context; 0 while it runs.
  Bytes peak;
  bool is_running = false;
};

struct AccountingSample {
  bool is_on = false;
  std::string trouble = "NVML has not answered yet";  // Why it is off.
  // The running processes, and those that ended since the last sample.
  std::vector<AccountedProcess> processes;
};

// The accounts of one device. Used by the sampler's thread only.
class Accounting {
 public:
  // Number of known processes that each sample reads again, since a pid may have been reused.
  static constexpr size_t read_again = 64;

  // Turns accounting on if the driver allows it, and does not repeat that if an administrator turns it off. A
  // process that had ended before the first call is never returned, because it is not known whether it had
  // attached.
  AccountingSample read(const AccountingCalls&, nvmlDevice_t);

 private:
  std::string turn_on(const AccountingCalls&, nvmlDevice_t);  // Returns why it is off; empty if it is on.
  std::vector<unsigned> pids_to_read(const std::vector<unsigned>& listed);

  bool was_on_ = false;
  bool listed_ = false;                 // The first list of processes was read.
  std::set<unsigned> before_;           // From the first list; not read yet.
  std::map<unsigned, uint64_t> ended_;  // Ended processes whose accounts were read: start, by pid.
  unsigned next_again_ = 0;             // The pid at which reading again continues.
};

}  // namespace carve::node

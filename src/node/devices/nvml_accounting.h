// NVML's accounting mode: the driver keeps the peak memory and the times of the processes that used a device,
// even after their end, in a ring of the newest ones (4,000 on current drivers). So a process that lives for
// less than the interval between two samples becomes known after its end.
//
// Source: NVIDIA, nvml.h of CUDA 13, "Accounting Statistics": Kepler and newer, off after the driver was
// loaded, turned on by root, not supported in MIG mode, "no negative impact on the GPU performance". Only the
// last ended process with a given pid is reported.
//
// The clock of `startTime` was not measured on a real device. The header calls it a CPU timestamp in
// microseconds, and DCGM treats it as UTC.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "abi/nvml.h"
#include "base/bytes.h"

namespace carve::node {

// NVML's entry points for accounting. Null if the driver lacks them.
struct AccountingCalls {
  decltype(&nvmlDeviceGetAccountingMode) mode = nullptr;
  decltype(&nvmlDeviceSetAccountingMode) set_mode = nullptr;
  decltype(&nvmlDeviceGetAccountingPids) pids = nullptr;
  decltype(&nvmlDeviceGetAccountingStats) stats = nullptr;
};

struct AccountedProcess {
  int pid = 0;
  uint64_t start_us = 0;   // Start as the driver reports it.
  uint64_t active_ms = 0;  // Time with a context; 0 while it runs.
  Bytes peak;
  bool is_running = false;
};

struct AccountingSample {
  bool is_on = false;
  std::string trouble = "NVML has not responded yet";  // Why accounting is off; empty if it is on.
  // The running processes, and those that have ended since the last sample.
  std::vector<AccountedProcess> processes;
};

// Reads the accounts of one device. Used only by the sampler's thread.
class Accounting {
 public:
  // Number of known processes that each sample reads again, because a pid may have been reused.
  static constexpr size_t read_again = 64;

  // Turns accounting on if the driver allows it. If an administrator turns it off, it stays off. A process
  // that had ended before the first call is never returned, because it is not known whether it was attached.
  AccountingSample read(const AccountingCalls&, nvmlDevice_t);

 private:
  std::string turn_on(const AccountingCalls&, nvmlDevice_t);  // Returns why it is off; empty if it is on.
  std::vector<unsigned> pids_to_read(const std::vector<unsigned>& listed);

  bool was_on_ = false;
  bool listed_ = false;                 // Whether the first list of processes was read.
  std::set<unsigned> before_;           // Pids from the first list that were not read yet.
  std::map<unsigned, uint64_t> ended_;  // Starts of ended processes that were read, by pid.
  unsigned next_again_ = 0;             // Next pid to read again.
};

}  // namespace carve::node

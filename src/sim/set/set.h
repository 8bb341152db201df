// A set of devices is a directory whose files every client maps: set.bin (the attached clients), device0.bin
// ... (one device each, sim/model/device_file.h), clients.lock (which clients are alive) and kernels.rules
// (the durations of kernels).
//
// The kernel determines which clients are alive: each client holds a record lock on its byte of clients.lock.
// The lock is dropped when the process dies for any reason, and when it execs (the descriptor is
// close-on-exec). A forked child does not inherit the lock. F_GETLK translates the holder's pid into the
// caller's pid namespace. The lock is also dropped when the process closes any descriptor of that file, so no
// code here closes one. One F_GETLK call takes about 0.8 us, so a sweep for dead clients runs at most once a
// millisecond, and always before a refusal.
#pragma once

#include <cstdint>

#include "sim/model/device_file.h"

namespace carve::sim {

struct Set {
  SetFile* file = nullptr;
  int clients_fd = -1;
  unsigned count = 0;
  unsigned driver = 0;  // Only the libraries of this driver may open the set (sim/drivers/drivers.h).
  Device* devices[max_devices] = {};
  uint64_t swept_ns[max_devices] = {};  // When this process last swept dead clients.
  char directory[512] = {};
};

enum class Opened { yes, absent, other_version, unreadable };

// Returns SIMGPU_DIR, or otherwise /run/simgpu if it exists, or otherwise nullptr.
const char* set_directory();

// Maps the set. `other_version` means that the set was created by another release of carve-sim.
Opened open_set(const char* directory, Set*);

// Returns CLOCK_MONOTONIC, the clock of the model.
uint64_t now_ns();

// Makes the calling process a client. Returns false if all slots are taken.
bool attach(Set&, uint32_t* slot, uint64_t* generation);

// Returns whether the holder of a slot is alive and has that generation. *pid (which may be null) receives
// its process id in the caller's pid namespace, or 0 if it is not visible from there.
bool alive(const Set&, uint32_t slot, uint64_t generation, int* pid);

// Returns the process id of a slot's holder with that generation, even after it has ended. Returns 0 if the
// slot has had three holders since, or if the process was in another pid namespace than the caller.
int pid_of(const Set&, uint32_t slot, uint64_t generation);

// Holds the device's lock for a scope, and first repairs what a dead holder left behind. A holder that is
// stopped (SIGSTOP, a frozen cgroup) is not dead, and no process can take the lock from it. The driver waits
// for it, as it would for a wedged device. NVML must not wait, since the process that froze the holder may be
// the caller. If a timeout in nanoseconds is given, the wait ends after that time and held() is false.
class Locked {
 public:
  explicit Locked(Device&);
  Locked(Device&, uint64_t patience_ns);
  bool held() const { return held_; }
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  void acquired(int result);

  Device& device_;
  bool held_ = false;
};

// Writes the path of the file with the bytes of a segment.
void segment_path(const Set&, unsigned device, unsigned index, char (&path)[640]);
// Returns the client for which a segment is counted, or nullptr if no recorded holder is alive. *pid is as in
// alive().
const SegmentHolder* segment_owner(const Set&, const Segment&, int* pid);
// Releases a segment's memory if no process still has its file open or mapped. Requires the lock.
bool reclaim_segment(Set&, unsigned device, unsigned index);

// Releases the contexts, holdings and segments of dead clients and closes their accounts. Requires the lock.
// Does nothing if the last sweep was less than a millisecond ago, unless `always` is set.
void sweep(Set&, unsigned device, uint64_t now, bool always = false);

}  // namespace carve::sim

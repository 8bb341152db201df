// A set of devices is a directory that every client maps: set.bin (who is attached), device0.bin ... (one
// device each, sim/model/layout.h), clients.lock (who is alive) and kernels.rules (how long a kernel takes).
//
// Alive is a matter of the kernel's: a client holds a record lock on its byte of clients.lock. The lock goes
// when the process dies, however it dies, and when it execs (the descriptor is close-on-exec); it is not
// inherited by a forked child; and F_GETLK translates the holder's pid into the asker's pid namespace. It
// also goes when the process closes any descriptor of that file, which is why nothing here ever closes it.
// One question costs about 0.8 us, so the dead are looked for at most once a millisecond, and always before a
// refusal.
#pragma once

#include <cstdint>

#include "sim/model/layout.h"

namespace carve::sim {

struct Set {
  SetFile* file = nullptr;
  int clients_fd = -1;
  unsigned count = 0;
  Device* devices[kDevices] = {};
  uint64_t swept_ns[kDevices] = {};  // When this process last looked for the dead.
  char directory[512] = {};
};

enum class Opened { yes, absent, other_version, unreadable };

// SIMGPU_DIR, else /run/simgpu where that exists; nullptr with neither.
const char* set_directory();

// Maps the set. `other_version` says that carve-sim of another release made it.
Opened open_set(const char* directory, Set*);

// CLOCK_MONOTONIC, the clock of the model.
uint64_t now_ns();

// Makes the calling process a client. False when all slots are taken.
bool attach(Set&, uint32_t* slot, uint64_t* generation);

// Whether the holder of a slot is the one of that generation and lives. *pid (may be null) is its process id
// in the caller's pid namespace, or 0 where it is not visible from here.
bool alive(const Set&, uint32_t slot, uint64_t generation, int* pid);

// Holds the device's lock for a scope, and first puts right what a dead holder left behind. A holder that is
// stopped (SIGSTOP, a frozen cgroup) is not dead, and nobody can take the lock from it. The driver waits for
// it, as it would for a wedged device; NVML must not, since who froze it may be asking: with a patience in
// nanoseconds the lock is given up after that time, and held() is false.
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

// The file with the bytes of a segment.
void segment_path(const Set&, unsigned device, unsigned index, char (&path)[640]);
// The client for which a segment is counted, nullptr if none of those it remembers lives; *pid as in alive().
const SegmentHolder* segment_owner(const Set&, const Segment&, int* pid);
// Gives a segment's memory back if nobody has its file open or mapped any more. With the lock held.
bool reclaim_segment(Set&, unsigned device, unsigned index);

// Takes from the dead what they held: contexts, holdings, segments. With the lock held. Does nothing if this
// was done less than a millisecond ago, unless `always`.
void sweep(Set&, unsigned device, uint64_t now, bool always = false);

}  // namespace carve::sim

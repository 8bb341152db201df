// Charging: what a call is about to take is reserved in the slice's budget first, so that the sum over all
// processes never passes the quota by a byte, and kept or given back afterwards. One change of the budget is
// a 16-byte compare and exchange and a note in this process's lane (wire/shm/budget.h), about 40 ns.
//
// A device has four lanes per process, so four threads can charge it at the same instant; a thread takes the
// first one that is free, and bytes go back on the lane that charged them.
#pragma once

#include "base/bytes.h"
#include "guest/quota/process.h"

namespace carve::guest {

// Everywhere below `device` is a budget: the index of a device in the slice, or `spilled(index)` for its
// bytes that live on the host.

// What the slice may hold on a device: the agent's quota, lowered by the environment's hint; UINT64_MAX
// where memory is counted but not limited; 0 on a device that was not granted.
uint64_t quota(const Process& process, unsigned device);

// What the slice holds, over all its processes and the growth that the agent found.
uint64_t used(const Process& process, unsigned device);

// Whether the agent lets this device's allocations live on the host where the quota is full.
inline bool may_spill(const Process& process, unsigned device) {
  return device < process.device_count &&
         __atomic_load_n(&process.control->devices[device].spill, __ATOMIC_RELAXED) != 0;
}

// A reservation that nobody keeps is given back at the end of its scope.
class Reservation {
 public:
  Reservation(Process& process, unsigned device, Bytes bytes);
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation();

  // Whether the quota allows it. Memory that is counted but not limited is always allowed; where it cannot
  // even be counted the charge is 0.
  explicit operator bool() const { return allowed_; }

  // Tries once more what was refused; or asks for something else instead.
  bool again();
  bool ask(Bytes bytes) {
    asked_ = bytes;
    return again();
  }

  // The call took more or less than was reserved. False where the quota forbids the difference; then the
  // reservation stands as it was.
  bool resize(Bytes bytes);

  Charge keep() {
    kept_ = true;
    return charge_;
  }
  Charge charge() const { return charge_; }

 private:
  Process& process_;
  Bytes asked_;
  unsigned device_;
  Charge charge_;
  bool allowed_ = false;
  bool kept_ = false;
};

void give_back(Process& process, const Charge& charge);

// What a standing charge is for has grown or shrunk to `bytes`. False where the quota forbids the growth;
// then nothing changed. One thread at a time for one charge.
bool recharge(Process& process, Charge& charge, Bytes bytes);

// The same for memory that is taken already: counted whatever the quota says.
void recharge_truth(Process& process, Charge& charge, Bytes bytes);

}  // namespace carve::guest

// Charging: the bytes that a call will take are first reserved in the slice's budget, and kept or released
// afterwards. So the sum over all processes never exceeds the quota. One change of the budget is a 16-byte
// compare and exchange and a record in this process's lane (wire/shm/budget.h), about 40 ns.
//
// A device has four lanes per process, so four threads can charge it at the same time. A thread takes the
// first free lane, and bytes are released on the lane that charged them.
#pragma once

#include "base/bytes.h"
#include "guest/process/process_page.h"

namespace carve::guest {

// In this file `device` is a budget: the index of a device in the slice, or `spilled(index)` for its bytes in
// host memory.

// Returns the memory quota of a device: the agent's quota, lowered by the environment's hint. UINT64_MAX if
// memory is counted but not limited; 0 on a device that was not granted.
uint64_t quota(const Process& process, unsigned device);

// Returns the bytes that the slice holds, over all its processes and the growth that the agent found.
uint64_t used(const Process& process, unsigned device);

// Returns whether this device's allocations may be in host memory when the quota is full.
inline bool may_spill(const Process& process, unsigned device) {
  return device < process.device_count &&
         __atomic_load_n(&process.control->devices[device].spill, __ATOMIC_RELAXED) != 0;
}

// A reservation, which is released at the end of its scope unless it is kept.
class Reservation {
 public:
  Reservation(Process& process, unsigned device, Bytes bytes);
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation();

  // Returns whether the quota allows the reservation. Memory that is counted but not limited is always
  // allowed. If it cannot even be counted, the charge is 0.
  explicit operator bool() const { return allowed_; }

  // again() retries a refused reservation; ask() replaces it with another amount.
  bool again();
  bool ask(Bytes bytes) {
    asked_ = bytes;
    return again();
  }

  // Adjusts the reservation to what the call took. Returns false, with the reservation unchanged, if the
  // quota forbids the difference.
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

// Moves the bytes of a charge from this process's lane to the lane of a shared block, in one exchange
// (shared_block.h). Returns false and changes nothing if the budget changes without pause.
bool move_to_block(Process& process, const Charge& charge, unsigned block);

// Adjusts a kept charge to `bytes`. Returns false and changes nothing if the quota forbids the growth. Only
// one thread at a time may change a charge.
bool recharge(Process& process, Charge& charge, Bytes bytes);

// Does the same for memory that is already taken, which is charged even above the quota.
void recharge_truth(Process& process, Charge& charge, Bytes bytes);

}  // namespace carve::guest

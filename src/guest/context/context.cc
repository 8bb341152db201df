// Contexts. A context takes hundreds of MiB of device memory that no argument of a call mentions. The agent
// has measured how much, and every entry point that creates a context charges that amount. When a context
// ends, its allocations end too, so their charges are released together with its own.
//
// A primary context belongs to the device, and the driver counts its uses. It begins with the first Retain
// and ends with the last Release, or with a Reset. Only the driver knows whether it exists
// (cuDevicePrimaryCtxGetState). So the hooks charge before a Retain, and query the driver after every other
// call. Several threads may retain and release at the same time. `Primary::word` holds whether the context is
// charged and how many Retains are in progress. A release changes nothing if a Retain is in progress or if
// the word has changed. cuDevicePrimaryCtxSetFlags needs no hook: it does not create the context (CUDA driver
// API, "Primary Context Management").
#include <sched.h>

#include "guest/launch/busy_time.h"
#include "guest/memory/physical.h"

using namespace carve;
using namespace carve::guest;

namespace {

uint64_t key_of(CUcontext context) { return reinterpret_cast<uint64_t>(context); }

Bytes context_size(const Process& p, unsigned device) {
  return {device < p.device_count ? p.control->devices[device].context_bytes : 0};
}

// Removes the records of the allocations of a context that ended.
void forget_allocations(Process& p, uint64_t context) {
  p.allocations.take_all_of(context, [&](const Record& r) {
    give_back(p, r.charge());
    if (r.bytes == 0) unpin_all_of(p, r.key);  // An array onto which other memory was mapped.
  });
  unspill_all_of(p, context);
  context_ended(p, context);
  synchronized();
}

template <class Create>
CUresult created(CUcontext* context, CUdevice device, Create create) {
  const Entered entered = enter();
  if (entered.refused) return CUDA_ERROR_SYSTEM_NOT_READY;
  if (entered.process == nullptr) return create();
  Process& p = *entered.process;
  const DeviceLookup found = find_device(p, device);
  if (found.result != CUDA_SUCCESS) return found.result;
  Reservation reservation(p, found.device, context_size(p, found.device));
  if (!granted(p, found.device, reservation)) return refused_by_quota(p);
  context_moved();
  const CUresult result = create();
  if (result != CUDA_SUCCESS || context == nullptr) return result;
  if (remember(p, p.contexts, key_of(*context), *context, reservation)) return result;
  driver<&cuCtxDestroy_v2>(*context);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// Releases the charge of a context whose last use ends. `all` means that the call ends all uses of the
// context and not just one.
template <class Destroy>
CUresult destroyed(CUcontext context, bool all, Destroy destroy) {
  Process* p = attached();
  Record record;
  if (p == nullptr || context == nullptr || !p->contexts.take(key_of(context), &record)) return destroy();
  context_moved();
  const CUresult result = destroy();
  if (result == CUDA_SUCCESS && (all || --record.uses == 0)) {
    forget_allocations(*p, record.context);
    give_back(*p, record.charge());
  } else {
    Record previous;
    p->contexts.put(record, &previous);
  }
  return result;
}

}  // namespace

CUresult cuCtxCreate(CUcontext* context, unsigned int flags, CUdevice device) {
  return created(context, device, [=] { return driver<&cuCtxCreate>(context, flags, device); });
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  return created(context, device, [=] { return driver<&cuCtxCreate_v2>(context, flags, device); });
}

CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* affinity, int count, unsigned int flags,
                        CUdevice device) {
  return created(context, device,
                 [=] { return driver<&cuCtxCreate_v3>(context, affinity, count, flags, device); });
}

CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params, unsigned int flags, CUdevice device) {
  return created(context, device, [=] { return driver<&cuCtxCreate_v4>(context, params, flags, device); });
}

CUresult cuGLCtxCreate(CUcontext* context, unsigned int flags, CUdevice device) {
  return created(context, device, [=] { return driver<&cuGLCtxCreate>(context, flags, device); });
}

CUresult cuGLCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  return created(context, device, [=] { return driver<&cuGLCtxCreate_v2>(context, flags, device); });
}

CUresult cuVDPAUCtxCreate(CUcontext* context, unsigned int flags, CUdevice device, unsigned int vdpau,
                          void* get_address) {
  return created(context, device,
                 [=] { return driver<&cuVDPAUCtxCreate>(context, flags, device, vdpau, get_address); });
}

CUresult cuVDPAUCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device, unsigned int vdpau,
                             void* get_address) {
  return created(context, device,
                 [=] { return driver<&cuVDPAUCtxCreate_v2>(context, flags, device, vdpau, get_address); });
}

CUresult cuCtxDestroy(CUcontext context) {
  return destroyed(context, true, [=] { return driver<&cuCtxDestroy>(context); });
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  return destroyed(context, true, [=] { return driver<&cuCtxDestroy_v2>(context); });
}

CUresult cuCtxDetach(CUcontext context) {
  return destroyed(context, false, [=] { return driver<&cuCtxDetach>(context); });
}

CUresult cuCtxAttach(CUcontext* context, unsigned int flags) {
  const CUresult result = driver<&cuCtxAttach>(context, flags);
  Process* p = attached();
  Record record;
  if (result != CUDA_SUCCESS || p == nullptr || context == nullptr ||
      !p->contexts.take(key_of(*context), &record))
    return result;
  ++record.uses;
  Record previous;
  p->contexts.put(record, &previous);
  return result;
}

namespace {

constexpr uint64_t charged_bit = 1, charging_bit = 2, one_retain = 4, retains_mask = 0xffff'fffc,
                   one_change = uint64_t{1} << 32;

bool moved(Primary& primary, uint64_t from, uint64_t to) {
  return primary.word.compare_exchange_strong(from, to + one_change);
}

// Releases the charge if the context ended and no thread is retaining it.
void settle_primary(Process& p, Primary& primary, unsigned index, CUdevice device) {
  const uint64_t word = primary.word.load();
  if ((word & (charged_bit | charging_bit)) != charged_bit || (word & retains_mask) != 0) return;
  unsigned flags = 0;
  int active = 0;
  if (driver<&cuDevicePrimaryCtxGetState>(device, &flags, &active) != CUDA_SUCCESS || active != 0) return;
  const Charge charge = {primary.bytes.load(), static_cast<uint16_t>(index), primary.lane.load()};
  const uint64_t context = primary.context.load();
  if (!moved(primary, word, word & ~charged_bit)) return;
  if (context != 0) forget_allocations(p, context);
  give_back(p, charge);
}

// Counts a Retain, and charges the context if it is not charged. Returns false if the quota forbids it.
bool begin_retain(Process& p, Primary& primary, unsigned index) {
  for (;;) {
    const uint64_t word = primary.word.load();
    if ((word & charging_bit) != 0) {
      sched_yield();  // Takes tens of nanoseconds, or longer while this process trims its own pools.
    } else if ((word & charged_bit) != 0) {
      if (moved(primary, word, word + one_retain)) return true;
    } else if (moved(primary, word, word | charging_bit)) {
      Reservation reservation(p, index, context_size(p, index));
      const bool allowed = granted(p, index, reservation);
      if (allowed) {
        const Charge charge = reservation.keep();
        primary.bytes.store(charge.bytes);
        primary.lane.store(charge.lane);
      }
      // No other thread changes the word while the bit is set.
      const uint64_t done = (word & ~charging_bit) + (allowed ? charged_bit + one_retain : 0);
      primary.word.store(done + 2 * one_change);
      return allowed;
    }
  }
}

void end_retain(Primary& primary) {
  for (;;) {
    const uint64_t word = primary.word.load();
    if (moved(primary, word, word - one_retain)) return;
  }
}

template <class End>
CUresult ended(CUdevice device, End end) {
  const CUresult result = end();
  Process* p = attached();
  if (p == nullptr) return result;
  const DeviceLookup found = find_device(*p, device);
  if (found.result == CUDA_SUCCESS && found.device != not_granted)
    settle_primary(*p, p->primary[found.device], found.device, device);
  return result;
}

}  // namespace

namespace {

// `retain()` is a driver call that creates the primary context or keeps it alive.
template <class Retain>
CUresult retained(CUdevice device, CUcontext* context, Retain retain) {
  const Entered entered = enter();
  if (entered.refused) return CUDA_ERROR_SYSTEM_NOT_READY;
  if (entered.process == nullptr) return retain();
  Process& p = *entered.process;
  const DeviceLookup found = find_device(p, device);
  if (found.result != CUDA_SUCCESS) return found.result;
  if (found.device == not_granted) return CUDA_ERROR_OUT_OF_MEMORY;
  Primary& primary = p.primary[found.device];
  if (!begin_retain(p, primary, found.device)) return refused_by_quota(p);
  const CUresult result = retain();
  if (result == CUDA_SUCCESS && context != nullptr) primary.context.store(key_of(*context));
  end_retain(primary);
  if (result != CUDA_SUCCESS) settle_primary(p, primary, found.device, device);
  return result;
}

}  // namespace

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return retained(device, context, [=] { return driver<&cuDevicePrimaryCtxRetain>(context, device); });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return ended(device, [=] { return driver<&cuDevicePrimaryCtxRelease>(device); });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return ended(device, [=] { return driver<&cuDevicePrimaryCtxRelease_v2>(device); });
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return ended(device, [=] { return driver<&cuDevicePrimaryCtxReset>(device); });
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return ended(device, [=] { return driver<&cuDevicePrimaryCtxReset_v2>(device); });
}

// A green context is a part of the device's primary context, which it keeps alive (CUDA driver API, "Green
// Contexts"). No call reports what it takes beyond that; the agent finds that memory as growth.
CUresult cuGreenCtxCreate(CUgreenCtx* context, CUdevResourceDesc description, CUdevice device,
                          unsigned int flags) {
  const CUresult result = retained(
      device, nullptr, [=] { return driver<&cuGreenCtxCreate>(context, description, device, flags); });
  Process* p = attached();
  if (result != CUDA_SUCCESS || p == nullptr || context == nullptr) return result;
  Record previous;
  Record record = record_of(reinterpret_cast<uint64_t>(*context), 0, {});
  record.uses = static_cast<uint32_t>(device);
  p->green.put(record, &previous);
  return result;
}

CUresult cuGreenCtxDestroy(CUgreenCtx context) {
  Process* p = attached();
  Record record;
  if (p == nullptr || !p->green.take(reinterpret_cast<uint64_t>(context), &record))
    return driver<&cuGreenCtxDestroy>(context);
  return ended(static_cast<CUdevice>(record.uses), [=] { return driver<&cuGreenCtxDestroy>(context); });
}

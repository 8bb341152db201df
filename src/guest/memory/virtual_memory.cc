// Virtual memory management and multicast. physical.h describes which references keep memory charged.
#include "guest/memory/location.h"
#include "guest/memory/physical.h"
#include "guest/memory/sharing.h"
#include "wire/shm/exports.h"

namespace carve::guest {
namespace {

// The smallest mapping: the granularity of every known device.
constexpr uint64_t granule = 2 << 20;

// Creates a new identity with one use. Returns 0 if there is no memory for the records.
uint64_t enter_physical(Process& p, CUmemGenericAllocationHandle handle, const Charge& charge) {
  const uint64_t id = p.last_physical.fetch_add(1, std::memory_order_relaxed) + 1;
  Record previous;
  if (!p.physicals.put(record_of(id, 0, charge), &previous)) return 0;
  if (p.handles.put(record_of(handle, id, {}), &previous)) {
    if (previous.key != 0) let_go(p, previous.context);  // A handle whose release went unnoticed.
    return id;
  }
  Record gone;
  p.physicals.take(id, &gone);
  return 0;
}

}  // namespace

void hold(Process& p, uint64_t physical) {
  Record record;
  p.physicals.use(physical, 1, &record);
}

void let_go(Process& p, uint64_t physical) {
  Record record;
  if (!p.physicals.use(physical, -1, &record) || record.uses != 0) return;
  unpin_all_of(p, physical);  // The bindings of a multicast object.
  give_back(p, record.charge());
}

uint64_t physical_of(Process& p, CUmemGenericAllocationHandle handle) {
  Record record;
  return p.handles.find(handle, &record) ? record.context : 0;
}

uint64_t physical_at(Process& p, CUdeviceptr address) {
  // The mapping begins at a granule at or before the address; no mapping is larger than 1 TiB.
  CUdeviceptr start = address & ~(granule - 1);
  Record record;
  for (unsigned steps = 0; steps < 1 << 19; ++steps, start -= granule) {
    if (!p.mappings.find(start, &record)) continue;
    return address - start < record.bytes ? record.context : 0;
  }
  return 0;
}

void pin(Process& p, uint64_t slot, uint64_t owner, uint64_t physical) {
  Record previous;
  if (physical == 0) {
    if (p.pins.take(slot, &previous)) let_go(p, previous.bytes);
    return;
  }
  hold(p, physical);
  // If there is no memory for the record, the hold stays: the bytes are charged for longer than necessary,
  // but never too short.
  if (p.pins.put(record_of(slot, owner, {physical, 0, 0}), &previous) && previous.key != 0)
    let_go(p, previous.bytes);
}

void unpin_all_of(Process& p, uint64_t owner) {
  // Works in small batches, because let_go() may unpin further memory and must not be called under a table's
  // lock.
  for (bool more = true; more;) {
    uint64_t gone[32];
    unsigned count = 0;
    more = false;
    p.pins.take_some_of(owner, [&](const Record& r) {
      gone[count++] = r.bytes;
      return !(more = count == std::size(gone));
    });
    for (unsigned i = 0; i < count; ++i) let_go(p, gone[i]);
  }
}

uint64_t map_key_of(const void* bytes, size_t count) {
  const uint64_t slot = shm::identity_of(static_cast<const unsigned char*>(bytes), count);
  return slot != 0 ? slot : 1;
}

}  // namespace carve::guest

using namespace carve;
using namespace carve::guest;

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* prop,
                     unsigned long long flags) {
  const auto create = [=] { return driver<&cuMemCreate>(handle, size, prop, flags); };
  const Entered entered = enter();
  if (entered.refused) return CUDA_ERROR_SYSTEM_NOT_READY;
  if (entered.process == nullptr || prop == nullptr || handle == nullptr || !is_on_device(prop->location))
    return create();
  Process& p = *entered.process;
  const DeviceLookup found = find_device(p, device_in(prop->location));
  if (found.result != CUDA_SUCCESS) return create();  // The driver's own error for an invalid device.
  Reservation reservation(p, found.device, {size});
  if (!granted(p, found.device, reservation)) return refused_by_quota(p);
  const CUresult result = create();
  if (result != CUDA_SUCCESS) return result;
  if (enter_physical(p, *handle, reservation.charge()) == 0) {
    driver<&cuMemRelease>(*handle);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  reservation.keep();
  return result;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  Process* p = attached();
  if (p == nullptr) return driver<&cuMemRelease>(handle);
  // The record's use is removed before the driver's call. After it, the number may denote other memory.
  Record record;
  const bool ours = p->handles.use(handle, -1, &record);
  const CUresult result = driver<&cuMemRelease>(handle);
  if (!ours) return result;
  if (result == CUDA_SUCCESS) {
    if (record.uses == 0) let_go(*p, record.context);
  } else if (record.uses != 0) {
    p->handles.use(handle, 1, &record);
  } else {
    Record previous;
    p->handles.put(record_of(handle, record.context, {}), &previous);
  }
  return result;
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  const CUresult result = driver<&cuMemMap>(address, size, offset, handle, flags);
  Process* p = attached();
  const uint64_t physical = result == CUDA_SUCCESS && p != nullptr ? physical_of(*p, handle) : 0;
  if (physical == 0) return result;
  hold(*p, physical);
  Record previous;
  if (p->mappings.put(record_of(address, physical, {size, 0, 0}), &previous)) {
    if (previous.key != 0) let_go(*p, previous.context);
    return result;
  }
  driver<&cuMemUnmap>(address, size);
  let_go(*p, physical);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// The range may contain several complete mappings (CUDA driver API, cuMemUnmap). Until the hook returns, the
// range belongs to the caller, so no other thread can have mapped there again.
CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
  const CUresult result = driver<&cuMemUnmap>(address, size);
  Process* p = attached();
  if (result != CUDA_SUCCESS || p == nullptr) return result;
  for (uint64_t done = 0; done < size;) {
    Record mapping;
    if (p->mappings.take(address + done, &mapping)) {
      let_go(*p, mapping.context);
      done += mapping.bytes;
    } else {
      done += granule;
    }
  }
  return result;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  const CUresult result = driver<&cuMemRetainAllocationHandle>(handle, address);
  Process* p = attached();
  if (result != CUDA_SUCCESS || p == nullptr || handle == nullptr) return result;
  Record record;
  if (p->handles.use(*handle, 1, &record)) return result;
  // The handle had been released, and the driver returned it again for the mapping's memory.
  const uint64_t physical = physical_at(*p, reinterpret_cast<CUdeviceptr>(address));
  if (physical == 0) return result;
  hold(*p, physical);
  if (Record previous; !p->handles.put(record_of(*handle, physical, {}), &previous)) let_go(*p, physical);
  return result;
}

namespace {

// Makes the memory a shared block permanently. The caller must hold a reference to the memory. Returns
// no_block if the slice has no free block. `within` is the name of the object that keeps the memory, or 0.
unsigned shared_physical(Process& p, uint64_t physical, SharedBlockKind kind, uint64_t within) {
  p.exporting.lock();
  Record memory;
  unsigned block = no_block;
  if (!p.physicals.find(physical, &memory)) {
    p.exporting.unlock();
    return block;
  }
  if (memory.device != in_shared_block) {
    const uint64_t name = kind == SharedBlockKind::descriptor ? new_name() : shm::handle_name_of(new_name());
    block = share(p, memory.charge(), kind, name, within);
    if (block != no_block) p.physicals.recharge(physical, charge_of_block(block));
    p.exporting.unlock();
    return block;
  }
  block = static_cast<unsigned>(memory.bytes);
  shm::SharedBlock& known = block_of(p, memory.charge());
  const auto is = [&](SharedBlockKind k) { return known.kind.load() == static_cast<uint32_t>(k); };
  if (kind == SharedBlockKind::descriptor &&
      is(SharedBlockKind::bound)) {  // No other process knows its name.
    known.name.store(shm::lock_name_of(new_name(), block));
    known.kind.store(static_cast<uint32_t>(kind));
  }
  if (within != 0 && known.within.load() != within) {
    // A block records only one containing object. Memory that is bound to two objects stays charged until the
    // slice ends.
    if (known.within.load() != 0) known.kind.store(static_cast<uint32_t>(SharedBlockKind::unnamed));
    known.within.store(within);
  }
  p.exporting.unlock();
  return block;
}

}  // namespace

CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
  const auto make = [=] { return driver<&cuMemExportToShareableHandle>(out, handle, type, flags); };
  Process* p = attached();
  const uint64_t physical = p != nullptr ? physical_of(*p, handle) : 0;
  if (physical == 0 || out == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return exported(make(), out, type);
  hold(*p, physical);
  const unsigned block = shared_physical(*p, physical, SharedBlockKind::descriptor, 0);
  const CUresult result = block != no_block ? exported(make(), out, type) : CUDA_ERROR_OUT_OF_MEMORY;
  if (result == CUDA_SUCCESS) {
    int fd = -1;
    __builtin_memcpy(&fd, out, sizeof fd);
    shm::SharedBlock& shared = p->report->charges.block[block];
    if (!name_descriptor(fd, shared.name.load())) keep_until_slice_ends(*p, block);
  }
  let_go(*p, physical);
  return result;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* os_handle,
                                        CUmemAllocationHandleType type) {
  const auto import = [=] { return driver<&cuMemImportFromShareableHandle>(handle, os_handle, type); };
  const Entered entered = enter();
  if (entered.refused) return CUDA_ERROR_SYSTEM_NOT_READY;
  Process* p = entered.process;
  if (p == nullptr || handle == nullptr) return import();
  const Imported from = imported(*p, os_handle, type);
  if (from.is_foreign) return CUDA_ERROR_NOT_PERMITTED;
  if (from.block == no_block) return import();
  const CUresult result = import();
  Record record;
  if (result != CUDA_SUCCESS || p->handles.use(*handle, 1, &record)) {  // No handle was returned, or the
                                                                        // handle is already recorded.
    leave(*p, from.block);
    return result;
  }
  if (enter_physical(*p, *handle, charge_of_block(from.block)) != 0) return result;
  driver<&cuMemRelease>(*handle);
  leave(*p, from.block);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// A multicast object takes no memory itself; memory bound to it stays allocated while the object exists. An
// object that can be exported is a shared block from the beginning, so that the memory bound to it can be
// within that block.
CUresult cuMulticastCreate(CUmemGenericAllocationHandle* handle, const CUmulticastObjectProp* prop) {
  const Entered entered = enter();
  if (entered.refused) return CUDA_ERROR_SYSTEM_NOT_READY;
  const CUresult result = driver<&cuMulticastCreate>(handle, prop);
  if (result != CUDA_SUCCESS || entered.process == nullptr || handle == nullptr || prop == nullptr)
    return result;
  Process& p = *entered.process;
  const uint64_t object = enter_physical(p, *handle, {});
  if (prop->handleTypes == 0 ||
      (object != 0 && shared_physical(p, object, SharedBlockKind::descriptor, 0) != no_block))
    return result;
  cuMemRelease(*handle);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

namespace {

// Records memory that a device bound. Each device binds its own memory at the same offset.
void bound(Process& p, CUmemGenericAllocationHandle multicast, size_t offset, unsigned device,
           uint64_t physical) {
  const uint64_t object = physical_of(p, multicast);
  const uint64_t numbers[3] = {object, offset, device};
  if (object != 0) pin(p, map_key_of(numbers, sizeof numbers), object, physical);
}

// Other processes may hold the object of a shared block, and therefore the memory that is bound to it.
void share_with_object(Process& p, CUmemGenericAllocationHandle multicast, uint64_t physical) {
  Record object;
  if (!p.physicals.find(physical_of(p, multicast), &object) || object.device != in_shared_block) return;
  const uint64_t name = block_of(p, object.charge()).name.load();
  // If there is no free block, the memory stays charged to this process until the process ends.
  static_cast<void>(ensure(shared_physical(p, physical, SharedBlockKind::bound, name) != no_block));
}

void bound_to(CUmemGenericAllocationHandle multicast, size_t offset,
              uint64_t (*find)(Process&, unsigned long long), unsigned long long what) {
  Process* p = attached();
  if (p == nullptr) return;
  const uint64_t physical = find(*p, what);
  if (physical != 0) share_with_object(*p, multicast, physical);
  if (Record memory; physical != 0 && p->physicals.find(physical, &memory))
    bound(*p, multicast, offset, device_of(*p, memory.charge()), physical);
}

}  // namespace

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle multicast, size_t offset,
                            CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
                            unsigned long long flags) {
  const CUresult result = driver<&cuMulticastBindMem>(multicast, offset, memory, memory_offset, size, flags);
  if (result == CUDA_SUCCESS) bound_to(multicast, offset, physical_of, memory);
  return result;
}

// The memory belongs to the device that the caller names; physical_of() finds the memory by its handle.
CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle multicast, CUdevice device, size_t offset,
                               CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
                               unsigned long long flags) {
  const CUresult result =
      driver<&cuMulticastBindMem_v2>(multicast, device, offset, memory, memory_offset, size, flags);
  if (result == CUDA_SUCCESS) bound_to(multicast, offset, physical_of, memory);
  return result;
}

CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle multicast, CUdevice device, size_t offset,
                                CUdeviceptr address, size_t size, unsigned long long flags) {
  const CUresult result = driver<&cuMulticastBindAddr_v2>(multicast, device, offset, address, size, flags);
  if (result == CUDA_SUCCESS) bound_to(multicast, offset, physical_at, address);
  return result;
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle multicast, size_t offset, CUdeviceptr address,
                             size_t size, unsigned long long flags) {
  const CUresult result = driver<&cuMulticastBindAddr>(multicast, offset, address, size, flags);
  if (result == CUDA_SUCCESS) bound_to(multicast, offset, physical_at, address);
  return result;
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle multicast, CUdevice device, size_t offset,
                           size_t size) {
  const CUresult result = driver<&cuMulticastUnbind>(multicast, device, offset, size);
  Process* p = attached();
  if (result != CUDA_SUCCESS || p == nullptr) return result;
  const DeviceLookup found = find_device(*p, device);
  if (found.result == CUDA_SUCCESS) bound(*p, multicast, offset, found.device, 0);
  return result;
}

#include "guest/memory/sharing.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest/memory/charged.h"
#include "wire/shm/exports.h"

namespace carve::guest {
namespace {

void publish(uint64_t identity) {
  Process* p = attached();
  if (p != nullptr && identity != 0) shm::publish(p->report->exports, *p->control, p->slot, identity);
}

bool is_foreign(uint64_t identity) {
  Process* p = attached();
  return p != nullptr && identity != 0 &&
         shm::origin_of(p->report->exports, *p->control, identity) == shm::Origin::foreign;
}

uint64_t identity_of(const CUipcMemHandle& handle) {
  unsigned char bytes[sizeof handle];
  memcpy(bytes, &handle, sizeof handle);
  return shm::identity_of(bytes, sizeof bytes);
}

int descriptor_in(const void* handle) {
  int fd = -1;
  memcpy(&fd, handle, sizeof fd);
  return fd;
}

}  // namespace

uint64_t identity_of_descriptor(int fd) {
  struct stat status;
  if (syscall(SYS_fstat, fd, &status) != 0 || S_ISCHR(status.st_mode)) return 0;
  const uint64_t numbers[2] = {status.st_dev, status.st_ino};
  unsigned char bytes[sizeof numbers];
  memcpy(bytes, numbers, sizeof numbers);
  return shm::identity_of(bytes, sizeof bytes);
}

CUresult exported(CUresult result, const void* handle, CUmemAllocationHandleType type) {
  if (result == CUDA_SUCCESS && handle != nullptr && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    publish(identity_of_descriptor(descriptor_in(handle)));
  return result;
}

// An imported descriptor is passed as the value of the pointer, an exported one in the pointed-to int.
Imported imported(Process& p, const void* handle, CUmemAllocationHandleType type) {
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return {false, no_block};
  const int fd = static_cast<int>(reinterpret_cast<intptr_t>(handle));
  const uint64_t name = name_of_descriptor(fd);
  if (name == 0) return {is_foreign(identity_of_descriptor(fd)), no_block};
  const unsigned block = join(p, name);
  return {block == no_block, block};
}

}  // namespace carve::guest

using namespace carve;
using namespace carve::guest;

namespace {

// Returns the start of the allocation that contains the address, or the address itself if no allocation does.
CUdeviceptr start_of(Process& p, CUdeviceptr address) {
  Record record;
  CUdeviceptr start = 0;
  if (p.allocations.find(address, &record) ||
      driver<&cuPointerGetAttribute>(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address) != CUDA_SUCCESS)
    return address;
  return start;
}

// Turns the charge of an allocation into a shared block. Returns false if the slice has no free block. Does
// nothing for memory that this process is not charged for, and for suballocations of a pool, for which the
// driver makes no handle.
bool shared_allocation(Process& p, CUdeviceptr pointer, uint64_t name) {
  Record record;
  p.exporting.lock();
  bool done = true;
  // While the record is removed, a free of the pointer (an error in the program) releases nothing.
  if (p.allocations.take(pointer, &record)) {
    if (record.device < p.device_count) {
      const unsigned block = share(p, record.charge(), SharedBlockKind::handle, name);
      done = block != no_block;
      if (done) record = record_of(record.key, record.context, charge_of_block(block));
    }
    Record previous;
    p.allocations.put(record, &previous);  // Its slot was just freed.
  }
  p.exporting.unlock();
  return done;
}

template <class Open>
CUresult opened(CUdeviceptr* pointer, const CUipcMemHandle& handle, unsigned int flags, Open open) {
  const Entered entered = enter();
  if (entered.refused) return CUDA_ERROR_SYSTEM_NOT_READY;
  const uint64_t identity = identity_of(handle);
  Process* p = entered.process;
  if (is_foreign(identity)) {  // The call must not reach the driver, so its other errors are detected here.
    constexpr unsigned lazy_peer_access = 1;  // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, the only valid flags.
    if (flags != lazy_peer_access) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = p != nullptr ? current(*p).result : CUDA_SUCCESS;
    return result != CUDA_SUCCESS ? result : CUDA_ERROR_MAP_FAILED;
  }
  const unsigned block = p != nullptr ? join(*p, shm::handle_name_of(identity)) : no_block;
  const CUresult result = open();
  if (block == no_block) return result;
  Record record;
  CUcontext context = nullptr;
  const bool is_new = result == CUDA_SUCCESS && pointer != nullptr && !p->allocations.find(*pointer, &record);
  if (is_new && driver<&cuCtxGetCurrent>(&context) == CUDA_SUCCESS &&
      p->allocations.put(record_of(*pointer, reinterpret_cast<uint64_t>(context), charge_of_block(block)),
                         &record))
    return result;
  // The memory was already open, or the call failed. If there is no memory for the record, the block stays
  // held until the process ends.
  if (result != CUDA_SUCCESS || (!is_new && p->allocations.use(*pointer, 1, &record))) leave(*p, block);
  return result;
}

}  // namespace

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  const CUresult result = driver<&cuIpcGetMemHandle>(handle, pointer);
  Process* p = attached();
  if (result != CUDA_SUCCESS || handle == nullptr || p == nullptr) return result;
  if (!shared_allocation(*p, start_of(*p, pointer), shm::handle_name_of(identity_of(*handle))))
    return CUDA_ERROR_OUT_OF_MEMORY;
  publish(identity_of(*handle));
  return result;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned int flags) {
  return opened(pointer, handle, flags, [&] { return driver<&cuIpcOpenMemHandle>(pointer, handle, flags); });
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned int flags) {
  return opened(pointer, handle, flags,
                [&] { return driver<&cuIpcOpenMemHandle_v2>(pointer, handle, flags); });
}

// The record is removed before the driver closes the memory, as for a free (charged.h).
CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  Process* p = attached();
  Record record;
  if (p == nullptr || !p->allocations.find(pointer, &record) || record.device != in_shared_block ||
      !p->allocations.use(pointer, -1, &record))
    return driver<&cuIpcCloseMemHandle>(pointer);
  const CUresult result = driver<&cuIpcCloseMemHandle>(pointer);
  if (result == CUDA_SUCCESS) {
    if (record.uses == 0) give_back(*p, record.charge());
    return result;
  }
  Record previous;
  if (record.uses != 0) {
    p->allocations.use(pointer, 1, &previous);
  } else {
    record.uses = 1;
    p->allocations.put(record, &previous);
  }
  return result;
}

// Memory of Vulkan, OpenGL or another allocator. No guest library charged its allocation, so the importer is
// charged, in full and in blocks of 2 MiB, on the current device.
CUresult cuImportExternalMemory(CUexternalMemory* out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* description) {
  const auto import = [=] { return driver<&cuImportExternalMemory>(out, description); };
  if (description == nullptr || out == nullptr) return import();
  const Bytes takes = rounded_up({description->size}, 2_MiB);
  return charged(
      takes, import, [=] { return takes; }, [=] { return reinterpret_cast<uint64_t>(*out); },
      [](uint64_t memory) { driver<&cuDestroyExternalMemory>(reinterpret_cast<CUexternalMemory>(memory)); });
}

CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
  return released(reinterpret_cast<uint64_t>(memory),
                  [=] { return driver<&cuDestroyExternalMemory>(memory); });
}

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
bool is_foreign(const void* handle, CUmemAllocationHandleType type) {
  return type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
         is_foreign(identity_of_descriptor(static_cast<int>(reinterpret_cast<intptr_t>(handle))));
}

}  // namespace carve::guest

using namespace carve;
using namespace carve::guest;

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  const CUresult result = driver<&cuIpcGetMemHandle>(handle, pointer);
  if (result == CUDA_SUCCESS && handle != nullptr) publish(identity_of(*handle));
  return result;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned int flags) {
  const Entered entered = enter();
  if (entered.refused) return CUDA_ERROR_SYSTEM_NOT_READY;
  if (is_foreign(identity_of(handle))) return CUDA_ERROR_MAP_FAILED;
  return driver<&cuIpcOpenMemHandle>(pointer, handle, flags);
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned int flags) {
  const Entered entered = enter();
  if (entered.refused) return CUDA_ERROR_SYSTEM_NOT_READY;
  if (is_foreign(identity_of(handle))) return CUDA_ERROR_MAP_FAILED;
  return driver<&cuIpcOpenMemHandle_v2>(pointer, handle, flags);
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

// The ioctls of nvidia-uvm.ko (kernel-open/nvidia-uvm/uvm_ioctl.h). Each structure ends with its status,
// which keeps the caller's 0 if a request succeeds.
#include <errno.h>
#include <stdlib.h>

#include "engines.h"
#include "ioctls.h"
#include "machine.h"
#include "mappings.h"
#include "memory.h"
#include "objects.h"
#include "trace.h"

namespace responder {
namespace {

// UVM_MAP_EXTERNAL_ALLOCATION_PARAMS: between these two parts is a table of attributes, for 32 devices or,
// from driver 550 on, for 256.
struct External {
  uint64_t base, length, offset;
};
struct ExternalEnd {
  uint64_t count;
  int32_t file;
  uint32_t client, memory, status;
};
size_t external_end() {
  constexpr size_t row = 36;  // Size of UvmGpuMappingAttributes.
  return sizeof(External) + row * (atoi(machine().version) >= 550 ? 256 : 32);
}

int map_external(char* argument) {
  External a;
  ExternalEnd end;
  if (!copy_in(&a, argument, sizeof a) || !copy_in(&end, argument + external_end(), sizeof end))
    return -EFAULT;
  Memory* const memory = memory_of(end.client, end.memory);
  end.status = memory == nullptr ? invalid_object_handle : ok;
  if (end.status == ok && !map_address(a.base, a.length, memory, a.offset)) end.status = invalid_argument;
  if (memory != nullptr) release(memory);
  if (end.status != ok) append("RESPONDER_LOG", "uvm map %#x: %#x\n", end.memory, end.status);
  return copy_out(argument + external_end(), &end, sizeof end) ? 0 : -EFAULT;
}

// UVM_UNMAP_EXTERNAL_PARAMS and UVM_FREE_PARAMS begin with base and length.
int unmap(char* argument) {
  uint64_t range[2];
  if (!copy_in(range, argument, sizeof range)) return -EFAULT;
  unmap_address(range[0], range[1]);
  return 0;
}

// UVM_MIGRATE_PARAMS: managed pages stay where they are. The semaphore that announces the end is written if
// there is one.
int migrate(char* argument) {
  struct Argument {
    uint64_t base, length;
    uint8_t destination[16];
    uint32_t flags, unused;
    uint64_t semaphore;
    uint32_t payload;
  } a;
  if (!copy_in(&a, argument, sizeof a)) return -EFAULT;
  if (a.semaphore == 0) return 0;
  const bool is_written = release_semaphore(a.semaphore, a.payload, false, false) == Outcome::done;
  if (!is_written)
    append("RESPONDER_LOG", "uvm migrate %#llx\n", static_cast<unsigned long long>(a.semaphore));
  return 0;
}

// UVM_ALLOC_SEMAPHORE_POOL_PARAMS begin with base and length. The next mmap() of nvidia-uvm maps the pool.
int semaphore_pool(char* argument) {
  uint64_t range[2];
  if (!copy_in(range, argument, sizeof range)) return -EFAULT;
  expect_pool(range[0], range[1]);
  return 0;
}

int unchanged(char*) { return 0; }

struct Row {
  unsigned number;
  int (*answer)(char* argument);
};
constexpr Row rows[] = {
    {0x01, unchanged},       // UVM_INITIALIZE (0x30000001)
    {0x02, unchanged},       // UVM_DEINITIALIZE (0x30000002)
    {0x17, unchanged},       // UVM_CREATE_RANGE_GROUP
    {0x18, unchanged},       // UVM_DESTROY_RANGE_GROUP
    {0x19, unchanged},       // UVM_REGISTER_GPU_VASPACE
    {0x1a, unchanged},       // UVM_UNREGISTER_GPU_VASPACE
    {0x1b, unchanged},       // UVM_REGISTER_CHANNEL
    {0x1c, unchanged},       // UVM_UNREGISTER_CHANNEL
    {0x1d, unchanged},       // UVM_ENABLE_PEER_ACCESS
    {0x1e, unchanged},       // UVM_DISABLE_PEER_ACCESS
    {0x1f, unchanged},       // UVM_SET_RANGE_GROUP
    {0x21, map_external},    // UVM_MAP_EXTERNAL_ALLOCATION
    {0x22, unmap},           // UVM_FREE
    {0x25, unchanged},       // UVM_REGISTER_GPU
    {0x26, unchanged},       // UVM_UNREGISTER_GPU
    {0x27, unchanged},       // UVM_PAGEABLE_MEM_ACCESS
    {0x28, unchanged},       // UVM_PREVENT_MIGRATION_RANGE_GROUPS
    {0x29, unchanged},       // UVM_ALLOW_MIGRATION_RANGE_GROUPS
    {0x2a, unchanged},       // UVM_SET_PREFERRED_LOCATION
    {0x2b, unchanged},       // UVM_UNSET_PREFERRED_LOCATION
    {0x2c, unchanged},       // UVM_ENABLE_READ_DUPLICATION
    {0x2d, unchanged},       // UVM_DISABLE_READ_DUPLICATION
    {0x2e, unchanged},       // UVM_SET_ACCESSED_BY
    {0x2f, unchanged},       // UVM_UNSET_ACCESSED_BY
    {0x33, migrate},         // UVM_MIGRATE
    {0x35, unchanged},       // UVM_MIGRATE_RANGE_GROUP
    {0x41, unchanged},       // UVM_MAP_DYNAMIC_PARALLELISM_REGION
    {0x42, unmap},           // UVM_UNMAP_EXTERNAL
    {0x44, semaphore_pool},  // UVM_ALLOC_SEMAPHORE_POOL
    {0x46, unchanged},       // UVM_PAGEABLE_MEM_ACCESS_ON_GPU
    {0x48, unchanged},       // UVM_VALIDATE_VA_RANGE
    {0x49, unchanged},       // UVM_CREATE_EXTERNAL_RANGE
    {0x4a, unchanged},       // UVM_MAP_EXTERNAL_SPARSE
    {0x4b, unchanged},       // UVM_MM_INITIALIZE
};

}  // namespace

int answer_uvm(unsigned number, void* argument) {
  for (const Row& row : rows)
    if (row.number == number) return row.answer(static_cast<char*>(argument));
  return -EINVAL;
}

}  // namespace responder

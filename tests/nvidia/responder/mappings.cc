#include "mappings.h"

#include <errno.h>

#include <map>
#include <mutex>

#include "ioctls.h"
#include "memory.h"
#include "objects.h"
#include "trace.h"

namespace responder {
namespace {

struct PendingMaps {
  std::mutex mutex;
  std::map<int, Pending> by_file;
};
PendingMaps& pending_maps() {
  static PendingMaps* const made = new PendingMaps;
  return *made;
}

constexpr uint32_t class_user_mode = 0xc461, class_shared_data = 0xde;

// Returns the object to map. The two mapped objects without memory, TURING_USERMODE_A with the doorbell and
// RM_USER_SHARED_DATA, get their own pages.
Memory* mappable(uint32_t client, uint32_t handle, uint64_t length) {
  const ObjectsLocked locked;
  Object* const object = find(client, handle);
  if (object == nullptr) return nullptr;
  const bool has_pages = object->class_ == class_user_mode || object->class_ == class_shared_data;
  if (object->memory == nullptr && has_pages && length <= 1 << 20)
    object->memory = make_memory(Place::system, object->gpu, length, length);
  return object->memory;
}

bool is_within(const Memory& memory, uint64_t offset, uint64_t length) {
  return length != 0 && offset <= memory.size && length <= memory.size - offset;
}

}  // namespace

bool take_pending(int file, Pending& pending) {
  PendingMaps& all = pending_maps();
  const std::lock_guard locked(all.mutex);
  const auto it = all.by_file.find(file);
  if (it == all.by_file.end()) return false;
  pending = it->second;
  all.by_file.erase(it);
  return true;
}

// nv_ioctl_nvos33_parameters_with_fd.
int answer_map(void* argument, size_t size) {
  struct Argument {
    uint32_t client, device, memory, unused;
    uint64_t offset, length, address;
    uint32_t status, flags;
    int file, unused_end;
  } a;
  if (size < sizeof a) return -EINVAL;
  if (!copy_in(&a, argument, sizeof a)) return -EFAULT;
  const Memory* const memory = mappable(a.client, a.memory, a.length);
  a.status = memory == nullptr ? invalid_object_handle : ok;
  if (a.status == ok && !is_within(*memory, a.offset, a.length)) a.status = invalid_argument;
  if (a.status == ok && memory->place == Place::foreign) a.status = not_supported;
  if (a.status == ok) {
    PendingMaps& all = pending_maps();
    const std::lock_guard locked(all.mutex);
    all.by_file[a.file] = {memory->offset + a.offset, a.length};
    a.address = 0;
  }
  if (a.status != ok) append("RESPONDER_LOG", "map %#x: %#x\n", a.memory, a.status);
  return copy_out(argument, &a, sizeof a) ? 0 : -EFAULT;
}

// NVOS34_PARAMETERS. The process itself unmaps its pages.
int answer_unmap(void* argument, size_t size) {
  uint32_t words[8];
  if (size < sizeof words) return -EINVAL;
  if (!copy_in(words, argument, sizeof words)) return -EFAULT;
  const ObjectsLocked locked;
  words[6] = find(words[0], words[2]) != nullptr ? ok : invalid_object_handle;
  return copy_out(argument, words, sizeof words) ? 0 : -EFAULT;
}

// NVOS46_PARAMETERS.
int answer_map_dma(void* argument, size_t size) {
  struct Argument {
    uint32_t client, device, space, memory;
    uint64_t offset, length;
    uint32_t flags, unused;
    uint64_t address;
    uint32_t status, unused_end;
  } a;
  if (size < sizeof a) return -EINVAL;
  if (!copy_in(&a, argument, sizeof a)) return -EFAULT;
  Memory* const memory = memory_of(a.client, a.memory);
  a.status = memory == nullptr ? invalid_object_handle : ok;
  if (a.status == ok && !map_address(a.address, a.length, memory, a.offset)) a.status = invalid_argument;
  if (memory != nullptr) release(memory);
  if (a.status != ok) append("RESPONDER_LOG", "map dma %#x: %#x\n", a.memory, a.status);
  return copy_out(argument, &a, sizeof a) ? 0 : -EFAULT;
}

// NVOS47_PARAMETERS.
int answer_unmap_dma(void* argument, size_t size) {
  struct Argument {
    uint32_t client, device, space, memory, flags, unused;
    uint64_t address, size;
    uint32_t status, unused_end;
  } a;
  if (size < sizeof a) return -EINVAL;
  if (!copy_in(&a, argument, sizeof a)) return -EFAULT;
  unmap_address(a.address, a.size != 0 ? a.size : mapped_from(a.address));
  a.status = ok;
  return copy_out(argument, &a, sizeof a) ? 0 : -EFAULT;
}

}  // namespace responder

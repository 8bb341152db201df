// Objects with memory (nvos.h), which drivers create in three ways: with NV_ESC_RM_ALLOC, with
// NV_ESC_RM_ALLOC_MEMORY for pages of the process, and before driver 550 with NV_ESC_RM_VID_HEAP_CONTROL.
#include "memory_objects.h"

#include <errno.h>

#include "ioctls.h"
#include "trace.h"

namespace responder {
namespace {

// NV_MEMORY_ALLOCATION_PARAMS (nvos.h).
struct MemoryParams {
  uint32_t owner, type, flags, width, height, pitch, attr, attr2, format, compression, depth, unused;
  uint64_t range_low, range_high, size, alignment, offset, limit, address;
  uint32_t tag_offset, address_space, internal_flags, tag;
  int32_t node;
  uint32_t unused_end;
};
static_assert(sizeof(MemoryParams) == 128);

// NV_OS_DESC_MEMORY_ALLOCATION_PARAMS.
struct ForeignParams {
  uint32_t type, flags, attr, attr2;
  uint64_t descriptor, limit;
  uint32_t descriptor_type, tag;
};
static_assert(sizeof(ForeignParams) == 40);

// Rounds to the page size in NVOS32_ATTR_PAGE_SIZE (bits 24:23): 4 KiB, 64 KiB or 2 MiB.
uint64_t round_to_page(uint64_t size, uint32_t attr) {
  constexpr uint64_t pages[] = {64 << 10, 4 << 10, 64 << 10, 2 << 20};
  const uint64_t page = pages[attr >> 23 & 3];
  return (size + page - 1) & ~(page - 1);
}

// Gives an object memory of `size` bytes and sets `size` to the size of its pages.
Status place_memory(Object& object, Place place, uint32_t attr, uint64_t& size) {
  const uint64_t rounded = round_to_page(size, attr);
  if (rounded == 0 || rounded < size) return invalid_argument;
  object.memory = make_memory(place, object.gpu, size, rounded);
  if (object.memory == nullptr) return no_memory;
  object.memory->attr = attr;
  size = rounded;
  return ok;
}

}  // namespace

Status make_object_memory(Object& object, void* user, Place place) {
  MemoryParams p;
  if (!copy_in(&p, user, sizeof p)) return invalid_pointer;
  const Status status = place_memory(object, place, p.attr, p.size);
  if (status != ok) return status;
  p.offset = object.memory->offset;
  p.limit = p.size - 1;
  if (copy_out(user, &p, sizeof p)) return ok;
  release(object.memory);
  return invalid_pointer;
}

Status make_object_foreign(Object& object, void* user) {
  ForeignParams p;
  if (!copy_in(&p, user, sizeof p)) return invalid_pointer;
  object.memory = make_foreign(object.gpu, reinterpret_cast<void*>(p.descriptor), p.limit + 1);
  return object.memory != nullptr ? ok : invalid_address;
}

// nv_ioctl_nvos02_parameters_with_fd: makes the user's pages a memory object.
int answer_alloc_memory(void* argument, size_t size) {
  struct Argument {
    uint32_t client, parent, handle, class_, flags, unused;
    uint64_t memory, limit;
    uint32_t status, unused_end;
  } a;
  if (size < sizeof a) return -EINVAL;
  if (!copy_in(&a, argument, sizeof a)) return -EFAULT;
  constexpr uint32_t class_foreign = 0x71;
  a.status = invalid_class;
  if (a.class_ == class_foreign && a.limit != ~uint64_t{0}) {
    const ObjectsLocked locked;
    const Object* const parent = find(a.client, a.parent);
    const unsigned gpu = parent != nullptr ? parent->gpu : 0;
    Memory* const pages = make_foreign(gpu, reinterpret_cast<void*>(a.memory), a.limit + 1);
    a.status = parent == nullptr ? invalid_object_parent : pages == nullptr ? invalid_address : ok;
    if (a.status == ok && !insert({a.client, a.handle, a.parent, a.class_, gpu, 0, pages, nullptr}))
      a.status = insufficient_resources;
    if (a.status != ok && pages != nullptr) release(pages);
  }
  if (a.status != ok) append("RESPONDER_LOG", "memory class %#x: %#x\n", a.class_, a.status);
  return copy_out(argument, &a, sizeof a) ? 0 : -EFAULT;
}

namespace {

// NVOS32_PARAMETERS with the union's AllocSize, up to the address.
struct HeapArgument {
  uint32_t client, parent, function, space, heap, status;
  uint64_t total, free;
  uint32_t owner, memory, type, flags, attr, format, compression, depth, stride, width, height, unused;
  uint64_t size, alignment, offset, limit, address;
};
static_assert(sizeof(HeapArgument) == 128);

// NVOS32_FUNCTION_ALLOC_SIZE. The request contains the handle, or 0 for a new one.
Status allocate_from_heap(HeapArgument& a) {
  constexpr uint32_t class_video = 0x40, class_system = 0x3e, class_virtual = 0x50a0;
  // NVOS32_ALLOC_FLAGS_VIRTUAL and NVOS32_ATTR_LOCATION_VIDMEM.
  const bool is_virtual = (a.flags >> 19 & 1) != 0, is_video = (a.attr >> 25 & 3) == 0;
  const ObjectsLocked locked;
  const Object* const parent = find(a.client, a.parent);
  if (parent == nullptr) return invalid_object_parent;
  if (a.memory == 0) a.memory = unused_handle(a.client);
  Object object = {
      a.client,    a.memory, a.parent, is_virtual ? class_virtual : is_video ? class_video : class_system,
      parent->gpu, 0,        nullptr,  nullptr};
  if (!is_virtual) {
    const Status status = place_memory(object, is_video ? Place::video : Place::system, a.attr, a.size);
    if (status != ok) return status;
    a.offset = object.memory->offset;
  }
  a.limit = a.size - 1;
  if (insert(object)) return ok;
  if (object.memory != nullptr) release(object.memory);
  return insert_duplicate_name;
}

}  // namespace

int answer_heap(void* argument, size_t size) {
  constexpr uint32_t alloc_size = 2;
  HeapArgument a;
  if (size < sizeof a) return -EINVAL;
  if (!copy_in(&a, argument, sizeof a)) return -EFAULT;
  a.status = a.function == alloc_size ? allocate_from_heap(a) : not_supported;
  if (a.status != ok) append("RESPONDER_LOG", "heap %#x: %#x\n", a.function, a.status);
  return copy_out(argument, &a, sizeof a) ? 0 : -EFAULT;
}

}  // namespace responder

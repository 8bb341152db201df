#include "classes.h"

#include <errno.h>

#include "channel.h"
#include "ioctls.h"
#include "machine.h"
#include "memory_objects.h"
#include "objects.h"
#include "trace.h"

namespace responder {
namespace {

// NVOS21_PARAMETERS, or NVOS64_PARAMETERS with the rights, up to the status.
struct Alloc {
  uint32_t client, parent, handle, class_;
  void* params;
};

Status make_device(Object& object, const void* user) {
  uint32_t instance = 0;  // NV0080_ALLOC_PARAMETERS::deviceId.
  if (user != nullptr && !copy_in(&instance, user, sizeof instance)) return invalid_pointer;
  if (instance >= machine().gpu_count) return invalid_device;
  object.gpu = instance;
  return ok;
}

// NV_CHANNEL_ALLOC_PARAMS (alloc/alloc_channel.h), up to the offset of the control structure in its memory.
struct ChannelParams {
  uint32_t error, buffer;
  uint64_t ring;
  uint32_t entries, flags, share, space;
  uint32_t control[8];
  uint64_t control_offset[8];
};
static_assert(sizeof(ChannelParams) == 128);

Status make_channel(Object& object, void* user) {
  ChannelParams p;
  if (!copy_in(&p, user, sizeof p)) return invalid_pointer;
  const Object* const control = find(object.client, p.control[0]);
  if (control == nullptr || control->memory == nullptr) return invalid_object_handle;
  const Object* const error = find(object.client, p.error);
  Memory* const errors = error != nullptr && error->memory != nullptr ? share(error->memory) : nullptr;
  Memory* const memory = share(control->memory);
  object.channel = open_channel({p.ring, p.entries, memory, p.control_offset[0], errors});
  if (object.channel != nullptr) return ok;
  release(memory);
  if (errors != nullptr) release(errors);
  return invalid_argument;
}

// NVB0B5_ALLOCATION_PARAMETERS: version 0 contains the number of a copy engine, and version 1 its type
// (cl2080_notification.h).
Status make_copy_object(Object& object, void* user) {
  uint32_t words[2];
  constexpr uint32_t first_copy = 9;
  if (!copy_in(words, user, sizeof words)) return invalid_pointer;
  object.engine = words[0] == 0 ? words[1] : words[1] - first_copy;
  return ok;
}

Status nothing(Object&, void*) { return ok; }
Status video(Object& o, void* user) { return make_object_memory(o, user, Place::video); }
Status system(Object& o, void* user) { return make_object_memory(o, user, Place::system); }
Status device(Object& o, void* user) { return make_device(o, user); }

constexpr uint32_t class_root = 0x0, class_root_client = 0x41;

// The classes that can be created, in addition to the root. The names are those in the headers in
// sdk/nvidia/inc/class.
struct Class {
  uint32_t number;
  Status (*make)(Object& object, void* params);
};
constexpr Class classes[] = {
    {0x05, nothing},              // NV01_EVENT
    {0x3e, system},               // NV01_MEMORY_SYSTEM
    {0x40, video},                // NV01_MEMORY_LOCAL_USER
    {0x71, make_object_foreign},  // NV01_MEMORY_SYSTEM_OS_DESCRIPTOR
    {0x73, nothing},              // NV04_DISPLAY_COMMON
    {0x79, nothing},              // NV01_EVENT_OS_EVENT
    {0x80, device},               // NV01_DEVICE_0
    {0xde, nothing},              // RM_USER_SHARED_DATA
    {0x2080, nothing},            // NV20_SUBDEVICE_0
    {0x2081, nothing},            // NV2081_BINAPI
    {0x208f, nothing},            // NV20_SUBDEVICE_DIAG
    {0x50a0, nothing},            // NV50_MEMORY_VIRTUAL
    {0x83de, nothing},            // GT200_DEBUGGER
    {0x9067, nothing},            // FERMI_CONTEXT_SHARE_A
    {0x90f1, nothing},            // FERMI_VASPACE_A
    {0xa06c, nothing},            // KEPLER_CHANNEL_GROUP_A
    {0xc461, nothing},            // TURING_USERMODE_A
    {0xc56f, make_channel},       // AMPERE_CHANNEL_GPFIFO_A
    {0xc7b5, make_copy_object},   // AMPERE_DMA_COPY_B
    {0xc7c0, nothing},            // AMPERE_COMPUTE_B
    {0xcb33, nothing},            // NV_CONFIDENTIAL_COMPUTE
};

const Class* class_of(uint32_t number) {
  for (const Class& one : classes)
    if (one.number == number) return &one;
  return nullptr;
}

// Creates an object below its parent.
Status create(Object object, void* params) {
  const Class* const kind = class_of(object.class_);
  if (kind == nullptr) return invalid_class;
  const ObjectsLocked locked;
  if (find(object.client, object.client) == nullptr) return invalid_client;
  const Object* const parent = find(object.client, object.parent);
  if (parent == nullptr) return invalid_object_parent;
  if (find(object.client, object.handle) != nullptr) return insert_duplicate_name;
  object.gpu = parent->gpu;
  const Status status = kind->make(object, params);
  if (status != ok || insert(object)) return status;
  if (object.channel != nullptr) close_channel(object.channel);
  if (object.memory != nullptr) release(object.memory);
  return insufficient_resources;
}

Status allocate(Alloc& a) {
  if (a.class_ == class_root || a.class_ == class_root_client) {
    const ObjectsLocked locked;
    if (a.handle == 0) a.handle = unused_client();
    return insert({a.handle, a.handle, 0, a.class_, 0, 0, nullptr, nullptr}) ? ok : insufficient_resources;
  }
  if (a.handle == 0) {
    const ObjectsLocked locked;
    a.handle = unused_handle(a.client);
  }
  return create({a.client, a.handle, a.parent, a.class_, 0, 0, nullptr, nullptr}, a.params);
}

}  // namespace

// The status is the last or the last but one word of the structure: NVOS21 has 32 bytes and NVOS64 has 40,
// both with and without the word that drivers 535 (size of the parameters) and 525 (flags) put before the
// status. The caller reads one of the two words.
int answer_alloc(void* argument, size_t size) {
  if (size != 32 && size != 40 && size != 48) return -EINVAL;
  Alloc a;
  if (!copy_in(&a, argument, sizeof a)) return -EFAULT;
  const uint32_t status = allocate(a);
  if (status != ok) append("RESPONDER_LOG", "class %#x: %#x\n", a.class_, status);
  const uint32_t last[2] = {status, status};
  char* const end = static_cast<char*>(argument) + (size == 48 ? 44 : size);
  const bool copied = copy_out(argument, &a, 12) &&
                      (size == 48 ? copy_out(end - 4, last, 4) : copy_out(end - 8, last, sizeof last));
  return copied ? 0 : -EFAULT;
}

// NVOS55_PARAMETERS.
int answer_dup(void* argument, size_t size) {
  struct Argument {
    uint32_t client, parent, handle, source_client, source, flags, status;
  } a;
  if (size < sizeof a) return -EINVAL;
  if (!copy_in(&a, argument, sizeof a)) return -EFAULT;
  {
    const ObjectsLocked locked;
    const Object* const source = find(a.source_client, a.source);
    a.status = source == nullptr                     ? invalid_object_handle
               : find(a.client, a.parent) == nullptr ? invalid_object_parent
                                                     : ok;
    if (a.status == ok) {
      if (a.handle == 0) a.handle = unused_handle(a.client);
      Object copy = *source;
      copy.client = a.client;
      copy.handle = a.handle;
      copy.parent = a.parent;
      copy.channel = nullptr;
      if (!insert(copy))
        a.status = insert_duplicate_name;
      else if (copy.memory != nullptr)
        share(copy.memory);
    }
  }
  if (a.status != ok) append("RESPONDER_LOG", "dup %#x: %#x\n", a.source, a.status);
  return copy_out(argument, &a, sizeof a) ? 0 : -EFAULT;
}

// NVOS00_PARAMETERS.
int answer_free(void* argument, size_t size) {
  uint32_t words[4];
  if (size < sizeof words) return -EINVAL;
  if (!copy_in(words, argument, sizeof words)) return -EFAULT;
  const ObjectsLocked locked;
  words[3] = find(words[0], words[2]) != nullptr ? ok : invalid_object_handle;
  if (words[3] == ok) remove(words[0], words[2]);
  return copy_out(argument, words, sizeof words) ? 0 : -EFAULT;
}

}  // namespace responder

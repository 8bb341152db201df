#include "ioctls.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "machine.h"

namespace responder {

bool copy_in(void* to, const void* user, size_t size) {
  const iovec here = {to, size}, there = {const_cast<void*>(user), size};
  return size == 0 || process_vm_readv(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
}

bool copy_out(void* user, const void* from, size_t size) {
  const iovec here = {const_cast<void*>(from), size}, there = {user, size};
  return size == 0 || process_vm_writev(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
}

namespace {

void log_failure(const char* what, uint32_t number, uint32_t status) {
  const char* const path = getenv("RESPONDER_LOG");
  if (path == nullptr) return;
  const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return;
  dprintf(file, "%s %#x: %#x\n", what, number, status);
  close(file);
}

// The objects of all clients, by handle. libcuda creates about ten for each device.
constexpr unsigned max_objects = 4096;
struct Object {
  uint32_t client, handle, parent;
  unsigned gpu;
};
Object objects[max_objects];
unsigned object_count = 0;
uint32_t next_client = 0xc1d00001;
pthread_mutex_t objects_mutex = PTHREAD_MUTEX_INITIALIZER;

Object* find(uint32_t client, uint32_t handle) {
  for (unsigned i = 0; i < object_count; ++i)
    if (objects[i].client == client && objects[i].handle == handle) return &objects[i];
  return nullptr;
}

// Removes an object and, because their parent is gone, all below it.
void remove(uint32_t client, uint32_t handle) {
  for (unsigned i = 0; i < object_count;) {
    const Object o = objects[i];
    if (o.client != client || (o.handle != handle && o.parent != handle)) {
      ++i;
      continue;
    }
    objects[i] = objects[--object_count];
    if (o.handle == handle) continue;
    remove(client, o.handle);
    i = 0;
  }
}

struct Locked {
  Locked() { pthread_mutex_lock(&objects_mutex); }
  ~Locked() { pthread_mutex_unlock(&objects_mutex); }
};

constexpr uint32_t class_root = 0x0, class_root_client = 0x41, class_device = 0x80;
constexpr uint32_t known_classes[] = {class_root, class_root_client, class_device,
                                      0x73,     // NV04_DISPLAY_COMMON
                                      0xde,     // RM_USER_SHARED_DATA
                                      0x2080,   // NV20_SUBDEVICE_0
                                      0x2081,   // NV2081_BINAPI
                                      0x208f,   // NV20_SUBDEVICE_DIAG
                                      0x50a0,   // NV50_MEMORY_VIRTUAL
                                      0x90f1,   // FERMI_VASPACE_A
                                      0xc461,   // TURING_USERMODE_A
                                      0xcb33};  // NV_CONFIDENTIAL_COMPUTE

bool is_known(uint32_t class_) {
  for (const uint32_t known : known_classes)
    if (known == class_) return true;
  return false;
}

// NVOS21_PARAMETERS, and with the rights NVOS64_PARAMETERS, up to the place of the status.
struct Alloc {
  uint32_t client, parent, handle, class_;
  void* params;
};

Status allocate(Alloc& a) {
  if (!is_known(a.class_)) return invalid_class;
  const Locked locked;
  if (object_count == max_objects) return insufficient_resources;
  if (a.class_ == class_root || a.class_ == class_root_client) {
    if (a.handle == 0) a.handle = next_client++;
    objects[object_count++] = {a.handle, a.handle, 0, 0};
    return ok;
  }
  const Object* const parent = find(a.client, a.parent);
  if (find(a.client, a.client) == nullptr) return invalid_client;
  if (parent == nullptr) return invalid_object_parent;
  unsigned gpu = parent->gpu;
  if (a.class_ == class_device) {
    uint32_t instance = 0;  // NV0080_ALLOC_PARAMETERS::deviceId.
    if (a.params != nullptr && !copy_in(&instance, a.params, sizeof instance)) return invalid_pointer;
    if (instance >= machine().gpu_count) return invalid_device;
    gpu = instance;
  }
  objects[object_count++] = {a.client, a.handle, a.parent, gpu};
  return ok;
}

// The status is the last word of the structure, or the last but one: NVOS21 has 32 bytes and NVOS64 has 40 with and without the word
// that drivers 535 (size of the parameters) and 525 (flags) put before the status. The caller reads one of the two.
int alloc(void* argument, size_t size) {
  if (size != 32 && size != 40 && size != 48) return -EINVAL;
  Alloc a;
  if (!copy_in(&a, argument, sizeof a)) return -EFAULT;
  const uint32_t status = allocate(a);
  if (status != ok) log_failure("class", a.class_, status);
  const uint32_t last[2] = {status, status};
  char* const end = static_cast<char*>(argument) + (size == 48 ? 44 : size);
  const bool copied = copy_out(argument, &a, 12) &&
                      (size == 48 ? copy_out(end - 4, last, 4) : copy_out(end - 8, last, sizeof last));
  return copied ? 0 : -EFAULT;
}

// NVOS00_PARAMETERS.
int free_object(void* argument) {
  uint32_t words[4];
  if (!copy_in(words, argument, sizeof words)) return -EFAULT;
  const Locked locked;
  words[3] = find(words[0], words[2]) != nullptr ? ok : invalid_object_handle;
  if (words[3] == ok) remove(words[0], words[2]);
  return copy_out(argument, words, sizeof words) ? 0 : -EFAULT;
}

// NVOS54_PARAMETERS.
struct ControlArgument {
  uint32_t client, object, command, flags;
  void* params;
  uint32_t size, status;
};
static_assert(sizeof(ControlArgument) == 32);

Status control_of(const ControlArgument& a) {
  constexpr size_t max_size = 1 << 20;
  Control c = {a.object, a.command, 0, nullptr, a.size};
  {
    const Locked locked;
    if (find(a.client, a.client) == nullptr) return invalid_client;
    const Object* const object = find(a.client, a.object);
    if (object == nullptr) return invalid_object_handle;
    c.gpu = object->gpu;
  }
  if (a.size > max_size) return invalid_param_struct;
  c.params = static_cast<uint8_t*>(calloc(1, a.size + 8));
  if (c.params == nullptr) return insufficient_resources;
  Status status = copy_in(c.params, a.params, a.size) ? ok : invalid_pointer;
  if (status == ok) status = answer_control(c);
  if (status == ok && !copy_out(a.params, c.params, a.size)) status = invalid_pointer;
  free(c.params);
  return status;
}

int control(void* argument) {
  ControlArgument a;
  if (!copy_in(&a, argument, sizeof a)) return -EFAULT;
  a.status = control_of(a);
  if (a.status != ok) log_failure("control", a.command, a.status);
  return copy_out(argument, &a, sizeof a) ? 0 : -EFAULT;
}

// nv_ioctl_card_info_t.
struct CardInfo {
  bool is_valid;
  uint32_t domain;
  uint8_t bus, slot, function;
  uint16_t vendor, device;
  uint32_t gpu_id;
  uint16_t interrupt_line;
  uint64_t registers, registers_size, memory, memory_size;
  uint32_t minor;
  uint8_t device_name[10];
};
static_assert(sizeof(CardInfo) == 72);

int card_info(void* argument, size_t size) {
  for (unsigned i = 0; i < size / sizeof(CardInfo); ++i) {
    CardInfo card = {};
    if (i < machine().gpu_count) {
      card.is_valid = true;
      card.bus = static_cast<uint8_t>(i + 1);
      card.vendor = vendor_id;
      card.device = device_id;
      card.gpu_id = gpu_id(i);
      card.registers_size = 16 << 20;
      card.memory_size = 32ull << 30;
      card.minor = i;
    }
    if (!copy_out(static_cast<CardInfo*>(argument) + i, &card, sizeof card)) return -EFAULT;
  }
  return 0;
}

// nv_ioctl_rm_api_version_t: the command, the answer, the version as text. 1: the versions are equal.
int check_version(void* argument, size_t size) {
  char text[72] = {};
  if (size < sizeof text || !copy_in(text, argument, sizeof text)) return -EFAULT;
  text[sizeof text - 1] = 0;
  const uint32_t is_equal = strcmp(text + 8, machine().version) == 0;
  if (!copy_out(static_cast<char*>(argument) + 4, &is_equal, sizeof is_equal)) return -EFAULT;
  return is_equal != 0 ? 0 : -EINVAL;
}

// nv_ioctl_numa_info_t (nv-ioctl-numa.h) begins with the node and its status. The memory of this device is not a NUMA node. With node 0,
// libcuda 525 would report the machine's memory as the device's.
int numa_info(void* argument, size_t size) {
  const int32_t answer[] = {-1, 0};  // NUMA_NO_NODE, NV_IOCTL_NUMA_STATUS_DISABLED
  return size >= sizeof answer && copy_out(argument, answer, sizeof answer) ? 0 : -EFAULT;
}

// The ioctls of nvidia.ko that succeed without an answer: libcuda asks them before there is a context.
constexpr unsigned accepted[] = {0x4a,   // RM_VID_HEAP_CONTROL
                                 0x4e,   // RM_MAP_MEMORY
                                 0x4f,   // RM_UNMAP_MEMORY
                                 0xc9,   // REGISTER_FD
                                 0xce,   // ALLOC_OS_EVENT
                                 0xd6,   // SYS_PARAMS
                                 0xda};  // WAIT_OPEN_COMPLETE
// The same for nvidia-uvm.ko.
constexpr unsigned accepted_uvm[] = {0x01,   // UVM_INITIALIZE
                                     0x02,   // UVM_DEINITIALIZE
                                     0x17,   // UVM_CREATE_RANGE_GROUP
                                     0x25,   // UVM_REGISTER_GPU
                                     0x27,   // UVM_PAGEABLE_MEM_ACCESS
                                     0x4b};  // UVM_MM_INITIALIZE

template <size_t n>
bool is_in(const unsigned (&list)[n], unsigned number) {
  for (const unsigned one : list)
    if (one == number) return true;
  return false;
}

}  // namespace

int answer_ioctl(bool is_uvm, unsigned long command, void* argument) {
  const auto number = static_cast<unsigned>(_IOC_NR(command));
  const size_t size = _IOC_SIZE(command);
  const bool has_type = !is_uvm && _IOC_TYPE(command) == 'F';
  int result = -EINVAL;
  if (is_uvm ? is_in(accepted_uvm, number) : has_type && is_in(accepted, number)) return 0;
  if (has_type && number == 0x2b) result = alloc(argument, size);
  if (has_type && number == 0x29 && size >= 16) result = free_object(argument);
  if (has_type && number == 0x2a && size >= sizeof(ControlArgument)) result = control(argument);
  if (has_type && number == 0xc8) result = card_info(argument, size);
  if (has_type && number == 0xd7) result = numa_info(argument, size);
  if (has_type && number == 0xd2) result = check_version(argument, size);
  if (result != 0) log_failure(is_uvm ? "uvm" : "ioctl", number, static_cast<uint32_t>(-result));
  return result;
}

}  // namespace responder

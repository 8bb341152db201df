#include "ioctls.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "classes.h"
#include "machine.h"
#include "mappings.h"
#include "memory_objects.h"
#include "objects.h"
#include "trace.h"

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
  append("RESPONDER_LOG", "%s %#x: %#x\n", what, number, status);
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
  Control c = {a.client, a.object, a.command, 0, nullptr, a.size};
  {
    const ObjectsLocked locked;
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
      card.bus = bus_of(i);
      card.vendor = vendor_id;
      card.device = device_id;
      card.gpu_id = gpu_id(i);
      card.registers_size = uint64_t{bars_mib[0]} << 20;
      card.memory_size = uint64_t{bars_mib[1]} << 20;
      card.minor = i;
    }
    if (!copy_out(static_cast<CardInfo*>(argument) + i, &card, sizeof card)) return -EFAULT;
  }
  return 0;
}

// nv_ioctl_rm_api_version_t: the command, the answer, and the version as text. The answer 1 means that the
// versions are equal.
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

// The ioctls of nvidia.ko that succeed without an answer.
constexpr unsigned accepted[] = {0x35,   // RM_SHARE
                                 0x5e,   // RM_UPDATE_DEVICE_MAPPING_INFO
                                 0xc9,   // REGISTER_FD
                                 0xce,   // ALLOC_OS_EVENT
                                 0xcf,   // FREE_OS_EVENT
                                 0xd4,   // ATTACH_GPUS_TO_FD
                                 0xd6,   // SYS_PARAMS
                                 0xda};  // WAIT_OPEN_COMPLETE

int answer_rm(unsigned number, void* argument, size_t size) {
  for (const unsigned one : accepted)
    if (one == number) return 0;
  switch (number) {
    case 0x27: return answer_alloc_memory(argument, size);
    case 0x29: return answer_free(argument, size);
    case 0x2a: return size >= sizeof(ControlArgument) ? control(argument) : -EINVAL;
    case 0x2b: return answer_alloc(argument, size);
    case 0x34: return answer_dup(argument, size);
    case 0x4a: return answer_heap(argument, size);
    case 0x4e: return answer_map(argument, size);
    case 0x4f: return answer_unmap(argument, size);
    case 0x57: return answer_map_dma(argument, size);
    case 0x58: return answer_unmap_dma(argument, size);
    case 0xc8: return card_info(argument, size);
    case 0xd2: return check_version(argument, size);
    case 0xd7: return numa_info(argument, size);
    default: return -EINVAL;
  }
}

}  // namespace

int answer_ioctl(bool is_uvm, unsigned long command, void* argument) {
  const auto number = static_cast<unsigned>(_IOC_NR(command));
  int result = -EINVAL;
  if (is_uvm)
    result = answer_uvm(number, argument);
  else if (_IOC_TYPE(command) == 'F')
    result = answer_rm(number, argument, _IOC_SIZE(command));
  if (result != 0) log_failure(is_uvm ? "uvm" : "ioctl", number, static_cast<uint32_t>(-result));
  return result;
}

}  // namespace responder

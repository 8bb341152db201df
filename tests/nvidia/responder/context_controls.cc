// The commands of NV_ESC_RM_CONTROL that libcuda sends when it creates a context and later.
#include "channel.h"
#include "control_rows.h"
#include "exports.h"
#include "objects.h"

namespace responder {
namespace {

// NV0080_CTRL_FIFO_GET_CHANNELLIST_PARAMS: the count, a list of handles, and a list for the numbers of the
// channels.
Status channel_list(const Control& c) {
  const auto* const handles = field<const uint32_t*>(c, 8);
  auto* const ids = field<uint32_t*>(c, 16);
  for (uint32_t i = 0; i < word(c, 0); ++i) {
    uint32_t handle = 0, id = ~0u;
    if (!copy_in(&handle, handles + i, sizeof handle)) return invalid_pointer;
    const ObjectsLocked locked;
    const Object* const object = find(c.client, handle);
    if (object != nullptr && object->channel != nullptr) id = id_of(object->channel);
    if (!copy_out(ids + i, &id, sizeof id)) return invalid_pointer;
  }
  return ok;
}

// NV906F_CTRL_GET_CLASS_ENGINEID_PARAMS: what SET_OBJECT binds for an object of a channel.
Status class_engine(const Control& c) {
  constexpr uint32_t graphics = 1, first_copy = 9, class_copy = 0xc7b5;
  const ObjectsLocked locked;
  const Object* const object = find(c.client, word(c, 0));
  if (object == nullptr) return invalid_object_handle;
  word(c, 1) = word(c, 2) = object->class_;
  word(c, 3) = object->class_ == class_copy ? first_copy + object->engine : graphics;
  return ok;
}

// NV2080_CTRL_GR_GET_CTX_BUFFER_SIZE_PARAMS: the addresses that nvidia-uvm.ko needs for a channel's context buffers.
Status context_buffers(const Control& c) {
  field<uint64_t>(c, 8) = 32 << 20;
  return ok;
}

// NV0041_CTRL_GET_SURFACE_INFO_PARAMS: the count, and a pointer to pairs of an index and an answer.
Status surface_info(const Control& c) {
  Memory* const memory = memory_of(c.client, c.object);
  if (memory == nullptr) return invalid_object_handle;
  const uint32_t pages = static_cast<uint32_t>(memory->size / 4096), attr = memory->attr;
  const uint32_t space = address_space_of(*memory);
  release(memory);
  auto* pair = field<uint32_t*>(c, 8);
  for (uint32_t i = 0; i < word(c, 0); ++i, pair += 2) {
    uint32_t index = 0, answer = 0;
    if (!copy_in(&index, pair, sizeof index)) return invalid_pointer;
    if (index == 7) answer = pages;  // PHYS_SIZE
    if (index == 8) answer = attr;   // PHYS_ATTR
    if (index == 9) answer = space;  // ADDR_SPACE_TYPE
    if (!copy_out(pair + 1, &answer, sizeof answer)) return invalid_pointer;
  }
  return ok;
}

// NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS: the value that the driver writes to the doorbell.
Status submit_token(const Control& c) {
  const ObjectsLocked locked;
  const Object* const object = find(c.client, c.object);
  if (object == nullptr || object->channel == nullptr) return invalid_object_handle;
  word(c, 0) = id_of(object->channel);
  return ok;
}

constexpr ControlRow rows[] = {
    {0x3d05, 24, export_object},        // OS_UNIX_EXPORT_OBJECT_TO_FD
    {0x3d06, 20, import_object},        // OS_UNIX_IMPORT_OBJECT_FROM_FD
    {0x3d08, 80, export_info},          // OS_UNIX_GET_EXPORT_OBJECT_INFO
    {0x410110, 16, surface_info},       // NV0041_CTRL_CMD_GET_SURFACE_INFO
    {0x80170d, 24, channel_list},       // FIFO_GET_CHANNELLIST
    {0x801909, 1, unchanged},           // PERF_CUDA_LIMIT_SET_CONTROL
    {0x20801210, 16, unchanged},        // GR_SET_CTXSW_PREEMPTION_MODE
    {0x20801218, 16, context_buffers},  // GR_GET_CTX_BUFFER_SIZE
    {0x20801702, 4, unchanged},         // MC_SERVICE_INTERRUPTS
    {0x2080200a, 8, unchanged},         // PERF_BOOST
    {0x83de0309, 4, unchanged},         // NV83DE_CTRL_CMD_DEBUG_SET_EXCEPTION_MASK
    {0x906f0102, 12, unchanged},        // NV906F_CTRL_CMD_RESET_CHANNEL
    {0xa06c0101, 2, unchanged},         // NVA06C_CTRL_CMD_GPFIFO_SCHEDULE
    {0xa06c0103, 8, unchanged},         // NVA06C_CTRL_CMD_SET_TIMESLICE
    {0xa06c0105, 8, unchanged},         // NVA06C_CTRL_CMD_PREEMPT
    {0xc36f0101, 16, class_engine},     // NVC36F_CTRL_GET_CLASS_ENGINEID
    {0xc36f0108, 4, submit_token},      // NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN
};

}  // namespace

bool answer_context_control(const Control& control, Status& status) {
  return answer_by(rows, control, status);
}

}  // namespace responder

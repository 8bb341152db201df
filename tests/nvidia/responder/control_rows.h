// A table of commands of NV_ESC_RM_CONTROL: the minimum size of their parameters in the oldest driver, and
// the function that answers them.
#pragma once

#include "ioctls.h"
#include "memory.h"

namespace responder {

struct ControlRow {
  uint32_t command;
  size_t least_size;
  Status (*answer)(const Control&);
};

// Accesses a field of the parameters.
template <class T>
T& field(const Control& c, size_t offset) {
  return *reinterpret_cast<T*>(c.params + offset);
}
inline uint32_t& word(const Control& c, size_t index) { return field<uint32_t>(c, 4 * index); }

// Answers commands that succeed and leave their parameters unchanged.
inline Status unchanged(const Control&) { return ok; }

// Returns the answer to NV0000_CTRL_CMD_CLIENT_GET_ADDR_SPACE_TYPE for a memory object: SYSMEM or VIDMEM.
inline uint32_t address_space_of(const Memory& memory) { return memory.place == Place::video ? 2 : 1; }

// Returns false if the table does not contain the command.
template <size_t n>
bool answer_by(const ControlRow (&rows)[n], const Control& control, Status& status) {
  for (const ControlRow& row : rows) {
    if (row.command != control.command) continue;
    status = control.size >= row.least_size ? row.answer(control) : invalid_param_struct;
    return true;
  }
  return false;
}

// The commands that libcuda sends when it creates a context and later (context_controls.cc).
bool answer_context_control(const Control& control, Status& status);

}  // namespace responder

// With RESPONDER_TRACE=FILE a line is appended for each ioctl, with the first words of the caller's structures before and after it.
// It shows the order of the driver's requests when a new driver, or a new part of it, is to be answered.
#pragma once

#include <cstddef>
#include <cstdint>

namespace responder {

// Appends a line to the file that the variable names; does nothing without the variable.
void append(const char* variable, const char* format, ...) __attribute__((format(printf, 2, 3)));

// Logs an ioctl. `when` is "<" before it is answered and ">" after.
void trace(const char* when, int file, bool is_uvm, unsigned number, size_t size, const void* argument);

}  // namespace responder

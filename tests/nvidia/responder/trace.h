// With RESPONDER_TRACE=FILE a line is appended for each ioctl, with the first words of the caller's
// structures before and after it. Use it to see the order of the driver's requests when adding support for a
// new driver or a new part of it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace responder {

// Appends a line to the file that the variable names, if it is set.
void append(const char* variable, const char* format, ...) __attribute__((format(printf, 2, 3)));

// Logs an ioctl. `when` is "<" before it is answered and ">" afterwards.
void trace(const char* when, int file, bool is_uvm, unsigned number, size_t size, const void* argument);

}  // namespace responder

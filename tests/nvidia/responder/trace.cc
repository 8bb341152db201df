#include "trace.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ioctls.h"

namespace responder {
namespace {

// Writes words of the process's memory as hexadecimal numbers.
size_t write_words(char* out, size_t capacity, const void* user, size_t size) {
  size_t length = 0;
  for (size_t i = 0; i < size / 4 && length + 12 < capacity; ++i) {
    uint32_t word = 0;
    if (!copy_in(&word, static_cast<const char*>(user) + 4 * i, sizeof word)) break;
    length += static_cast<size_t>(snprintf(out + length, capacity - length, " %x", word));
  }
  out[length] = 0;
  return length;
}

}  // namespace

void append(const char* variable, const char* format, ...) {
  const char* const path = getenv(variable);
  if (path == nullptr) return;
  const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return;
  va_list rest;
  va_start(rest, format);
  vdprintf(file, format, rest);
  va_end(rest);
  syscall(SYS_close, file);  // Not this library's close().
}

void trace(const char* when, int file, bool is_uvm, unsigned number, size_t size, const void* argument) {
  if (getenv("RESPONDER_TRACE") == nullptr) return;
  constexpr size_t most = 256;
  char words[4096], params[4096] = "";
  write_words(words, sizeof words, argument, is_uvm ? 96 : size < most ? size : most);
  uint32_t head[8] = {};
  void* inner = nullptr;
  const bool has_params =
      !is_uvm && (number == 0x2a || number == 0x2b) && copy_in(head, argument, sizeof head) &&
      copy_in(&inner, static_cast<const char*>(argument) + 16, sizeof inner) && inner != nullptr;
  if (has_params)
    write_words(params, sizeof params, inner, number == 0x2b ? 128 : head[6] < most ? head[6] : most);
  append("RESPONDER_TRACE", "%s %d %s %#x:%s%s%s\n", when, file, is_uvm ? "uvm" : "ioctl", number, words,
         has_params ? " |" : "", params);
}

}  // namespace responder

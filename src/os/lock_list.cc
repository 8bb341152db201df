#include "os/lock_list.h"

#include <fcntl.h>
#include <unistd.h>

#include "os/fd.h"

namespace carve::os {
namespace {

constexpr size_t page_bytes = 4096;  // The kernel returns no more in one call.
constexpr size_t max_list_bytes = 64 << 20;

}  // namespace

bool read_lock_list(size_t first, const std::function<void(const char*, size_t)>& piece) {
  const Fd list(open("/proc/locks", O_RDONLY | O_CLOEXEC));
  if (!list) return false;
  char text[page_bytes];
  size_t bytes = 0;
  for (size_t size = first; bytes <= max_list_bytes; size = sizeof text) {
    const ssize_t n = read(list.get(), text, size < sizeof text ? size : sizeof text);
    if (n <= 0) return n == 0;
    bytes += static_cast<size_t>(n);
    piece(text, static_cast<size_t>(n));
  }
  return false;
}

}  // namespace carve::os

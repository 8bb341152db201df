#include "os/wakeup.h"

#include <sys/eventfd.h>

#include <cerrno>

#include "core/invariant.h"

namespace carve::os {

Wakeup::Wakeup() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Wakeup::set() const {
  const bool is_set = eventfd_write(fd_.get(), 1) == 0;
  invariant(is_set || errno == EAGAIN, "an eventfd is written, or it is readable already");
}

bool Wakeup::take() const {
  eventfd_t count = 0;
  return eventfd_read(fd_.get(), &count) == 0;
}

}  // namespace carve::os

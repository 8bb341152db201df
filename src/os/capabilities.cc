#include "os/capabilities.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace carve::os {
namespace {

// Two words of 32 capabilities each. The system calls are used directly, because libcap would be another
// dependency for only two calls.
struct Sets {
  __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3] = {};
};
__user_cap_header_struct this_thread() { return {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0}; }

uint32_t bit(int capability) { return uint32_t{1} << (capability % 32); }

}  // namespace

bool has_capability(int capability) {
  Sets sets;
  auto header = this_thread();
  return syscall(SYS_capget, &header, sets.words) == 0 &&
         (sets.words[capability / 32].effective & bit(capability)) != 0;
}

Outcome<void> keep_capabilities(std::initializer_list<int> kept) {
  Sets sets, wanted;
  auto header = this_thread();
  if (syscall(SYS_capget, &header, sets.words) != 0)
    return failure(FailureKind::unavailable, "cannot read the capabilities: {}", strerror(errno));
  for (const int capability : kept) wanted.words[capability / 32].permitted |= bit(capability);
  for (size_t i = 0; i < std::size(wanted.words); ++i) {
    wanted.words[i].permitted &= sets.words[i].permitted;
    wanted.words[i].effective = wanted.words[i].permitted;
  }
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);  // Fails on kernels without ambient capabilities.
  if (syscall(SYS_capset, &header, wanted.words) != 0)
    return failure(FailureKind::unavailable, "cannot drop capabilities: {}", strerror(errno));
  return {};
}

}  // namespace carve::os

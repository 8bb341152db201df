#include "guest/process/process_page.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "guest/linkage/artefact.h"
#include "guest/linkage/ensure.h"
#include "guest/linkage/libc.h"
#include "guest/process/attach_request.h"
#include "guest/process/hint.h"

// glibc 2.2's function for exit handlers, because atexit requires the crt files. Handlers run in reverse
// order of registration, so handlers that the program registered before its first cuInit run after this one.
extern "C" int __cxa_atexit(void (*run)(void*), void* object, void* library);

namespace carve::guest {

constinit std::atomic<Process*> process_page{nullptr};
constinit Gates gates;

namespace {

// Set once if no agent was found or if a shim does the work.
constinit std::atomic<bool> no_agent{false};

// A preloaded library in addition to a shim would charge everything twice. The shim was mounted on purpose,
// so it takes precedence.
bool above_a_shim() {
  if (artefact.guest != shm::Guest::preload) return false;
  for (const char* driver : driver_beneath_shim)
    if (open_library(driver, RTLD_LAZY | RTLD_NOLOAD) != nullptr) return true;
  return false;
}

// Returns the API socket to use, or null if nothing on this machine indicates an agent.
const char* marked_socket() {
  if (!artefact.optional) return artefact.socket;
  const char* named = getenv(shm::socket_variable);
  if (named != nullptr && named[0] != 0) return named;
  char path[sizeof(sockaddr_un::sun_path)] = {};
  strcpy(path, artefact.socket);
  strcat(path, shm::attach_suffix);
  return access(path, F_OK) == 0 ? artefact.socket : nullptr;
}

// Returns the page, which is created once even if threads race. Returns null if the kernel cannot wipe it at
// a fork or has no memory.
Process* page() {
  Process* p = process_page.load(std::memory_order_acquire);
  if (p != nullptr) return p;
  void* fresh = mmap(nullptr, sizeof(Process), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return nullptr;
  if (madvise(fresh, sizeof(Process), MADV_WIPEONFORK) != 0) {
    munmap(fresh, sizeof(Process));
    return nullptr;
  }
  if (!process_page.compare_exchange_strong(p, static_cast<Process*>(fresh))) {
    munmap(fresh, sizeof(Process));
    return p;
  }
  return static_cast<Process*>(fresh);
}

void wait_while_asking(Process* p) {
  const timespec limit = {1, 0};
  syscall(SYS_futex, &p->attach_state, FUTEX_WAIT_PRIVATE, static_cast<uint32_t>(AttachState::attaching),
          &limit, nullptr, 0);
}

constinit std::atomic<bool> watches_the_end{false};

// From here on no thread waits long for the device (launch/gate.h).
void program_ends(void*) {
  if (Process* p = process_page.load(std::memory_order_acquire))
    p->fence_page.ending.store(true, std::memory_order_relaxed);
}

AttachState ask(Process* p, const char* socket) {
  SharedMemory pages = {};
  const AttachResult result =
      attach(socket, artefact.guest, p->asked_before ? 0 : attach_patience_ns, &pages);
  p->asked_before = true;
  if (result == AttachResult::not_in_slice) return AttachState::unmanaged;
  if (result != AttachResult::attached) return AttachState::refused;
  publish_failures(pages.report->ensure_failures);
  // The reply and the pages were checked (attach_request.cc), and every index below relies on that check.
  if (!ensure(pages.slot < shm::max_processes && pages.control->device_count <= shm::max_devices))
    return AttachState::refused;
  p->slot = pages.slot;
  p->control = pages.control;
  p->report = pages.report;
  p->work = &pages.report->work.process[pages.slot];
  p->heartbeat = pages.heartbeat;
  p->device_count = pages.control->device_count;
  for (unsigned i = 0; i < p->device_count; ++i) p->hint[i] = limit_hint(i);
  if (!watches_the_end.exchange(true)) __cxa_atexit(program_ends, nullptr, nullptr);
  gates.first.store(pages.control->devices, std::memory_order_relaxed);
  gates.count.store(p->device_count, std::memory_order_release);
  return AttachState::attached;
}

}  // namespace

Entered attach_slowly(bool again) {
  if (no_agent.load(std::memory_order_relaxed)) return {nullptr, false};
  const char* socket = nullptr;
  if (process_page.load(std::memory_order_acquire) == nullptr) {
    socket = marked_socket();
    if (socket == nullptr || above_a_shim()) {
      no_agent.store(true, std::memory_order_relaxed);
      return {nullptr, false};
    }
  }
  Process* p = page();
  if (p == nullptr) return {nullptr, true};
  for (;;) {
    AttachState attach_state = p->attach_state.load(std::memory_order_acquire);
    if (attach_state == AttachState::attached) return {p, false};
    if (attach_state == AttachState::unmanaged) return {nullptr, false};
    if (attach_state == AttachState::refused && !again) return {nullptr, true};
    if (attach_state == AttachState::attaching) {
      wait_while_asking(p);
      again = false;  // The other thread's result is recent.
      continue;
    }
    if (!p->attach_state.compare_exchange_strong(attach_state, AttachState::attaching)) continue;
    if (socket == nullptr) socket = marked_socket();
    // A child whose parent was in a slice calls the agent even if the socket is absent.
    if (socket == nullptr) socket = artefact.socket;
    const AttachState found = ask(p, socket);
    p->attach_state.store(found, std::memory_order_release);
    syscall(SYS_futex, &p->attach_state, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
    again = false;
  }
}

}  // namespace carve::guest

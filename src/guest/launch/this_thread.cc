#include "guest/launch/this_thread.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "guest/launch/busy_time.h"

// Registers a function for the end of a thread; new in glibc 2.18. Without it, a thread that needs a state
// takes over those of ended threads.
extern "C" __attribute__((weak)) int __cxa_thread_atexit_impl(void (*run)(void*), void* object,
                                                              void* library);

namespace carve::guest {

__thread ThisThread this_thread;

namespace {

// Counts all claims in this program image, including those of parent processes, and is therefore not in the
// Process page.
constinit std::atomic<uint64_t> claims{0};

// Calls no driver function, because the thread has already ended for the driver. Its unfenced work is less
// than one fence interval per stream, and the agent sees the rest through the streams.
void thread_ends(void*) {
  Process* p = process_page.load(std::memory_order_acquire);
  const auto self = static_cast<uint32_t>(syscall(SYS_gettid));
  this_thread.now = nullptr;
  if (p == nullptr) return;
  for (ThreadLaunchState& l : p->launch_state) {
    if (is_untaken(l)) break;  // States are taken in order.
    if (l.owner.load(std::memory_order_relaxed) != self) continue;
    l.without_slot = 0;
    set_unfenced(l, 0);
    end_busy(l, monotonic_ns());
    if (!l.shared) {
      l.line->waiting_since.store(0, std::memory_order_relaxed);
      l.line->device.store(0, std::memory_order_release);
    }
    l.owner.store(0, std::memory_order_release);
  }
}

bool is_gone(uint32_t thread) { return syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH; }

void take_state(Process& p, ThreadLaunchState& l, unsigned index, unsigned device) {
  // The stream entries and batch numbers of the previous thread are no longer valid.
  for (StreamEntry& m : l.stream) m = {};
  l.fence_count = l.estimate_uses = 0;
  l.in_flight = l.without_slot = l.unfenced = l.credit = 0;
  l.busy_since = l.polled_at = l.first_since = 0;
  l.word = ~uint64_t{0};
  l.launches_until_check = 1;
  l.moved = true;
  l.stall_escapes = l.escape_launches = 0;
  l.device = device;
  const unsigned line = std::min(index, shm::work_threads - 1);
  l.shared = index >= shm::work_threads - 1;
  l.line = &p.work->thread[line];
  l.submitted = l.line->submitted.load(std::memory_order_relaxed);
  if (!l.shared) {
    l.line->unfenced.store(0, std::memory_order_relaxed);
    l.line->flags.store(0, std::memory_order_relaxed);
    l.line->busy.store(
        shm::BusyWord::idle(shm::BusyWord{l.line->busy.load(std::memory_order_relaxed)}.total(monotonic_ns()))
            .value,
        std::memory_order_relaxed);
  }
  l.line->device.store(device + 1, std::memory_order_release);
  uint32_t used = p.work->threads_used.load(std::memory_order_relaxed);
  while (used < line + 1 && !p.work->threads_used.compare_exchange_weak(used, line + 1)) {}
  l.claim.store(claims.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// The image before an exec may have left fences in the page that no device will ever write.
void forget_image_before(Process& p) {
  for (shm::StreamWork& s : p.work->stream)
    s.completed.store(s.fenced.load(std::memory_order_relaxed), std::memory_order_relaxed);
  for (shm::ThreadWork& t : p.work->thread) {
    t.unfenced.store(0, std::memory_order_relaxed);
    t.waiting_since.store(0, std::memory_order_relaxed);
    t.device.store(0, std::memory_order_relaxed);
  }
}

ThreadLaunchState* claimed(Process& p, unsigned device) {
  const auto self = static_cast<uint32_t>(syscall(SYS_gettid));
  for (ThreadLaunchState& l : p.launch_state) {
    if (is_untaken(l)) break;
    if (l.owner.load(std::memory_order_relaxed) == self && l.device == device) return &l;
  }
  ThreadLaunchState* found = nullptr;
  p.fence_page.lock.lock();
  if (is_untaken(p.launch_state[0])) forget_image_before(p);
  for (const bool dead : {false, true}) {
    for (unsigned i = 0; i < max_launch_states && found == nullptr; ++i) {
      ThreadLaunchState& l = p.launch_state[i];
      const uint32_t owner = l.owner.load(std::memory_order_acquire);
      if (owner != 0 && (!dead || !is_gone(owner))) continue;
      l.owner.store(self, std::memory_order_relaxed);
      take_state(p, l, i, device);
      found = &l;
    }
  }
  p.fence_page.lock.unlock();
  if (found != nullptr && !this_thread.leaves && __cxa_thread_atexit_impl != nullptr) {
    this_thread.leaves = true;
    __cxa_thread_atexit_impl(thread_ends, nullptr, &claims);
  }
  return found;
}

}  // namespace

ThreadLaunchState* claim_thread_state(Process& p) {
  ThreadLaunchState* l = this_thread_state();
  if (l != nullptr && !l->moved) return l;
  const Current where = current(p);
  if (where.result != CUDA_SUCCESS || where.device >= p.device_count) return nullptr;
  l = claimed(p, where.device);
  this_thread.now = l;
  this_thread.claim = 0;
  if (l == nullptr) return nullptr;
  this_thread.claim = l->claim.load(std::memory_order_relaxed);
  // After work on another device, the entries of the default streams may be out of date too.
  l->word = ~uint64_t{0};
  l->context = reinterpret_cast<uint64_t>(where.context);
  l->moved = false;
  return l;
}

}  // namespace carve::guest

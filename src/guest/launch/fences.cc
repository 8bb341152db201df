#include "guest/launch/fences.h"

#include <algorithm>

#include "guest/launch/completion_latency.h"
#include "guest/launch/launch_clock.h"

namespace carve::guest {
namespace {

// While it exists, calls that another thread's open capture may forbid do not invalidate that capture (CUDA
// driver API, cuThreadExchangeStreamCaptureMode).
struct Relaxed {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  Relaxed() { driver<&cuThreadExchangeStreamCaptureMode>(&mode); }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;
  ~Relaxed() { driver<&cuThreadExchangeStreamCaptureMode>(&mode); }
};

shm::FenceKind fence_kind_of(const Process& p) {
  return static_cast<shm::FenceKind>(p.work->fence_kind.load(std::memory_order_relaxed));
}
void set_fence_kind(Process& p, shm::FenceKind fence_kind) {
  p.work->fence_kind.store(static_cast<uint32_t>(fence_kind), std::memory_order_relaxed);
}

// Returns the address of the page as the current context's device sees it, and registers the page on first
// use. Returns 0 if the device cannot write there.
uint64_t page_address(Process& p, unsigned device) {
  std::atomic<uint64_t>& address = p.fence_page.address[device];
  if (const uint64_t known = address.load(std::memory_order_acquire); known != 0) return known;
  p.fence_page.lock.lock();
  CUdevice ordinal = 0;
  int can = 0;
  const Relaxed relaxed;
  CUdeviceptr at = 0;
  if (address.load(std::memory_order_relaxed) == 0 && driver<&cuCtxGetDevice>(&ordinal) == CUDA_SUCCESS &&
      driver<&cuDeviceGetAttribute>(&can, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, ordinal) ==
          CUDA_SUCCESS &&
      can != 0) {
    const CUresult registered =
        driver<&cuMemHostRegister_v2>(p.work, offsetof(shm::ProcessWork, thread),
                                      CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    if ((registered == CUDA_SUCCESS || registered == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) &&
        driver<&cuMemHostGetDevicePointer_v2>(&at, p.work, 0) == CUDA_SUCCESS && at != 0) {
      address.store(at, std::memory_order_release);
      set_fence_kind(p, shm::FenceKind::memory);
    }
  }
  const uint64_t found = address.load(std::memory_order_relaxed);
  p.fence_page.lock.unlock();
  return found;
}

shm::StreamWork& words(Process& p, unsigned slot) { return p.work->stream[slot]; }

bool is_complete(Process& p, unsigned slot) {
  return words(p, slot).completed.load(std::memory_order_acquire) ==
         words(p, slot).fenced.load(std::memory_order_relaxed);
}

// Returns the stream's slot: its current one, a free one, or that of a completed stream.
unsigned find_stream_slot(Process& p, unsigned device, uint64_t key, uint64_t context) {
  FencePage& m = p.fence_page;
  unsigned slot = no_stream_slot;
  m.lock.lock();
  const uint32_t used = p.work->streams_used.load(std::memory_order_relaxed);
  for (unsigned i = 0; i < used && i < no_stream_slot && slot == no_stream_slot; ++i)
    if (m.stream[i].key.load(std::memory_order_relaxed) == key) slot = i;
  for (const bool others : {false, true}) {
    for (unsigned i = 0; i < no_stream_slot && slot == no_stream_slot; ++i) {
      StreamSlot& s = m.stream[i];
      if ((!others && s.key.load(std::memory_order_relaxed) != 0) || !is_complete(p, i) || !s.lock.try_lock())
        continue;
      if (is_complete(p, i)) {
        s.key.store(key, std::memory_order_relaxed);
        s.context.store(context, std::memory_order_relaxed);
        words(p, i).device.store(device + 1, std::memory_order_relaxed);
        if (i >= used) p.work->streams_used.store(i + 1, std::memory_order_release);
        slot = i;
      }
      s.lock.unlock();
    }
  }
  m.lock.unlock();
  return slot;
}

// Queries the event after the slot's last fence and stores its completion.
void ask_event(Process& p, StreamSlot& s, unsigned slot) REQUIRES(s.lock) {
  if (s.event == 0 || is_complete(p, slot)) return;
  const Relaxed relaxed;
  if (driver<&cuEventQuery>(reinterpret_cast<CUevent>(s.event)) != CUDA_ERROR_NOT_READY)
    words(p, slot).completed.store(s.event_fence, std::memory_order_release);
}

// Records an event after the pending work. Returns false if the previous event is not complete, in which case
// the caller tries again later.
bool record_event(Process& p, StreamSlot& s, unsigned slot, uint64_t stream, uint64_t value)
    REQUIRES(s.lock) {
  ask_event(p, s, slot);
  if (!is_complete(p, slot)) return false;
  CUevent event = reinterpret_cast<CUevent>(s.event);
  const Relaxed relaxed;
  if (event == nullptr && driver<&cuEventCreate>(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
    return false;
  s.event = reinterpret_cast<uint64_t>(event);
  if (driver<&cuEventRecord>(event, handle_of(stream)) != CUDA_SUCCESS) return false;
  s.event_fence = value;
  words(p, slot).fenced.store(value, std::memory_order_release);
  set_fence_kind(p, shm::FenceKind::events);
  return true;
}

// Makes another context current while one fence is inserted.
struct Entering {
  bool entered = false;
  Entering(const ThreadLaunchState& l, uint64_t context) {
    entered = context != 0 && context != l.context &&
              driver<&cuCtxPushCurrent_v2>(reinterpret_cast<CUcontext>(context)) == CUDA_SUCCESS;
  }
  Entering(const Entering&) = delete;
  Entering& operator=(const Entering&) = delete;
  ~Entering() {
    CUcontext left = nullptr;
    if (entered) driver<&cuCtxPopCurrent_v2>(&left);
  }
};

// If the array is full, the last fence of the stream also covers the new work. Fences inserted first also
// complete first, and they are the most useful for updating the estimates.
void remember(ThreadLaunchState& l, const Fence& fence) {
  l.in_flight += fence.ns;
  if (l.fence_count < max_fences) {
    l.fence[l.fence_count++] = fence;
    return;
  }
  for (unsigned i = max_fences; i-- > 0;) {
    if (l.fence[i].slot != fence.slot) continue;
    l.fence[i].value = fence.value;
    l.fence[i].ns += fence.ns;
    return;
  }
  l.in_flight -= l.fence[0].ns;
  std::copy(l.fence + 1, l.fence + max_fences, l.fence);
  l.fence[max_fences - 1] = fence;
}

bool last_was_a_guess(const ThreadLaunchState& l) {
  const uint32_t last = l.estimate_use[(l.estimate_uses - 1) % max_estimate_uses].estimate;
  return l.estimate_uses != 0 && l.estimate[last / estimates_ways][last % estimates_ways].measured == 0;
}

// Consecutive refusals after which the process uses events. Before that, each refusal registers the page
// again, because its registration ends with the context that registered it.
constexpr uint32_t patience = 8;

enum class Insertion { done, later, refused };

Insertion insert(Process& p, ThreadLaunchState& l, StreamSlot& s, const StreamEntry& entry, uint64_t value)
    REQUIRES(s.lock) {
  shm::StreamWork& word = words(p, entry.slot);
  if (p.fence_page.refusals.load(std::memory_order_relaxed) < patience &&
      fence_kind_of(p) != shm::FenceKind::events) {
    if (const uint64_t page = page_address(p, l.device); page != 0) {
      const uint64_t before = word.fenced.load(std::memory_order_relaxed);
      const uint64_t at = page + entry.slot * sizeof(shm::StreamWork) + offsetof(shm::StreamWork, completed);
      word.fenced.store(value, std::memory_order_release);
      if (driver<&cuStreamWriteValue64_v2>(handle_of(entry.name - 1), at, value,
                                           CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS) {
        p.fence_page.refusals.store(0, std::memory_order_relaxed);
        return Insertion::done;
      }
      word.fenced.store(before, std::memory_order_release);
      p.fence_page.refusals.fetch_add(1, std::memory_order_relaxed);
      p.fence_page.address[l.device].store(0, std::memory_order_relaxed);
      return Insertion::refused;
    }
  }
  return record_event(p, s, entry.slot, entry.name - 1, value) ? Insertion::done : Insertion::later;
}

}  // namespace

bool captured(uint64_t stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver<&cuStreamIsCapturing>(handle_of(stream), &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

StreamEntry& stream_entry_of(Process& p, ThreadLaunchState& l, uint64_t stream) {
  const bool is_default = stream <= per_thread_stream;
  StreamEntry& entry = stream_entry_at(l, stream);
  const bool same = entry.name == stream + 1 && (!is_default || entry.context == l.context);
  if (same && entry.slot != no_stream_slot &&
      p.fence_page.stream[entry.slot].key.load(std::memory_order_relaxed) == entry.key)
    return entry;
  if (entry.pending != 0) insert_fence(p, l, entry);
  forget_pending(l, entry);
  uint64_t key = stream, context = l.context;
  if (is_default) {
    // One key per context, or per context and thread. The key never equals a stream handle, which is an
    // address.
    const uint64_t thread = stream == legacy_stream ? 0 : this_thread.claim;
    key = ((context ^ thread << 48 ^ thread >> 16) * 4 + stream) | uint64_t{1} << 63;
  } else if (CUcontext its = nullptr; driver<&cuStreamGetCtx>(handle_of(stream), &its) == CUDA_SUCCESS) {
    context = reinterpret_cast<uint64_t>(its);
  }
  entry = {.name = stream + 1,
           .pending = 0,
           .context = is_default ? context : 0,
           .key = key,
           .since = 0,
           .slot = find_stream_slot(p, l.device, key, context),
           .unused = 0};
  return entry;
}

void set_unfenced(ThreadLaunchState& l, uint64_t unfenced) {
  if (l.shared) {
    l.line->unfenced.fetch_add(unfenced - l.unfenced, std::memory_order_relaxed);
  } else {
    l.line->unfenced.store(unfenced + l.without_slot, std::memory_order_relaxed);
  }
  l.unfenced = unfenced;
}

void submit(ThreadLaunchState& l, StreamEntry& entry, uint64_t ns) {
  if (entry.pending == 0) entry.since = l.polled_at;
  entry.pending += ns;
  if (entry.slot == no_stream_slot) {
    l.without_slot += ns;
    entry.pending = 0;
  }
  l.submitted += ns;
  if (l.shared) {
    l.line->submitted.fetch_add(ns, std::memory_order_relaxed);
  } else {
    l.line->submitted.store(l.submitted, std::memory_order_relaxed);
  }
  set_unfenced(l, l.unfenced + (entry.slot == no_stream_slot ? 0 : ns));
}

void forget_pending(ThreadLaunchState& l, StreamEntry& entry) {
  if (entry.pending == 0) return;
  set_unfenced(l, l.unfenced - std::min(l.unfenced, entry.pending));
  entry.pending = 0;
}

void insert_fence(Process& p, ThreadLaunchState& l, StreamEntry& entry) {
  if (entry.pending == 0) return;
  const uint64_t stream = entry.name - 1;
  const Entering entering(l, entry.context);
  StreamSlot& s = p.fence_page.stream[entry.slot];
  s.lock.lock();
  // Makes no driver call for a stream that lost its slot or was destroyed, because its handle may be invalid.
  Insertion done = Insertion::refused;
  if (s.key.load(std::memory_order_relaxed) == entry.key && !captured(stream)) {
    const uint64_t value = words(p, entry.slot).fenced.load(std::memory_order_relaxed) + entry.pending;
    // The clock is read before the call: if the driver's queue is full, the call returns only when much of
    // the work is done.
    const uint64_t now = monotonic_ns();
    done = insert(p, l, s, entry, value);
    if (done == Insertion::done) {
      remember(l, {.value = value,
                   .ns = entry.pending,
                   .begun_at = entry.since,
                   .inserted_at = now,
                   .slot = entry.slot,
                   .batch = l.batch++,
                   .alone = l.in_flight == 0 && l.unfenced == entry.pending,
                   .guess = last_was_a_guess(l)});
      entry.since = now;
    }
  }
  s.lock.unlock();
  if (done != Insertion::later) forget_pending(l, entry);
}

bool has_fence_elsewhere(const ThreadLaunchState& l, uint32_t slot) {
  for (unsigned i = 0; i < l.fence_count; ++i)
    if (l.fence[i].slot != slot) return true;
  return false;
}

bool insert_fences(Process& p, ThreadLaunchState& l) {
  bool all = true;
  for (StreamEntry& entry : l.stream) {
    if (entry.pending == 0) continue;
    if (entry.name == legacy_stream + 1 && has_fence_elsewhere(l, entry.slot)) {
      all = false;
      continue;
    }
    insert_fence(p, l, entry);
    all = all && entry.pending == 0;
  }
  return all;
}

bool is_signaled(Process& p, const Fence& fence) {
  StreamSlot& s = p.fence_page.stream[fence.slot];
  if (fence_kind_of(p) == shm::FenceKind::events && s.lock.try_lock()) {
    ask_event(p, s, fence.slot);
    s.lock.unlock();
  }
  // Compares the difference of the two values, so that a value that the program wrote there cannot make this
  // thread wait.
  const uint64_t completed = words(p, fence.slot).completed.load(std::memory_order_acquire);
  return static_cast<int64_t>(completed - fence.value) >= 0;
}

uint64_t fenced_work(Process& p, unsigned device) {
  uint64_t sum = 0;
  const uint32_t used = std::min(p.work->streams_used.load(std::memory_order_acquire), shm::work_streams);
  for (unsigned i = 0; i < used; ++i) {
    const shm::StreamWork& stream = words(p, i);
    if (stream.device.load(std::memory_order_relaxed) != device + 1) continue;
    const uint64_t completed = stream.completed.load(std::memory_order_acquire);
    const uint64_t left = stream.fenced.load(std::memory_order_relaxed) - completed;
    if (static_cast<int64_t>(left) > 0) sum += std::min(left, max_launch_ns);
  }
  return sum;
}

bool is_behind_others(Process& p, const Fence& fence) {
  const uint64_t completed = words(p, fence.slot).completed.load(std::memory_order_acquire);
  return static_cast<int64_t>(completed - (fence.value - fence.ns)) < 0;
}

void stream_ends(CUstream stream) {
  Process* p = attached();
  if (p == nullptr) return;
  if (ThreadLaunchState* l = this_thread_state()) {
    StreamEntry& entry = stream_entry_at(*l, named(stream));
    if (entry.name == named(stream) + 1) {
      if (entry.pending != 0) insert_fence(*p, *l, entry);
      forget_pending(*l, entry);
      entry = {};
    }
  }
  const uint32_t used = p->work->streams_used.load(std::memory_order_acquire);
  for (unsigned i = 0; i < used && i < no_stream_slot; ++i) {
    StreamSlot& s = p->fence_page.stream[i];
    if (s.key.load(std::memory_order_relaxed) != reinterpret_cast<uint64_t>(stream)) continue;
    s.lock.lock();  // Waits for a thread that is inserting a fence.
    if (s.key.load(std::memory_order_relaxed) == reinterpret_cast<uint64_t>(stream)) s.key.store(0);
    s.lock.unlock();
  }
}

void context_ended(Process& p, uint64_t context) {
  if (is_untaken(p.launch_state[0])) return;
  for (std::atomic<uint64_t>& address : p.fence_page.address) address.store(0, std::memory_order_relaxed);
  const uint32_t threads = p.work->threads_used.load(std::memory_order_acquire);
  for (unsigned i = 0; i < threads && i < shm::work_threads; ++i)
    drop_latency_sample(p.launch_state[i], context);
  const uint32_t used = p.work->streams_used.load(std::memory_order_acquire);
  for (unsigned i = 0; i < used && i < no_stream_slot; ++i) {
    StreamSlot& s = p.fence_page.stream[i];
    if (s.context.load(std::memory_order_relaxed) != context) continue;
    s.lock.lock();
    if (s.context.load(std::memory_order_relaxed) == context) {
      s.key.store(0, std::memory_order_relaxed);
      s.event = 0;
      words(p, i).completed.store(words(p, i).fenced.load(), std::memory_order_release);
    }
    s.lock.unlock();
  }
}

}  // namespace carve::guest

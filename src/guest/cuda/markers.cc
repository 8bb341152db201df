#include "guest/cuda/markers.h"

#include <algorithm>

#include "guest/cuda/clock.h"
#include "guest/cuda/lateness.h"

namespace carve::guest {
namespace {

// Calls that an open capture of another thread may forbid do not touch it in this mode (CUDA driver API,
// cuThreadExchangeStreamCaptureMode).
struct Relaxed {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  Relaxed() { driver<&cuThreadExchangeStreamCaptureMode>(&mode); }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;
  ~Relaxed() { driver<&cuThreadExchangeStreamCaptureMode>(&mode); }
};

shm::Marks marks_by(const Process& p) {
  return static_cast<shm::Marks>(p.work->marks.load(std::memory_order_relaxed));
}
void settle_for(Process& p, shm::Marks marks) {
  p.work->marks.store(static_cast<uint32_t>(marks), std::memory_order_relaxed);
}

// Where the current context's device finds our page, registered at the first use. 0: it cannot write there.
uint64_t page_address(Process& p, unsigned device) {
  std::atomic<uint64_t>& address = p.meter.address[device];
  if (const uint64_t known = address.load(std::memory_order_acquire); known != 0) return known;
  p.meter.lock.lock();
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
      settle_for(p, shm::Marks::memory);
    }
  }
  const uint64_t found = address.load(std::memory_order_relaxed);
  p.meter.lock.unlock();
  return found;
}

shm::StreamWork& words(Process& p, unsigned place) { return p.work->stream[place]; }

bool is_complete(Process& p, unsigned place) {
  return words(p, place).completed.load(std::memory_order_acquire) ==
         words(p, place).marked.load(std::memory_order_relaxed);
}

// The place of a stream: the one it has, a free one, or that of a complete one.
unsigned place_of(Process& p, unsigned device, uint64_t key, uint64_t context) {
  Meter& m = p.meter;
  unsigned place = no_place;
  m.lock.lock();
  const uint32_t used = p.work->streams_used.load(std::memory_order_relaxed);
  for (unsigned i = 0; i < used && i < no_place && place == no_place; ++i)
    if (m.stream[i].key.load(std::memory_order_relaxed) == key) place = i;
  for (const bool others : {false, true}) {
    for (unsigned i = 0; i < no_place && place == no_place; ++i) {
      StreamPlace& s = m.stream[i];
      if ((!others && s.key.load(std::memory_order_relaxed) != 0) || !is_complete(p, i) || !s.lock.try_lock())
        continue;
      if (is_complete(p, i)) {
        s.key.store(key, std::memory_order_relaxed);
        s.context.store(context, std::memory_order_relaxed);
        words(p, i).device.store(device + 1, std::memory_order_relaxed);
        if (i >= used) p.work->streams_used.store(i + 1, std::memory_order_release);
        place = i;
      }
      s.lock.unlock();
    }
  }
  m.lock.unlock();
  return place;
}

// The event that completes at the place's last marker, if it is complete. The caller holds the place's lock.
void ask_event(Process& p, unsigned place) {
  StreamPlace& s = p.meter.stream[place];
  if (s.event == 0 || is_complete(p, place)) return;
  const Relaxed relaxed;
  if (driver<&cuEventQuery>(reinterpret_cast<CUevent>(s.event)) != CUDA_ERROR_NOT_READY)
    words(p, place).completed.store(s.event_mark, std::memory_order_release);
}

// Ends the work that is pending with an event. False: the last one is still under way; ask again later.
bool record_event(Process& p, StreamPlace& s, unsigned place, uint64_t stream, uint64_t value) {
  ask_event(p, place);
  if (!is_complete(p, place)) return false;
  CUevent event = reinterpret_cast<CUevent>(s.event);
  const Relaxed relaxed;
  if (event == nullptr && driver<&cuEventCreate>(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
    return false;
  s.event = reinterpret_cast<uint64_t>(event);
  if (driver<&cuEventRecord>(event, handle_of(stream)) != CUDA_SUCCESS) return false;
  s.event_mark = value;
  words(p, place).marked.store(value, std::memory_order_release);
  settle_for(p, shm::Marks::events);
  return true;
}

// A context that is not current gets its marker in between.
struct Entering {
  bool entered = false;
  Entering(const Launching& l, uint64_t context) {
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

// Where there is no room for another, the last one of the stream stands for both: what was put in first is
// seen first, and that teaches more.
void remember(Launching& l, const Mark& mark) {
  l.in_flight += mark.ns;
  if (l.mark_count < max_marks) {
    l.mark[l.mark_count++] = mark;
    return;
  }
  for (unsigned i = max_marks; i-- > 0;) {
    if (l.mark[i].place != mark.place) continue;
    l.mark[i].value = mark.value;
    l.mark[i].ns += mark.ns;
    return;
  }
  l.in_flight -= l.mark[0].ns;
  std::copy(l.mark + 1, l.mark + max_marks, l.mark);
  l.mark[max_marks - 1] = mark;
}

bool last_was_a_guess(const Launching& l) {
  const uint32_t last = l.touch[(l.touches - 1) % max_touches].estimate;
  return l.touches != 0 && l.estimate[last / estimates_ways][last % estimates_ways].learned == 0;
}

// Markers that the driver refuses in a row before it is asked no more: the page goes with the context that
// registered it, and is registered again.
constexpr uint32_t patience = 8;

enum class Put { done, later, refused };

Put put(Process& p, Launching& l, StreamPlace& s, const Memo& memo, uint64_t value) {
  shm::StreamWork& word = words(p, memo.place);
  if (p.meter.refusals.load(std::memory_order_relaxed) < patience && marks_by(p) != shm::Marks::events) {
    if (const uint64_t page = page_address(p, l.device); page != 0) {
      const uint64_t before = word.marked.load(std::memory_order_relaxed);
      const uint64_t at = page + memo.place * sizeof(shm::StreamWork) + offsetof(shm::StreamWork, completed);
      word.marked.store(value, std::memory_order_release);
      if (driver<&cuStreamWriteValue64_v2>(handle_of(memo.name - 1), at, value,
                                           CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS) {
        p.meter.refusals.store(0, std::memory_order_relaxed);
        return Put::done;
      }
      word.marked.store(before, std::memory_order_release);
      p.meter.refusals.fetch_add(1, std::memory_order_relaxed);
      p.meter.address[l.device].store(0, std::memory_order_relaxed);
      return Put::refused;
    }
  }
  return record_event(p, s, memo.place, memo.name - 1, value) ? Put::done : Put::later;
}

}  // namespace

bool captured(uint64_t stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver<&cuStreamIsCapturing>(handle_of(stream), &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

Memo& memo_of(Process& p, Launching& l, uint64_t stream) {
  const bool is_default = stream <= per_thread_stream;
  Memo& memo = memo_at(l, stream);
  const bool same = memo.name == stream + 1 && (!is_default || memo.context == l.context);
  if (same && memo.place != no_place &&
      p.meter.stream[memo.place].key.load(std::memory_order_relaxed) == memo.key)
    return memo;
  if (memo.pending != 0) put_marker(p, l, memo);
  forget_pending(l, memo);
  uint64_t key = stream, context = l.context;
  if (is_default) {
    // One per context, or per context and thread. Never the value of a handle, which is an address.
    const uint64_t thread = stream == legacy_stream ? 0 : mine.claim;
    key = ((context ^ thread << 48 ^ thread >> 16) * 4 + stream) | uint64_t{1} << 63;
  } else if (CUcontext its = nullptr; driver<&cuStreamGetCtx>(handle_of(stream), &its) == CUDA_SUCCESS) {
    context = reinterpret_cast<uint64_t>(its);
  }
  memo = {stream + 1, 0, is_default ? context : 0, key, place_of(p, l.device, key, context), 0};
  return memo;
}

void set_unmarked(Launching& l, uint64_t unmarked) {
  if (l.shared) {
    l.line->unmarked.fetch_add(unmarked - l.unmarked, std::memory_order_relaxed);
  } else {
    l.line->unmarked.store(unmarked + l.unplaced, std::memory_order_relaxed);
  }
  l.unmarked = unmarked;
}

void submit(Launching& l, Memo& memo, uint64_t ns) {
  memo.pending += ns;
  if (memo.place == no_place) {
    l.unplaced += ns;
    memo.pending = 0;
  }
  l.submitted += ns;
  if (l.shared) {
    l.line->submitted.fetch_add(ns, std::memory_order_relaxed);
  } else {
    l.line->submitted.store(l.submitted, std::memory_order_relaxed);
  }
  set_unmarked(l, l.unmarked + (memo.place == no_place ? 0 : ns));
}

void forget_pending(Launching& l, Memo& memo) {
  if (memo.pending == 0) return;
  set_unmarked(l, l.unmarked - std::min(l.unmarked, memo.pending));
  memo.pending = 0;
}

void put_marker(Process& p, Launching& l, Memo& memo) {
  if (memo.pending == 0) return;
  const uint64_t stream = memo.name - 1;
  const Entering entering(l, memo.context);
  StreamPlace& s = p.meter.stream[memo.place];
  s.lock.lock();
  // A stream that lost its place, or is gone, gets no call: its handle may mean nothing any more.
  Put done = Put::refused;
  if (s.key.load(std::memory_order_relaxed) == memo.key && !captured(stream)) {
    const uint64_t value = words(p, memo.place).marked.load(std::memory_order_relaxed) + memo.pending;
    // Before the call: where the driver's queue is full it returns when much of the work is done.
    const uint64_t now = monotonic_ns();
    done = put(p, l, s, memo, value);
    if (done == Put::done)
      remember(l, {value, memo.pending, now, memo.place, l.batch++,
                   l.in_flight == 0 && l.unmarked == memo.pending, last_was_a_guess(l)});
  }
  s.lock.unlock();
  if (done != Put::later) forget_pending(l, memo);
}

bool put_markers(Process& p, Launching& l) {
  bool all = true;
  for (Memo& memo : l.memo) {
    if (memo.pending == 0) continue;
    if (memo.name == legacy_stream + 1 && l.in_flight != 0) {
      all = false;
      continue;
    }
    put_marker(p, l, memo);
    all = all && memo.pending == 0;
  }
  return all;
}

bool is_passed(Process& p, const Mark& mark) {
  if (marks_by(p) == shm::Marks::events && p.meter.stream[mark.place].lock.try_lock()) {
    ask_event(p, mark.place);
    p.meter.stream[mark.place].lock.unlock();
  }
  // The distance, so that what a customer wrote there cannot keep us waiting.
  const uint64_t completed = words(p, mark.place).completed.load(std::memory_order_acquire);
  return static_cast<int64_t>(completed - mark.value) >= 0;
}

void stream_ends(CUstream stream) {
  Process* p = attached();
  if (p == nullptr) return;
  if (Launching* l = own()) {
    Memo& memo = memo_at(*l, named(stream));
    if (memo.name == named(stream) + 1) {
      if (memo.pending != 0) put_marker(*p, *l, memo);
      forget_pending(*l, memo);
      memo = {};
    }
  }
  const uint32_t used = p->work->streams_used.load(std::memory_order_acquire);
  for (unsigned i = 0; i < used && i < no_place; ++i) {
    StreamPlace& s = p->meter.stream[i];
    if (s.key.load(std::memory_order_relaxed) != reinterpret_cast<uint64_t>(stream)) continue;
    s.lock.lock();  // Whoever is putting a marker in has done so.
    if (s.key.load(std::memory_order_relaxed) == reinterpret_cast<uint64_t>(stream)) s.key.store(0);
    s.lock.unlock();
  }
}

void context_ended(Process& p, uint64_t context) {
  if (is_untaken(p.launching[0])) return;
  for (std::atomic<uint64_t>& address : p.meter.address) address.store(0, std::memory_order_relaxed);
  const uint32_t threads = p.work->threads_used.load(std::memory_order_acquire);
  for (unsigned i = 0; i < threads && i < shm::work_threads; ++i) drop_sample(p.launching[i], context);
  const uint32_t used = p.work->streams_used.load(std::memory_order_acquire);
  for (unsigned i = 0; i < used && i < no_place; ++i) {
    StreamPlace& s = p.meter.stream[i];
    if (s.context.load(std::memory_order_relaxed) != context) continue;
    s.lock.lock();
    if (s.context.load(std::memory_order_relaxed) == context) {
      s.key.store(0, std::memory_order_relaxed);
      s.event = 0;
      words(p, i).completed.store(words(p, i).marked.load(), std::memory_order_release);
    }
    s.lock.unlock();
  }
}

}  // namespace carve::guest

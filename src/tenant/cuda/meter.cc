#include "tenant/cuda/meter.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "tenant/cuda/lateness.h"

// glibc 2.18; what runs at the end of a thread. Where it is missing the thread's places are found free by who
// looks for one.
extern "C" __attribute__((weak)) int __cxa_thread_atexit_impl(void (*run)(void*), void* object,
                                                              void* library);

namespace carve::tenant {

__thread Mine mine;

namespace {

constexpr unsigned no_place = shm::work_streams;

// Of all owners of places that there ever were, also in the parents of this process: not in the Process page.
constinit std::atomic<uint64_t> claims{0};

// Nobody ever had it in this process.
bool is_untaken(const Launching& l) { return l.claim.load(std::memory_order_relaxed) == 0; }

void add(std::atomic<uint64_t>& word, uint64_t value) { word.fetch_add(value, std::memory_order_relaxed); }

void set_unmarked(Launching& l, uint64_t unmarked) {
  if (l.shared) {
    add(l.line->unmarked, unmarked - l.unmarked);
  } else {
    l.line->unmarked.store(unmarked + l.unplaced, std::memory_order_relaxed);
  }
  l.unmarked = unmarked;
}

// No call of the driver: the thread has ended as far as the driver knows. What it left unmarked is less than
// a batch per stream, and the agent sees the rest by the streams.
void thread_ends(void*) {
  Process* p = process_page.load(std::memory_order_acquire);
  const auto self = static_cast<uint32_t>(syscall(SYS_gettid));
  mine.now = nullptr;
  if (p == nullptr || p->work == nullptr) return;
  for (Launching& l : p->launching) {
    if (is_untaken(l)) break;  // Places are taken in their order.
    if (l.owner.load(std::memory_order_relaxed) != self) continue;
    l.unplaced = 0;
    set_unmarked(l, 0);
    go_idle(l, monotonic_ns());
    if (!l.shared) {
      l.line->waiting_since.store(0, std::memory_order_relaxed);
      l.line->device.store(0, std::memory_order_release);
    }
    l.owner.store(0, std::memory_order_release);
  }
}

bool is_gone(uint32_t thread) { return syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH; }

void take_place(Process& p, Launching& l, unsigned index, unsigned device) {
  // What a thread before left here belongs to streams and a batch count of its own.
  for (Memo& m : l.memo) m = {};
  l.mark_count = l.touches = 0;
  l.in_flight = l.unplaced = l.unmarked = l.room = 0;
  l.busy_since = l.looked_at = 0;
  l.word = ~uint64_t{0};
  l.turns = 1;
  l.moved = true;
  l.lifted = false;
  l.device = device;
  const unsigned line = std::min(index, shm::work_threads - 1);
  l.shared = index >= shm::work_threads - 1;
  l.line = &p.work->thread[line];
  l.submitted = l.line->submitted.load(std::memory_order_relaxed);
  if (!l.shared) {
    l.line->unmarked.store(0, std::memory_order_relaxed);
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

// An image of before (exec) may have left marks in the page that nobody will write any more.
void forget_image_before(Process& p) {
  for (shm::StreamWork& s : p.work->stream)
    s.completed.store(s.marked.load(std::memory_order_relaxed), std::memory_order_relaxed);
  for (shm::ThreadWork& t : p.work->thread) {
    t.unmarked.store(0, std::memory_order_relaxed);
    t.waiting_since.store(0, std::memory_order_relaxed);
    t.device.store(0, std::memory_order_relaxed);
  }
}

Launching* claimed(Process& p, unsigned device) {
  const auto self = static_cast<uint32_t>(syscall(SYS_gettid));
  for (Launching& l : p.launching) {
    if (is_untaken(l)) break;
    if (l.owner.load(std::memory_order_relaxed) == self && l.device == device) return &l;
  }
  Launching* found = nullptr;
  p.meter.lock.lock();
  if (is_untaken(p.launching[0])) forget_image_before(p);
  for (const bool dead : {false, true}) {
    for (unsigned i = 0; i < max_launching && found == nullptr; ++i) {
      Launching& l = p.launching[i];
      const uint32_t owner = l.owner.load(std::memory_order_acquire);
      if (owner != 0 && (!dead || !is_gone(owner))) continue;
      l.owner.store(self, std::memory_order_relaxed);
      take_place(p, l, i, device);
      found = &l;
    }
  }
  p.meter.lock.unlock();
  if (found != nullptr && !mine.leaves && __cxa_thread_atexit_impl != nullptr) {
    mine.leaves = true;
    __cxa_thread_atexit_impl(thread_ends, nullptr, &claims);
  }
  return found;
}

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

void teach(Launching& l, uint32_t first, uint64_t took, uint64_t estimated) {
  const uint64_t longest = learn(l, first, took, estimated);
  if (!l.shared) l.line->longest.store(longest, std::memory_order_relaxed);
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

uint64_t monotonic_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

Launching* launching(Process& p) {
  Launching* l = own();
  if (l != nullptr && !l->moved) return l;
  const Current where = current(p);
  if (where.result != CUDA_SUCCESS || where.device >= p.device_count) return nullptr;
  l = claimed(p, where.device);
  mine.now = l;
  mine.claim = 0;
  if (l == nullptr) return nullptr;
  mine.claim = l->claim.load(std::memory_order_relaxed);
  // Back from another device its memory of the default streams may be old, too.
  l->word = ~uint64_t{0};
  l->context = reinterpret_cast<uint64_t>(where.context);
  l->moved = false;
  return l;
}

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

void submit(Launching& l, Memo& memo, uint64_t ns) {
  memo.pending += ns;
  if (memo.place == no_place) {
    l.unplaced += ns;
    memo.pending = 0;
  }
  l.submitted += ns;
  if (l.shared) {
    add(l.line->submitted, ns);
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
    done = put(p, l, s, memo, value);
    if (done == Put::done)
      remember(l, {value, memo.pending, monotonic_ns(), memo.place, l.batch++,
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

namespace {

// What the marks that were just seen teach. `before` is the look before this one.
struct Sight {
  uint64_t ns = 0;  // Estimated.
  uint64_t put_at = 0;
  uint32_t first = 0, count = 0;
  bool alone = false, guess = false;
};

void open_window(Launching& l, bool open) {
  l.busy_open = open;
  l.busy_marks = 0;
  l.busy_ns = l.busy_work = 0;
}

void learn_from(Launching& l, const Sight& seen, uint64_t before, uint64_t now) {
  if (before == 0 || now == 0) return open_window(l, false);
  // A mark that was under way then still is: the device was not idle in between.
  if (l.mark_count != 0 && l.mark[0].put_at <= before) {
    // From one completion that was seen to another: both were seen late, by as much on average.
    if (!l.busy_open) return open_window(l, seen.count != 0);
    if (seen.count != 0 && l.busy_marks == 0) l.busy_from = seen.first;
    l.busy_ns += now - before;
    l.busy_work += seen.ns;
    l.busy_marks += seen.count;
    if (seen.count == 0 || (l.busy_marks < 8 && l.busy_ns < 4 * l.batch_ns)) return;
    teach(l, l.busy_from, l.busy_ns, l.busy_work);
    return open_window(l, true);
  }
  open_window(l, false);
  if (seen.count == 0) return;
  // It took this long at most; and about as long if somebody looked all the time.
  const uint64_t took = now - seen.put_at;
  const bool watched = seen.alone && seen.count == 1 && now - before <= took / 8 + 100'000;
  if (took < seen.ns || (watched && (seen.guess || took > 2 * seen.ns))) teach(l, seen.first, took, seen.ns);
}

}  // namespace

bool look(Process& p, Launching& l, uint64_t now) {
  Sight seen;
  uint32_t kept = 0;
  for (unsigned i = 0; i < l.mark_count; ++i) {
    const Mark mark = l.mark[i];
    if (marks_by(p) == shm::Marks::events && p.meter.stream[mark.place].lock.try_lock()) {
      ask_event(p, mark.place);
      p.meter.stream[mark.place].lock.unlock();
    }
    // The distance, so that what a customer wrote there cannot keep us waiting.
    const uint64_t completed = words(p, mark.place).completed.load(std::memory_order_acquire);
    if (static_cast<int64_t>(completed - mark.value) < 0) {
      l.mark[kept++] = mark;
      continue;
    }
    if (seen.count++ == 0) {
      seen.first = mark.batch;
      seen.put_at = mark.put_at;
      seen.alone = mark.alone;
      seen.guess = mark.guess;
    }
    seen.ns += mark.ns;
  }
  l.mark_count = kept;
  l.in_flight -= std::min(l.in_flight, seen.ns);
  learn_from(l, seen, l.looked_at, now);
  l.looked_at = now;
  return seen.count != 0;
}

void go_busy(Launching& l, uint64_t now) {
  l.busy_since = now;
  l.submitted_then = l.submitted;
  l.batch_then = l.batch;
  l.disturbed = false;
  if (l.shared) return;
  const shm::BusyWord busy{l.line->busy.load(std::memory_order_relaxed)};
  l.total_then = busy.total(now);
  // What it will be late at the end is taken off here, so that the total never goes back.
  l.line->busy.store(shm::BusyWord::since(now + lateness(l), l.total_then).value, std::memory_order_relaxed);
}

void go_idle(Launching& l, uint64_t now) {
  l.busy_since = 0;
  l.room = 0;  // The next launch comes to say that it is busy.
  l.lifted = false;
  l.looked_at = 0;
  if (l.shared) return;
  const shm::BusyWord busy{l.line->busy.load(std::memory_order_relaxed)};
  l.line->idle_at.store(now, std::memory_order_relaxed);
  l.line->busy.store(shm::BusyWord::idle(std::max(busy.total(now), l.total_then)).value,
                     std::memory_order_relaxed);
  l.line->flags.store(0, std::memory_order_relaxed);
}

void Waiting::begin() {
  process_ = attached();
  if (process_ == nullptr || process_->work == nullptr) {
    process_ = nullptr;
    return;
  }
  Launching& l = *launching_;
  from_ = monotonic_ns();
  look(*process_, l, 0);
  running_ = l.in_flight != 0;
  if (!l.shared) l.line->flags.fetch_or(shm::thread_synchronises, std::memory_order_relaxed);
  put_markers(*process_, l);
  close_sample(l);
}

void Waiting::end() {
  Launching& l = *launching_;
  if (own() != &l) return;  // A callback in between, or a fork.
  Process& p = *process_;
  const uint64_t now = monotonic_ns();
  for (Memo& memo : l.memo) {
    const bool waited_for =
        what_ == whole_context ? memo.context == 0 || memo.context == l.context : memo.name == what_ + 1;
    if (waited_for) forget_pending(l, memo);
  }
  if (what_ == whole_context) {
    l.unplaced = 0;
    set_unmarked(l, l.unmarked);
  }
  look(p, l, 0);
  if (!l.shared) l.line->flags.fetch_and(~shm::thread_synchronises, std::memory_order_relaxed);
  if (l.in_flight != 0 || l.unmarked != 0 || l.unplaced != 0) return;
  // From its first launch to here the thread's work ran, if it was still running when the wait began; else
  // it took that long at most.
  const uint64_t took = now - l.busy_since, estimated = l.submitted - l.submitted_then;
  if (!l.disturbed && (running_ || now - from_ >= took / 8 || took < estimated)) {
    teach(l, l.batch_then, took, estimated);
  }
  if (!l.disturbed) finish_sample(l, took);
  go_idle(l, now);
  const shm::ControlDevice& device = p.control->devices[l.device];
  if (shm::LeaseWord{device.lease.load(std::memory_order_relaxed)}.eager()) wake_arbiter(p, l.device);
}

void stream_ends(CUstream stream) {
  Process* p = attached();
  if (p == nullptr || p->work == nullptr) return;
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
  if (p.work == nullptr || is_untaken(p.launching[0])) return;
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

void wake_arbiter(const Process& p, unsigned device) {
  const uint32_t arbiter = p.control->devices[device].arbiter;
  if (arbiter >= shm::max_devices) return;
  const auto& asleep = p.heartbeat->arbiter[arbiter].asleep;
  if (asleep.load(std::memory_order_relaxed) != 0)
    syscall(SYS_futex, &asleep, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace carve::tenant

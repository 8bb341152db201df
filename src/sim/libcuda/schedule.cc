// The service thread is the only thread that this library creates. It blocks all signals and sleeps unless an
// asynchronous copy, a host function or a stream callback is outstanding.
#include "sim/libcuda/schedule.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <ctime>

#include "sim/libcuda/capture.h"
#include "sim/libcuda/green.h"
#include "sim/libcuda/managed.h"
#include "sim/model/device_engine.h"

namespace carve::sim {
namespace {

// Spins for the end of a wait (ns), as the driver does, because a sleep ends later than requested.
constexpr uint64_t spin_ns = 30'000;
constexpr uint64_t max_sleep =
    20'000'000;  // Maximum time between two polls (ns), whatever the model returns.

// The kernel lets ordinary threads oversleep by 50 us to save wake-ups. A device has no such delay.
void be_punctual() {
  static thread_local const bool done = prctl(PR_SET_TIMERSLACK, 1) == 0;
  (void)done;
}

void sleep_until(uint64_t t) {
  be_punctual();
  timespec at = {static_cast<time_t>(t / 1'000'000'000), static_cast<long>(t % 1'000'000'000)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
}

// Waits a little for model time `t`. `turn` counts the attempts that were too early.
void pause_until(uint64_t t, unsigned turn) {
  const uint64_t now = now_ns();
  const uint64_t backoff = turn < 3 ? 0 : std::min<uint64_t>(10'000ull << std::min(turn, 6u), 500'000);
  const uint64_t until = std::min(std::max(t, now + backoff), now + max_sleep);
  if (until > now + 2 * spin_ns) sleep_until(until - spin_ns);
  do __builtin_ia32_pause();
  while (now_ns() < until);
}

CUresult state_of(const CUctx_st& c, const Device& d) {
  const Context& m = d.contexts[c.index];
  if (!m.in_use || m.serial != c.serial) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return static_cast<CUresult>(__atomic_load_n(&m.error, __ATOMIC_RELAXED));
}

// Performs the effects that are due, the earliest end first. Only the service thread performs host functions.
// The model completes no later operation of a channel before the host function has run.
void perform_due(CUctx_st& c) {
  if (c.outstanding.load(std::memory_order_acquire) == 0) return;
  const std::lock_guard one_at_a_time(c.performing);
  for (;;) {
    Effect next;
    uint64_t end = 0;
    {
      const std::lock_guard lock(c.pending);
      const Device& d = c.own_device();
      int chosen = -1;
      std::pair<uint64_t, uint64_t> best{never_time, never_time};
      for (unsigned k = 0; k < max_channels; ++k) {
        if (c.effects[k].empty()) continue;
        const Effect& e = c.effects[k].front();
        if (!complete(d, c.index, k, e.sequence)) continue;
        const Op& op = d.rings[c.index][k][e.sequence % ring_size];
        const std::pair<uint64_t, uint64_t> when{op.end_ns, op.order};
        if (when < best) best = when, chosen = static_cast<int>(k);
      }
      if (chosen < 0) return;
      next = std::move(c.effects[chosen].front());
      c.effects[chosen].pop_front();
      end = best.first;
    }
    if (next.run && !next.host) next.run(end);
    c.outstanding.fetch_sub(1, std::memory_order_release);
  }
}

// Returns when to poll an operation again. No event before that time can complete it.
uint64_t look_again(const Device& d, const CUctx_st& c, unsigned channel, uint64_t sequence) {
  const uint64_t next = next_event(d);
  return std::max(earliest_end(d, c.index, channel, sequence), next == never_time ? 0 : next);
}

// Polls one context in the service thread. Returns the time of the next poll.
uint64_t serve(CUctx_st& c, bool* did_something) {
  Device& d = c.own_device();
  uint64_t wake = never_time;
  std::vector<std::pair<unsigned, std::function<void(uint64_t)>>> calls;
  bool due = false;
  perform_due(c);  // A gate may wait for an effect that no thread has performed yet.
  {
    const std::lock_guard lock(c.pending);
    const Locked device(d);
    const uint64_t now = now_ns();
    advance(d, now);
    if (state_of(c, d) != CUDA_SUCCESS) return never_time;
    for (unsigned k = 0; k < max_channels; ++k) {
      const auto urgent = std::ranges::find_if(c.effects[k], [](const Effect& e) { return !e.lazy; });
      if (urgent == c.effects[k].end()) continue;
      const Channel& channel = d.contexts[c.index].channels[k];
      if (complete(d, c.index, k, urgent->sequence)) {
        due = true;
      } else if (channel.head == Head::waiting_for_host && channel.completed == urgent->sequence) {
        const uint64_t again = urgent->gate ? urgent->gate(now) : 0;
        if (again == 0)
          calls.push_back({k, urgent->run});
        else
          wake = std::min(wake, again);
      } else {
        wake = std::min(wake, std::max(look_again(d, c, k, urgent->sequence), now + 20'000));
      }
    }
  }
  if (due || !calls.empty()) perform_due(c);
  for (auto& [channel, call] : calls) {
    if (call) call(0);
    const Locked device(d);
    if (state_of(c, d) == CUDA_SUCCESS) host_done(d, c.index, channel, now_ns());
  }
  if (!calls.empty()) perform_due(c);
  *did_something |= due || !calls.empty();
  return wake;
}

void* service(void*) {
  Process& p = process();
  // This thread does the work of the device, which does not wait for a processor. The kernel denies the
  // priority to ordinary users.
  be_punctual();
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), -20);
  for (;;) {
    std::vector<std::shared_ptr<CUctx_st>> contexts, others;
    {
      const std::lock_guard lock(p.mutex);
      for (const auto& [handle, c] : p.contexts)
        (c->outstanding.load(std::memory_order_acquire) ? contexts : others).push_back(c);
    }
    // A gate may wait for work in a context whose time no other thread advances.
    if (!contexts.empty())
      for (const auto& c : others) {
        const Locked device(c->own_device());
        advance(c->own_device(), now_ns());
      }
    others.clear();
    bool did_something = false;
    uint64_t wake = never_time;
    for (const auto& c : contexts) wake = std::min(wake, serve(*c, &did_something));
    const bool idle = contexts.empty();
    contexts.clear();
    if (did_something) continue;
    std::unique_lock lock(p.service_mutex);
    const auto called = [&] { return p.service_called; };
    if (idle) {
      p.service_wake.wait(lock, called);
    } else {
      const uint64_t now = now_ns();
      const uint64_t nap = std::clamp<uint64_t>(wake > now ? wake - now : 0, 20'000, max_sleep);
      p.service_wake.wait_for(lock, std::chrono::nanoseconds(nap), called);
    }
    p.service_called = false;
  }
}

uint64_t thread_id() {
  static thread_local const uint64_t id = static_cast<uint64_t>(syscall(SYS_gettid));
  return id;
}

}  // namespace

void call_service() {
  Process& p = process();
  const std::lock_guard lock(p.service_mutex);
  p.service_called = true;
  if (p.service_started) return p.service_wake.notify_one();
  p.service_started = true;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, service, nullptr) == 0)
    pthread_detach(thread);
  else
    p.service_started = false;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

CUresult stream_of(CUstream handle, std::shared_ptr<CUctx_st>* context, CUstream_st** stream,
                   bool only_asks) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    if (const CUresult e = current(context)) return e;
    CUctx_st& c = **context;
    const CUgreenCtx green = current_green();
    if (handle != CU_STREAM_PER_THREAD) {
      *stream = green ? &green->default_stream : &c.legacy;
      return green ? CUDA_SUCCESS : refuse_implicit(c, only_asks);
    }
    Process& p = process();
    const std::lock_guard lock(p.mutex);
    std::unique_ptr<CUstream_st>& own = (green ? green->thread_streams : c.thread_streams)[thread_id()];
    if (!own)
      own = std::make_unique<CUstream_st>(
          CUstream_st{&c, take_channel(c, !green, green ? green->part : Partition{}), CU_STREAM_DEFAULT, 0,
                      p.next_id.fetch_add(1), nullptr, green});
    *stream = own.get();
    return CUDA_SUCCESS;
  }
  if (const CUresult e = entered()) return e;
  Process& p = process();
  {
    const std::lock_guard lock(p.mutex);
    if (!p.streams.contains(handle)) return CUDA_ERROR_INVALID_HANDLE;
    const auto found = p.contexts.find(handle->context);
    if (found == p.contexts.end()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *context = found->second;
  }
  *stream = handle;
  return static_cast<CUresult>(__atomic_load_n(&(*context)->model().error, __ATOMIC_RELAXED));
}

CUresult submit(CUctx_st& c, unsigned channel, const Op& op, Effect effect, uint64_t* sequence) {
  Device& d = c.own_device();
  if (op.kind == OpKind::kernel) managed_touch(c);
  const bool keeps = effect.run || effect.gate;
  const bool urgent = keeps && !effect.lazy;
  for (unsigned turn = 0;; ++turn) {
    uint64_t room_at = 0;
    bool harvest = false;
    {
      const std::lock_guard lock(c.pending);
      const Locked device(d);
      if (const CUresult e = state_of(c, d)) return e;
      const uint64_t now = now_ns();
      advance(d, now);
      // An effect that no thread has performed yet may still need the ring entry that is about to be reused.
      harvest = !c.effects[channel].empty() && c.effects[channel].front().sequence + ring_size <=
                                                   d.contexts[c.index].channels[channel].submitted;
      if (!harvest && has_room(d, c.index, channel)) {
        const uint64_t n = push(d, c.index, channel, op, now);
        if (sequence) *sequence = n;
        if (keeps) {
          effect.sequence = n;
          c.effects[channel].push_back(std::move(effect));
          c.outstanding.fetch_add(1, std::memory_order_release);
        }
        break;
      }
      if (!has_room(d, c.index, channel)) {
        sweep(process().set, c.device,
              now);  // A dead process may still occupy the engine for which this thread waits.
        room_at = look_again(d, c, channel, d.contexts[c.index].channels[channel].completed);
      }
    }
    if (harvest) perform_due(c);
    if (room_at) pause_until(room_at, turn);
  }
  if (urgent) call_service();
  return CUDA_SUCCESS;
}

CUresult submit(CUctx_st& c, unsigned channel, const Op& op, uint64_t* sequence) {
  return submit(c, channel, op, Effect{}, sequence);
}

CUresult wait_for(CUctx_st& c, unsigned channel, uint64_t sequence) {
  Device& d = c.own_device();
  for (unsigned turn = 0;; ++turn) {
    uint64_t until = 0;
    {
      const Locked device(d);
      const uint64_t now = now_ns();
      advance(d, now);
      if (const CUresult e = state_of(c, d)) return e;
      if (complete(d, c.index, channel, sequence)) break;
      sweep(process().set, c.device, now);
      until = look_again(d, c, channel, sequence);
    }
    pause_until(until, turn);
  }
  perform_due(c);
  return CUDA_SUCCESS;
}

CUresult wait_channel(CUctx_st& c, unsigned channel) {
  const uint64_t submitted = __atomic_load_n(&c.model().channels[channel].submitted, __ATOMIC_ACQUIRE);
  return submitted ? wait_for(c, channel, submitted - 1)
                   : static_cast<CUresult>(__atomic_load_n(&c.model().error, __ATOMIC_RELAXED));
}

CUresult wait_idle(CUctx_st& c) {
  uint64_t submitted[max_channels], active = 0;
  {
    Device& d = c.own_device();
    const Locked device(d);
    advance(d, now_ns());
    if (const CUresult e = state_of(c, d)) return e;
    active = d.contexts[c.index].active;
    for (unsigned k = 0; k < max_channels; ++k) submitted[k] = d.contexts[c.index].channels[k].submitted;
  }
  for (; active; active &= active - 1) {
    const auto k = static_cast<unsigned>(std::countr_zero(active));
    if (const CUresult e = wait_for(c, k, submitted[k] - 1)) return e;
  }
  perform_due(c);
  return CUDA_SUCCESS;
}

bool hangs(CUctx_st& c) {
  Device& d = c.own_device();
  const Locked device(d);
  for (unsigned k = 0; k < max_channels; ++k) {
    const Channel& channel = d.contexts[c.index].channels[k];
    if (channel.submitted > channel.completed &&
        earliest_end(d, c.index, k, channel.submitted - 1) == never_time)
      return true;
  }
  return false;
}

CUresult query(CUctx_st& c, unsigned channel, uint64_t sequence) {
  Device& d = c.own_device();
  {
    const Locked device(d);
    advance(d, now_ns());
    if (const CUresult e = state_of(c, d)) return e;
    if (!complete(d, c.index, channel, sequence)) return CUDA_ERROR_NOT_READY;
  }
  perform_due(c);
  return CUDA_SUCCESS;
}

CUresult query_channel(CUctx_st& c, unsigned channel) {
  const uint64_t submitted = __atomic_load_n(&c.model().channels[channel].submitted, __ATOMIC_ACQUIRE);
  return submitted ? query(c, channel, submitted - 1)
                   : static_cast<CUresult>(__atomic_load_n(&c.model().error, __ATOMIC_RELAXED));
}

unsigned take_channel(CUctx_st& c, bool blocking, Partition part) {
  Device& d = c.own_device();
  const Locked device(d);
  unsigned best = 1;
  auto cost = [&](unsigned k) {
    const Channel& channel = d.contexts[c.index].channels[k];
    const bool other_kind =
        c.channel_users[k] && (channel.blocking != blocking || channel.partition_first != part.first ||
                               channel.partition != part.size);
    // A new stream must not inherit the work that a destroyed stream left.
    const bool left_over = !c.channel_users[k] && channel.submitted > channel.completed;
    return 2 * c.channel_users[k] + left_over + (other_kind ? 1'000'000u : 0u);
  };
  for (unsigned k = 2; k < max_channels; ++k)
    if (cost(k) < cost(best)) best = k;
  if (c.channel_users[best]++ == 0) {
    Channel& channel = d.contexts[c.index].channels[best];
    channel.blocking = blocking;
    channel.partition_first = part.first;
    channel.partition = part.size;
  }
  return best;
}

void give_channel(CUctx_st& c, unsigned channel) {
  if (c.channel_users[channel]) --c.channel_users[channel];
}

uint64_t copy_time(const Device& d, OpKind kind, uint64_t bytes) {
  const uint64_t mbps = kind == OpKind::to_device ? d.facts.to_device_mbps
                        : kind == OpKind::to_host ? d.facts.to_host_mbps
                                                  : d.facts.on_device_mbps;
  return d.facts.copy_latency_ns + bytes * 1000 / mbps;
}

}  // namespace carve::sim

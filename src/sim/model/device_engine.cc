// The schedule of one device. The rules are described in device_engine.h; this file implements their
// arithmetic.
//
// After every event `settle` writes the progress of the running kernels. Then `arrange` decides again which
// operations at the heads of channels may start, what the copy engines do, and which kernels run with how
// many multiprocessors. Both walk bit masks of what is active, so an event takes about 100 ns with a few
// channels.
#include "sim/model/device_engine.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace carve::sim {
namespace {

constexpr uint64_t work_period_ns = 200'000'000;
constexpr uint64_t utilization_window = 1'000'000'000 / 6;

// Iterates over the bits of a mask, lowest first: for (unsigned i : bits(mask)).
struct Bits {
  uint64_t mask;
  struct End {};
  struct Walk {
    uint64_t left;
    unsigned operator*() const { return static_cast<unsigned>(std::countr_zero(left)); }
    Walk& operator++() { return left &= left - 1, *this; }
    bool operator!=(End) const { return left != 0; }
  };
  Walk begin() const { return {mask}; }
  End end() const { return {}; }
};
Bits bits(uint64_t mask) { return {mask}; }

constexpr uint64_t bit(unsigned i) { return 1ull << i; }

Op& head(Device& d, unsigned context, unsigned channel) {
  return d.rings[context][channel][d.contexts[context].channels[channel].completed % ring_size];
}
const Op& head(const Device& d, unsigned context, unsigned channel) {
  return d.rings[context][channel][d.contexts[context].channels[channel].completed % ring_size];
}

// Returns the full-width nanoseconds of work done in `elapsed` with a part of the width; the second function
// is the inverse. Rounding ensures that a kernel never ends early.
uint64_t work_done(uint64_t elapsed, unsigned granted, unsigned width) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(elapsed) * granted / width);
}
uint64_t time_needed(uint64_t work, unsigned granted, unsigned width) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(work) * width + granted - 1) / granted);
}

uint64_t kernel_end(const Op& op, const Channel& channel) {
  if (channel.granted == 0) return never_time;
  const uint64_t needed = time_needed(op.remaining_ns, channel.granted, op.width);
  return needed > never_time - channel.since_ns ? never_time : channel.since_ns + needed;
}

bool dependencies_met(const Device& d, const Context& c, const Op& op, unsigned channel_index) {
  for (unsigned i = 0; i < op.dependency_count; ++i) {
    const Dependency& on = op.dependencies[i];
    const auto completed = static_cast<uint32_t>(c.channels[on.channel % max_channels].completed);
    if (static_cast<int32_t>(completed - on.sequence) < 0) return false;
  }
  // Channel 0 is the legacy default stream. It and the blocking channels wait for each other's earlier work.
  const unsigned context = static_cast<unsigned>(&c - d.contexts);
  if (channel_index == 0) {
    for (unsigned other : bits(c.active & ~bit(0)))
      if (c.channels[other].blocking && head(d, context, other).order < op.order) return false;
  } else if (c.channels[channel_index].blocking && (c.active & bit(0))) {
    if (head(d, context, 0).order < op.order) return false;
  }
  return true;
}

void finish_head(Device& d, unsigned context, unsigned channel_index, uint64_t t) {
  Context& c = d.contexts[context];
  Channel& channel = c.channels[channel_index];
  Op& op = head(d, context, channel_index);
  op.end_ns = t;
  op.remaining_ns = 0;
  if (op.kind == OpKind::kernel) ++c.kernels;
  channel.granted = 0;
  channel.head = Head::none;
  __atomic_store_n(&channel.completed, channel.completed + 1, __ATOMIC_RELEASE);
  if (channel.completed == channel.submitted) {
    c.active &= ~bit(channel_index);
    if (c.active == 0) d.engine.active &= ~bit(context);
  }
}

// Closes a window that is over. Called at every event, so a reader gets the last window of 1/6 s that
// contained work, rather than the whole time since the last reader.
unsigned percent(Window& w, uint64_t busy, uint64_t now) {
  const uint64_t age = now - w.start_ns;
  if (age < utilization_window) return w.last_percent;
  const uint64_t part = std::min(busy - w.busy_at_start_ns, age);
  w.last_percent = static_cast<uint32_t>((part * 100 + age / 2) / age);
  w.start_ns = now;
  w.busy_at_start_ns = busy;
  return w.last_percent;
}

// Writes the progress since the last event.
void settle(Device& d, uint64_t t) {
  Engine& e = d.engine;
  const uint64_t elapsed = t - e.accounted_ns;
  if (e.compute == Compute::running && e.owner >= 0) {
    Context& owner = d.contexts[e.owner];
    bool any = false;
    for (unsigned i : bits(owner.active)) {
      Channel& channel = owner.channels[i];
      if (channel.granted == 0) continue;
      any = true;
      Op& op = head(d, static_cast<unsigned>(e.owner), i);
      const uint64_t done = work_done(t - channel.since_ns, channel.granted, op.width);
      if (op.remaining_ns < forever_ns) op.remaining_ns -= std::min(done, op.remaining_ns);
      channel.since_ns = t;
    }
    if (any) {
      e.busy_ns += elapsed;
      owner.busy_ns += elapsed;
    }
  }
  for (const CopyEngine& copy : e.copy)
    if (copy.context >= 0) {
      e.copy_busy_ns += elapsed;
      break;
    }
  e.accounted_ns = t;
  percent(e.window, e.busy_ns, t);
  percent(e.copy_window, e.copy_busy_ns, t);
  for (unsigned i : bits(e.active)) percent(d.contexts[i].window, d.contexts[i].busy_ns, t);
}

// Checks the first operation of each channel. If nothing that it depends on is outstanding, a mark is
// completed, and work becomes ready to run. A completed mark can release other channels, so the function
// loops; the loop ends because each pass completes an operation.
void resolve_heads(Device& d, uint64_t t) {
  Engine& e = d.engine;
  for (bool changed = true; changed;) {
    changed = false;
    e.ready = 0;
    for (unsigned i : bits(e.active)) {
      Context& c = d.contexts[i];
      for (unsigned k : bits(c.active)) {
        Channel& channel = c.channels[k];
        if (channel.head == Head::none || channel.head == Head::blocked)
          channel.head = dependencies_met(d, c, head(d, i, k), k) ? Head::ready : Head::blocked;
        if (channel.head == Head::blocked) continue;
        const Op& op = head(d, i, k);
        if (op.kind == OpKind::mark) {
          finish_head(d, i, k, t);
          changed = true;
        } else if (op.kind == OpKind::host) {
          channel.head = Head::waiting_for_host;
        } else if (op.kind == OpKind::kernel) {
          e.ready |= bit(i);
        }
      }
    }
  }
}

int engine_of(OpKind kind) {
  return kind == OpKind::to_device ? 0 : kind == OpKind::to_host ? 1 : kind == OpKind::on_device ? 2 : -1;
}

// Gives each free copy engine the next ready copy in turn, starting after the one it served last.
void start_copies(Device& d, uint64_t t) {
  Engine& e = d.engine;
  for (int engine = 0; engine < static_cast<int>(copy_engines); ++engine) {
    CopyEngine& copy = e.copy[engine];
    if (copy.context >= 0) continue;
    uint32_t best = UINT32_MAX, chosen = 0;
    for (unsigned i : bits(e.active)) {
      Context& c = d.contexts[i];
      for (unsigned k : bits(c.active)) {
        if (c.channels[k].head != Head::ready || engine_of(head(d, i, k).kind) != engine) continue;
        const uint32_t place = i * max_channels + k;
        const uint32_t distance = (place - copy.last - 1) % (max_contexts * max_channels);
        if (distance < best) best = distance, chosen = place;
      }
    }
    if (best == UINT32_MAX) continue;
    copy.context = static_cast<int32_t>(chosen / max_channels);
    copy.channel = static_cast<int32_t>(chosen % max_channels);
    copy.last = chosen;
    Channel& channel = d.contexts[copy.context].channels[copy.channel];
    channel.head = Head::running;
    channel.since_ns = t;
    copy.end_ns = t + head(d, chosen / max_channels, chosen % max_channels).remaining_ns;
  }
}

void take_off(Device& d, int context) {
  if (context < 0) return;
  for (unsigned k : bits(d.contexts[context].active)) {
    Channel& channel = d.contexts[context].channels[k];
    if (channel.granted == 0) continue;
    channel.granted = 0;
    channel.head = Head::ready;
  }
}

// Assigns multiprocessors to the owner's ready kernels: the most urgent first, then the oldest.
void grant(Device& d, uint64_t t) {
  const unsigned owner = static_cast<unsigned>(d.engine.owner);
  Context& c = d.contexts[owner];
  unsigned order[max_channels], count = 0;
  for (unsigned k : bits(c.active)) {
    const Channel& channel = c.channels[k];
    if ((channel.head == Head::ready || channel.head == Head::running) &&
        head(d, owner, k).kind == OpKind::kernel)
      order[count++] = k;
  }
  std::sort(order, order + count, [&](unsigned a, unsigned b) {
    const Op &x = head(d, owner, a), &y = head(d, owner, b);
    return x.priority != y.priority ? x.priority < y.priority : x.order < y.order;
  });
  struct Partition {
    unsigned first, size, left;
  } partitions[max_channels];
  unsigned left = d.facts.multiprocessors, partition_count = 0;
  for (unsigned i = 0; i < count; ++i) {
    Channel& channel = c.channels[order[i]];
    const Op& op = head(d, owner, order[i]);
    Partition* part = nullptr;
    if (channel.partition) {
      const Partition own = {channel.partition_first, channel.partition, channel.partition};
      part = std::find_if(partitions, partitions + partition_count,
                          [&](const Partition& p) { return p.first == own.first && p.size == own.size; });
      if (part == partitions + partition_count) partitions[partition_count++] = own;
    }
    const unsigned free = part ? std::min(left, part->left) : left;
    const unsigned width = part ? std::min<unsigned>(op.width, part->size) : op.width;
    const bool whole = (op.flags & op_cooperative) && channel.granted == 0;
    const unsigned granted = whole && width > free ? 0 : std::min(width, free);
    left -= granted;
    if (part) part->left -= granted;
    channel.granted = static_cast<uint16_t>(granted);
    channel.since_ns = t;
    channel.head = granted ? Head::running : Head::ready;
  }
}

// Decides which context owns the compute engine from t on.
void arrange_compute(Device& d, uint64_t t) {
  Engine& e = d.engine;
  if (e.compute == Compute::switching) {
    if (t < e.switch_end_ns) return;
    e.owner = e.next_owner;
    e.next_owner = -1;
    e.compute = Compute::idle;
  }
  const uint64_t own = e.owner >= 0 ? bit(static_cast<unsigned>(e.owner)) : 0;
  if (e.ready == 0) {
    e.compute = Compute::idle;
    return;
  }
  const bool others = (e.ready & ~own) != 0;
  if (e.ready & own) {
    if (e.compute == Compute::idle) e.slice_end_ns = t + d.facts.slice_ns;
    if (t >= e.slice_end_ns && !others)
      e.slice_end_ns += (t - e.slice_end_ns) / d.facts.slice_ns * d.facts.slice_ns + d.facts.slice_ns;
    if (t < e.slice_end_ns) {
      e.compute = Compute::running;
      grant(d, t);
      return;
    }
  }
  // The next context in turn after the owner.
  const unsigned from = e.owner >= 0 ? static_cast<unsigned>(e.owner) + 1 : 0;
  const uint64_t turned = std::rotr(e.ready & ~own, static_cast<int>(from % 64));
  const auto next = static_cast<unsigned>((from + static_cast<unsigned>(std::countr_zero(turned))) % 64);
  take_off(d, e.owner);
  e.next_owner = static_cast<int32_t>(next);
  e.switch_end_ns = t + (e.owner >= 0 ? d.facts.switch_ns : 0);
  e.compute = Compute::switching;
  ++e.switches;
  if (e.switch_end_ns == t) arrange_compute(d, t);
}

void arrange(Device& d, uint64_t t) {
  resolve_heads(d, t);
  start_copies(d, t);
  arrange_compute(d, t);
}

// Ends every operation that ends at t.
void complete_due(Device& d, uint64_t t) {
  Engine& e = d.engine;
  for (CopyEngine& copy : e.copy) {
    if (copy.context < 0 || copy.end_ns > t) continue;
    finish_head(d, static_cast<unsigned>(copy.context), static_cast<unsigned>(copy.channel), t);
    copy.context = copy.channel = -1;
  }
  if (e.compute != Compute::running || e.owner < 0) return;
  const auto owner = static_cast<unsigned>(e.owner);
  for (unsigned k : bits(d.contexts[owner].active))
    if (d.contexts[owner].channels[k].granted && head(d, owner, k).remaining_ns == 0)
      finish_head(d, owner, k, t);
}

// Returns the amount that a reader adds to a counter that is updated only at events. (Calling settle() here
// instead would round the running kernels' work once more, and finish times would depend on the readers.)
uint64_t unaccounted(const Device& d, bool busy) {
  return busy ? d.engine.now_ns - d.engine.accounted_ns : 0;
}

// Records the sample of the period that ends at `end`. All earlier events have been played.
void record_sample(Device& d, uint64_t end) {
  const Engine& e = d.engine;
  uint64_t busy[max_contexts] = {}, all = 0;
  for (const unsigned i : bits(e.used)) {
    Context& c = d.contexts[i];
    const bool runs = e.compute == Compute::running && e.owner == static_cast<int32_t>(i);
    const uint64_t now = c.busy_ns + (runs && end > e.accounted_ns ? end - e.accounted_ns : 0);
    busy[i] = now - std::min(now, std::exchange(c.sampled_busy_ns, now));
    all += busy[i];
  }
  if (e.used == 0) return;
  // Chooses one context at random, with probabilities proportional to their times. The seed is the number of
  // the period.
  uint64_t draw = end / work_period_ns * 0x9e3779b97f4a7c15u;
  draw = (draw ^ draw >> 29) * 0xbf58476d1ce4e5b9u;
  draw = (draw ^ draw >> 32) % std::max<uint64_t>(1, all);
  auto named = static_cast<unsigned>(std::countr_zero(e.used));
  for (; draw >= busy[named] && all > 0; ++named) draw -= busy[named];
  const auto percent = static_cast<uint32_t>(std::min<uint64_t>(100, all * 100 / work_period_ns));
  d.work.samples[d.work.count++ % max_work_samples] = {end, d.contexts[named].serial, named, percent};
}

void record_samples(Device& d, uint64_t until) {
  WorkSamples& work = d.work;
  const uint64_t forgotten = until - std::min(until, max_work_samples * work_period_ns);
  if (work.next_ns <= forgotten) work.next_ns = (forgotten / work_period_ns + 1) * work_period_ns;
  for (; work.next_ns <= until; work.next_ns += work_period_ns) record_sample(d, work.next_ns);
}

}  // namespace

uint64_t next_event(const Device& d) {
  const Engine& e = d.engine;
  uint64_t t = never_time;
  for (const CopyEngine& copy : e.copy)
    if (copy.context >= 0) t = std::min(t, copy.end_ns);
  if (e.compute == Compute::switching) return std::min(t, e.switch_end_ns);
  if (e.compute != Compute::running || e.owner < 0) return t;
  const auto owner = static_cast<unsigned>(e.owner);
  for (unsigned k : bits(d.contexts[owner].active)) {
    const Channel& channel = d.contexts[owner].channels[k];
    if (channel.granted) t = std::min(t, kernel_end(head(d, owner, k), channel));
  }
  if (e.ready & ~bit(owner)) t = std::min(t, std::max(e.slice_end_ns, e.now_ns));
  return t;
}

void advance(Device& d, uint64_t now) {
  for (uint64_t t = next_event(d); t <= now; t = next_event(d)) {
    record_samples(d, t);
    d.engine.now_ns = std::max(d.engine.now_ns, t);
    settle(d, t);
    complete_due(d, t);
    arrange(d, t);
  }
  record_samples(d, now);
  d.engine.now_ns = std::max(d.engine.now_ns, now);
}

bool has_room(const Device& d, unsigned context, unsigned channel_index) {
  const Channel& channel = d.contexts[context].channels[channel_index];
  return channel.submitted - channel.completed < ring_size;
}

uint64_t push(Device& d, unsigned context, unsigned channel_index, Op op, uint64_t now) {
  advance(d, now);
  const uint64_t t = d.engine.now_ns;
  Context& c = d.contexts[context];
  Channel& channel = c.channels[channel_index];
  op.order = c.next_order++;
  op.width = std::clamp<uint16_t>(op.width, 1, static_cast<uint16_t>(d.facts.multiprocessors));
  op.end_ns = 0;
  if (op.kind == OpKind::kernel && d.faults.hang) {
    d.faults.hang = 0;
    op.flags |= op_hung;
    op.duration_ns = forever_ns;
  }
  op.remaining_ns = std::clamp<uint64_t>(op.duration_ns, op.kind == OpKind::kernel ? 1 : 0, forever_ns);
  const uint64_t sequence = channel.submitted;
  d.rings[context][channel_index][sequence % ring_size] = op;
  channel.submitted = sequence + 1;
  c.active |= bit(channel_index);
  d.engine.active |= bit(context);
  if (channel.completed == sequence) {
    settle(d, t);
    arrange(d, t);
  }
  return sequence;
}

void host_done(Device& d, unsigned context, unsigned channel_index, uint64_t now) {
  advance(d, now);
  if (d.contexts[context].channels[channel_index].head != Head::waiting_for_host) return;
  settle(d, d.engine.now_ns);
  finish_head(d, context, channel_index, d.engine.now_ns);
  arrange(d, d.engine.now_ns);
}

void release_hung(Device& d, uint64_t now) {
  advance(d, now);
  const uint64_t t = d.engine.now_ns;
  settle(d, t);
  for (unsigned i : bits(d.engine.active))
    for (unsigned k : bits(d.contexts[i].active)) {
      const Channel& channel = d.contexts[i].channels[k];
      for (uint64_t n = channel.completed; n < channel.submitted; ++n) {
        Op& op = d.rings[i][k][n % ring_size];
        if (op.flags & op_hung) op.remaining_ns = 1, op.flags &= static_cast<uint8_t>(~op_hung);
      }
    }
  arrange(d, t);
}

void abandon(Device& d, unsigned context, uint64_t now) {
  advance(d, now);
  const uint64_t t = d.engine.now_ns;
  settle(d, t);
  Engine& e = d.engine;
  Context& c = d.contexts[context];
  for (CopyEngine& copy : e.copy)
    if (copy.context == static_cast<int32_t>(context)) copy.context = copy.channel = -1;
  for (Channel& channel : c.channels) {
    __atomic_store_n(&channel.completed, channel.submitted, __ATOMIC_RELEASE);
    channel.granted = 0;
    channel.head = Head::none;
  }
  c.active = 0;
  e.active &= ~bit(context);
  arrange(d, t);
}

void restart(Device& d) {
  Engine& e = d.engine;
  for (unsigned i : bits(e.active))
    for (unsigned k : bits(d.contexts[i].active)) {
      Channel& channel = d.contexts[i].channels[k];
      if (channel.head == Head::ready || channel.head == Head::blocked) channel.head = Head::none;
    }
  settle(d, e.now_ns);
  complete_due(d, e.now_ns);
  arrange(d, e.now_ns);
}

uint64_t earliest_end(const Device& d, unsigned context, unsigned channel_index, uint64_t sequence) {
  const Channel& channel = d.contexts[context].channels[channel_index];
  if (channel.completed > sequence) return d.engine.now_ns;
  uint64_t t = d.engine.now_ns;
  for (uint64_t n = channel.completed; n <= sequence; ++n) {
    const Op& op = d.rings[context][channel_index][n % ring_size];
    uint64_t left = op.remaining_ns;
    if (n == channel.completed && channel.head == Head::running) {
      const uint64_t since = d.engine.now_ns - std::min(d.engine.now_ns, channel.since_ns);
      left -= std::min(left, since);
    }
    if (left >= forever_ns) return never_time;
    t += left;
  }
  return t;
}

unsigned compute_percent(Device& d, uint64_t now) {
  advance(d, now);
  Engine& e = d.engine;
  return percent(e.window, e.busy_ns + unaccounted(d, e.compute == Compute::running), e.now_ns);
}

unsigned copy_percent(Device& d, uint64_t now) {
  advance(d, now);
  Engine& e = d.engine;
  const bool copying = std::ranges::any_of(e.copy, [](const CopyEngine& c) { return c.context >= 0; });
  return percent(e.copy_window, e.copy_busy_ns + unaccounted(d, copying), e.now_ns);
}

unsigned context_percent(Device& d, unsigned context, uint64_t now) {
  advance(d, now);
  Engine& e = d.engine;
  Context& c = d.contexts[context];
  const bool runs = e.compute == Compute::running && e.owner == static_cast<int32_t>(context);
  return percent(c.window, c.busy_ns + unaccounted(d, runs), e.now_ns);
}

}  // namespace carve::sim

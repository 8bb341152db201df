#include "node/compute/meter.h"

#include <algorithm>

namespace carve::node {

using share::Ns;

namespace {

constexpr uint64_t most = 3600ull * 1'000'000'000;  // One hour, an upper limit for any estimate.
constexpr Ns tail_grace = 100 * share::us;
// The distance between fences; work between two fences is estimated.
constexpr uint64_t between_fences = 200 * share::us;

uint64_t load(const std::atomic<uint64_t>& word) { return word.load(std::memory_order_acquire); }

}  // namespace

// The sums of one process's words on one device.
struct Meter::Sum {
  uint64_t busy = 0, submitted = 0;
  uint64_t marked_left = 0, unfenced = 0;  // Maximum over streams and threads, as streams run in
                                           // parallel. Unfenced work counts while it may run.
  uint64_t fenced = 0;                     // Sum of all streams' fences.
  uint64_t waiting_since = 0, longest = 0, idle_at = 0;
  unsigned threads = 0, streams = 0;
  bool marks_open = false, threads_busy = false, back_pressured = false;
};

// Returns whether the thread's unfenced work may still be running, given the work that it has submitted so
// far.
bool Meter::may_run(Process::Thread& thread, uint64_t submitted, uint64_t unfenced, const Sum& s, Ns now) {
  if (thread.submitted != submitted) thread = {submitted, now, s.fenced};
  if (unfenced == 0 || (s.streams == 1 && s.fenced != thread.fenced)) return false;
  return now - thread.changed < static_cast<Ns>(2 * unfenced) + tail_grace;
}

Meter::Sum Meter::sum(const shm::ProcessWork& work, unsigned device, Ns now, Process& process) {
  Sum s;
  // The threads are read first. Work whose fence is inserted in between is therefore counted twice rather
  // than missed, and a fence that is new at the next read follows all work seen here.
  struct Seen {
    unsigned index;
    uint64_t submitted, unfenced;
  };
  std::array<Seen, shm::work_threads> seen;
  const unsigned threads = std::min(work.threads_used.load(std::memory_order_acquire), shm::work_threads);
  for (unsigned i = 0; i < threads; ++i) {
    const shm::ThreadWork& thread = work.thread[i];
    if (thread.device.load(std::memory_order_acquire) != device + 1) continue;
    const shm::BusyWord busy{load(thread.busy)};
    s.busy += busy.total(static_cast<uint64_t>(now));
    s.threads_busy |= busy.is_busy();
    const uint64_t submitted = load(thread.submitted);
    s.submitted += submitted;
    const uint64_t unfenced = busy.is_busy() ? std::min(load(thread.unfenced), most) : 0;
    seen[s.threads++] = {i, submitted, unfenced};
    const uint64_t since = load(thread.waiting_since);
    if (since != 0 && (s.waiting_since == 0 || since < s.waiting_since)) s.waiting_since = since;
    s.longest = std::max(s.longest, std::min(load(thread.longest), most));
    s.idle_at = std::max(s.idle_at, load(thread.idle_at));
    const uint32_t flags = thread.flags.load(std::memory_order_relaxed);
    if ((flags & shm::thread_back_pressured) != 0) s.back_pressured = true;
  }
  const unsigned streams = std::min(work.streams_used.load(std::memory_order_acquire), shm::work_streams);
  for (unsigned i = 0; i < streams; ++i) {
    const shm::StreamWork& stream = work.stream[i];
    if (stream.device.load(std::memory_order_acquire) != device + 1) continue;
    ++s.streams;
    // `completed` is read first, so a fence inserted in between makes the stream look busy, never idle.
    const uint64_t completed = load(stream.completed), marked = load(stream.fenced);
    s.fenced += marked;
    if (marked == completed) continue;
    s.marks_open = true;
    s.marked_left = std::max(s.marked_left, std::min(marked - completed, most));
  }
  for (unsigned i = 0; i < s.threads; ++i)
    if (may_run(process.threads[seen[i].index], seen[i].submitted, seen[i].unfenced, s, now))
      s.unfenced = std::max(s.unfenced, seen[i].unfenced);
  return s;
}

share::Observation Meter::read(std::span<const shm::ProcessWork> work, std::span<const unsigned> slots,
                               unsigned device, Ns now) {
  const Ns elapsed = last_ == 0 ? 0 : std::max<Ns>(0, now - last_);
  const auto passed = static_cast<uint64_t>(elapsed);
  share::Observation seen;
  ++reads_;
  threads_ = 0;
  waiting_since_ = 0;
  uint64_t busy_of_all = 0, idle_at = 0;
  bool active = false;
  for (const unsigned slot : slots) {
    if (slot >= work.size()) continue;
    auto [entry, fresh] = processes_.try_emplace(slot);
    Process& p = entry->second;
    const Sum s = sum(work[slot], device, now, p);
    if (fresh) p.busy = s.busy, p.submitted = s.submitted;
    const uint64_t submitted = std::min(s.submitted - p.submitted, most);

    // The remaining work is computed as the previous remainder plus the new work, minus the elapsed time.
    // Fences correct the result to within one fence interval or one kernel.
    const uint64_t open_work = s.marked_left + s.unfenced, slack = std::max(between_fences, s.longest);
    const uint64_t reckoned = p.left + submitted > passed ? p.left + submitted - passed : 0;
    const uint64_t left = std::clamp(reckoned, open_work > slack ? open_work - slack : 0, open_work);

    const bool in_flight = s.marks_open || s.unfenced > 0;
    uint64_t busy = std::min(s.busy > p.busy ? s.busy - p.busy : 0, passed);
    // A thread that has not synchronised since then still reports "busy", but it was busy only while it had
    // work. The end is estimated, and at least half of the possible time counts.
    if (p.open && !p.in_flight)
      busy = std::min(busy, submitted);
    else if (s.threads_busy && !in_flight)
      busy = std::min(busy, std::max(p.left + submitted, busy / 2));

    p.busy = s.busy;
    p.submitted = s.submitted;
    p.left = left;
    p.in_flight = in_flight;
    p.open = s.threads_busy;
    p.seen = reads_;
    busy_of_all += busy;
    active |= submitted > 0;
    seen.in_flight |= in_flight;
    if (in_flight) seen.left += static_cast<Ns>(std::min(p.left, most));
    seen.longest = std::max(seen.longest, static_cast<Ns>(s.longest));
    seen.back_pressured |= s.back_pressured;
    threads_ = std::max(threads_, s.threads);
    idle_at = std::max(idle_at, std::min(s.idle_at, static_cast<uint64_t>(now)));
    if (s.waiting_since != 0) {
      seen.waiting = true;
      const auto since = static_cast<Ns>(std::min<uint64_t>(s.waiting_since, static_cast<uint64_t>(now)));
      if (waiting_since_ == 0 || since < waiting_since_) waiting_since_ = since;
    }
  }
  std::erase_if(processes_, [this](const auto& entry) { return entry.second.seen != reads_; });
  seen.busy = static_cast<Ns>(std::min(busy_of_all, passed));
  if (seen.in_flight)
    idle_since_ = 0;
  else if (static_cast<Ns>(idle_at) > last_)
    idle_since_ = std::min(static_cast<Ns>(idle_at), now);
  else if (idle_since_ == 0 || active)
    idle_since_ = now;  // The end is unknown, so the time of this read is used.
  seen.idle_since = idle_since_;
  last_ = now;
  return seen;
}

}  // namespace carve::node

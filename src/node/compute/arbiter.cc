#include "node/compute/arbiter.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <ctime>
#include <utility>

#include "os/clock.h"
#include "os/thread_start.h"

#include <fmt/format.h>
#include "node/compute/interference.h"
#include "node/compute/lease_word.h"
#include "share/timetable.h"
#include "wire/api/slice.h"

namespace carve::node {

using share::Ns;

namespace {

constexpr Ns unasked_sleep = 1100 * share::us;
// The remaining time of a drain is known only to within one fence interval (meter.cc), so the poll is half an
// interval earlier.
constexpr Ns fence_uncertainty = 100 * share::us;
constexpr size_t max_waits = 1000;
// More than any device can copy: a B200 reads or writes 8 TB/s.
constexpr uint64_t max_bytes_per_ns = 16;
// A count that arrives late covers at most the last second.
constexpr Ns max_supported = share::second;

long futex(const void* word, int operation, uint32_t value, const timespec* until, uint32_t mask) {
  return syscall(SYS_futex, word, operation, value, until, nullptr, mask);
}

// The half of the lease word that changes when the gate opens or closes.
const void* low_half(const std::atomic<uint64_t>& word) { return &word; }
static_assert(std::endian::native == std::endian::little);

}  // namespace

struct Arbiter::ClientState {
  ArbiterClient who;
  unsigned index = 0;
  std::vector<unsigned> slots;
  Meter meter;
  share::Lease lease;  // The lease that the slice sees.
  bool told = false;   // Whether a lease was ever written.
  uint32_t number = 0;
  Ns waiting_since = 0;  // As of the last poll; 0 if the client does not wait.
  Ns opened = 0, closed = 0;
  Ns supported = 0;  // When the driver's last count arrived.
  uint64_t waits = 0;
  std::vector<Ns> recent_waits;  // A ring of the last `max_waits`.
  Rate charged;
  Interference interference;
  share::ClientCounters counted = {};                  // As of the last settle().
  std::array<Ns, share::max_clients> counted_waits{};  // The scheduler's waited_for() then.
  uint64_t copied_by_the_dead[3] = {};
  // Processes can report any number, so a report counts only up to what a device can copy in the time.
  uint64_t reported_copies[3] = {}, counted_copies[3] = {};
  Ns counted_at = 0;

  uint64_t copied(unsigned way) const {
    uint64_t bytes = copied_by_the_dead[way];
    for (const unsigned slot : slots)
      if (slot < who.work.size()) bytes += who.work[slot].copied[way].load(std::memory_order_relaxed);
    return bytes;
  }

  void count_copies(Ns now) {
    const auto passed = static_cast<uint64_t>(std::max<Ns>(0, now - std::exchange(counted_at, now)));
    for (const unsigned way : {0u, 1u, 2u}) {
      const uint64_t reported = copied(way), before = std::exchange(reported_copies[way], reported);
      if (reported > before) counted_copies[way] += std::min(reported - before, passed * max_bytes_per_ns);
    }
  }

  shm::ControlDevice& control() const { return who.control->devices[who.device]; }
};

Arbiter::Arbiter(unsigned device, const Uuid& uuid, shm::ArbiterWord& word, share::Tuning tuning)
    : device_(device), uuid_(uuid), word_(word), scheduler_(tuning) {
  thread_ = os::start_thread([this] { run(); });
}

Arbiter::~Arbiter() {
  ending_ = true;
  wake();
  thread_.join();
  while (!clients_.empty()) remove(clients_.back()->who.slice);
}

Arbiter::ClientState* Arbiter::find(uint64_t slice) {
  const auto found = std::ranges::find(clients_, slice, [](const auto& m) { return m->who.slice; });
  return found == clients_.end() ? nullptr : found->get();
}

bool Arbiter::add(const ArbiterClient& who, std::span<const unsigned> slots) {
  {
    const os::MutexLock lock(mutex_);
    const auto index = scheduler_.add_client(who.entitlement, os::monotonic_ns());
    if (!index) return false;
    auto client = std::make_unique<ClientState>();
    client->who = who;
    client->index = *index;
    client->supported = client->counted_at = os::monotonic_ns();
    client->slots.assign(slots.begin(), slots.end());
    client->number = static_cast<uint32_t>(client->control().lease.load(std::memory_order_relaxed) >> 32);
    client->control().arbiter = device_;
    clients_.push_back(std::move(client));
    set_lease(*clients_.back(), os::monotonic_ns());
    write_timetable();
  }
  wake();
  return true;
}

bool Arbiter::change(uint64_t slice, const share::Entitlement& entitlement) {
  {
    const os::MutexLock lock(mutex_);
    ClientState* client = find(slice);
    if (client == nullptr) return false;
    if (client->who.entitlement == entitlement) return true;
    client->who.entitlement = entitlement;
    scheduler_.change(client->index, entitlement, os::monotonic_ns());
    write_timetable();
  }
  wake();
  return true;
}

void Arbiter::remove(uint64_t slice) {
  {
    const os::MutexLock lock(mutex_);
    const auto found = std::ranges::find(clients_, slice, [](const auto& one) { return one->who.slice; });
    if (found == clients_.end()) return;
    ClientState& m = **found;
    const Ns now = os::monotonic_ns();
    record(m, SpanKind::lease, m.opened, now);
    settle(now);  // The scheduler may give the client's number to another slice.
    scheduler_.remove_client(m.index, now);
    for (const auto& other : clients_) other->counted_waits[m.index] = 0;
    shm::ControlDevice& control = m.control();
    control.lease_deadline.store(0, std::memory_order_relaxed);
    control.fallback_period.store(0, std::memory_order_relaxed);
    control.lease.store(shm::LeaseWord::of(shm::GateState::open, 0, false, m.number + 1).value,
                        std::memory_order_release);
    futex(low_half(control.lease), FUTEX_WAKE, INT_MAX, nullptr, 0);
    clients_.erase(found);
    write_timetable();
  }
  wake();
}

void Arbiter::add_process(uint64_t slice, unsigned slot) {
  const os::MutexLock lock(mutex_);
  if (ClientState* m = find(slice); m != nullptr && std::ranges::find(m->slots, slot) == m->slots.end())
    m->slots.push_back(slot);
}

void Arbiter::remove_process(uint64_t slice, unsigned slot) {
  {
    const os::MutexLock lock(mutex_);
    if (ClientState* m = find(slice); m != nullptr && std::ranges::find(m->slots, slot) != m->slots.end()) {
      uint64_t with[3];
      for (const unsigned way : {0u, 1u, 2u}) with[way] = m->copied(way);
      std::erase(m->slots, slot);
      for (const unsigned way : {0u, 1u, 2u}) m->copied_by_the_dead[way] += with[way] - m->copied(way);
    }
  }
  wake();  // The slice may have the lease.
}

bool Arbiter::empty() const {
  const os::MutexLock lock(mutex_);
  return clients_.empty();
}

void Arbiter::wake() {
  wakes_.fetch_add(1, std::memory_order_release);
  word_.asleep.store(0, std::memory_order_seq_cst);
  futex(&word_.asleep, FUTEX_WAKE, 1, nullptr, 0);
}

// Writes the fallback timetable: the windows in which slices launch without an agent, in client order.
void Arbiter::write_timetable() {
  std::array<share::Entitlement, share::max_clients> entitlements;
  std::array<share::Window, share::max_clients> windows;
  const size_t count = clients_.size();
  for (size_t i = 0; i < count; ++i) entitlements[i] = clients_[i]->who.entitlement;
  share::make_timetable({entitlements.data(), count}, {windows.data(), count});
  for (size_t i = 0; i < count; ++i) {
    shm::ControlDevice& control = clients_[i]->control();
    control.fallback_offset.store(static_cast<uint64_t>(windows[i].offset), std::memory_order_relaxed);
    control.fallback_length.store(static_cast<uint64_t>(windows[i].length), std::memory_order_relaxed);
    control.fallback_period.store(static_cast<uint64_t>(windows[i].period), std::memory_order_release);
  }
}

void Arbiter::set_lease(ClientState& m, Ns now) {
  const share::Lease& wanted = scheduler_.lease(m.index);
  if (m.told && wanted == m.lease) return;
  shm::ControlDevice& control = m.control();
  const bool moves = !m.told || wanted.open != m.lease.open;
  if (moves) {
    ++m.number;
    if (wanted.open) {
      m.opened = now;
      const Ns closed = std::exchange(m.closed, 0);
      if (m.waiting_since != 0) {
        ++m.waits;
        // A thread that slept through a whole lease still reports when its wait began, although it was
        // admitted in between.
        const Ns since = std::max(m.waiting_since, closed);
        const Ns waited = now - since;
        if (m.recent_waits.size() < max_waits)
          m.recent_waits.push_back(waited);
        else
          m.recent_waits[m.waits % max_waits] = waited;
        record(m, SpanKind::wait, since, now);
      }
    } else if (m.told) {
      record(m, SpanKind::lease, m.opened, now);
      m.closed = now;
    }
  }
  write_lease(control, wanted, scheduler_.tuning(), m.meter.threads(), m.number);
  if ((wanted.open && moves) || (wanted.imminent && !m.lease.imminent))
    futex(low_half(control.lease), FUTEX_WAKE, INT_MAX, nullptr, 0);
  m.lease = wanted;
  m.told = true;
}

void Arbiter::record(const ClientState& m, SpanKind kind, Ns begin, Ns end) {
  if (begin == 0 || end <= begin) return;
  TraceSpan span{uuid_, m.who.slice, kind, begin, end};
  if (spans_.size() < max_spans)
    spans_.push_back(span);
  else
    spans_[spans_recorded_ % max_spans] = span;
  ++spans_recorded_;
}

// Polls all clients, steps the device scheduler and writes the leases. Returns the time of the next poll.
Ns Arbiter::poll(Ns now) {
  std::array<share::Observation, share::max_clients> seen;
  for (const auto& client : clients_) {
    ClientState& m = *client;
    share::Observation& o = seen[m.index] = m.meter.read(m.who.work, m.slots, m.who.device, now);
    m.waiting_since = m.meter.waiting_since();
    if (m.who.gang == nullptr) continue;
    GangState& gang = *m.who.gang;
    const uint32_t bit = 1u << m.who.device;
    if (m.who.entitlement.gang == share::Gang::leads) {
      // The leader's lease applies to the whole gang, so a waiting follower counts as a wait of the leader.
      if (!m.lease.open) o.waiting |= gang.wants.load() != 0;
      if (gang.in_flight.load() != 0) o.idle_since = now;
    } else {
      o.leader_open = gang.open.load();
      const auto set = [bit](std::atomic<uint32_t>& word, bool on) {
        return ((on ? word.fetch_or(bit) : word.fetch_and(~bit)) & bit) == (on ? bit : 0);
      };
      set(gang.in_flight, o.in_flight);
      if (!set(gang.wants, o.waiting && !m.lease.open) && o.waiting) tell_.push_back(m.who.gang->leader);
    }
  }
  const Ns next = scheduler_.step(now, seen);
  for (const share::Transition& t : scheduler_.transitions()) {
    const auto found =
        std::ranges::find(clients_, unsigned{t.client}, [](const auto& one) { return one->index; });
    if (found == clients_.end()) continue;
    ClientState& m = **found;
    if (t.kind == share::Transition::Kind::drained && m.closed != 0)
      record(m, SpanKind::drain, m.closed, now);
    if (t.kind == share::Transition::Kind::overran && m.closed != 0)
      record(m, SpanKind::overrun, m.closed, now);
  }
  // Close gates first, so that two gates are never open at the same time.
  for (const bool open : {false, true})
    for (const auto& m : clients_)
      if (scheduler_.lease(m->index).open == open) set_lease(*m, now);
  for (const auto& m : clients_) {
    if (m->who.gang == nullptr || m->who.entitlement.gang != share::Gang::leads) continue;
    // Wake the followers when the previous lease on this device begins to drain, so that their devices drain
    // at the same time.
    const bool calls = m->lease.open || scheduler_.upcoming() == m->index;
    if (m->who.gang->open.exchange(calls) != calls)
      for (Arbiter* other : m->who.gang->followers) tell_.push_back(other);
  }
  return next;
}

void Arbiter::run() {
  pthread_setname_np(pthread_self(), fmt::format("arbiter-{}", device_).c_str());
  prctl(PR_SET_TIMERSLACK, 1);
  // Every slice of the device waits for this thread, which runs for only microseconds. Ordinary users may not
  // set this priority.
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), -20);
  std::vector<Arbiter*> tell;
  while (!ending_) {
    const uint32_t woken_count = wakes_.load(std::memory_order_acquire);
    Ns next = share::never;
    bool any_latency_client = false;
    const Ns now = os::monotonic_ns();
    {
      const os::MutexLock lock(mutex_);
      scheduler_.set_wake_latency(latency_.median());
      if (!clients_.empty()) next = poll(now);
      if (scheduler_.is_draining() && next - now > 2 * fence_uncertainty) next -= fence_uncertainty;
      for (const auto& m : clients_)
        any_latency_client |= m->who.entitlement.latency == LatencyClass::latency;
      tell.swap(tell_);
    }
    word_.polls.fetch_add(1, std::memory_order_release);
    for (Arbiter* other : tell) other->wake();
    tell.clear();
    sleep_until(next, woken_count, any_latency_client);
  }
}

void Arbiter::sleep_until(Ns next, uint32_t woken_count, bool any_latency_client) {
  const auto woken = [&] { return wakes_.load(std::memory_order_acquire) != woken_count; };
  Ns now = os::monotonic_ns();
  // A wait ends later than its timeout, so it is shortened by the usual latency, and the thread spins for the
  // rest.
  const Ns lead = latency_.timer_lead();
  if (next - now > 2 * lead) {
    // A slice that arrives while another one holds the device is noticed at the next poll, which is soon
    // enough unless it goes first.
    const uint32_t wakes = next - now > unasked_sleep || any_latency_client ? 1 : 0;
    // From this store on, an arriving slice wakes the thread. The next check notices one that arrived since
    // the poll.
    word_.asleep.store(wakes, std::memory_order_seq_cst);
    if (!woken() && (wakes == 0 || !another_waits())) {
      const Ns until = next == share::never ? share::never : next - lead;
      const timespec t = {until / share::second, until % share::second};
      const bool timed_out = futex(&word_.asleep, FUTEX_WAIT_BITSET, wakes,
                                   next == share::never ? nullptr : &t, FUTEX_BITSET_MATCH_ANY) != 0 &&
                             errno == ETIMEDOUT;
      if (timed_out) latency_.add(os::monotonic_ns() - until);
    }
    word_.asleep.store(0, std::memory_order_seq_cst);
    now = os::monotonic_ns();
    if (woken() || now < next - 2 * lead) return;  // A slice arrived.
  }
  while (now < next && !woken() && !ending_) {
    __builtin_ia32_pause();
    now = os::monotonic_ns();
  }
}

// Returns whether a slice is waiting at its gate that was not waiting at the last poll.
bool Arbiter::another_waits() {
  const os::MutexLock lock(mutex_);
  for (const auto& m : clients_) {
    if (m->lease.open || m->waiting_since != 0) continue;
    for (const unsigned slot : m->slots) {
      if (slot >= m->who.work.size()) continue;
      const shm::ProcessWork& work = m->who.work[slot];
      const unsigned threads = std::min(work.threads_used.load(std::memory_order_seq_cst), shm::work_threads);
      for (unsigned i = 0; i < threads; ++i)
        if (work.thread[i].device.load(std::memory_order_relaxed) == m->who.device + 1 &&
            work.thread[i].waiting_since.load(std::memory_order_seq_cst) != 0)
          return true;
    }
  }
  return false;
}

void Arbiter::support(uint64_t slice, const WorkShown& work) {
  const os::MutexLock lock(mutex_);
  ClientState* const client = find(slice);
  if (client == nullptr) return;
  const Ns now = os::monotonic_ns();
  const Ns passed = std::min(now - std::exchange(client->supported, now), max_supported);
  scheduler_.support(client->index, work.worked, passed * std::min(work.at_most, 100u) / 100);
}

// Adds what the scheduler has counted since the last call to the figures of the last minute.
void Arbiter::settle(Ns now) {
  for (const auto& m : clients_) {
    const share::ClientCounters& counters = scheduler_.counters(m->index);
    const share::ClientCounters before = std::exchange(m->counted, counters);
    m->interference.add(now, counters.charged - before.charged, counters.waiting - before.waiting,
                        counters.throttled - before.throttled);
    const auto& waits = scheduler_.waited_for(m->index);
    for (const auto& holder : clients_)
      m->interference.add_wait_for(now, holder->who.slice,
                                   waits[holder->index] - m->counted_waits[holder->index]);
    m->counted_waits = waits;
  }
}

void Arbiter::sample() {
  const os::MutexLock lock(mutex_);
  const Ns now = os::monotonic_ns();
  if (clients_.empty()) return;
  poll(now);
  settle(now);
  for (const auto& m : clients_) m->charged.sample(now, scheduler_.counters(m->index).charged);
  busy_.sample(now, scheduler_.busy());
  wake();  // The thread uses the results of this poll.
}

DeviceCompute Arbiter::view() {
  const os::MutexLock lock(mutex_);
  const Ns now = os::monotonic_ns();
  if (!clients_.empty()) {
    poll(now);
    wake();
  }
  DeviceCompute out;
  out.arbitrated = !clients_.empty();
  out.figures.switch_ns = static_cast<uint64_t>(scheduler_.tuning().switch_cost);
  out.figures.switches = scheduler_.switches();
  if (const auto busy = busy_.part(share::second)) out.figures.idle_1s_bp = 10000 - *busy;
  for (const auto& m : clients_) {
    const share::ClientCounters& counters = scheduler_.counters(m->index);
    api::PartCompute figures;
    figures.as_of_ns = static_cast<uint64_t>(now);
    figures.granted_bp = m->who.entitlement.share.basis_points;
    figures.busy_ns = static_cast<uint64_t>(counters.charged);
    figures.waiting_ns = static_cast<uint64_t>(counters.waiting);
    figures.throttled_ns = static_cast<uint64_t>(counters.throttled);
    figures.burst_ns = static_cast<uint64_t>(counters.burst);
    figures.overruns = counters.overruns;
    figures.leases = counters.leases;
    if (m->who.device == 0) {  // The sums cover the whole slice.
      m->count_copies(now);
      figures.copied_to_device_bytes = m->counted_copies[0];
      figures.copied_to_host_bytes = m->counted_copies[1];
      figures.copied_on_device_bytes = m->counted_copies[2];
    }
    figures.waits = m->waits;
    figures.achieved_1s_bp = m->charged.part(share::second).value_or(0);
    figures.achieved_60s_bp = m->charged.part(60 * share::second).value_or(0);
    figures.slowdown_60s_bp = m->interference.slowdown_bp(now);
    if (!m->recent_waits.empty()) {
      std::vector<Ns> waits = m->recent_waits;
      const auto p50 = waits.begin() + static_cast<ptrdiff_t>(waits.size() / 2);
      const auto p99 = waits.begin() + static_cast<ptrdiff_t>(waits.size() * 99 / 100);
      std::ranges::nth_element(waits, p99);
      figures.wait_p99_ns = static_cast<uint64_t>(*p99);
      std::nth_element(waits.begin(), p50, p99 + 1);
      figures.wait_p50_ns = static_cast<uint64_t>(*p50);
    }
    out.slices.push_back({.slice = m->who.slice,
                          .figures = figures,
                          .waits_60s = m->interference.waits(now),
                          .overlapped_ns = static_cast<uint64_t>(counters.overlapped),
                          .unsupported_ns = static_cast<uint64_t>(counters.unsupported)});
  }
  return out;
}

std::vector<TraceSpan> Arbiter::trace(Ns from) const {
  const os::MutexLock lock(mutex_);
  std::vector<TraceSpan> out;
  for (const TraceSpan& span : spans_)
    if (span.end_ns > from) out.push_back(span);
  return out;
}

}  // namespace carve::node

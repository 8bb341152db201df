#include "channel.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "engines.h"
#include "trace.h"

namespace responder {

// A segment of methods to which an entry of the ring points, and how far it was read.
struct Segment {
  uint64_t address;
  uint32_t words, next;
};

struct Channel {
  Ring ring;
  uint32_t id, get;
  bool is_dead;
  Segment segment;
  // The method to which the following data belongs, and the number of remaining words.
  uint32_t operation, method, subchannel, left;
  Engines engines;
};

namespace {

constexpr uint32_t max_entries = 1 << 20;
// Offsets in Nvc56fControl.
constexpr uint64_t control_get = 0x88, control_put = 0x8c, control_size = 0x200;

struct Channels {
  std::mutex mutex;
  std::vector<Channel*> open;
  uint32_t next_id = 1;
};
Channels& channels() {
  static Channels* const made = new Channels;
  return *made;
}

uint32_t* control_word(const Channel& c, uint64_t offset) {
  return reinterpret_cast<uint32_t*>(c.ring.control->bytes + c.ring.control_offset + offset);
}

// Bits 31:29 of a method's header.
enum Operation : uint32_t { incrementing = 1, fixed = 3, immediate = 4, once = 5, end_of_segment = 7 };

Outcome run(Channel& c, uint32_t method, uint32_t data) {
  const Outcome outcome = execute(c.engines, c.subchannel, method, data);
  if (outcome == Outcome::fault)
    append("RESPONDER_LOG", "fault: class %#x method %#x data %#x\n",
           c.engines.subchannel[c.subchannel].class_, 4 * method, data);
  return outcome;
}

Outcome read_header(Channel& c, uint32_t word) {
  c.operation = word >> 29;
  c.method = word & 0xfff;
  c.subchannel = word >> 13 & 7;
  c.left = word >> 16 & 0x1fff;
  const uint32_t tertiary = word >> 16 & 3;
  switch (c.operation) {
    case 0: c.left = 0; return word == 0 || tertiary != 0 ? Outcome::done : Outcome::fault;
    case incrementing:
    case fixed:
    case once: return Outcome::done;
    case immediate: {
      const uint32_t data = c.left;
      c.left = 0;
      return run(c, c.method, data);
    }
    case end_of_segment:
      c.left = 0;
      c.segment.next = c.segment.words - 1;
      return Outcome::done;
    default: return Outcome::fault;
  }
}

Outcome read_data(Channel& c, uint32_t word) {
  const Outcome outcome = run(c, c.method, word);
  if (outcome != Outcome::done) return outcome;
  --c.left;
  if (c.operation != fixed) c.method = (c.method + 1) & 0xfff;
  if (c.operation == once) c.operation = fixed;
  return outcome;
}

// Executes the rest of the segment, or up to a semaphore that is not released yet.
Outcome run_segment(Channel& c) {
  while (c.segment.next < c.segment.words) {
    uint32_t word;
    const uint8_t* const at = bytes_at(c.segment.address + 4 * uint64_t{c.segment.next}, sizeof word);
    if (at == nullptr) return Outcome::fault;
    memcpy(&word, at, sizeof word);
    const Outcome outcome = c.left > 0 ? read_data(c, word) : read_header(c, word);
    if (outcome != Outcome::done) return outcome;
    ++c.segment.next;
  }
  return Outcome::done;
}

// An entry is an NVC56F_GP_ENTRY: bits 39:2 are the address, and bits 62:42 the number of words. Entries
// without words are control entries, which have no effect.
bool read_entry(Channel& c) {
  uint64_t entry;
  const uint8_t* const at = bytes_at(c.ring.address + 8 * uint64_t{c.get}, sizeof entry);
  if (at == nullptr) return false;
  memcpy(&entry, at, sizeof entry);
  c.segment = {entry & 0xff'ffff'fffc, static_cast<uint32_t>(entry >> 42 & 0x1f'ffff), 0};
  return true;
}

// Ends a channel whose methods cannot be executed, as the kernel does after a device fault: with an
// NvNotification (nvgputypes.h) that has ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT at index
// NV_CHANNELGPFIFO_NOTIFICATION_TYPE_ERROR.
void end_by_fault(Channel& c) {
  struct Notification {
    uint64_t time;
    uint32_t info32;
    uint16_t info16, status;
  } notification = {0, 31, 0, 0xffff};
  c.is_dead = true;
  if (c.ring.errors != nullptr && c.ring.errors->size >= sizeof notification)
    memcpy(c.ring.errors->bytes, &notification, sizeof notification);
}

// Returns whether anything was executed.
bool advance(Channel& c) {
  bool has_moved = false;
  while (!c.is_dead) {
    if (c.segment.next == c.segment.words) {
      if (c.segment.words != 0) {
        c.get = (c.get + 1) % c.ring.entries;
        c.segment = {};
        __atomic_store_n(control_word(c, control_get), c.get, __ATOMIC_RELEASE);
      }
      const uint32_t put = __atomic_load_n(control_word(c, control_put), __ATOMIC_ACQUIRE);
      if (put == c.get || put >= c.ring.entries) return has_moved;
      if (!read_entry(c)) {
        end_by_fault(c);
        append("RESPONDER_LOG", "fault: ring %#llx\n", static_cast<unsigned long long>(c.ring.address));
        return has_moved;
      }
      if (c.segment.words == 0) c.get = (c.get + 1) % c.ring.entries;
    }
    const uint32_t before = c.segment.next;
    const Outcome outcome = run_segment(c);
    has_moved |= c.segment.next != before;
    if (outcome == Outcome::fault) end_by_fault(c);
    if (outcome == Outcome::waits) return has_moved;
  }
  return has_moved;
}

void* consume(void*) {
  Channels& all = channels();
  for (long pause = 0;;) {
    bool has_moved = false;
    {
      const std::lock_guard locked(all.mutex);
      for (Channel* const c : all.open) has_moved |= advance(*c);
    }
    constexpr long first = 1000, longest = 200'000;  // ns.
    pause = has_moved ? 0 : std::min(longest, pause + first);
    const timespec duration = {0, pause};
    nanosleep(&duration, nullptr);
  }
}

// The thread blocks all signals, because they are for the program.
void start_consumer() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, consume, nullptr) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

Channel* open_channel(const Ring& ring) {
  static pthread_once_t started = PTHREAD_ONCE_INIT;
  if (ring.entries == 0 || ring.entries > max_entries || ring.control == nullptr) return nullptr;
  const uint64_t size = ring.control->size;
  if (size < control_size || ring.control_offset > size - control_size || ring.control_offset % 4 != 0)
    return nullptr;
  pthread_once(&started, start_consumer);
  auto* const channel = new Channel{};
  channel->ring = ring;
  Channels& all = channels();
  const std::lock_guard locked(all.mutex);
  channel->id = all.next_id++;
  all.open.push_back(channel);
  return channel;
}

void close_channel(Channel* channel) {
  {
    Channels& all = channels();
    const std::lock_guard locked(all.mutex);
    all.open.erase(std::remove(all.open.begin(), all.open.end(), channel), all.open.end());
  }
  release(channel->ring.control);
  if (channel->ring.errors != nullptr) release(channel->ring.errors);
  delete channel;
}

uint32_t id_of(const Channel* channel) { return channel->id; }

}  // namespace responder

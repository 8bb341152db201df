// Opening, locking and sweeping a set. set.h describes how dead and live clients are distinguished.
#include "sim/set/set.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>
#include <string>

#include "sim/model/memory.h"

namespace carve::sim {
namespace {

constexpr uint64_t sweep_interval = 1'000'000;

void* map_file(const char* directory, const char* name, size_t bytes) {
  const std::string path = std::string(directory) + "/" + name;
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  struct stat st;
  void* p = fstat(fd, &st) == 0 && static_cast<size_t>(st.st_size) >= bytes
                ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0)
                : MAP_FAILED;
  close(fd);
  return p == MAP_FAILED ? nullptr : p;
}

struct flock byte_lock(short type, uint32_t slot) {
  struct flock l = {};
  l.l_type = type;
  l.l_whence = SEEK_SET;
  l.l_start = slot;
  l.l_len = 1;
  return l;
}

// Returns a value that identifies this process among all that ever attach. AT_RANDOM changes at every exec,
// and the pid distinguishes a forked child.
uint64_t own_token() {
  uint64_t random = 0;
  if (const auto at = getauxval(AT_RANDOM)) std::memcpy(&random, reinterpret_cast<const void*>(at), 8);
  return (random ^ static_cast<uint64_t>(getpid()) * 0x9e3779b97f4a7c15ull) | 1;
}

void read_own_name(char (&name)[64]) {
  const int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
  const ssize_t n = fd < 0 ? -1 : read(fd, name, sizeof name - 1);
  if (fd >= 0) close(fd);
  name[n > 0 ? n - 1 : 0] = 0;
}

// Returns the inode of the pid namespace. It is read once in each process, because a child may be in another
// namespace.
uint64_t own_pid_namespace() {
  static std::atomic<uint64_t> known;  // The upper half is the process's pid.
  const uint64_t pid = static_cast<uint32_t>(getpid());
  if (const uint64_t k = known; k >> 32 == pid) return k & 0xffffffff;
  struct stat st = {};
  const uint64_t inode = stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino & 0xffffffff : 0;
  known = pid << 32 | inode;
  return inode;
}

// Both libraries of a process use one descriptor, because fcntl locks belong to the process and closing any
// descriptor of the file releases all of them.
constexpr int min_high_descriptor = 500;  // Above the low descriptors, which programs close or count.

int open_clients(const char* path) {
  struct stat file = {}, other = {};
  if (stat(path, &file) != 0) return -1;
  for (int fd = min_high_descriptor; fd < min_high_descriptor + 64; ++fd)
    if (fstat(fd, &other) == 0 && other.st_dev == file.st_dev && other.st_ino == file.st_ino) return fd;
  const int low = open(path, O_RDWR | O_CLOEXEC);
  const int high = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, min_high_descriptor);
  if (high < 0) return low;
  close(low);  // No lock is held yet, so closing drops none.
  return high;
}

// Reads the file `driver`: a number and a line feed.
bool read_driver(const char* directory, unsigned* driver) {
  char path[640], text[16] = "";
  std::snprintf(path, sizeof path, "%s/driver", directory);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  char* end = nullptr;
  *driver = static_cast<unsigned>(std::strtoul(text, &end, 10));
  return length > 0 && end != text && *end == '\n';
}

}  // namespace

const char* set_directory() {
  if (const char* named = std::getenv("SIMGPU_DIR"); named && *named) return named;
  return access("/run/simgpu/set.bin", F_OK) == 0 ? "/run/simgpu" : nullptr;
}

uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

Opened open_set(const char* directory, Set* set) {
  // Stores an absolute path, because a program may change its working directory.
  char* absolute = realpath(directory, nullptr);
  std::snprintf(set->directory, sizeof set->directory, "%s", absolute ? absolute : directory);
  std::free(absolute);
  char path[640];
  std::snprintf(path, sizeof path, "%s/set.bin", directory);
  if (access(path, F_OK) != 0) return Opened::absent;
  set->file = static_cast<SetFile*>(map_file(directory, "set.bin", sizeof(SetFile)));
  if (!set->file) return Opened::unreadable;
  if (set->file->magic != set_magic || set->file->version != layout_version) return Opened::other_version;
  if (!read_driver(directory, &set->driver)) return Opened::other_version;
  set->count = set->file->device_count < max_devices ? set->file->device_count : max_devices;
  for (unsigned i = 0; i < set->count; ++i) {
    std::snprintf(path, sizeof path, "device%u.bin", i);
    Device* d = static_cast<Device*>(map_file(directory, path, sizeof(Device)));
    if (!d) return Opened::unreadable;
    madvise(d, sizeof *d, MADV_DONTDUMP);
    if (d->magic != device_magic || d->version != layout_version) return Opened::other_version;
    set->devices[i] = d;
  }
  std::snprintf(path, sizeof path, "%s/clients.lock", directory);
  set->clients_fd = open_clients(path);
  if (set->clients_fd < 0) return Opened::unreadable;
  return Opened::yes;
}

bool attach(Set& set, uint32_t* slot, uint64_t* generation) {
  const auto from = static_cast<uint32_t>(getpid());
  for (uint32_t i = 0; i < max_clients; ++i) {
    const uint32_t candidate = (from + i) % max_clients;
    struct flock lock = byte_lock(F_WRLCK, candidate);
    if (fcntl(set.clients_fd, F_SETLK, &lock) != 0) continue;
    Client& client = set.file->clients[candidate];
    client.token = own_token();
    read_own_name(client.name);
    client.pids[(client.generation + 1) % 4] = own_pid_namespace() << 32 | from;
    *generation = __atomic_add_fetch(&client.generation, 1, __ATOMIC_ACQ_REL);
    *slot = candidate;
    return true;
  }
  return false;
}

bool alive(const Set& set, uint32_t slot, uint64_t generation, int* pid) {
  const Client& client = set.file->clients[slot % max_clients];
  if (__atomic_load_n(&client.generation, __ATOMIC_ACQUIRE) != generation) return false;
  struct flock lock = byte_lock(F_WRLCK, slot);
  if (fcntl(set.clients_fd, F_GETLK, &lock) != 0)
    return true;  // If the call fails, the client counts as alive, so no memory is taken from it.
  if (lock.l_type != F_UNLCK) {
    if (pid) *pid = lock.l_pid;
    return true;
  }
  if (client.token != own_token()) return false;
  if (pid) *pid = getpid();
  return true;
}

int pid_of(const Set& set, uint32_t slot, uint64_t generation) {
  const Client& client = set.file->clients[slot % max_clients];
  const uint64_t now = __atomic_load_n(&client.generation, __ATOMIC_ACQUIRE);
  // The next holder may be writing the oldest of the four entries now.
  if (generation > now || now - generation >= 3) return 0;
  const uint64_t pid = client.pids[generation % 4];
  return pid >> 32 == own_pid_namespace() ? static_cast<int>(pid & 0xffffffff) : 0;
}

void Locked::acquired(int result) {
  held_ = result == 0 || result == EOWNERDEAD;
  if (result != EOWNERDEAD) return;
  repair(device_);
  pthread_mutex_consistent(&device_.lock);
}

Locked::Locked(Device& device) : device_(device) { acquired(pthread_mutex_lock(&device_.lock)); }

Locked::Locked(Device& device, uint64_t patience_ns) : device_(device) {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  const uint64_t ns = static_cast<uint64_t>(t.tv_nsec) + patience_ns;
  t.tv_sec += static_cast<time_t>(ns / 1'000'000'000);
  t.tv_nsec = static_cast<long>(ns % 1'000'000'000);
  acquired(pthread_mutex_timedlock(&device_.lock, &t));
}

Locked::~Locked() {
  if (held_) pthread_mutex_unlock(&device_.lock);
}

void sweep(Set& set, unsigned index, uint64_t now, bool always) {
  if (!always && now - set.swept_ns[index] < sweep_interval) return;
  set.swept_ns[index] = now;
  Device& d = *set.devices[index];
  for (unsigned i = 0; i < max_contexts; ++i)
    if (d.contexts[i].in_use && !alive(set, d.contexts[i].client, d.contexts[i].client_generation, nullptr))
      close_context(d, i, now);
  for (uint32_t word = 0; word < std::size(d.holding); ++word)
    for (uint64_t left = d.holding[word]; left; left &= left - 1) {
      const uint32_t client = word * 64 + static_cast<uint32_t>(std::countr_zero(left));
      if (!alive(set, client, d.holdings[client].generation, nullptr)) drop_holding(d, client);
    }
  for (uint32_t word = 0; word < std::size(d.accounting.running); ++word)
    for (uint64_t left = d.accounting.running[word]; left; left &= left - 1) {
      const uint32_t client = word * 64 + static_cast<uint32_t>(std::countr_zero(left));
      if (!alive(set, client, d.accounting.clients[client].generation, nullptr)) end_account(d, client, now);
    }
  for (unsigned i = 0; i < d.segment_end; ++i)
    if (d.segments[i].serial) reclaim_segment(set, index, i);
}

const SegmentHolder* segment_owner(const Set& set, const Segment& s, int* pid) {
  for (const SegmentHolder& h : s.holders)
    if (h.in_use && alive(set, h.client, h.generation, pid)) return &h;
  return nullptr;
}

void segment_path(const Set& set, unsigned device, unsigned index, char (&path)[640]) {
  std::snprintf(path, sizeof path, "%s/memory/%u.%u", set.directory, device, index);
}

bool reclaim_segment(Set& set, unsigned device, unsigned index) {
  Device& d = *set.devices[device];
  // If a recorded client is alive, it holds the segment, and the file need not be checked.
  if (segment_owner(set, d.segments[index], nullptr)) return false;
  char path[640];
  segment_path(set, device, index, path);
  if (const int fd = open(path, O_RDWR | O_CLOEXEC); fd >= 0) {
    struct flock lock = byte_lock(F_WRLCK, 0);
    const bool held = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    close(fd);
    if (held) return false;
  }
  close_segment(d, index);
  unlink(path);
  return true;
}

}  // namespace carve::sim

// Whether a segment is still in use is always decided under the device's lock, which the sweep also holds.
// Creating a segment takes about 50 us, because of its file.
#include "sim/libcuda/shared.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <tuple>

#include "sim/model/memory.h"

namespace carve::sim {
namespace {

constexpr uint64_t label_magic = 0x31474553565243;  // "CRVSEG1"
constexpr uint64_t label_page = 4096;

// The last page of the file, which names the segment.
struct Label {
  uint64_t magic;
  uint32_t device, index;
  uint64_t serial;
  uint64_t bytes;
};

// The segments that this process has open. Each is joined only once.
using Name = std::tuple<unsigned, unsigned, uint64_t>;
struct Registry {
  std::mutex mutex;
  std::map<Name, std::weak_ptr<Shared>> open;
};
Registry& registry() {
  static auto* all = new Registry;
  return *all;
}

bool lock_for_reading(int fd) {
  struct flock lock = {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

// Returns a descriptor of the segment's file with its own open file description, which keeps the segment in
// use. Requires the device's lock.
int open_held(unsigned device, unsigned index, int flags) {
  char path[640];
  segment_path(process().set, device, index, path);
  if (flags & O_CREAT) unlink(path);
  const int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0666);
  if (fd >= 0 && !lock_for_reading(fd)) return close(fd), -1;
  return fd;
}

}  // namespace

bool Shared::map(int fd) {
  void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  close(fd);
  if (p == MAP_FAILED) return false;
  madvise(p, bytes_, MADV_DONTFORK);
  madvise(p, bytes_, MADV_DONTDUMP);
  base_ = static_cast<char*>(p);
  return true;
}

CUresult Shared::create(unsigned device, uint64_t bytes, Counted counted, CUctx_st* context,
                        std::shared_ptr<Shared>* out) {
  Process& p = process();
  Device& d = *p.set.devices[device];
  const std::lock_guard registered(registry().mutex);
  std::shared_ptr<Shared> s(new Shared);
  const Locked lock(d);
  if (bytes > free_bytes(d)) sweep(p.set, device, now_ns(), true);
  if (counted == Counted::for_the_process) {
    // Makes room or refuses. The room remains while the lock is held. The bytes are then counted once, as a
    // segment, even if this process is killed while it creates the file.
    if (const Refusal r = take_for(d, p.slot, p.generation, bytes); r != Refusal::none) return refusal(r);
    give_for(d, p.slot, p.generation, bytes);
  }
  const uint64_t takes = counted == Counted::nowhere ? 0 : bytes;
  unsigned index = 0;
  int fd = -1;
  if (open_segment(d, p.slot, p.generation, takes, &index)) {
    s->device_ = device;
    s->index_ = index;
    s->bytes_ = bytes;
    fd = open_held(device, index, O_CREAT | O_EXCL);
    const Label label = {label_magic, device, index, d.segments[index].serial, bytes};
    if (fd >= 0 && (fchmod(fd, 0666) != 0 || ftruncate(fd, static_cast<off_t>(bytes + label_page)) != 0 ||
                    pwrite(fd, &label, sizeof label, static_cast<off_t>(bytes)) != sizeof label))
      close(fd), fd = -1;
    if (fd < 0 || !s->map(fd)) {
      close_segment(d, index);
      fd = -1;
    }
  }
  if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  if (counted == Counted::in_the_context) give(d, context->index, bytes);
  s->serial_ = d.segments[index].serial;
  registry().open[{device, index, s->serial_}] = s;
  *out = std::move(s);
  return CUDA_SUCCESS;
}

CUresult Shared::open(unsigned device, unsigned index, uint64_t serial, std::shared_ptr<Shared>* out) {
  Process& p = process();
  if (device >= p.set.count || index >= max_segments || serial == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard registered(registry().mutex);
  std::weak_ptr<Shared>& known = registry().open[{device, index, serial}];
  *out = known.lock();
  if (*out) return CUDA_SUCCESS;
  std::shared_ptr<Shared> s(new Shared);
  Device& d = *p.set.devices[device];
  const Locked lock(d);
  if (d.segments[index].serial != serial) return CUDA_ERROR_INVALID_VALUE;
  const int fd = open_held(device, index, 0);
  struct stat st;
  if (fd < 0 || fstat(fd, &st) != 0 || st.st_size < static_cast<off_t>(label_page))
    return fd >= 0 ? close(fd), CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_VALUE;
  s->device_ = device;
  s->index_ = index;
  s->bytes_ = static_cast<uint64_t>(st.st_size) - label_page;
  if (!s->map(fd)) return CUDA_ERROR_OPERATING_SYSTEM;
  s->serial_ = serial;
  join_segment(d, index, p.slot, p.generation);
  known = s;
  *out = std::move(s);
  return CUDA_SUCCESS;
}

CUresult Shared::open(int descriptor, std::shared_ptr<Shared>* out) {
  struct stat theirs, ours;
  Label label = {};
  if (fstat(descriptor, &theirs) != 0 || !S_ISREG(theirs.st_mode) ||
      theirs.st_size < static_cast<off_t>(label_page) ||
      pread(descriptor, &label, sizeof label, theirs.st_size - static_cast<off_t>(label_page)) !=
          sizeof label ||
      label.magic != label_magic || label.device >= process().set.count || label.index >= max_segments)
    return CUDA_ERROR_INVALID_VALUE;
  // A file of another set may have the same label.
  char path[640];
  segment_path(process().set, label.device, label.index, path);
  if (stat(path, &ours) != 0 || ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino)
    return CUDA_ERROR_INVALID_VALUE;
  return open(label.device, label.index, label.serial, out);
}

int Shared::descriptor() const {
  const Locked lock(*process().set.devices[device_]);
  return open_held(device_, index_, 0);
}

Shared::~Shared() {
  if (base_) munmap(base_, bytes_);
  if (!serial_) return;
  Process& p = process();
  Device& d = *p.set.devices[device_];
  const std::lock_guard registered(registry().mutex);
  const auto known = registry().open.find({device_, index_, serial_});
  if (known == registry().open.end() || !known->second.expired()) return;  // It is open again.
  registry().open.erase(known);
  const Locked lock(d);
  if (d.segments[index_].serial != serial_) return;
  leave_segment(d, index_, p.slot, p.generation);
  reclaim_segment(p.set, device_, index_);
}

}  // namespace carve::sim

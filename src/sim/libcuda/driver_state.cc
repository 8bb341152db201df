// The initialisation of the driver, the table of contexts, and each thread's stack of contexts.
#include "sim/libcuda/driver_state.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sim/drivers/drivers.h"
#include "sim/libcuda/array.h"
#include "sim/libcuda/external.h"
#include "sim/libcuda/green.h"
#include "sim/libcuda/heap.h"
#include "sim/libcuda/managed.h"
#include "sim/libcuda/schedule.h"

namespace carve::sim {
namespace {

// A word on a page that is zero in a forked child.
struct Life {
  std::atomic<uint32_t> initialised;
};
Life* life = nullptr;
Process* the_process = nullptr;
bool ever_initialised = false;
std::mutex init_mutex;

// A new context may have the address of a destroyed context; the number distinguishes them.
struct Entry {
  CUctx_st* context;
  unsigned long long id;
};
struct Stack {
  Entry entries[64];
  unsigned depth;
};
thread_local Stack stack;

std::string uuid_text(const uint8_t (&u)[16]) {
  char s[48];
  std::snprintf(s, sizeof s, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
                u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
                u[15]);
  return s;
}

constexpr char uuid_start[] = "GPU-";
bool is_uuid(const char* word) { return std::strncmp(word, uuid_start, sizeof uuid_start - 1) == 0; }

// Returns whether the digits of `word` are a prefix of the UUID's digits, ignoring dashes.
bool begins_with(const std::string& uuid, const char* word) {
  size_t at = sizeof uuid_start - 1, digits = 0;
  for (word += at; at < uuid.size(); ++word) {
    if (*word == '-' && digits > 0) continue;
    if (std::isxdigit(static_cast<unsigned char>(*word)) == 0) break;
    if (uuid[at] == '-') ++at;
    if (std::tolower(static_cast<unsigned char>(*word)) != uuid[at++]) return false;
    ++digits;
  }
  return digits > 0;
}

// Returns the device that one word of CUDA_VISIBLE_DEVICES names, or -1.
int named_device(const Set& set, const char* word, bool by_uuid) {
  if (!by_uuid) {
    char* end = nullptr;
    errno = 0;
    const auto index = static_cast<uint32_t>(std::strtoul(word, &end, 10));
    return end != word && errno == 0 && index < set.count ? static_cast<int>(index) : -1;
  }
  int found = -1;
  for (unsigned i = 0; is_uuid(word) && i < set.count; ++i) {
    if (!begins_with(uuid_text(set.devices[i]->facts.uuid), word)) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(i);
  }
  return found;
}

// Selects devices as NVIDIA's driver does from CUDA_VISIBLE_DEVICES. The first word decides whether the list
// has UUIDs or numbers, the first word that names no device ends it, and a device named twice is an error.
// The expected results in tests/nvidia/visible_lists.txt are those of libcuda 550.
CUresult select_devices(Process& p) {
  const char* word = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!word) {
    p.visible_count = p.set.count;
    for (unsigned i = 0; i < p.set.count; ++i) p.visible[i] = i;
    return CUDA_SUCCESS;
  }
  const bool by_uuid = is_uuid(word);
  uint64_t seen = 0;
  for (;;) {
    const int device = named_device(p.set, word, by_uuid);
    if (device < 0) return CUDA_SUCCESS;
    if (seen >> device & 1) return CUDA_ERROR_INVALID_DEVICE;
    seen |= uint64_t{1} << device;
    p.visible[p.visible_count++] = static_cast<unsigned>(device);
    const char* const comma = std::strchr(word, ',');
    if (!comma) return CUDA_SUCCESS;
    word = comma + 1;
  }
}

CUresult start() {
  const char* directory = set_directory();
  if (!directory) return CUDA_ERROR_NO_DEVICE;
  auto fresh = std::make_unique<Process>();
  switch (open_set(directory, &fresh->set)) {
    case Opened::yes: break;
    case Opened::absent: return CUDA_ERROR_NO_DEVICE;
    case Opened::other_version: return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
    case Opened::unreadable: return CUDA_ERROR_OPERATING_SYSTEM;
  }
  if (fresh->set.driver != carve_sim_driver) return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  if (const CUresult e = select_devices(*fresh)) return e;
  if (fresh->visible_count == 0) return CUDA_ERROR_NO_DEVICE;
  if (!attach(fresh->set, &fresh->slot, &fresh->generation)) return CUDA_ERROR_OPERATING_SYSTEM;
  if (!heap_start()) return CUDA_ERROR_OPERATING_SYSTEM;
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK) != 0) return CUDA_ERROR_OPERATING_SYSTEM;
  the_process = fresh.release();
  life = static_cast<Life*>(page);
  life->initialised.store(1, std::memory_order_release);
  ever_initialised = true;
  return CUDA_SUCCESS;
}

}  // namespace

Process& process() { return *the_process; }

CUresult entered() {
  return life && life->initialised.load(std::memory_order_acquire) ? CUDA_SUCCESS
                                                                   : CUDA_ERROR_NOT_INITIALIZED;
}

std::shared_ptr<CUctx_st> find_context(CUcontext handle) {
  const std::lock_guard lock(process().mutex);
  const auto found = process().contexts.find(handle);
  if (found != process().contexts.end()) return found->second;
  const auto face = process().faces.find(handle);
  return face == process().faces.end() ? nullptr : face->second->primary;
}

CUresult current_even_broken(std::shared_ptr<CUctx_st>* out) {
  if (const CUresult e = entered()) return e;
  if (!stack.depth) return CUDA_ERROR_INVALID_CONTEXT;
  const Entry& top = stack.entries[stack.depth - 1];
  *out = find_context(top.context);
  return *out && (*out)->id == top.id ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult current(std::shared_ptr<CUctx_st>* out) {
  if (const CUresult e = current_even_broken(out)) return e;
  return static_cast<CUresult>(__atomic_load_n(&(*out)->model().error, __ATOMIC_RELAXED));
}

CUresult has_context() {
  std::shared_ptr<CUctx_st> c;
  return current(&c);
}

CUresult unknown_handle(const void* handle) {
  const CUresult e = has_context();
  return handle && e == CUDA_ERROR_INVALID_CONTEXT ? e : CUDA_ERROR_INVALID_HANDLE;
}

CUresult device_of(CUdevice visible, unsigned* device) {
  if (const CUresult e = entered()) return e;
  if (visible < 0 || static_cast<unsigned>(visible) >= process().visible_count)
    return CUDA_ERROR_INVALID_DEVICE;
  *device = process().visible[visible];
  return CUDA_SUCCESS;
}

int visible_of(unsigned device) {
  for (unsigned i = 0; i < process().visible_count; ++i)
    if (process().visible[i] == device) return static_cast<int>(i);
  return -1;
}

void push_context(CUctx_st* c) {
  if (stack.depth < std::size(stack.entries)) stack.entries[stack.depth++] = {c, c->id};
}
CUctx_st* top_context() { return stack.depth ? stack.entries[stack.depth - 1].context : nullptr; }
bool pop_context(CUctx_st** popped) {
  if (!stack.depth) return false;
  *popped = stack.entries[--stack.depth].context;
  return true;
}
void replace_top_context(CUctx_st* c) {
  stack.depth -= stack.depth ? 1 : 0;
  if (c) push_context(c);
}

CUresult refusal(Refusal r) {
  switch (r) {
    case Refusal::none: return CUDA_SUCCESS;
    case Refusal::lost: return CUDA_ERROR_DEVICE_UNAVAILABLE;
    // The real driver reports a lack of channels as a lack of memory.
    case Refusal::no_slot:
    case Refusal::no_memory: break;
  }
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult create_context(unsigned device, unsigned flags, bool primary, std::shared_ptr<CUctx_st>* out) {
  Process& p = process();
  auto c = std::make_shared<CUctx_st>();
  c->device = device;
  c->flags = flags;
  c->primary = primary;
  Device& d = *p.set.devices[device];
  {
    const Locked lock(d);
    const uint64_t now = now_ns();
    sweep(p.set, device, now, true);
    if (const Refusal r = open_context(d, p.slot, p.generation, now, &c->index); r != Refusal::none)
      return refusal(r);
    c->serial = d.contexts[c->index].serial;
    d.contexts[c->index].channels[1].blocking = 0;
  }
  c->id = p.next_id.fetch_add(1);
  c->legacy = {c.get(), 0, 0, 0, 0, nullptr};
  const std::lock_guard lock(p.mutex);
  p.contexts[c.get()] = c;
  *out = c;
  return CUDA_SUCCESS;
}

void destroy_context(const std::shared_ptr<CUctx_st>& c) {
  Process& p = process();
  if (c->destroyed.exchange(true)) return;
  if (!hangs(*c)) wait_idle(*c);
  close_imports(*c);
  forget_arrays(*c);
  forget_externals(*c);
  heap_forget(*c);
  managed_forget(*c);
  {
    Device& d = c->own_device();
    const Locked lock(d);
    if (d.contexts[c->index].serial == c->serial) close_context(d, c->index, now_ns());
  }
  const std::lock_guard lock(p.mutex);
  for (auto it = p.streams.begin(); it != p.streams.end();)
    if ((*it)->context == c.get())
      delete *it, it = p.streams.erase(it);
    else
      ++it;
  p.contexts.erase(c.get());
}

CUresult unsupported(const char* name) {
  // Logs each name once, because a program that probes a thousand times must not fill the disk.
  static std::mutex mutex;
  static std::unordered_set<const char*>* said = nullptr;
  const char* path = std::getenv("SIMGPU_LOG");
  if (path && *path) {
    const std::lock_guard lock(mutex);
    if (!said) said = new std::unordered_set<const char*>;
    if (said->insert(name).second) {
      const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
      char line[160];
      const int n = std::snprintf(line, sizeof line, "pid %d: %s is not supported\n", getpid(), name);
      if (fd >= 0) {
        if (write(fd, line, static_cast<size_t>(n)) < 0) said->erase(name);
        close(fd);
      }
    }
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace carve::sim

using namespace carve::sim;

Device& CUctx_st::own_device() const { return *process().set.devices[device]; }

EXPORT CUresult cuInit(unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (entered() == CUDA_SUCCESS) return CUDA_SUCCESS;
  if (ever_initialised) return CUDA_ERROR_NOT_INITIALIZED;  // A forked child cannot use its parent's driver.
  const std::lock_guard lock(init_mutex);
  return entered() == CUDA_SUCCESS ? CUDA_SUCCESS : start();
}

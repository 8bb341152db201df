// Initialisation and shutdown, versions, error texts, and finding devices.
#include <fcntl.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "sim/drivers/drivers.h"
#include "sim/libnvidia-ml/handles.h"

namespace carve::sim {
namespace {

std::mutex init_mutex;
Set* set = nullptr;
unsigned references = 0;
nvmlDevice_st handles[max_devices];

struct ErrorText {
  nvmlReturn_t code;
  const char* text;
};
// NVML's own texts, as nvmlErrorString returns them and monitoring tools print them.
constexpr ErrorText error_texts[] = {
    {NVML_SUCCESS, "Success"},
    {NVML_ERROR_UNINITIALIZED, "Uninitialized"},
    {NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument"},
    {NVML_ERROR_NOT_SUPPORTED, "Not Supported"},
    {NVML_ERROR_NO_PERMISSION, "Insufficient Permissions"},
    {NVML_ERROR_ALREADY_INITIALIZED, "Already Initialized"},
    {NVML_ERROR_NOT_FOUND, "Not Found"},
    {NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size"},
    {NVML_ERROR_INSUFFICIENT_POWER, "Insufficient External Power"},
    {NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"},
    {NVML_ERROR_TIMEOUT, "Timeout"},
    {NVML_ERROR_IRQ_ISSUE, "Interrupt Request Issue"},
    {NVML_ERROR_LIBRARY_NOT_FOUND, "NVML Shared Library Not Found"},
    {NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found"},
    {NVML_ERROR_CORRUPTED_INFOROM, "Corrupted infoROM"},
    {NVML_ERROR_GPU_IS_LOST, "GPU is lost"},
    {NVML_ERROR_RESET_REQUIRED, "GPU requires restart"},
    {NVML_ERROR_OPERATING_SYSTEM, "The operating system has blocked the request."},
    {NVML_ERROR_LIB_RM_VERSION_MISMATCH, "RM has detected an NVML/RM version mismatch."},
    {NVML_ERROR_IN_USE, "In use by another client"},
    {NVML_ERROR_MEMORY, "Insufficient Memory"},
    {NVML_ERROR_NO_DATA, "No data"},
    {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "Argument version mismatch"},
    {NVML_ERROR_UNKNOWN, "Unknown Error"}};

nvmlReturn_t start() {
  const std::lock_guard lock(init_mutex);
  if (!set) {
    const char* directory = set_directory();
    if (!directory) return NVML_ERROR_DRIVER_NOT_LOADED;
    auto* fresh = new Set;  // Never freed, because closing its files would drop libcuda's record lock.
    switch (open_set(directory, fresh)) {
      case Opened::yes: break;
      case Opened::absent: return delete fresh, NVML_ERROR_DRIVER_NOT_LOADED;
      case Opened::other_version: return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
      case Opened::unreadable: return NVML_ERROR_NO_PERMISSION;
    }
    if (fresh->driver != carve_sim_driver) return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    for (unsigned i = 0; i < max_devices; ++i) handles[i].index = i;
    set = fresh;
  }
  ++references;
  return NVML_SUCCESS;
}

nvmlReturn_t find(nvmlDevice_t* out, bool (*matches)(const Facts&, const char*), const char* text) {
  if (const nvmlReturn_t e = entered()) return e;
  if (!out || !text) return NVML_ERROR_INVALID_ARGUMENT;
  for (unsigned i = 0; i < set->count; ++i)
    if (matches(set->devices[i]->facts, text)) {
      *out = &handles[i];
      return set->devices[i]->faults.lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
    }
  return NVML_ERROR_NOT_FOUND;
}

bool is_uuid(const Facts& f, const char* text) {
  char own[48];
  format_uuid(f, own);
  return strcasecmp(own, text) == 0;
}
bool is_serial(const Facts& f, const char* text) { return std::strcmp(f.serial, text) == 0; }
bool is_bus_id(const Facts& f, const char* text) {
  unsigned domain = 0, bus = 0, device = 0;
  if (std::sscanf(text, "%x:%x:%x", &domain, &bus, &device) != 3) {
    domain = 0;
    if (std::sscanf(text, "%x:%x", &bus, &device) != 2) return false;
  }
  return f.pci_domain == domain && f.pci_bus == bus && f.pci_device == device;
}

}  // namespace

Set& the_set() { return *set; }
nvmlReturn_t entered() { return references ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED; }
nvmlDevice_t handle_of(unsigned index) { return &handles[index]; }

nvmlReturn_t find_device(nvmlDevice_t device, Device** out) {
  if (const nvmlReturn_t e = entered()) return e;
  const ptrdiff_t place = reinterpret_cast<const char*>(device) - reinterpret_cast<const char*>(handles);
  if (!device || place < 0 || place % static_cast<ptrdiff_t>(sizeof *device) ||
      place / static_cast<ptrdiff_t>(sizeof *device) >= set->count)
    return NVML_ERROR_INVALID_ARGUMENT;
  Device* d = set->devices[device->index];
  if (const uint64_t slow = d->faults.slow_nvml_ns) {
    const timespec t = {static_cast<time_t>(slow / 1'000'000'000), static_cast<long>(slow % 1'000'000'000)};
    nanosleep(&t, nullptr);
  }
  if (d->faults.lost) return NVML_ERROR_GPU_IS_LOST;
  *out = d;
  return NVML_SUCCESS;
}

nvmlReturn_t give_text(const char* text, char* out, unsigned length) {
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  const size_t bytes = std::strlen(text) + 1;
  if (bytes > length) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(out, text, bytes);
  return NVML_SUCCESS;
}

void format_uuid(const Facts& f, char (&out)[48]) {
  const uint8_t* u = f.uuid;
  std::snprintf(out, sizeof out, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
                u[15]);
}

}  // namespace carve::sim

using namespace carve::sim;

EXPORT nvmlReturn_t nvmlInit_v2() { return start(); }
EXPORT nvmlReturn_t nvmlInit() { return start(); }
EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int) { return start(); }
EXPORT nvmlReturn_t nvmlShutdown() {
  const std::lock_guard lock(init_mutex);
  if (references == 0) return NVML_ERROR_UNINITIALIZED;
  --references;
  return NVML_SUCCESS;
}

EXPORT const char* nvmlErrorString(nvmlReturn_t code) {
  for (const ErrorText& e : error_texts)
    if (e.code == code) return e.text;
  return "Unknown Error";
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char* out, unsigned int length) {
  if (const nvmlReturn_t e = entered()) return e;
  return give_text(the_set().file->driver_version, out, length);
}
EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char* out, unsigned int length) {
  if (const nvmlReturn_t e = entered()) return e;
  return give_text(the_set().file->nvml_version, out, length);
}
EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* out) {
  if (const nvmlReturn_t e = entered()) return e;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  *out = the_set().file->cuda_version;
  return NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* out) {
  return nvmlSystemGetCudaDriverVersion_v2(out);
}

EXPORT nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_t* out, unsigned int length) {
  if (const nvmlReturn_t e = entered()) return e;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  char branch[24];
  std::snprintf(branch, sizeof branch, "r%.3s_00", the_set().file->driver_version);
  return give_text(branch, out->branch, length < sizeof out->branch ? length : sizeof out->branch);
}

EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char* out, unsigned int length) {
  if (const nvmlReturn_t e = entered()) return e;
  if (!out || length == 0) return NVML_ERROR_INVALID_ARGUMENT;
  char path[64], name[1024];
  std::snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return NVML_ERROR_NOT_FOUND;
  const ssize_t n = read(fd, name, sizeof name - 1);
  close(fd);
  if (n < 0) return NVML_ERROR_NOT_FOUND;
  name[n] = 0;  // Up to the first zero: the program's own name.
  std::snprintf(out, length, "%s", name);
  return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int* out) {
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  *out = 0;
  return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int* out) {
  if (const nvmlReturn_t e = entered()) return e;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  *out = the_set().count;
  return NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned int* out) { return nvmlDeviceGetCount_v2(out); }

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* out) {
  if (const nvmlReturn_t e = entered()) return e;
  if (!out || index >= the_set().count) return NVML_ERROR_INVALID_ARGUMENT;
  *out = handle_of(index);
  return the_set().devices[index]->faults.lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t* out) {
  return nvmlDeviceGetHandleByIndex_v2(index, out);
}
EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* out) {
  return find(out, is_uuid, uuid);
}
// Finds a device by its UUID, as text (type 1) or as 16 bytes (type 2).
EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t* uuid, nvmlDevice_t* out) {
  if (const nvmlReturn_t e = entered()) return e;
  if (!uuid) return NVML_ERROR_INVALID_ARGUMENT;
  if (uuid->version != nvml_struct_version<nvmlUUID_v1_t>(1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  char text[48];
  if (uuid->type == 2) {
    Facts named = {};
    std::memcpy(named.uuid, uuid->value.bytes, sizeof named.uuid);
    format_uuid(named, text);
  } else {
    std::snprintf(text, sizeof text, "%.41s", uuid->value.str);
  }
  return find(out, is_uuid, text);
}
EXPORT nvmlReturn_t nvmlDeviceGetHandleBySerial(const char* serial, nvmlDevice_t* out) {
  return find(out, is_serial, serial);
}
EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* id, nvmlDevice_t* out) {
  return find(out, is_bus_id, id);
}
EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* id, nvmlDevice_t* out) {
  return find(out, is_bus_id, id);
}

// Logs each call once, and at most 256 calls, because a monitor repeats its calls every second.
extern "C" nvmlReturn_t carve_sim_unsupported(const char* name) {
  static const char* said[256];
  const char* path = std::getenv("SIMGPU_LOG");
  const std::lock_guard lock(init_mutex);
  size_t at = 0;
  while (at < std::size(said) && said[at] && said[at] != name) ++at;
  if (path && *path && at < std::size(said) && !said[at]) {
    said[at] = name;
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    char line[160];
    const int n = std::snprintf(line, sizeof line, "pid %d: %s is not supported\n", getpid(), name);
    if (fd >= 0 && write(fd, line, static_cast<size_t>(n)) < 0) return close(fd), NVML_ERROR_NOT_SUPPORTED;
    if (fd >= 0) close(fd);
  }
  return NVML_ERROR_NOT_SUPPORTED;
}

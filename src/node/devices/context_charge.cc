#include "node/devices/context_charge.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <utility>

#include "abi/cuda.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/process.h"

namespace carve::node {
namespace {

constexpr int64_t patience = 10 * os::second;
// An H100 (driver 580.159) takes 9 MiB. More means that another process's memory was allocated or freed in
// between.
constexpr uint64_t max_unlisted = 64ull << 20;
// The charge for a page of managed memory, and the largest accepted step.
constexpr uint64_t managed_block = 2ull << 20, max_managed_step = 1ull << 30;

template <class F>
F symbol(void* library, const char* name) {
  return reinterpret_cast<F>(dlsym(library, name));
}

struct Child {
  pid_t pid = -1;
  os::Fd input, output;
  ~Child() { end(); }

  void end() {
    input.reset();
    const pid_t child = std::exchange(pid, -1);
    if (child <= 0) return;
    for (int i = 0; i < 200; ++i) {
      if (waitpid(child, nullptr, WNOHANG) == child) return;
      usleep(5000);
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
};

bool start(Child& child, const std::string& libcuda, const std::string& uuid) {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0) return false;
  child.input = os::Fd(in[1]);
  const os::Fd child_input(in[0]);
  if (pipe2(out, O_CLOEXEC) != 0) return false;
  child.output = os::Fd(out[0]);
  const os::Fd child_output(out[1]);
  child.pid = fork();
  if (child.pid == 0) {
    dup2(child_input.get(), 0);
    dup2(child_output.get(), 1);
    execl("/proc/self/exe", "carved", "--measure-context", libcuda.c_str(), uuid.c_str(), nullptr);
    _exit(127);
  }
  return child.pid > 0;
}

// Reads a line from the child, without its end.
Outcome<std::string> read_line(const Child& child, unsigned device, int64_t until) {
  std::string said;
  while (said.find('\n') == std::string::npos) {
    pollfd wait{child.output.get(), POLLIN, 0};
    const int64_t left = (until - os::monotonic_ns()) / os::millisecond;
    if (left <= 0 || poll(&wait, 1, static_cast<int>(left)) <= 0)
      return failure(FailureKind::unavailable, "device {}: no context was created within 10 s", device);
    char buffer[256];
    const ssize_t n = read(child.output.get(), buffer, sizeof buffer);
    if (n <= 0)
      return failure(FailureKind::unavailable,
                     "device {}: the process that measures the context size ended early", device);
    said.append(buffer, static_cast<size_t>(n));
  }
  return said.substr(0, said.find('\n'));
}

// Moves a page of managed memory to the device if the driver supports it.
void take_managed_page(void* driver, CUdevice device) {
  const auto allocate = symbol<decltype(&cuMemAllocManaged)>(driver, "cuMemAllocManaged");
  const auto prefetch = symbol<decltype(&cuMemPrefetchAsync)>(driver, "cuMemPrefetchAsync");
  const auto synchronize = symbol<decltype(&cuCtxSynchronize)>(driver, "cuCtxSynchronize");
  CUdeviceptr page = 0;
  if (allocate == nullptr || prefetch == nullptr || synchronize == nullptr ||
      allocate(&page, 4096, CU_MEM_ATTACH_GLOBAL) != CUDA_SUCCESS)
    return;
  if (prefetch(page, 4096, device, nullptr) == CUDA_SUCCESS) synchronize();
}

// Returns how much more memory than one block the device uses after the child's first managed page.
Outcome<Bytes> measure_managed_step(const Nvml& nvml, const Child& child, unsigned device, Bytes before,
                                    int64_t until) {
  if (write(child.input.get(), "\n", 1) != 1)
    return failure(FailureKind::unavailable,
                   "device {}: the process that measures the context size ended early", device);
  if (const auto said = read_line(child, device, until); !said) return tl::unexpected(said.error());
  Bytes after;
  nvml.read_used(device, after);
  const uint64_t grown = after.count > before.count ? after.count - before.count : 0;
  return Bytes{grown > max_managed_step || grown < managed_block ? 0 : grown - managed_block};
}

}  // namespace

Bytes whole_charge(Bytes listed, Bytes before, Bytes with_child, Bytes after) {
  const uint64_t others = std::max(before.count, after.count);
  const uint64_t grown = with_child.count > others ? with_child.count - others : 0;
  return {std::clamp(grown, listed.count, listed.count + max_unlisted)};
}

int measure_context_child(const char* libcuda, const char* uuid) {
  const auto fail = [](const char* message) {
    dprintf(1, "%s\n", message);
    return 1;
  };
  unsetenv("LD_PRELOAD");
  unsetenv("CUDA_VISIBLE_DEVICES");
  void* driver = dlopen(libcuda, RTLD_NOW);
  if (driver == nullptr) return fail(dlerror());
  const auto wanted = parse_uuid(uuid);
  const auto init = symbol<decltype(&cuInit)>(driver, "cuInit");
  const auto count_of = symbol<decltype(&cuDeviceGetCount)>(driver, "cuDeviceGetCount");
  const auto device_at = symbol<decltype(&cuDeviceGet)>(driver, "cuDeviceGet");
  const auto uuid_of = symbol<decltype(&cuDeviceGetUuid)>(driver, "cuDeviceGetUuid");
  const auto create = symbol<decltype(&cuCtxCreate_v2)>(driver, "cuCtxCreate_v2");
  const auto attribute = symbol<decltype(&cuDeviceGetAttribute)>(driver, "cuDeviceGetAttribute");
  if (!wanted || init == nullptr || count_of == nullptr || device_at == nullptr || uuid_of == nullptr ||
      create == nullptr || attribute == nullptr)
    return fail("the driver lacks an entry point");
  int count = 0;
  if (init(0) != CUDA_SUCCESS || count_of(&count) != CUDA_SUCCESS) return fail("cuInit failed");
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    CUuuid id{};
    if (device_at(&device, i) != CUDA_SUCCESS || uuid_of(&id, device) != CUDA_SUCCESS) continue;
    static_assert(sizeof id == sizeof wanted->bytes);
    if (memcmp(&id, wanted->bytes.data(), sizeof id) != 0) continue;
    CUcontext context = nullptr;
    if (create(&context, 0, device) != CUDA_SUCCESS) return fail("cuCtxCreate failed");
    int migrates = 0;
    if (attribute(&migrates, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device) != CUDA_SUCCESS)
      migrates = 0;
    dprintf(1, "ready %d\n", migrates != 0);
    char unused;
    if (read(0, &unused, 1) <= 0) return 0;
    take_managed_page(driver, device);
    dprintf(1, "managed\n");
    while (read(0, &unused, 1) > 0) continue;
    return 0;
  }
  return fail("the CUDA driver does not report this device");
}

Outcome<CudaFacts> measure_context(Nvml& nvml, const Device& device, const std::string& libcuda) {
  Bytes before, with_child, after;
  if (nvml.read_used(device.index, before) != NVML_SUCCESS)
    return failure(FailureKind::unavailable, "device {}: NVML does not report the memory in use",
                   device.index);
  const std::string uuid = text(device.uuid);
  Child child;
  if (!start(child, libcuda, uuid))
    return failure(FailureKind::unavailable, "cannot start a child process: {}", strerror(errno));
  const int64_t until = os::monotonic_ns() + patience;
  const auto said = read_line(child, device.index, until);
  if (!said) return tl::unexpected(said.error());
  if (*said != "ready 0" && *said != "ready 1")
    return failure(FailureKind::unavailable, "device {}: {}", device.index, *said);
  bool hidden = false;
  nvmlReturn_t result = NVML_SUCCESS;
  const auto processes = nvml.processes(device.index, hidden, result);
  const auto found = std::ranges::find(processes, static_cast<unsigned>(child.pid), &ProcessUse::pid);
  if (found == processes.end())
    return failure(FailureKind::unavailable, "device {}: NVML does not report the memory of each process",
                   device.index);
  nvml.read_used(device.index, with_child);
  CudaFacts facts{.context = {}, .migrates = *said == "ready 1", .managed_step = {}};
  if (facts.migrates) {
    const auto step = measure_managed_step(nvml, child, device.index, with_child, until);
    if (!step) return tl::unexpected(step.error());
    facts.managed_step = *step;
  }
  child.end();
  nvml.read_used(device.index, after);
  facts.context = whole_charge(found->used, before, with_child, after);
  return facts;
}

Outcome<CudaFacts> cuda_facts(Nvml& nvml, const Device& device, const std::string& libcuda,
                              const std::string& state) {
  // One line per device and driver: UUID, driver version, bytes of a context, "migrates" or "stays", bytes of
  // a managed step.
  const std::string path = state + "/context-charges";
  const std::string key = fmt::format("{} {} ", text(device.uuid), nvml.driver_version());
  const std::string known = os::read_file(path).value_or("");
  if (const size_t at = known.rfind(key); at != std::string::npos) {
    unsigned long long bytes = 0, step = 0;
    char moves[9] = "";
    if (sscanf(known.c_str() + at + key.size(), "%llu %8s %llu", &bytes, moves, &step) == 3 && bytes != 0)
      return CudaFacts{{bytes}, strcmp(moves, "migrates") == 0, {step}};
  }
  const auto measured = measure_context(nvml, device, libcuda);
  if (!measured) return measured;
  const os::Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const std::string line =
      fmt::format("{}{} {} {}\n", key, measured->context.count, measured->migrates ? "migrates" : "stays",
                  measured->managed_step.count);
  // Without the cache the next start only measures again.
  if (!file || write(file.get(), line.data(), line.size()) < 0) return measured;
  return measured;
}

}  // namespace carve::node

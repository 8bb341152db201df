#include "node/devices/context_charge.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "abi/cuda.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/process.h"

namespace carve::node {
namespace {

using K = FailureKind;

constexpr int64_t patience = 10 * os::second;

template <class F>
F symbol(void* library, const char* name) {
  return reinterpret_cast<F>(dlsym(library, name));
}

// The destructor ends the child and waits for it.
struct Child {
  pid_t pid = -1;
  os::Fd input, output;
  ~Child() {
    input.reset();
    if (pid <= 0) return;
    for (int i = 0; i < 200; ++i) {
      if (waitpid(pid, nullptr, WNOHANG) == pid) return;
      usleep(5000);
    }
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
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

}  // namespace

int measure_context_child(const char* libcuda, const char* uuid) {
  const auto fail = [](const char* sentence) {
    dprintf(1, "%s\n", sentence);
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
    while (read(0, &unused, 1) > 0) continue;
    return 0;
  }
  return fail("the CUDA driver does not report this device");
}

Outcome<CudaFacts> measure_context(Nvml& nvml, const Device& device, const std::string& libcuda) {
  const std::string uuid = text(device.uuid);
  Child child;
  if (!start(child, libcuda, uuid))
    return failure(K::unavailable, "cannot start a child process: {}", strerror(errno));
  const int64_t until = os::monotonic_ns() + patience;
  std::string said;
  while (said.find('\n') == std::string::npos) {
    pollfd wait{child.output.get(), POLLIN, 0};
    const int64_t left = (until - os::monotonic_ns()) / os::millisecond;
    if (left <= 0 || poll(&wait, 1, static_cast<int>(left)) <= 0)
      return failure(K::unavailable, "device {}: no context was created within 10 s", device.index);
    char buffer[256];
    const ssize_t n = read(child.output.get(), buffer, sizeof buffer);
    if (n <= 0) return failure(K::unavailable, "device {}: the measuring process ended early", device.index);
    said.append(buffer, static_cast<size_t>(n));
  }
  if (said != "ready 0\n" && said != "ready 1\n")
    return failure(K::unavailable, "device {}: {}", device.index, said.substr(0, said.find('\n')));
  bool hidden = false;
  nvmlReturn_t result = NVML_SUCCESS;
  const auto processes = nvml.processes(device.index, hidden, result);
  const auto found = std::ranges::find(processes, static_cast<unsigned>(child.pid), &ProcessUse::pid);
  if (found == processes.end())
    return failure(K::unavailable, "device {}: NVML does not report the memory of each process",
                   device.index);
  return CudaFacts{found->used, said == "ready 1\n"};
}

Outcome<CudaFacts> cuda_facts(Nvml& nvml, const Device& device, const std::string& libcuda,
                              const std::string& state) {
  // One line per device and driver: UUID, driver version, bytes of a context, "migrates" or "stays".
  const std::string path = state + "/context-charges";
  const std::string key = fmt::format("{} {} ", text(device.uuid), nvml.driver_version());
  const std::string known = os::read_file(path).value_or("");
  if (const size_t at = known.rfind(key); at != std::string::npos) {
    unsigned long long bytes = 0;
    char moves[9] = "";
    if (sscanf(known.c_str() + at + key.size(), "%llu %8s", &bytes, moves) == 2 && bytes != 0)
      return CudaFacts{{bytes}, strcmp(moves, "migrates") == 0};
  }
  const auto measured = measure_context(nvml, device, libcuda);
  if (!measured) return measured;
  const os::Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const std::string line =
      fmt::format("{}{} {}\n", key, measured->context.count, measured->migrates ? "migrates" : "stays");
  // Without a cache the next start measures again; no data is lost.
  if (!file || write(file.get(), line.data(), line.size()) < 0) return measured;
  return measured;
}

}  // namespace carve::node

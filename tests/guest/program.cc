// A program as users write it: it opens libcuda.so.1, looks up what it needs with dlsym, and does what its
// first argument selects. It does not use Carve. The exit status is 0 if all results are as the driver
// promises; 1 if a call failed, whose error is printed; and 2 if a result is wrong, whose line is printed.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "abi/cuda.h"
#include "abi/nvml.h"

namespace {

#define EXPECT(condition)                                      \
  do {                                                         \
    if (!(condition)) {                                        \
      printf("line %d: not true: %s\n", __LINE__, #condition); \
      exit(2);                                                 \
    }                                                          \
  } while (false)

void* library() {
  static void* handle = dlopen("libcuda.so.1", RTLD_NOW);
  if (handle == nullptr) {
    printf("%s\n", dlerror());
    exit(2);
  }
  return handle;
}

template <class F>
F* entry(F*, const char* name) {
  void* found = dlsym(library(), name);
  if (found == nullptr) {
    printf("no %s\n", name);
    exit(2);
  }
  return reinterpret_cast<F*>(found);
}
#define CU(name) entry(static_cast<decltype(&name)>(nullptr), #name)

void must(CUresult result) {
  if (result == CUDA_SUCCESS) return;
  printf("error %d\n", static_cast<int>(result));
  exit(1);
}

// With `patient`, retries while siblings have taken all memory, even that for a context.
void start(bool patient = false) {
  must(CU(cuInit)(0));
  CUcontext context = nullptr;
  for (int tries = 0;; ++tries) {
    const CUresult result = CU(cuDevicePrimaryCtxRetain)(&context, 0);
    if (result == CUDA_SUCCESS) break;
    if (!patient || result != CUDA_ERROR_OUT_OF_MEMORY || tries > 30'000) must(result);
    usleep(1000);
  }
  must(CU(cuCtxSetCurrent)(context));
}

void say(const char* word) {
  puts(word);
  fflush(stdout);
}

int init() {
  must(CU(cuInit)(0));
  return 0;
}

int uuids() {
  must(CU(cuInit)(0));
  int count = 0;
  must(CU(cuDeviceGetCount)(&count));
  for (int i = 0; i < count; ++i) {
    CUuuid uuid;
    must(CU(cuDeviceGetUuid)(&uuid, i));
    for (char b : uuid.bytes) printf("%02x", static_cast<unsigned char>(b));
    printf("\n");
  }
  return 0;
}

// Repeatedly allocates blocks until an allocation fails and frees all of them, together with its siblings.
int race(int rounds, size_t piece) {
  start(true);
  auto* allocate = CU(cuMemAlloc_v2);
  auto* release = CU(cuMemFree_v2);
  long got = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<CUdeviceptr> mine;
    for (;;) {
      CUdeviceptr p = 0;
      const CUresult result = allocate(&p, piece);
      if (result == CUDA_ERROR_OUT_OF_MEMORY) break;
      must(result);
      mine.push_back(p);
    }
    got += static_cast<long>(mine.size());
    for (CUdeviceptr p : mine) must(release(p));
  }
  must(CU(cuDevicePrimaryCtxRelease_v2)(0));
  printf("%ld\n", got);
  return 0;
}

// Detects whether a call made this thread wait, in a way that neither a busy machine nor a kill can hide: the
// call slept, or it used 5 ms of CPU time, which spinning costs. CHURN_WITNESS names a file with three counts
// that all such programs increment: calls, calls that slept, and calls that spun.
class Patience {
 public:
  Patience() {
    const char* path = getenv("CHURN_WITNESS");
    if (path == nullptr) return;
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    void* p = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    EXPECT(p != MAP_FAILED);
    counts_ = static_cast<std::atomic<uint64_t>*>(p);
  }
  template <class Call>
  CUresult watch(Call call) {
    if (counts_ == nullptr) return call();
    const uint64_t from = cpu_ns();
    const long slept = sleeps();
    const CUresult result = call();
    counts_[0].fetch_add(1);
    if (sleeps() != slept) counts_[1].fetch_add(1);
    if (cpu_ns() - from > 5'000'000) counts_[2].fetch_add(1);
    return result;
  }

 private:
  static uint64_t cpu_ns() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
  }
  static long sleeps() {
    rusage u;
    getrusage(RUSAGE_THREAD, &u);
    return u.ru_nvcsw;
  }
  std::atomic<uint64_t>* counts_ = nullptr;
};

// Randomly allocates and frees until it is killed. Now and then it exports a block.
int churn(unsigned seed) {
  start(true);
  auto* allocate = CU(cuMemAlloc_v2);
  auto* release = CU(cuMemFree_v2);
  auto* export_ = CU(cuIpcGetMemHandle);
  std::minstd_rand random(seed);
  std::vector<CUdeviceptr> mine;
  Patience patience;
  for (;;) {
    CUdeviceptr p = 0;
    if (mine.size() < 20 && random() % 2 != 0) {
      const size_t bytes = 1 + random() % (8 << 20);
      const CUresult result = patience.watch([&] { return allocate(&p, bytes); });
      if (result == CUDA_SUCCESS) mine.push_back(p);
      if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY) must(result);
    } else if (!mine.empty()) {
      CUipcMemHandle handle;
      if (random() % 8 == 0) must(patience.watch([&] { return export_(&handle, mine.back()); }));
      must(patience.watch([&] { return release(mine.back()); }));
      mine.pop_back();
    }
  }
}

// For a tracer: makes a few calls that write each of the shared tables, between two stops.
int walk() {
  start();
  auto* allocate = CU(cuMemAlloc_v2);
  auto* release = CU(cuMemFree_v2);
  auto* export_ = CU(cuIpcGetMemHandle);
  CUdeviceptr small = 0, spilled = 0;
  CUipcMemHandle handle;
  must(allocate(&small, 512));
  must(release(small));
  say("begin");
  raise(SIGSTOP);
  must(allocate(&small, 4096));
  must(export_(&handle, small));
  must(allocate(&spilled, 64 << 20));
  must(release(spilled));
  must(release(small));
  raise(SIGSTOP);
  return 0;
}

int hold(size_t bytes) {
  start();
  CUdeviceptr p = 0;
  must(CU(cuMemAlloc_v2)(&p, bytes));
  say("held");
  char c;
  return read(0, &c, 1) < 0;
}

// Allocates blocks until an allocation fails, prints the sum of their bytes and waits.
int fill(size_t piece) {
  start();
  size_t got = 0;
  for (;;) {
    CUdeviceptr p = 0;
    const CUresult result = CU(cuMemAlloc_v2)(&p, piece);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) break;
    must(result);
    got += piece;
  }
  say(std::to_string(got).c_str());
  char c;
  return read(0, &c, 1) < 0;
}

// Counts in the device's memory until it is killed, and writes the count to a file. Each step reads the
// device's number, which must be that of the previous step, and requests more memory than there is, which
// must fail.
int count(const char* file, size_t bytes, size_t too_many) {
  start();
  auto* allocate = CU(cuMemAlloc_v2);
  auto* read_back = CU(cuMemcpyDtoH_v2);
  auto* write_over = CU(cuMemcpyHtoD_v2);
  const int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  EXPECT(fd >= 0);
  CUdeviceptr p = 0, none = 0;
  must(allocate(&p, bytes));
  uint64_t mine = 0, theirs = 0;
  must(write_over(p, &mine, sizeof mine));
  for (;; usleep(1000)) {
    must(read_back(&theirs, p, sizeof theirs));
    EXPECT(theirs == mine);
    ++mine;
    must(write_over(p, &mine, sizeof mine));
    EXPECT(allocate(&none, too_many) == CUDA_ERROR_OUT_OF_MEMORY);
    char text[24];
    const int length = snprintf(text, sizeof text, "%020llu\n", static_cast<unsigned long long>(mine));
    EXPECT(pwrite(fd, text, static_cast<size_t>(length), 0) == length);
  }
}

int info() {
  start();
  size_t free_bytes = 0, total = 0, device = 0;
  must(CU(cuMemGetInfo_v2)(&free_bytes, &total));
  must(CU(cuDeviceTotalMem_v2)(&device, 0));
  printf("%zu %zu %zu\n", free_bytes, total, device);
  return 0;
}

// Prints what a monitor shows that also computes: devices, bytes, and the processes that it sees.
int monitor() {
  start();
  CUdeviceptr p = 0;
  must(CU(cuMemAlloc_v2)(&p, 10 << 20));
  void* nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  EXPECT(nvml != nullptr);
#define NV(name) reinterpret_cast<decltype(&name)>(dlsym(nvml, #name))
  EXPECT(NV(nvmlInit_v2)() == NVML_SUCCESS);
  unsigned count = 0, index = 99, processes = 8;
  EXPECT(NV(nvmlDeviceGetCount_v2)(&count) == NVML_SUCCESS);
  nvmlDevice_t device = nullptr, other = nullptr;
  EXPECT(NV(nvmlDeviceGetHandleByIndex_v2)(0, &device) == NVML_SUCCESS);
  EXPECT(NV(nvmlDeviceGetHandleByIndex_v2)(count, &other) == NVML_ERROR_INVALID_ARGUMENT);
  EXPECT(NV(nvmlDeviceGetIndex)(device, &index) == NVML_SUCCESS && index == 0);
  char uuid[96] = {};
  EXPECT(NV(nvmlDeviceGetUUID)(device, uuid, sizeof uuid) == NVML_SUCCESS);
  EXPECT(NV(nvmlDeviceGetHandleByUUID)(uuid, &other) == NVML_SUCCESS && other == device);
  nvmlMemory_t memory = {};
  EXPECT(NV(nvmlDeviceGetMemoryInfo)(device, &memory) == NVML_SUCCESS);
  nvmlProcessInfo_t infos[8];
  auto* running = NV(nvmlDeviceGetComputeRunningProcesses_v3);  // Since driver 510.
  if (running == nullptr) running = NV(nvmlDeviceGetComputeRunningProcesses_v2);
  EXPECT(running(device, &processes, infos) == NVML_SUCCESS);
  printf("%u %llu %llu %llu %u %d\n", count, memory.total, memory.used, memory.free, processes,
         processes == 1 && infos[0].pid == static_cast<unsigned>(getpid()));
  return 0;
}

// Holds memory and forks. The child makes its own calls before the parent continues.
int forks() {
  start();
  CUdeviceptr p = 0;
  must(CU(cuMemAlloc_v2)(&p, 4 << 20));
  auto* allocate = CU(cuMemAlloc_v2);
  const pid_t child = fork();
  if (child == 0) {
    // The stand-in lets a child allocate; NVIDIA's driver and the simulated driver return NOT_INITIALIZED.
    CUdeviceptr q = 0;
    const CUresult result = allocate(&q, 2 << 20);
    EXPECT(result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_INITIALIZED);
    say("child");
    char c;
    _exit(read(0, &c, 1) < 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT(status == 0);
  must(CU(cuMemFree_v2)(p));
  must(allocate(&p, 4 << 20));
  say("parent");
  char c;
  return read(0, &c, 1) < 0;
}

// Threads allocate continuously while the process forks. A lock that they held must be free in the child.
int fork_storm(int forks_) {
  start();
  auto* allocate = CU(cuMemAlloc_v2);
  auto* release = CU(cuMemFree_v2);
  std::atomic<bool> stop{false};
  std::vector<std::thread> all;
  for (int i = 0; i < 4; ++i) {
    all.emplace_back([&] {
      start();
      while (!stop) {
        CUdeviceptr p = 0;
        if (allocate(&p, 4096) == CUDA_SUCCESS) must(release(p));
      }
    });
  }
  for (int i = 0; i < forks_; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      CUdeviceptr p = 0;
      for (int n = 0; n < 20; ++n)
        if (allocate(&p, 4096) != CUDA_SUCCESS || release(p) != CUDA_SUCCESS) _exit(1);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT(status == 0);
  }
  stop = true;
  for (auto& t : all) t.join();
  return 0;
}

int execs(char* self) {
  start();
  CUdeviceptr p = 0;
  must(CU(cuMemAlloc_v2)(&p, 4 << 20));
  char verb[] = "hold", bytes[] = "2097152";
  char* arguments[] = {self, verb, bytes, nullptr};
  execv(self, arguments);
  return 2;
}

int threads() {
  std::vector<std::thread> all;
  std::atomic<int> failed{0};
  auto* init_ = CU(cuInit);
  for (int i = 0; i < 16; ++i) all.emplace_back([&] { failed += init_(0) != CUDA_SUCCESS; });
  for (auto& t : all) t.join();
  EXPECT(failed == 0);
  say("ready");
  char c;
  return read(0, &c, 1) < 0;
}

int open_descriptors() {
  int count = 0;
  DIR* d = opendir("/proc/self/fd");
  while (readdir(d) != nullptr) ++count;
  closedir(d);
  return count;
}

int descriptors() {
  library();
  const int before = open_descriptors();
  must(CU(cuInit)(0));
  EXPECT(open_descriptors() - before <=
         atoi(getenv("DRIVER_KEEPS") != nullptr ? getenv("DRIVER_KEEPS") : "0"));
  return 0;
}

std::string home_of(void* function) {
  Dl_info where;
  return function != nullptr && dladdr(function, &where) != 0 ? where.dli_fname : "nowhere";
}

}  // namespace

// Defined here and in libprobe.so. libprobe.so's next_probe() looks up the next definition after its own,
// which does not exist. A dlsym that does not know its caller would find libprobe's.
extern "C" int carve_probe() { return 1; }

namespace {

int lookups(const char* probe_library) {
  const bool preloaded = getenv("LD_PRELOAD") != nullptr;
  EXPECT(dlsym(RTLD_DEFAULT, "cuInit") == nullptr);  // The driver is not loaded, so the name does not exist.
  EXPECT(dlsym(RTLD_NEXT, "cuMemAlloc_v2") == nullptr);
  EXPECT(dlsym(RTLD_DEFAULT, "curl_easy_init") == nullptr);
  EXPECT(dlerror() != nullptr);

  void* probe = dlopen(probe_library, RTLD_NOW | RTLD_GLOBAL);
  EXPECT(probe != nullptr);
  const auto next = reinterpret_cast<void* (*)(const char*)>(dlsym(probe, "next_of"));
  const auto any = reinterpret_cast<void* (*)(const char*)>(dlsym(probe, "default_of"));
  EXPECT(next("carve_probe") == nullptr);
  EXPECT(any("carve_probe") == reinterpret_cast<void*>(&carve_probe));
  EXPECT(any("only_in_probe") != nullptr);

  // The driver's own addresses without any hook.
  must(CU(cuInit)(0));
  void* hook = dlsym(library(), "cuMemAlloc_v2");
  EXPECT((home_of(hook).find("libcarve.so") != std::string::npos) == preloaded);
  EXPECT(home_of(dlsym(library(), "cuCtxGetDevice")).find("libcuda") != std::string::npos);
  EXPECT(dlsym(library(), "cuMemAlloc_v22") == nullptr);
  void* exchanged = nullptr;
  must(CU(cuGetProcAddress_v2)("cuMemAlloc", &exchanged, 12000, 0, nullptr));
  EXPECT(exchanged == hook);
  must(CU(cuGetProcAddress_v2)("cuDeviceGetAttribute", &exchanged, 12000, 0, nullptr));
  EXPECT(exchanged == dlsym(library(), "cuDeviceGetAttribute"));
  // dlvsym bypasses a preload, but the agent's audit finds it (documented as not covered by the preload).
  EXPECT(home_of(dlvsym(RTLD_NEXT, "malloc", "GLIBC_2.2.5")).find("libc.so") != std::string::npos);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  const auto number = [&](int i) { return argc > i ? strtoull(argv[i], nullptr, 10) : 0; };
  if (verb == "init") return init();
  if (verb == "uuids") return uuids();
  if (verb == "race") return race(static_cast<int>(number(2)), number(3));
  if (verb == "churn") return churn(static_cast<unsigned>(number(2)));
  if (verb == "walk") return walk();
  if (verb == "hold") return hold(number(2));
  if (verb == "fill") return fill(number(2));
  if (verb == "count" && argc == 5) return count(argv[2], number(3), number(4));
  if (verb == "info") return info();
  if (verb == "monitor") return monitor();
  if (verb == "forks") return forks();
  if (verb == "fork-storm") return fork_storm(static_cast<int>(number(2)));
  if (verb == "execs") return execs(argv[0]);
  if (verb == "threads") return threads();
  if (verb == "descriptors") return descriptors();
  if (verb == "lookups") return lookups(argv[2]);
  fprintf(
      stderr,
      "which of init, uuids, race, churn, walk, hold, fill, count, info, monitor, forks, fork-storm, execs, "
      "threads, "
      "descriptors, "
      "lookups?\n");
  return 2;
}

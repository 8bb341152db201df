// Measures the overhead that the guest library adds to its program. The library runs over a stand-in driver
// whose calls take 2 to 10 ns, so that no overhead is hidden, and under a minimal agent that grants one
// device. The driver's own entries and the hooked ones are called alternately in one process image, in short
// chunks. A figure is the median of the differences between consecutive chunks, so other load on the machine
// affects both sides. Costs per process (start, memory) are measured alternately with and without the
// library.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "abi/cuda.h"
#include "tests/guest/agent_fake.h"
#include "tests/guest/spawn.h"
#include "wire/shm/work.h"

namespace {

using carve::test::Child;

void* library() {
  static void* handle = dlopen("libcuda.so.1", RTLD_NOW);
  if (handle == nullptr) abort();
  return handle;
}

// Returns the driver's own entry point, or the one that a program gets.
template <class F>
F* entry(F*, const char* name, bool native) {
  using Native = void* (*)(const char*);
  void* found =
      native ? reinterpret_cast<Native>(dlsym(library(), "standin_native"))(name) : dlsym(library(), name);
  if (found == nullptr) abort();
  return reinterpret_cast<F*>(found);
}
#define CU(name, native) entry(static_cast<decltype(&name)>(nullptr), #name, native)

void must(CUresult result) {
  if (result != CUDA_SUCCESS) abort();
}

double now_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

// Measures the thread's CPU time: on a busy machine the longer side would be interrupted more often.
template <class Act>
double ns_each(int times, Act act) {
  const double from = now_ns(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < times; ++i) act();
  return (now_ns(CLOCK_THREAD_CPUTIME_ID) - from) / times;
}

double median(std::vector<double> v) {
  std::ranges::nth_element(v, v.begin() + static_cast<ptrdiff_t>(v.size() / 2));
  return v[v.size() / 2];
}

// One figure: the native cost and the added cost of each pair.
struct Turns {
  std::vector<double> native, added;
};

constexpr int turns = 61;

void begin() {
  must(CU(cuInit, false)(0));
  CUcontext context = nullptr;
  must(CU(cuDevicePrimaryCtxRetain, false)(&context, 0));
  must(CU(cuCtxSetCurrent, false)(context));
}

// Measures one side with `chunk(native)`, in ns per call. Runs twice as many pairs and keeps the half in
// which the driver's own call was fastest, because other load disturbed the rest. (This makes the difference
// larger, if anything.)
template <class Chunk>
Turns compared(Chunk chunk) {
  std::vector<std::pair<double, double>> all;
  chunk(true), chunk(false);
  for (int i = 0; i < 2 * turns; ++i) {
    // Each side goes first equally often.
    double native = i % 2 == 0 ? chunk(true) : 0;
    const double carved = chunk(false);
    if (i % 2 != 0) native = chunk(true);
    all.emplace_back(native, carved - native);
  }
  std::ranges::sort(all, {}, &std::pair<double, double>::first);
  all.resize(turns);
  Turns t;
  for (const auto& [native, added] : all) {
    t.native.push_back(native);
    t.added.push_back(added);
  }
  return t;
}

// Allocates and frees one allocation while `count` others are live. ns_of_any() instead frees a random live
// allocation and replaces it, so if the table is large, each pair uses an entry that is in no cache.
struct Live {
  decltype(&cuMemAlloc_v2) allocate;
  decltype(&cuMemFree_v2) release;
  std::vector<CUdeviceptr> pointers;
  std::minstd_rand random{1};

  Live(bool native, size_t count)
      : allocate(CU(cuMemAlloc_v2, native)), release(CU(cuMemFree_v2, native)), pointers(count) {
    for (CUdeviceptr& p : pointers) must(allocate(&p, 512));
  }
  double ns(int times) {
    CUdeviceptr p = 0;
    return ns_each(times, [&] {
      must(allocate(&p, 512));
      must(release(p));
    });
  }
  double ns_of_any(int times) {
    return ns_each(times, [&] {
      CUdeviceptr& p = pointers[random() % pointers.size()];
      must(release(p));
      must(allocate(&p, 512));
    });
  }
};

Turns allocate_and_free(size_t live, double (Live::*ns)(int) = &Live::ns) {
  Live native(true, live), carved(false, live);
  return compared([&](bool is_native) { return ((is_native ? native : carved).*ns)(20'000); });
}

constexpr int max_workers = 16, pairs_of_worker = 30'000;

// All threads charge the slice's one budget word. Returns the time per pair of the slowest thread.
template <int Threads>
Turns by_threads() {
  return compared([](bool native) {
    std::barrier all(Threads);
    double took[Threads] = {};
    const auto work = [&](int i) {
      begin();
      Live live(native, 64);
      all.arrive_and_wait();
      took[i] = live.ns(pairs_of_worker * 2 / Threads);
      for (CUdeviceptr p : live.pointers) must(live.release(p));
    };
    std::vector<std::thread> others;
    for (int i = 1; i < Threads; ++i) others.emplace_back(work, i);
    work(0);
    for (std::thread& other : others) other.join();
    return *std::ranges::max_element(took);
  });
}

// The same measurement with the processes of one slice.
struct Meeting {
  pthread_barrier_t all;
  double took[max_workers];
};

template <int Processes>
Turns by_processes() {
  return compared([](bool native) {
    auto* const meeting = static_cast<Meeting*>(
        mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (meeting == MAP_FAILED) abort();
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&meeting->all, &shared, Processes);
    for (int i = 0; i < Processes; ++i) {
      if (fork() != 0) continue;
      begin();
      Live live(native, 64);
      pthread_barrier_wait(&meeting->all);
      meeting->took[i] = live.ns(pairs_of_worker * 2 / Processes);
      _exit(0);
    }
    for (int i = 0; i < Processes; ++i) {
      int status = 0;
      if (wait(&status) < 0 || status != 0) abort();
    }
    const double slowest = *std::ranges::max_element(meeting->took, meeting->took + Processes);
    munmap(meeting, sizeof(Meeting));
    return slowest;
  });
}

// Launches `kernels` different kernels in turn; each has its own estimate.
Turns of_launches(unsigned kernels = 1) {
  return compared([=](bool native) {
    auto* launch = CU(cuLaunchKernel, native);
    unsigned i = 0;
    return ns_each(200'000, [&] {
      const auto kernel = reinterpret_cast<CUfunction>(uint64_t{0x1000} + i++ % kernels * 64);
      must(launch(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    });
  });
}

// Measures a program that waits for each launch.
Turns of_launch_and_wait() {
  return compared([](bool native) {
    auto* launch = CU(cuLaunchKernel, native);
    auto* wait = CU(cuStreamSynchronize, native);
    return ns_each(50'000, [&] {
      must(launch(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
      must(wait(nullptr));
    });
  });
}

Turns of_launches_ex() {
  return compared([](bool native) {
    auto* launch = CU(cuLaunchKernelEx, native);
    const CUlaunchConfig config = {};
    return ns_each(200'000, [&] { must(launch(&config, nullptr, nullptr, nullptr)); });
  });
}

Turns of_memory_info() {
  return compared([](bool native) {
    auto* info = CU(cuMemGetInfo_v2, native);
    size_t free_bytes = 0, total = 0;
    return ns_each(100'000, [&] { must(info(&free_bytes, &total)); });
  });
}

Turns of_lookups(const char* name) {
  return compared([=](bool native) {
    auto* ask = CU(cuGetProcAddress_v2, native);
    void* found = nullptr;
    return ns_each(50'000, [&] { must(ask(name, &found, 12000, 0, nullptr)); });
  });
}

// Looks up a name that has a hook, or a name that is not in the driver, which goes through the preload's
// dlsym.
Turns of_dlsym(void* handle, const char* name) {
  const auto libcs =
      reinterpret_cast<void* (*)(void*, const char*)>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34"));
  return compared([=](bool native) {
    return ns_each(20'000, [&] {
      void* volatile found = native && libcs != nullptr ? libcs(handle, name) : dlsym(handle, name);
      if (found == nullptr) abort();
    });
  });
}

struct InImage {
  const char* name;
  double goal;
  Turns (*measure)();
  // The device's lease word.
  uint64_t lease = 0;
};
constexpr uint64_t alone =
    carve::shm::LeaseWord::of(carve::shm::GateState::lease, UINT64_MAX, false, 1).value;
constexpr uint64_t bounded =
    carve::shm::LeaseWord::of(carve::shm::GateState::lease, 1'000'000, false, 1).value;
const InImage in_image[] = {
    {"guest.launch.open", 5, [] { return of_launches(); }},
    {"guest.launch.leased", 15, [] { return of_launches(); }, alone},
    {"guest.launch.leased.bounded", 15, [] { return of_launches(); }, bounded},
    {"guest.launch.leased.kernels16", 15, [] { return of_launches(16); }, bounded},
    {"guest.launch_and_wait.leased", 0, of_launch_and_wait, alone},
    {"guest.launch.params", 5, of_launches_ex},
    {"guest.alloc_free.empty", 150, [] { return allocate_and_free(0); }},
    {"guest.alloc_free.live10k", 150, [] { return allocate_and_free(10'000); }},
    {"guest.alloc_free.live1m", 150, [] { return allocate_and_free(1'000'000); }},
    {"guest.alloc_free.any_of_10k", 0, [] { return allocate_and_free(10'000, &Live::ns_of_any); }},
    {"guest.alloc_free.any_of_1m", 0, [] { return allocate_and_free(1'000'000, &Live::ns_of_any); }},
    {"guest.alloc_free.threads2", 150, by_threads<2>},
    {"guest.alloc_free.threads4", 0, by_threads<4>},
    {"guest.alloc_free.threads16", 0, by_threads<16>},
    {"guest.alloc_free.processes2", 0, by_processes<2>},
    {"guest.alloc_free.processes4", 0, by_processes<4>},
    {"guest.alloc_free.processes16", 0, by_processes<16>},
    {"guest.meminfo", 50, of_memory_info},
    {"guest.getprocaddress", 100, [] { return of_lookups("cuMemAlloc"); }},
    {"guest.getprocaddress.other", 100, [] { return of_lookups("cuDeviceGetAttribute"); }},
    {"guest.dlsym", 100, [] { return of_dlsym(library(), "cuMemAlloc_v2"); }},
    {"guest.dlsym.other", 0, [] { return of_dlsym(RTLD_DEFAULT, "malloc"); }},
};

size_t resident() {
  size_t bytes = 0;
  char line[256];
  FILE* f = fopen("/proc/self/smaps_rollup", "r");
  while (f != nullptr && fgets(line, sizeof line, f) != nullptr)
    if (sscanf(line, "Rss: %zu kB", &bytes) == 1) break;
  if (f != nullptr) fclose(f);
  return bytes * 1024;
}

// Prints the resident bytes with nothing allocated, with `live` allocations, and when all are freed again.
int memory_probe(size_t live) {
  begin();
  auto* allocate = CU(cuMemAlloc_v2, false);
  auto* release = CU(cuMemFree_v2, false);
  std::vector<CUdeviceptr> pointers(live);
  const size_t empty = resident();
  for (CUdeviceptr& p : pointers) must(allocate(&p, 512));
  const size_t full = resident();
  for (CUdeviceptr p : pointers) must(release(p));
  printf("%zu %zu %zu\n", empty, full, resident());
  return 0;
}

int image_probe(const InImage& probe) {
  begin();
  const Turns t = probe.measure();
  for (size_t i = 0; i < t.native.size(); ++i) printf("%.3f %.3f\n", t.native[i], t.added[i]);
  return 0;
}

class Table {
 public:
  // `peer` has the overhead of another interposer; empty if none was given.
  void row(const std::string& name, const std::vector<double>& values, const std::vector<double>& native,
           const char* unit, double goal, const std::vector<double>& peer = {}) {
    std::vector<double> v = values;
    std::ranges::sort(v);
    // The spread covers the middle half only: the rest contains the load of the machine's other users.
    const double value = v[v.size() / 2], spread = v[v.size() * 3 / 4] - v[v.size() / 4];
    printf(
        "%s\n {\"name\": \"%s\", \"value\": %.2f, \"unit\": \"%s\", \"goal\": %s, \"better\": \"lower\", "
        "\"native\": %.2f, \"spread\": %.3f, \"where\": \"stand-in driver\"",
        rows_++ == 0 ? "[" : ",", name.c_str(), value, unit, goal > 0 ? std::to_string(goal).c_str() : "null",
        median(native), value > 0 ? spread / value : 0);
    if (!peer.empty()) printf(", \"peer\": %.2f", median(peer));
    printf("}");
  }
  ~Table() { printf("\n]\n"); }

 private:
  int rows_ = 0;
};

double parsed(std::string& line) {
  size_t end = 0;
  const double value = std::stod(line, &end);
  line.erase(0, end);
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc == 3 ? argv[1] : "";
  if (verb == "--image") return image_probe(in_image[std::stoul(argv[2])]);
  if (verb == "--memory") return memory_probe(std::stoul(argv[2]));
  if (verb == "--attach") {  // Started by benchmarks/guest.py, in a slice of the real agent.
    auto* init = CU(cuInit, false);
    const double from = now_ns();
    must(init(0));
    printf("%.1f\n", (now_ns() - from) / 1e3);
    return 0;
  }
  carve::test::Agent agent({{std::vector<uint8_t>(16, 1), 8ull << 30, 256 << 20}});
  const std::string libraries = std::string("LD_LIBRARY_PATH=") + STANDIN_DIRECTORY;
  const std::vector<std::string> plain = {libraries};
  const std::vector<std::string> hooked = {libraries, std::string("LD_PRELOAD=") + PRELOAD,
                                           "CARVE_SOCKET=" + agent.socket()};
  // CARVE_BENCH_PEER=LIBRARY names another interposer to preload and measure in the same run. Its other
  // settings come from the environment. A figure for which it takes longer than two minutes is left out.
  const char* const peer = getenv("CARVE_BENCH_PEER");
  const char* const path = getenv("LD_LIBRARY_PATH");
  std::vector<std::string> inherited = {libraries + (path != nullptr ? std::string(":") + path : "")};
  for (char** e = environ; *e != nullptr; ++e)
    if (!std::string_view(*e).starts_with("LD_LIBRARY_PATH=")) inherited.push_back(*e);
  const auto measured = [&](std::vector<std::string> command, const std::vector<std::string>& environment) {
    Turns t;
    Child child(std::move(command), environment);
    for (std::string line = child.line(); !line.empty() && isdigit(line[0]); line = child.line()) {
      t.native.push_back(parsed(line));
      t.added.push_back(parsed(line));
    }
    return t;
  };
  Table table;
  for (size_t i = 0; i < std::size(in_image); ++i) {
    agent.pages.heartbeat->monotonic_ns = UINT64_MAX;  // The agent is alive.
    agent.pages.control->devices[0].fence_interval_ns = 200'000;
    agent.pages.control->devices[0].lease = in_image[i].lease;
    const Turns t = measured({argv[0], "--image", std::to_string(i)}, hooked);
    if (t.native.size() != turns) return 1;
    Turns theirs;
    if (peer != nullptr)
      theirs = measured({"/usr/bin/env", std::string("LD_PRELOAD=") + peer, "timeout", "-s", "KILL", "120",
                         argv[0], "--image", std::to_string(i)},
                        inherited);
    table.row(in_image[i].name, t.added, t.native, "ns added", in_image[i].goal, theirs.added);
  }

  // Processes, alternately with and without the library, from the call that starts a process until it has
  // been waited for.
  std::vector<double> alone, added;
  for (int i = 0; i < 301; ++i) {
    const auto took = [](const std::vector<std::string>& environment) {
      const double from = now_ns();
      Child child({"/bin/true"}, environment);
      child.line();  // Waits for its end.
      return (now_ns() - from) / 1e3;
    };
    alone.push_back(took(plain));
    added.push_back(took(hooked) - alone.back());
  }
  table.row("guest.process_without_cuda", added, alone, "us added", 100);

  constexpr size_t live = 1'000'000;
  std::vector<double> empty[2], each[2], left[2];
  for (int i = 0; i < 5; ++i) {
    for (const int side : {0, 1}) {
      Child child({argv[0], "--memory", std::to_string(live)}, side == 0 ? plain : hooked);
      std::string line = child.line();
      const double zero = parsed(line), full = parsed(line), after = parsed(line);
      empty[side].push_back(zero / 1024);
      each[side].push_back((full - zero) / live);
      left[side].push_back((after - zero) / 1024);
    }
    for (auto* both : {empty, each, left}) both[1].back() -= both[0].back();
  }
  table.row("guest.rss", empty[1], empty[0], "KiB added", 1024);
  table.row("guest.rss.per_live", each[1], each[0], "B each", 100);
  table.row("guest.rss.after_free", left[1], left[0], "KiB added", 1024);
  return 0;
}

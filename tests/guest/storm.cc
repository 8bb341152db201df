// Launches in every way at the same time: threads with several streams each, graphs, captures, streams that
// are created and destroyed, copies, waits of all kinds, and forks in between. Prints "begun" after its first
// launch and "ok N" with the number of kernels at the end. If the driver rejects a call, prints a message and
// exits with status 1.
//
//   storm THREADS MILLISECONDS [fork]
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "abi/cuda.h"

namespace {

// The simulator uses the first argument of a kernel as its length in ns.
constexpr const char* code = R"(
.version 6.0
.target sm_50
.address_size 64
.visible .entry storm(.param .u64 nanoseconds)
{
  ret;
}
)";

template <class F>
F* entry(F*, const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  void* found = library != nullptr ? dlsym(library, name) : nullptr;
  if (found == nullptr) {
    fprintf(stderr, "no %s\n", name);
    _exit(1);
  }
  return reinterpret_cast<F*>(found);
}
#define CU(name) entry(static_cast<decltype(&name)>(nullptr), #name)

void must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "%s: %d\n", what, result);
  _exit(1);
}

CUcontext context;
CUfunction kernel;
std::atomic<uint64_t> kernels = 0;
// For calls that a capture forbids to all threads (CUDA driver API, "Stream Management"); they are never made
// during a capture.
std::shared_mutex capturing;
std::chrono::steady_clock::time_point until;

void launch(CUstream stream, uint64_t ns) {
  void* arguments[] = {&ns};
  // Length and shape belong together, because the library identifies a known kernel by its shape.
  must(CU(cuLaunchKernel)(kernel, static_cast<unsigned>(ns / 1000 + 1), 1, 1, 64, 1, 1, 0, stream, arguments,
                          nullptr),
       "cuLaunchKernel");
  if (kernels++ == 0) {
    puts("begun");
    fflush(stdout);
  }
}

CUgraphExec captured(CUstream stream) {
  const std::unique_lock alone(capturing);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  must(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "cuStreamBeginCapture");
  for (int i = 0; i < 5; ++i) launch(stream, 10'000);
  must(CU(cuStreamEndCapture)(stream, &graph), "cuStreamEndCapture");
  must(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0), "cuGraphInstantiate");
  must(CU(cuGraphDestroy)(graph), "cuGraphDestroy");
  return exec;
}

void work(unsigned seed) {
  must(CU(cuCtxSetCurrent)(context), "cuCtxSetCurrent");
  std::minstd_rand random(seed + 1);
  CUstream streams[4] = {};
  for (CUstream& s : streams) must(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  CUgraphExec graph = captured(streams[0]);
  CUdeviceptr memory = 0;
  must(CU(cuMemAlloc_v2)(&memory, 4 << 20), "cuMemAlloc");
  char back[512];
  while (std::chrono::steady_clock::now() < until) {
    std::shared_lock allowed(capturing, std::defer_lock);
    CUstream& s = streams[random() % 4];
    switch (random() % 16) {
      case 0: must(CU(cuStreamSynchronize)(s), "cuStreamSynchronize"); break;
      case 1: must(CU(cuGraphLaunch)(graph, s), "cuGraphLaunch"); break;
      case 2:
        must(CU(cuStreamDestroy_v2)(s), "cuStreamDestroy");
        must(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
        break;
      case 3: must(CU(cuMemsetD8Async)(memory, 1, 4 << 20, s), "cuMemsetD8Async"); break;
      case 4:
        allowed.lock();
        must(CU(cuMemcpyDtoH_v2)(back, memory, sizeof back), "cuMemcpyDtoH");
        break;
      case 5:
        allowed.lock();
        must(CU(cuCtxPushCurrent_v2)(context), "cuCtxPushCurrent");
        launch(nullptr, 5'000);
        must(CU(cuCtxPopCurrent_v2)(nullptr), "cuCtxPopCurrent");
        break;
      case 6:
        allowed.lock();
        must(CU(cuCtxSynchronize)(), "cuCtxSynchronize");
        break;
      case 7:
        must(CU(cuStreamSynchronize)(s), "cuStreamSynchronize");
        must(CU(cuGraphExecDestroy)(graph), "cuGraphExecDestroy");
        graph = captured(s);
        break;
      default: launch(s, 1'000 << random() % 8);
    }
  }
  must(CU(cuGraphExecDestroy)(graph), "cuGraphExecDestroy");
  for (CUstream s : streams) must(CU(cuStreamDestroy_v2)(s), "cuStreamDestroy");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const unsigned threads = static_cast<unsigned>(atoi(argv[1]));
  until = std::chrono::steady_clock::now() + std::chrono::milliseconds(atoi(argv[2]));
  must(CU(cuInit)(0), "cuInit");
  CUmodule module = nullptr;
  must(CU(cuCtxCreate_v2)(&context, 0, 0), "cuCtxCreate");
  must(CU(cuModuleLoadData)(&module, code), "cuModuleLoadData");
  must(CU(cuModuleGetFunction)(&kernel, module, "storm"), "cuModuleGetFunction");
  std::vector<std::thread> running;
  for (unsigned i = 0; i < threads; ++i) running.emplace_back(work, i);
  // A child has no driver but has a copy of this state. It launches, is rejected, and must not change the
  // parent's state.
  for (int forks = 0; argc > 3 && std::chrono::steady_clock::now() < until; ++forks) {
    const pid_t child = fork();
    if (child == 0) {
      uint64_t ns = 1000;
      void* arguments[] = {&ns};
      for (int i = 0; i < 40; ++i)
        CU(cuLaunchKernel)(kernel, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr);
      _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
      fprintf(stderr, "child %d: status %d\n", forks, status);
      _exit(1);
    }
  }
  for (std::thread& t : running) t.join();
  must(CU(cuCtxSynchronize)(), "cuCtxSynchronize");
  printf("ok %lu\n", kernels.load());
  return 0;
}

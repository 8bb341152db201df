// Measures the cost of calls on this driver. To get the cost of the hooks, run it alternately in a slice and
// outside of slices, and subtract.
//
//   overhead [ROUNDS]    prints JSON: nanoseconds per call, the median of ROUNDS (9) batches of each
#include <algorithm>
#include <chrono>
#include <vector>

#include "gpu/driver.h"

using namespace carve::gpu;

namespace {

constexpr const char kernel_text[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nothing(.param .u64 p) { ret; }\n";

template <class Call>
double cost(int rounds, int calls, Call call) {
  std::vector<double> took;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    took.push_back(
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / calls);
    MUST(CU(cuCtxSynchronize)());  // The launches must not fill the queue of the next round.
  }
  std::nth_element(took.begin(), took.begin() + rounds / 2, took.end());
  return took[static_cast<size_t>(rounds / 2)];
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, atoi(argv[1])) : 9;
  const auto start = std::chrono::steady_clock::now();
  MUST(CU(cuInit)(0));
  const double init =
      std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
  CUcontext context = nullptr;
  MUST(CU(cuCtxCreate_v2)(&context, 0, 0));
  CUmodule module = nullptr;
  CUfunction nothing = nullptr;
  MUST(CU(cuModuleLoadData)(&module, kernel_text));
  MUST(CU(cuModuleGetFunction)(&nothing, module, "nothing"));
  uint64_t argument = 0;
  void* arguments[] = {&argument};
  const CUlaunchConfig config = {
      .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1};
  // Each entry is looked up and called once before its measurement, so the cost of dlsym is not included.
  const auto launch = CU(cuLaunchKernel);
  const auto launch_ex = CU(cuLaunchKernelEx);
  const auto allocate = CU(cuMemAlloc_v2);
  const auto release = CU(cuMemFree_v2);
  const auto allocate_async = CU(cuMemAllocAsync);
  const auto release_async = CU(cuMemFreeAsync);
  const auto info = CU(cuMemGetInfo_v2);
  const auto lookup = CU(cuGetProcAddress_v2);
  CUdeviceptr p = 0;
  size_t free = 0, total = 0;
  void* found = nullptr;
  CUdriverProcAddressQueryResult why{};
  const auto one = [&] { MUST(launch(nothing, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr)); };
  one();
  printf("{\"init\": %.0f, ", init);
  printf("\"launch\": %.1f, ", cost(rounds, 500, one));
  printf("\"launch_ex\": %.1f, ",
         cost(rounds, 500, [&] { MUST(launch_ex(&config, nothing, arguments, nullptr)); }));
  printf("\"alloc_free_4k\": %.1f, ", cost(rounds, 500, [&] {
           MUST(allocate(&p, 4096));
           MUST(release(p));
         }));
  printf("\"alloc_free_32m\": %.1f, ", cost(rounds, 30, [&] {
           MUST(allocate(&p, 32 << 20));
           MUST(release(p));
         }));
  printf("\"alloc_free_async\": %.1f, ", cost(rounds, 500, [&] {
           MUST(allocate_async(&p, 1 << 20, nullptr));
           MUST(release_async(p, nullptr));
         }));
  printf("\"mem_get_info\": %.1f, ", cost(rounds, 500, [&] { MUST(info(&free, &total)); }));
  printf("\"get_proc_address\": %.1f}\n",
         cost(rounds, 500, [&] { MUST(lookup("cuMemAlloc", &found, 12000, 0, &why)); }));
  return 0;
}

// What a hook costs: nanoseconds that the preload adds to a call of the driver, over a stand-in whose calls
// take 3 ns, so that nothing hides. The program runs itself with and without the preload in turns, nine
// times each; a figure is the median of the differences. An agent in miniature grants it one device.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <string>
#include <vector>

#include "abi/cuda.h"
#include "tests/tenant/agent.h"
#include "tests/tenant/spawn.h"

namespace {

struct Case {
  const char* name;
  double goal;  // Added ns; 0: none claimed.
  double (*measure)();
};

template <class F>
F* entry(F*, const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  void* found = library != nullptr ? dlsym(library, name) : nullptr;
  if (found == nullptr) abort();
  return reinterpret_cast<F*>(found);
}
#define CU(name) entry(static_cast<decltype(&name)>(nullptr), #name)

void must(CUresult result) {
  if (result != CUDA_SUCCESS) abort();
}

template <class F>
double ns_each(int times, F act) {
  for (int i = 0; i < times / 10; ++i) act();
  timespec from, to;
  clock_gettime(CLOCK_MONOTONIC, &from);
  for (int i = 0; i < times; ++i) act();
  clock_gettime(CLOCK_MONOTONIC, &to);
  return (static_cast<double>(to.tv_sec - from.tv_sec) * 1e9 +
          static_cast<double>(to.tv_nsec - from.tv_nsec)) /
         times;
}

double allocate_and_free(int live) {
  auto* allocate = CU(cuMemAlloc_v2);
  auto* release = CU(cuMemFree_v2);
  CUdeviceptr p = 0;
  for (int i = 0; i < live; ++i) must(allocate(&p, 512));
  return ns_each(1'000'000, [&] {
    must(allocate(&p, 512));
    must(release(p));
  });
}

double address(const char* name) {
  auto* ask = CU(cuGetProcAddress_v2);
  return ns_each(1'000'000, [&] {
    void* found = nullptr;
    must(ask(name, &found, 12000, 0, nullptr));
  });
}

const Case cases[] = {
    {"hook.alloc_free", 150, [] { return allocate_and_free(0); }},
    {"hook.alloc_free_10k_live", 150, [] { return allocate_and_free(10'000); }},
    {"hook.mem_get_info", 50,
     [] {
       auto* info = CU(cuMemGetInfo_v2);
       size_t free_bytes = 0, total = 0;
       return ns_each(2'000'000, [&] { must(info(&free_bytes, &total)); });
     }},
    {"hook.launch_open", 5,
     [] {
       auto* launch = CU(cuLaunchKernel);
       return ns_each(5'000'000,
                      [&] { must(launch(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr)); });
     }},
    {"hook.get_proc_address_hooked", 0, [] { return address("cuMemAlloc"); }},
    {"hook.get_proc_address_other", 0, [] { return address("cuCtxSetCurrent"); }},
    {"hook.dlsym_libc", 0,
     [] {
       return ns_each(500'000, [] {
         if (dlsym(RTLD_DEFAULT, "malloc") == nullptr) abort();
       });
     }},
};

int probe(size_t index) {
  must(CU(cuInit)(0));
  CUcontext context = nullptr;
  must(CU(cuDevicePrimaryCtxRetain)(&context, 0));
  must(CU(cuCtxSetCurrent)(context));
  printf("%.3f\n", cases[index].measure());
  return 0;
}

double median(std::vector<double> v) {
  std::ranges::nth_element(v, v.begin() + static_cast<ptrdiff_t>(v.size() / 2));
  return v[v.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--probe") return probe(std::stoul(argv[2]));
  carve::test::Agent agent({{std::vector<uint8_t>(16, 1), 8ull << 30, 256 << 20}});
  const std::string libraries = std::string("LD_LIBRARY_PATH=") + STANDIN_DIRECTORY;
  const std::vector<std::string> plain = {libraries};
  const std::vector<std::string> hooked = {libraries, std::string("LD_PRELOAD=") + PRELOAD,
                                           "CARVE_SOCKET=" + agent.socket()};
  bool first = true;
  printf("[");
  for (size_t i = 0; i < std::size(cases); ++i) {
    std::vector<double> without, added;
    for (int turn = 0; turn < 9; ++turn) {
      for (const auto* environment : {&plain, &hooked}) {
        carve::test::Child child({argv[0], "--probe", std::to_string(i)}, *environment);
        (environment == &plain ? without : added).push_back(std::stod(child.line()));
      }
      added.back() -= without.back();
    }
    const double value = median(added);
    const double spread =
        value > 0 ? (*std::ranges::max_element(added) - *std::ranges::min_element(added)) / value : 0;
    printf(
        "%s\n {\"name\": \"%s\", \"value\": %.2f, \"unit\": \"ns added\", \"goal\": %s, \"better\": "
        "\"lower\", "
        "\"native\": %.2f, \"spread\": %.3f, \"where\": \"stand-in driver\"}",
        first ? "" : ",", cases[i].name, value,
        cases[i].goal > 0 ? std::to_string(cases[i].goal).c_str() : "null", median(without), spread);
    first = false;
  }
  printf("\n]\n");
  return 0;
}

// Launches kernels without waiting, and records when the device began and ended each, by the device's own
// clock, which all programs on the device share. So the parts of the device that several slices had can be
// determined from the device alone.
//
//   spans MICROSECONDS SECONDS FILE    FILE gets a line "BEGIN END" per kernel, in ns of CLOCK_MONOTONIC
//
// Prints the number of kernels and the length of one as JSON. A kernel is one block that computes, and makes
// no progress while another program has the device.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "gpu/driver.h"

using namespace carve::gpu;

namespace {

constexpr const char kernel_text[] = R"(
.version 6.0
.target sm_50
.address_size 64
.visible .entry span(.param .u64 out, .param .u64 count) {
  .reg .pred %end, %other;
  .reg .u32 %thread;
  .reg .u64 %p, %left, %value, %begin, %done;
  mov.u64 %begin, %globaltimer;
  ld.param.u64 %p, [out];
  cvta.to.global.u64 %p, %p;
  ld.param.u64 %left, [count];
  mov.u64 %value, 1;
turn:
  setp.eq.u64 %end, %left, 0;
  @%end bra over;
  mad.lo.u64 %value, %value, 6364136223846793005, 1442695040888963407;
  sub.u64 %left, %left, 1;
  bra turn;
over:
  mov.u32 %thread, %tid.x;
  setp.ne.u32 %other, %thread, 0;
  @%other bra leave;
  mov.u64 %done, %globaltimer;
  st.global.u64 [%p], %begin;
  st.global.u64 [%p+8], %done;
  st.global.u64 [%p+16], %value;
leave:
  ret;
}
)";

constexpr size_t max_kernels = 1 << 18;

struct Span {
  int64_t begin, end;
  uint64_t value;  // Keeps the compiler from removing the computation.
};

int64_t now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: spans MICROSECONDS SECONDS FILE\n");
    return 2;
  }
  begin();
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr spans = 0;
  MUST(CU(cuModuleLoadData)(&module, kernel_text));
  MUST(CU(cuModuleGetFunction)(&function, module, "span"));
  MUST(CU(cuMemAlloc_v2)(&spans, max_kernels * sizeof(Span)));
  MUST(CU(cuMemsetD8_v2)(spans, 0, max_kernels * sizeof(Span)));
  const auto launch = [&, call = CU(cuLaunchKernel)](size_t place, uint64_t count) {
    CUdeviceptr at = spans + place * sizeof(Span);
    void* arguments[] = {&at, &count};
    MUST(call(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
  };
  const auto run = [&](uint64_t count) {
    Span span{};
    launch(0, count);
    MUST(CU(cuCtxSynchronize)());
    MUST(CU(cuMemcpyDtoH_v2)(&span, spans, sizeof span));
    return span;
  };
  // Measures the length of a turn and the offset of the two clocks, as the best of several tries.
  double turn = INFINITY;
  int64_t closest = INT64_MAX, offset = 0;
  for (int i = 0; i < 10; ++i) {
    const Span few = run(20'000), many = run(120'000);
    turn = std::min(turn, static_cast<double>((many.end - many.begin) - (few.end - few.begin)) / 100'000);
    const int64_t before = now();
    const Span one = run(1);
    const int64_t after = now();
    if (after - before < closest) closest = after - before, offset = (before + after) / 2 - one.end;
  }
  if (!(turn > 0)) {
    fprintf(stderr, "the device does not execute kernels: it is simulated\n");
    return 77;
  }
  const auto count = static_cast<uint64_t>(atof(argv[1]) * 1000 / turn);
  size_t launched = 0;
  for (const int64_t end = now() + static_cast<int64_t>(atof(argv[2]) * 1e9);
       now() < end && launched < max_kernels;)
    launch(launched++, count);
  MUST(CU(cuCtxSynchronize)());
  std::vector<Span> all(launched);
  MUST(CU(cuMemcpyDtoH_v2)(all.data(), spans, launched * sizeof(Span)));
  FILE* file = fopen(argv[3], "w");
  if (file == nullptr) {
    perror(argv[3]);
    return 1;
  }
  std::vector<int64_t> lengths;
  for (const Span& span : all) {
    fprintf(file, "%lld %lld\n", static_cast<long long>(span.begin + offset),
            static_cast<long long>(span.end + offset));
    lengths.push_back(span.end - span.begin);
  }
  if (fclose(file) != 0) return 1;
  std::nth_element(lengths.begin(), lengths.begin() + static_cast<ptrdiff_t>(launched / 2), lengths.end());
  printf("{\"kernels\": %zu, \"length_ns\": %lld, \"clocks_within_ns\": %lld}\n", launched,
         static_cast<long long>(lengths[launched / 2]), static_cast<long long>(closest));
}

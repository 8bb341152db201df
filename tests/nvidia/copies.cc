// Copies bytes through the responder's engines with NVIDIA's libcuda, and prints "NAME right" or "NAME wrong"
// for each way.
//   nvidia_copies
// The exit status is 1 if a call failed.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "abi/cuda.h"

namespace {

constexpr size_t MiB = 1 << 20;
constexpr unsigned non_blocking = 1, attach_global = 1, registered_portable = 1;

template <class F>
F* entry(F*, const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  void* const found = library != nullptr ? dlsym(library, name) : nullptr;
  if (found != nullptr) return reinterpret_cast<F*>(found);
  fprintf(stderr, "no %s\n", name);
  exit(1);
}
#define CU(name) entry(static_cast<decltype(&name)>(nullptr), #name)

void must_at(CUresult result, const char* call, int line) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "line %d: %s: error %d\n", line, call, static_cast<int>(result));
  exit(1);
}
#define MUST(call) must_at(call, #call, __LINE__)

using Bytes = std::vector<unsigned char>;

// Returns bytes of which no two lines are equal.
Bytes pattern(size_t size, unsigned seed) {
  Bytes out(size);
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<unsigned char>((i * 7 + i / 251 + seed) & 0xff);
  return out;
}

CUstream stream, other;

CUdeviceptr allocate(size_t bytes) {
  CUdeviceptr at = 0;
  MUST(CU(cuMemAlloc_v2)(&at, bytes));
  return at;
}

Bytes read_back(CUdeviceptr at, size_t size) {
  Bytes out(size);
  MUST(CU(cuMemcpyDtoH_v2)(out.data(), at, size));
  return out;
}

bool to_device_and_back(size_t size) {
  const Bytes sent = pattern(size, 1);
  const CUdeviceptr at = allocate(size);
  MUST(CU(cuMemcpyHtoD_v2)(at, sent.data(), size));
  const bool is_right = read_back(at, size) == sent;
  MUST(CU(cuMemFree_v2)(at));
  return is_right;
}

bool within_the_device() {
  const Bytes sent = pattern(3 * MiB, 2);
  const CUdeviceptr from = allocate(sent.size()), to = allocate(sent.size());
  MUST(CU(cuMemcpyHtoD_v2)(from, sent.data(), sent.size()));
  MUST(CU(cuMemcpyDtoD_v2)(to, from, sent.size()));
  return read_back(to, sent.size()) == sent;
}

bool asynchronously() {
  const Bytes sent = pattern(MiB, 3);
  Bytes received(MiB);
  const CUdeviceptr at = allocate(MiB);
  MUST(CU(cuMemcpyHtoDAsync_v2)(at, sent.data(), MiB, stream));
  MUST(CU(cuMemcpyDtoHAsync_v2)(received.data(), at, MiB, stream));
  MUST(CU(cuStreamSynchronize)(stream));
  return received == sent;
}

bool from_registered_pages() {
  void* pages = nullptr;
  if (posix_memalign(&pages, 4096, MiB) != 0) return false;
  const Bytes sent = pattern(MiB, 4);
  memcpy(pages, sent.data(), MiB);
  MUST(CU(cuMemHostRegister_v2)(pages, MiB, registered_portable));
  const CUdeviceptr at = allocate(MiB);
  MUST(CU(cuMemcpyHtoDAsync_v2)(at, pages, MiB, stream));
  MUST(CU(cuStreamSynchronize)(stream));
  const bool is_right = read_back(at, MiB) == sent;
  MUST(CU(cuMemHostUnregister)(pages));
  free(pages);
  return is_right;
}

bool in_two_dimensions() {
  constexpr size_t width = 300, height = 70;
  const Bytes sent = pattern(width * height, 5);
  size_t pitch = 0;
  CUdeviceptr at = 0;
  MUST(CU(cuMemAllocPitch_v2)(&at, &pitch, width, height, 4));
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = sent.data();
  copy.srcPitch = width;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = at;
  copy.dstPitch = pitch;
  copy.WidthInBytes = width;
  copy.Height = height;
  MUST(CU(cuMemcpy2D_v2)(&copy));
  const Bytes all = read_back(at, pitch * height);
  for (size_t y = 0; y < height; ++y)
    if (!std::equal(&sent[y * width], &sent[y * width] + width, &all[y * pitch])) return false;
  return pitch > width;
}

bool through_an_array() {
  constexpr size_t width = 512, height = 64;
  const Bytes sent = pattern(width * height, 6);
  Bytes received(sent.size());
  const CUDA_ARRAY_DESCRIPTOR description = {width / 4, height, CU_AD_FORMAT_FLOAT, 1};
  CUarray array = nullptr;
  MUST(CU(cuArrayCreate_v2)(&array, &description));
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = sent.data();
  copy.srcPitch = width;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = width;
  copy.Height = height;
  MUST(CU(cuMemcpy2D_v2)(&copy));
  CUDA_MEMCPY2D back = {};
  back.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  back.srcArray = array;
  back.dstMemoryType = CU_MEMORYTYPE_HOST;
  back.dstHost = received.data();
  back.dstPitch = width;
  back.WidthInBytes = width;
  back.Height = height;
  MUST(CU(cuMemcpy2D_v2)(&back));
  MUST(CU(cuArrayDestroy)(array));
  return received == sent;
}

bool filled_by_words() {
  const CUdeviceptr at = allocate(MiB);
  MUST(CU(cuMemsetD32Async)(at, 0x12345678, 1000, stream));
  MUST(CU(cuStreamSynchronize)(stream));
  const Bytes found = read_back(at, 4000);
  const unsigned char word[] = {0x78, 0x56, 0x34, 0x12};
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i] != word[i % 4]) return false;
  return true;
}

// libcuda fills small areas with the copy engine and large ones with its own kernels.
bool filled_by_bytes() {
  constexpr size_t sizes[] = {1, 100, 65536, MiB + 5};
  const CUdeviceptr at = allocate(3 * MiB);
  for (const size_t size : sizes)
    for (size_t start = 0; start < 4; ++start) {
      MUST(CU(cuMemsetD8_v2)(at, 0, 2 * MiB));
      MUST(CU(cuMemsetD8_v2)(at + start, 0x5a, size));
      const Bytes found = read_back(at, 2 * MiB);
      if (std::count(found.begin(), found.end(), 0x5a) != static_cast<ptrdiff_t>(size)) return false;
      if (found[start] != 0x5a || found[start + size - 1] != 0x5a) return false;
    }
  return true;
}

bool filled_in_rows() {
  constexpr size_t pitch = 512, width = 100, height = 50;
  const CUdeviceptr at = allocate(MiB);
  MUST(CU(cuMemsetD8_v2)(at, 0, MiB));
  MUST(CU(cuMemsetD2D8_v2)(at, pitch, 0x77, width, height));
  const Bytes found = read_back(at, pitch * height);
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i] != (i % pitch < width ? 0x77 : 0)) return false;
  return true;
}

bool within_the_device_at_any_alignment() {
  constexpr size_t sizes[] = {1, 16, 100, 4096, MiB + 1};
  const Bytes sent = pattern(3 * MiB, 11);
  const CUdeviceptr from = allocate(sent.size()), to = allocate(sent.size());
  MUST(CU(cuMemcpyHtoD_v2)(from, sent.data(), sent.size()));
  for (const size_t size : sizes)
    for (size_t shift = 0; shift < 4; ++shift) {
      MUST(CU(cuMemsetD8_v2)(to, 0, 2 * MiB));
      MUST(CU(cuMemcpyDtoD_v2)(to + shift, from + 3 - shift, size));
      const Bytes found = read_back(to, 2 * MiB);
      if (!std::equal(&sent[3 - shift], &sent[3 - shift] + size, &found[shift])) return false;
      if (found[shift + size] != 0) return false;
    }
  return true;
}

// Events in two streams: the second stream waits for the first, and times must not decrease.
bool in_the_order_of_events() {
  CUevent begun = nullptr, done = nullptr;
  MUST(CU(cuEventCreate)(&begun, 0));
  MUST(CU(cuEventCreate)(&done, 0));
  const Bytes sent = pattern(8 * MiB, 7);
  const CUdeviceptr from = allocate(sent.size()), to = allocate(sent.size());
  MUST(CU(cuEventRecord)(begun, stream));
  MUST(CU(cuMemcpyHtoDAsync_v2)(from, sent.data(), sent.size(), stream));
  MUST(CU(cuEventRecord)(done, stream));
  MUST(CU(cuStreamWaitEvent)(other, done, 0));
  MUST(CU(cuMemcpyDtoDAsync_v2)(to, from, sent.size(), other));
  MUST(CU(cuStreamSynchronize)(other));
  float milliseconds = -1;
  MUST(CU(cuEventQuery)(done));
  MUST(CU(cuEventElapsedTime)(&milliseconds, begun, done));
  return milliseconds >= 0 && read_back(to, sent.size()) == sent;
}

void set_flag(void* flag) { *static_cast<int*>(flag) = 1; }

bool with_a_host_function() {
  int flag = 0;
  MUST(CU(cuLaunchHostFunc)(stream, set_flag, &flag));
  MUST(CU(cuStreamSynchronize)(stream));
  return flag == 1;
}

// A graph that copies to the device and to another place on it, launched twice with different bytes.
bool by_a_graph() {
  Bytes sent = pattern(MiB, 8);
  const CUdeviceptr first = allocate(MiB), second = allocate(MiB);
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  MUST(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  MUST(CU(cuMemcpyHtoDAsync_v2)(first, sent.data(), MiB, stream));
  MUST(CU(cuMemcpyDtoDAsync_v2)(second, first, MiB, stream));
  MUST(CU(cuStreamEndCapture)(stream, &graph));
  MUST(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0));
  for (unsigned i = 0; i < 2; ++i) {
    const Bytes next = pattern(MiB, 8 + i);
    memcpy(sent.data(), next.data(), MiB);
    MUST(CU(cuGraphLaunch)(executable, stream));
    MUST(CU(cuStreamSynchronize)(stream));
    if (read_back(second, MiB) != next) return false;
  }
  MUST(CU(cuGraphExecDestroy)(executable));
  MUST(CU(cuGraphDestroy)(graph));
  return true;
}

bool from_managed_memory() {
  const Bytes sent = pattern(MiB, 9);
  CUdeviceptr managed = 0;
  MUST(CU(cuMemAllocManaged)(&managed, MiB, attach_global));
  memcpy(reinterpret_cast<void*>(managed), sent.data(), MiB);
  const CUdeviceptr at = allocate(MiB);
  MUST(CU(cuMemcpyDtoD_v2)(at, managed, MiB));
  const bool is_right = read_back(at, MiB) == sent;
  MUST(CU(cuMemFree_v2)(managed));
  return is_right;
}

bool from_a_pool() {
  const Bytes sent = pattern(MiB, 10);
  Bytes received(MiB);
  CUdeviceptr at = 0;
  MUST(CU(cuMemAllocAsync)(&at, MiB, stream));
  MUST(CU(cuMemcpyHtoDAsync_v2)(at, sent.data(), MiB, stream));
  MUST(CU(cuMemcpyDtoHAsync_v2)(received.data(), at, MiB, stream));
  MUST(CU(cuMemFreeAsync)(at, stream));
  MUST(CU(cuStreamSynchronize)(stream));
  return received == sent;
}

struct Way {
  const char* name;
  bool (*is_right)();
};
constexpr Way ways[] = {
    {"small", [] { return to_device_and_back(100); }},
    {"large", [] { return to_device_and_back(5 * MiB + 3); }},
    {"device", within_the_device},
    {"async", asynchronously},
    {"registered", from_registered_pages},
    {"2d", in_two_dimensions},
    {"array", through_an_array},
    {"words", filled_by_words},
    {"bytes", filled_by_bytes},
    {"rows", filled_in_rows},
    {"alignments", within_the_device_at_any_alignment},
    {"events", in_the_order_of_events},
    {"host-function", with_a_host_function},
    {"graph", by_a_graph},
    {"managed", from_managed_memory},
    {"pool", from_a_pool},
};

}  // namespace

int main() {
  CUcontext context = nullptr;
  MUST(CU(cuInit)(0));
  MUST(CU(cuCtxCreate_v2)(&context, 0, 0));
  MUST(CU(cuStreamCreate)(&stream, non_blocking));
  MUST(CU(cuStreamCreate)(&other, non_blocking));
  for (const Way& way : ways) {
    printf("%s %s\n", way.name, way.is_right() ? "right" : "wrong");
    fflush(stdout);
  }
  MUST(CU(cuCtxDestroy_v2)(context));
}

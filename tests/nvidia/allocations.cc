// Allocates device memory in each way that Carve charges, with NVIDIA's libcuda and the responder, and
// compares the figures.
//   nvidia_allocations    RESPONDER_REQUESTS names the responder's log of requests to the resource manager
// A line for each step: its name, the bytes of device memory that the driver requested from the resource
// manager, and the bytes that cuMemGetInfo lost; then both again after the step's memory was freed. Managed
// memory counts as requested when it is mapped. In a slice cuMemGetInfo returns Carve's figures, so the loss
// is the charge. The exit status is 1 if a call failed.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <fstream>
#include <string>
#include <vector>

#include "abi/cuda.h"

namespace {

constexpr size_t MiB = 1 << 20;
constexpr unsigned non_blocking = 1, attach_global = 1;  // CU_STREAM_NON_BLOCKING, CU_MEM_ATTACH_GLOBAL.

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

// Returns the bytes of device memory that the resource manager was asked for and that were not returned.
int64_t requested() {
  const char* const path = getenv("RESPONDER_REQUESTS");
  std::ifstream log(path != nullptr ? path : "");
  std::string what, place;
  unsigned device = 0;
  int64_t asked = 0, given = 0, sum = 0;
  while (log >> what >> place >> device >> asked >> given)
    if (place == "video" || place == "managed") sum += what == "alloc" ? given : -given;
  return sum;
}

int64_t charged() {
  size_t free = 0, total = 0;
  MUST(CU(cuMemGetInfo_v2)(&free, &total));
  return static_cast<int64_t>(total - free);
}

CUstream stream;

// What one step allocated.
std::vector<CUdeviceptr> pointers;
std::vector<void*> handles;
CUmemoryPool pool;

void free_linear() {
  for (const CUdeviceptr one : pointers) MUST(CU(cuMemFree_v2)(one));
}

void allocate(size_t bytes, size_t count) {
  for (size_t i = 0; i < count; ++i) MUST(CU(cuMemAlloc_v2)(&pointers.emplace_back(), bytes));
}

void free_async() {
  for (const CUdeviceptr one : pointers) MUST(CU(cuMemFreeAsync)(one, stream));
  MUST(CU(cuStreamSynchronize)(stream));
}

void create_pool() {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  MUST(CU(cuMemPoolCreate)(&pool, &properties));
  MUST(CU(cuMemAllocFromPoolAsync)(&pointers.emplace_back(), 50 * MiB, pool, stream));
}

void destroy_pool() {
  free_async();
  MUST(CU(cuMemPoolDestroy)(pool));
}

CUmemGenericAllocationHandle create() {
  CUmemAllocationProp property = {};
  property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  property.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemGenericAllocationHandle handle = 0;
  MUST(CU(cuMemCreate)(&handle, 6 * MiB, &property, 0));
  return handle;
}

void create_and_map() {
  const CUmemGenericAllocationHandle handle = create();
  CUdeviceptr& at = pointers.emplace_back();
  MUST(CU(cuMemAddressReserve)(&at, 6 * MiB, 0, 0, 0));
  MUST(CU(cuMemMap)(at, 6 * MiB, 0, handle, 0));
  MUST(CU(cuMemRelease)(handle));
}

void unmap() {
  MUST(CU(cuMemUnmap)(pointers[0], 6 * MiB));
  MUST(CU(cuMemAddressFree)(pointers[0], 6 * MiB));
}

void create_array(const CUDA_ARRAY3D_DESCRIPTOR& description) {
  CUarray made = nullptr;
  MUST(CU(cuArray3DCreate_v2)(&made, &description));
  handles.push_back(made);
}

void destroy_arrays() {
  for (void* const one : handles) MUST(CU(cuArrayDestroy)(static_cast<CUarray>(one)));
}

// Returns a graph with one allocation that no node frees.
CUgraphExec allocation_graph() {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS parameters = {};
  parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  parameters.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  parameters.bytesize = 20 * MiB;
  MUST(CU(cuGraphCreate)(&graph, 0));
  MUST(CU(cuGraphAddMemAllocNode)(&node, graph, nullptr, 0, &parameters));
  MUST(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0));
  MUST(CU(cuGraphDestroy)(graph));
  handles.push_back(executable);
  pointers.push_back(parameters.dptr);
  return executable;
}

void destroy_graph() {
  MUST(CU(cuGraphExecDestroy)(static_cast<CUgraphExec>(handles[0])));
  MUST(CU(cuDeviceGraphMemTrim)(0));
}

struct Step {
  const char* name;
  void (*take)();
  void (*drop)();
};
constexpr Step steps[] = {
    {"cuMemAlloc(2MiB)", [] { allocate(2 * MiB, 1); }, free_linear},
    {"cuMemAlloc(3MiB)", [] { allocate(3 * MiB, 1); }, free_linear},
    {"cuMemAlloc(64MiB)", [] { allocate(64 * MiB, 1); }, free_linear},
    {"cuMemAlloc(512B)", [] { allocate(512, 1); }, free_linear},
    {"cuMemAlloc(512B)*4096", [] { allocate(512, 4096); }, free_linear},
    {"cuMemAlloc(1MiB)*10", [] { allocate(MiB, 10); }, free_linear},
    {"cuMemAllocPitch",
     [] {
       size_t pitch = 0;
       MUST(CU(cuMemAllocPitch_v2)(&pointers.emplace_back(), &pitch, 4000, 1000, 4));
     },
     free_linear},
    {"cuMemAllocManaged",
     [] { MUST(CU(cuMemAllocManaged)(&pointers.emplace_back(), 10 * MiB, attach_global)); }, free_linear},
    {"cuMemAllocAsync", [] { MUST(CU(cuMemAllocAsync)(&pointers.emplace_back(), 10 * MiB, stream)); },
     free_async},
    {"cuMemAllocFromPoolAsync", create_pool, destroy_pool},
    {"cuMemCreate", [] { pointers.push_back(create()); }, [] { MUST(CU(cuMemRelease)(pointers[0])); }},
    {"cuMemMap", create_and_map, unmap},
    {"cuArrayCreate",
     [] {
       const CUDA_ARRAY_DESCRIPTOR description = {3000, 1000, CU_AD_FORMAT_FLOAT, 1};
       CUarray made = nullptr;
       MUST(CU(cuArrayCreate_v2)(&made, &description));
       handles.push_back(made);
     },
     destroy_arrays},
    {"cuArray3DCreate",
     [] {
       create_array({300, 300, 50, CU_AD_FORMAT_FLOAT, 1, 0});
     },
     destroy_arrays},
    {"cuArray3DCreate(layered)",
     [] {
       create_array({700, 700, 7, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED});
     },
     destroy_arrays},
    {"cuMipmappedArrayCreate",
     [] {
       const CUDA_ARRAY3D_DESCRIPTOR description = {2048, 2048, 0, CU_AD_FORMAT_FLOAT, 1, 0};
       CUmipmappedArray made = nullptr;
       MUST(CU(cuMipmappedArrayCreate)(&made, &description, 11));
       handles.push_back(made);
     },
     [] { MUST(CU(cuMipmappedArrayDestroy)(static_cast<CUmipmappedArray>(handles[0]))); }},
    {"cuGraphUpload", [] { MUST(CU(cuGraphUpload)(allocation_graph(), stream)); }, destroy_graph},
    {"cuGraphLaunch", [] { MUST(CU(cuGraphLaunch)(allocation_graph(), stream)); },
     [] {
       free_async();
       destroy_graph();
     }},
};

void run(const Step& step) {
  pointers.clear();
  handles.clear();
  const int64_t requested_before = requested(), charged_before = charged();
  step.take();
  MUST(CU(cuStreamSynchronize)(stream));
  const int64_t requested_by = requested() - requested_before, charged_for = charged() - charged_before;
  step.drop();
  MUST(CU(cuCtxSynchronize)());
  printf("%s %lld %lld %lld %lld\n", step.name, static_cast<long long>(requested_by),
         static_cast<long long>(charged_for), static_cast<long long>(requested() - requested_before),
         static_cast<long long>(charged() - charged_before));
}

}  // namespace

int main() {
  CUcontext context = nullptr;
  MUST(CU(cuInit)(0));
  MUST(CU(cuCtxCreate_v2)(&context, 0, 0));
  printf("cuCtxCreate %lld %lld 0 0\n", static_cast<long long>(requested()),
         static_cast<long long>(charged()));
  MUST(CU(cuStreamCreate)(&stream, non_blocking));
  for (const Step& step : steps) run(step);
  MUST(CU(cuStreamDestroy_v2)(stream));
  MUST(CU(cuCtxDestroy_v2)(context));
  printf("end %lld 0 0 0\n", static_cast<long long>(requested()));
}

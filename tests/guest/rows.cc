// A user's program for each way of allocating device memory (docs/coverage.md). It fills the device until an
// allocation fails, allocates the rest in blocks of 2 MiB, frees everything, and fills it again. It does not
// use Carve.
//
//   guest_rows KIND    prints one line of JSON: the number of blocks of both fills, the errors that ended
//   them,
//                      and the free bytes before each
//   guest_rows         lists the kinds
//
// The exit status is 0 if all is as the driver promises, 1 if a call failed that should not, and 77 if this
// device does not support the kind.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "abi/cuda.h"

namespace {

constexpr size_t MiB = 1 << 20;
constexpr size_t max_pieces = 100'000;

template <class F>
F* entry(F*, const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  void* found = library != nullptr ? dlsym(library, name) : nullptr;
  if (found == nullptr) {
    printf("no %s\n", name);
    exit(77);
  }
  return reinterpret_cast<F*>(found);
}
#define CU(name) entry(static_cast<decltype(&name)>(nullptr), #name)

void must_at(CUresult result, int line) {
  if (result == CUDA_SUCCESS) return;
  printf("line %d: error %d\n", line, static_cast<int>(result));
  exit(result == CUDA_ERROR_NOT_SUPPORTED ? 77 : 1);
}
#define MUST(call) must_at(call, __LINE__)

// A block that a fill allocated. Blocks are freed in reverse order.
struct Piece {
  uint64_t a = 0, b = 0;
};
std::vector<Piece> pieces;
CUstream stream = nullptr;

struct Row {
  const char* name;
  size_t bytes;  // Requested bytes of one block.
  CUresult (*take)(Piece&);
  void (*drop)(const Piece&);
  void (*settle)();  // Called after all blocks were freed; may be null.
};

void free_linear(const Piece& p) { MUST(CU(cuMemFree_v2)(p.a)); }
void free_async(const Piece& p) { MUST(CU(cuMemFreeAsync)(p.a, stream)); }
void synchronize() { MUST(CU(cuStreamSynchronize)(stream)); }

CUmemoryPool own_pool() {
  static CUmemoryPool pool = [] {
    CUmemPoolProps props = {};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemoryPool made = nullptr;
    MUST(CU(cuMemPoolCreate)(&made, &props));
    cuuint64_t all = UINT64_MAX;  // Keeps what is freed, as PyTorch and CuPy do.
    MUST(CU(cuMemPoolSetAttribute)(made, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    return made;
  }();
  return pool;
}

CUmemAllocationProp on_device(CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_NONE) {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.requestedHandleTypes = type;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return prop;
}

CUresult create(Piece& p, size_t bytes, CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_NONE) {
  const CUmemAllocationProp prop = on_device(type);
  CUmemGenericAllocationHandle handle = 0;
  const CUresult result = CU(cuMemCreate)(&handle, bytes, &prop, 0);
  p.a = handle;
  return result;
}

// Releases the handle immediately, so that only the mapping keeps the memory.
CUresult create_and_map(Piece& p) {
  const CUresult result = create(p, 6 * MiB);
  if (result != CUDA_SUCCESS) return result;
  CUdeviceptr at = 0;
  MUST(CU(cuMemAddressReserve)(&at, 6 * MiB, 0, 0, 0));
  MUST(CU(cuMemMap)(at, 6 * MiB, 0, p.a, 0));
  MUST(CU(cuMemRelease)(p.a));
  p.a = at;
  return result;
}

void unmap(const Piece& p) {
  MUST(CU(cuMemUnmap)(p.a, 6 * MiB));
  MUST(CU(cuMemAddressFree)(p.a, 6 * MiB));
}

// Exports the memory, imports it again and releases it, so that only the imported handle keeps it.
CUresult export_and_import(Piece& p) {
  const CUresult result = create(p, 6 * MiB, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  if (result != CUDA_SUCCESS) return result;
  int fd = -1;
  MUST(CU(cuMemExportToShareableHandle)(&fd, p.a, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  CUmemGenericAllocationHandle imported = 0;
  MUST(CU(cuMemImportFromShareableHandle)(&imported, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(fd);
  MUST(CU(cuMemRelease)(p.a));
  p.a = imported;
  return result;
}

// Exports and releases the memory, so that only the descriptor keeps it.
CUresult keep_descriptor(Piece& p) {
  const CUresult result = create(p, 6 * MiB, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  if (result != CUDA_SUCCESS) return result;
  int fd = -1;
  MUST(CU(cuMemExportToShareableHandle)(&fd, p.a, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  MUST(CU(cuMemRelease)(p.a));
  p.a = static_cast<uint64_t>(fd);
  return result;
}

void close_descriptor(const Piece& p) { close(static_cast<int>(p.a)); }

void release(const Piece& p) { MUST(CU(cuMemRelease)(p.a)); }

CUresult array(Piece& p, const CUDA_ARRAY3D_DESCRIPTOR& d) {
  CUarray made = nullptr;
  const CUresult result = CU(cuArray3DCreate_v2)(&made, &d);
  p.a = reinterpret_cast<uint64_t>(made);
  return result;
}

void destroy_array(const Piece& p) { MUST(CU(cuArrayDestroy)(reinterpret_cast<CUarray>(p.a))); }

// Launches a graph with one allocation that no node frees.
CUresult launch_graph(Piece& p) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.bytesize = 20 * MiB;
  MUST(CU(cuGraphCreate)(&graph, 0));
  MUST(CU(cuGraphAddMemAllocNode)(&node, graph, nullptr, 0, &params));
  MUST(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
  const CUresult result = CU(cuGraphLaunch)(exec, stream);
  if (result == CUDA_SUCCESS) {
    p = {params.dptr, reinterpret_cast<uint64_t>(exec)};
  } else {
    MUST(CU(cuGraphExecDestroy)(exec));
  }
  MUST(CU(cuGraphDestroy)(graph));
  return result;
}

// Does the same by capturing cuMemAllocAsync.
CUresult launch_captured(Piece& p) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUdeviceptr pointer = 0;
  cuuint64_t reserved = 0;  // Drivers without this attribute do not allocate in graphs.
  MUST(CU(cuDeviceGetGraphMemAttribute)(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
  MUST(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  MUST(CU(cuMemAllocAsync)(&pointer, 20 * MiB, stream));
  MUST(CU(cuStreamEndCapture)(stream, &graph));
  MUST(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
  const CUresult result = CU(cuGraphLaunch)(exec, stream);
  if (result == CUDA_SUCCESS) {
    p = {pointer, reinterpret_cast<uint64_t>(exec)};
  } else {
    MUST(CU(cuGraphExecDestroy)(exec));
  }
  MUST(CU(cuGraphDestroy)(graph));
  return result;
}

void free_of_graph(const Piece& p) {
  MUST(CU(cuMemFreeAsync)(p.a, stream));
  MUST(CU(cuStreamSynchronize)(stream));
  MUST(CU(cuGraphExecDestroy)(reinterpret_cast<CUgraphExec>(p.b)));
}

void trim_graphs() {
  synchronize();
  MUST(CU(cuDeviceGraphMemTrim)(0));
}

// Exports memory by IPC. A process cannot open its own handle.
CUresult shared_by_ipc(Piece& p) {
  const CUresult result = CU(cuMemAlloc_v2)(reinterpret_cast<CUdeviceptr*>(&p.a), 6 * MiB);
  if (result != CUDA_SUCCESS) return result;
  CUipcMemHandle handle;
  MUST(CU(cuIpcGetMemHandle)(&handle, p.a));
  CUdeviceptr again = 0;
  if (CU(cuIpcOpenMemHandle_v2)(&again, handle, 1) == CUDA_SUCCESS) {
    printf("a process opened its own handle\n");
    exit(1);
  }
  return result;
}

// A descriptor of virtual memory stands for another allocator's memory. It is released immediately, so that
// only the import keeps it.
CUresult external(Piece& p) {
  Piece made;
  CUresult result = create(made, 6 * MiB, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  if (result != CUDA_SUCCESS) return result;
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC description = {};
  description.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  description.size = 6 * MiB;
  MUST(CU(cuMemExportToShareableHandle)(&description.handle.fd, made.a,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  CUexternalMemory memory = nullptr;
  result = CU(cuImportExternalMemory)(&memory, &description);
  if (result != CUDA_SUCCESS)
    close(description.handle.fd);  // The descriptor still belongs to this process
                                   // and keeps the memory.
  MUST(CU(cuMemRelease)(made.a));
  p.a = reinterpret_cast<uint64_t>(memory);
  return result;
}

const Row rows[] = {
    {"linear", 5 * MiB + 1,
     [](Piece& p) { return CU(cuMemAlloc_v2)(reinterpret_cast<CUdeviceptr*>(&p.a), 5 * MiB + 1); },
     free_linear, nullptr},
    {"pitched", 4000 * 1000,
     [](Piece& p) {
       size_t pitch = 0;
       return CU(cuMemAllocPitch_v2)(reinterpret_cast<CUdeviceptr*>(&p.a), &pitch, 4000, 1000, 4);
     },
     free_linear, nullptr},
    {"managed", 10 * MiB,
     [](Piece& p) {  // Moved to the device, because untouched pages are on no device.
       const CUresult result = CU(cuMemAllocManaged)(reinterpret_cast<CUdeviceptr*>(&p.a), 10 * MiB, 1);
       if (result == CUDA_SUCCESS) MUST(CU(cuMemPrefetchAsync)(p.a, 10 * MiB, 0, stream));
       return result;
     },
     free_linear, nullptr},
    {"async", 10 * MiB,
     [](Piece& p) { return CU(cuMemAllocAsync)(reinterpret_cast<CUdeviceptr*>(&p.a), 10 * MiB, stream); },
     free_async, synchronize},
    {"async-waiting-free", 10 * MiB,
     [](Piece& p) { return CU(cuMemAllocAsync)(reinterpret_cast<CUdeviceptr*>(&p.a), 10 * MiB, stream); },
     free_linear, synchronize},
    {"linear-async-free", 6 * MiB,
     [](Piece& p) { return CU(cuMemAlloc_v2)(reinterpret_cast<CUdeviceptr*>(&p.a), 6 * MiB); }, free_async,
     synchronize},
    {"own-pool", 50 * MiB,
     [](Piece& p) {
       return CU(cuMemAllocFromPoolAsync)(reinterpret_cast<CUdeviceptr*>(&p.a), 50 * MiB, own_pool(), stream);
     },
     free_async,
     [] {
       synchronize();
       MUST(CU(cuMemPoolTrimTo)(own_pool(), 0));
     }},
    {"vmm", 6 * MiB, [](Piece& p) { return create(p, 6 * MiB); }, release, nullptr},
    {"vmm-mapped", 6 * MiB, create_and_map, unmap, nullptr},
    {"vmm-imported", 6 * MiB, export_and_import, release, nullptr},
    {"vmm-descriptor", 6 * MiB, keep_descriptor, close_descriptor, nullptr},
    {"ipc", 6 * MiB, shared_by_ipc, free_linear, nullptr},
    {"external", 6 * MiB, external,
     [](const Piece& p) { MUST(CU(cuDestroyExternalMemory)(reinterpret_cast<CUexternalMemory>(p.a))); },
     nullptr},
    {"array", 3000 * 1000 * 4,
     [](Piece& p) {
       const CUDA_ARRAY_DESCRIPTOR d = {3000, 1000, CU_AD_FORMAT_FLOAT, 1};
       CUarray made = nullptr;
       const CUresult result = CU(cuArrayCreate_v2)(&made, &d);
       p.a = reinterpret_cast<uint64_t>(made);
       return result;
     },
     destroy_array, nullptr},
    {"array-3d", 300 * 300 * 50 * 4,
     [](Piece& p) {
       return array(p, {300, 300, 50, CU_AD_FORMAT_FLOAT, 1, 0});
     },
     destroy_array, nullptr},
    {"array-layered", 700 * 700 * 7 * 4,
     [](Piece& p) {
       return array(p, {700, 700, 7, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED});
     },
     destroy_array, nullptr},
    {"array-small", 100 * 100,
     [](Piece& p) {
       return array(p, {100, 100, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0});
     },
     destroy_array, nullptr},
    {"mipmapped", 2048 * 2048 * 4 / 3 * 4,
     [](Piece& p) {
       const CUDA_ARRAY3D_DESCRIPTOR d = {2048, 2048, 0, CU_AD_FORMAT_FLOAT, 1, 0};
       CUmipmappedArray made = nullptr;
       const CUresult result = CU(cuMipmappedArrayCreate)(&made, &d, 11);
       p.a = reinterpret_cast<uint64_t>(made);
       return result;
     },
     [](const Piece& p) { MUST(CU(cuMipmappedArrayDestroy)(reinterpret_cast<CUmipmappedArray>(p.a))); },
     nullptr},
    {"graph", 20 * MiB, launch_graph, free_of_graph, trim_graphs},
    {"graph-captured", 20 * MiB, launch_captured, free_of_graph, trim_graphs},
    {"context", 0,
     [](Piece& p) {
       CUcontext made = nullptr, mine = nullptr;
       const CUresult result = CU(cuCtxCreate_v2)(&made, 0, 0);
       if (result == CUDA_SUCCESS) MUST(CU(cuCtxPopCurrent_v2)(&mine));
       p.a = reinterpret_cast<uint64_t>(made);
       return result;
     },
     [](const Piece& p) { MUST(CU(cuCtxDestroy_v2)(reinterpret_cast<CUcontext>(p.a))); }, nullptr},
};

struct Fill {
  size_t count;
  CUresult error;
};

Fill fill(const Row& row) {
  CUresult result = CUDA_SUCCESS;
  while (pieces.size() < max_pieces) {
    Piece p;
    result = row.take(p);
    if (result != CUDA_SUCCESS) break;
    pieces.push_back(p);
  }
  const Fill done = {pieces.size(), result};
  // The rest is less than a block, and the smallest driver block fills it to the last byte.
  std::vector<CUdeviceptr> rest;
  CUdeviceptr block = 0;
  while (result == CUDA_ERROR_OUT_OF_MEMORY && CU(cuMemAlloc_v2)(&block, 2 * MiB) == CUDA_SUCCESS)
    rest.push_back(block);
  // The device is full: the same call fails again, and the memory is held for a moment so that a test can
  // read the figures.
  Piece more;
  if (result == CUDA_ERROR_OUT_OF_MEMORY && row.take(more) != CUDA_ERROR_OUT_OF_MEMORY) exit(1);
  usleep(100'000);
  for (const CUdeviceptr p : rest) MUST(CU(cuMemFree_v2)(p));
  for (; !pieces.empty(); pieces.pop_back()) row.drop(pieces.back());
  if (row.settle != nullptr) row.settle();
  return done;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    for (const Row& row : rows) puts(row.name);
    return 0;
  }
  for (const Row& row : rows) {
    if (strcmp(row.name, argv[1]) != 0) continue;
    MUST(CU(cuInit)(0));
    CUcontext context = nullptr;
    MUST(CU(cuDevicePrimaryCtxRetain)(&context, 0));
    MUST(CU(cuCtxSetCurrent)(context));
    MUST(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    size_t free_bytes[3], total = 0;
    MUST(CU(cuMemGetInfo_v2)(&free_bytes[0], &total));
    const Fill first = fill(row);
    if (first.error == CUDA_ERROR_NOT_SUPPORTED) {
      printf("%s: error %d\n", row.name, static_cast<int>(first.error));
      return 77;
    }
    // Memory that a device uses in addition to the blocks may be released a little later.
    for (int tries = 0; tries < 100; ++tries) {
      MUST(CU(cuMemGetInfo_v2)(&free_bytes[1], &total));
      if (free_bytes[1] >= free_bytes[0]) break;
      usleep(50'000);
    }
    const Fill second = fill(row);
    printf(
        "{\"kind\": \"%s\", \"piece\": %zu, \"count\": [%zu, %zu], \"error\": [%d, %d], \"free\": [%zu, "
        "%zu]}\n",
        row.name, row.bytes, first.count, second.count, static_cast<int>(first.error),
        static_cast<int>(second.error), free_bytes[0], free_bytes[1]);
    return 0;
  }
  fprintf(stderr, "no such kind: %s\n", argv[1]);
  return 2;
}

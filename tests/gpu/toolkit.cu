// A program that uses the CUDA runtime, linked statically as by nvcc's default. It fills the memory with
// cudaMalloc, with cudaMallocAsync and with a graph's memory node, each until the runtime returns an error,
// frees it, and fills it again.
#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

static const size_t piece = 32 << 20;

__global__ void add_one(int* p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += 1;
}

template <class Take, class Drop>
static bool fill(const char* name, Take take, Drop drop) {
  size_t counts[2];
  for (size_t& count : counts) {
    std::vector<void*> held;
    void* p = nullptr;
    cudaError_t error = cudaSuccess;
    while ((error = take(&p)) == cudaSuccess) held.push_back(p);
    cudaGetLastError();
    count = held.size();
    for (void* q : held) drop(q);
    cudaDeviceSynchronize();
    if (error != cudaErrorMemoryAllocation) {
      printf("%s ended with %s\n", name, cudaGetErrorName(error));
      return false;
    }
  }
  printf("%s %zu MiB, again %zu MiB\n", name, counts[0] * 32, counts[1] * 32);
  return counts[0] > 0 && counts[0] == counts[1];
}

int main() {
  int* p = nullptr;
  int value = 41;
  if (cudaMalloc(&p, sizeof value) != cudaSuccess) return 1;
  cudaMemcpy(p, &value, sizeof value, cudaMemcpyHostToDevice);
  add_one<<<1, 32>>>(p, 1);
  cudaMemcpy(&value, p, sizeof value, cudaMemcpyDeviceToHost);
  cudaFree(p);
  bool right = value == 42;
  right = fill(
              "cudaMalloc", [](void** q) { return cudaMalloc(q, piece); }, [](void* q) { cudaFree(q); }) &&
          right;
  right = fill(
              "cudaMallocAsync", [](void** q) { return cudaMallocAsync(q, piece, 0); },
              [](void* q) { cudaFreeAsync(q, 0); }) &&
          right;
  return right ? 0 : 1;
}

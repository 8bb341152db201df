"""A program that uses cuda-python's driver bindings. It fills its slice in three ways and prints where each
stopped.

Prints devices, total and free; then, for each way, the number of 64 MiB pieces, the error, and whether the
same number could be allocated again after all pieces were freed.
"""
from cuda.bindings import driver as cu

PIECE = 64 << 20


def ok(answer):
    assert answer[0] == cu.CUresult.CUDA_SUCCESS, answer
    return answer[1] if len(answer) == 2 else answer[1:]


ok(cu.cuInit(0))
device = ok(cu.cuDeviceGet(0))
context = ok(cu.cuDevicePrimaryCtxRetain(device))
ok(cu.cuCtxSetCurrent(context))
free, total = ok(cu.cuMemGetInfo())
print(ok(cu.cuDeviceGetCount()), total, free)
stream = ok(cu.cuStreamCreate(0))


def by_handle():
    prop = cu.CUmemAllocationProp()
    prop.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    prop.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    prop.location.id = int(device)
    return cu.cuMemCreate(PIECE, prop, 0)


ways = {
    "cuMemAlloc": (lambda: cu.cuMemAlloc(PIECE), cu.cuMemFree),
    "cuMemAllocAsync": (lambda: cu.cuMemAllocAsync(PIECE, stream), lambda p: cu.cuMemFreeAsync(p, stream)),
    "cuMemCreate": (by_handle, cu.cuMemRelease),
}
for name, (allocate, free_) in ways.items():
    counts = []
    for _ in range(2):
        held = []
        while (answer := allocate())[0] == cu.CUresult.CUDA_SUCCESS:
            held.append(answer[1])
        counts.append(len(held))
        for piece in held:
            ok(free_(piece))
        ok(cu.cuStreamSynchronize(stream))
    print(name, counts[0], answer[0].name, counts[0] == counts[1])

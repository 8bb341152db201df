"""Tests CuPy's memory pool and its asynchronous pool in a slice."""
import json
import sys

sys.path = [p for p in sys.path if not p.endswith("frameworks")]  # This file has the package's name.
try:
    import cupy
except ImportError:
    print("CuPy is not installed")
    sys.exit(77)
piece = 64 << 20
free, total = cupy.cuda.runtime.memGetInfo()


def fill():
    held = []
    try:
        while True:
            held.append(cupy.empty(piece, dtype=cupy.uint8))
    except cupy.cuda.memory.OutOfMemoryError:
        return len(held)
    except cupy.cuda.runtime.CUDARuntimeError as e:
        assert "cudaErrorMemoryAllocation" in str(e), e
        return len(held)


bytes_ = {}
for name, allocator in (("pool", cupy.get_default_memory_pool().malloc), ("async", cupy.cuda.MemoryAsyncPool().malloc)):
    cupy.cuda.set_allocator(allocator)
    counts = []
    for _ in range(2):
        counts.append(fill())
        cupy.get_default_memory_pool().free_all_blocks()
        cupy.cuda.Device().synchronize()
    bytes_[name] = [n * piece for n in counts]
print(json.dumps({"version": cupy.__version__, "total": total, "free": free, "bytes": bytes_}))
sys.exit(0 if all(a > 0 and abs(a - b) <= piece for a, b in bytes_.values()) else 1)

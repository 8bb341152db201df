"""CuPy's own allocators in a slice, with NVIDIA's runtime and libcuda: each gets the quota, then CuPy's own
error, and then the quota again."""
import json
import os

import pytest

from real_driver import BUILD, WAYS, environment, in_slice, python, shims

FRAMEWORKS = BUILD / "venv-frameworks/bin/python"
CHUNK_MIB, QUOTA_MIB, CONTEXT_MIB = 64, 2048, 256
FILLS = """
import cupy, json, sys
from cupy.cuda import runtime
MiB = 1 << 20

def free():
    return runtime.memGetInfo()[0] // MiB

def fill(pool):
    held = []
    with cupy.cuda.using_allocator(pool.malloc):
        try:
            while True:
                held.append(cupy.empty(int(sys.argv[1]) * MiB, cupy.uint8))
        except cupy.cuda.memory.OutOfMemoryError:
            found = [len(held) * int(sys.argv[1]), free()]
    held.clear()
    runtime.deviceSynchronize()
    pool.free_all_blocks()
    return [*found, free()]

print(json.dumps({"total": runtime.memGetInfo()[1] // MiB, "free": free(),
                  "blocks": fill(cupy.cuda.MemoryPool()),
                  "async": fill(cupy.cuda.MemoryAsyncPool()),
                  "managed": fill(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed)),
                  "blocks again": fill(cupy.cuda.MemoryPool())}))
"""


@pytest.mark.skipif(not os.environ.get("CARVE_LONG"), reason="CuPy is 150 MB: ./test --long nvidia")
@pytest.mark.parametrize("major", ["535", "550"])
@pytest.mark.parametrize("way", WAYS[1:])
def test_cupy_fills_a_slice_to_its_quota_and_no_further(world, major, way):
    if not FRAMEWORKS.exists():
        pytest.skip("tests/nvidia/frameworks.txt could not be installed")
    uuids = [device["uuid"] for device in world.json("devices")["devices"]]
    with shims(major, world.socket) as folder:
        done = in_slice(world, python(FILLS, CHUNK_MIB, interpreter=FRAMEWORKS), environment(major, way, folder, uuids))
    assert done.returncode == 0, done.stderr
    rest = QUOTA_MIB - CONTEXT_MIB
    everything = [rest, 0, rest]  # Held when CuPy's error came, free then, and free after the pool gave it back.
    assert json.loads(done.stdout) == {"total": QUOTA_MIB, "free": rest, "blocks": everything, "async": everything,
                                       "managed": everything, "blocks again": everything}

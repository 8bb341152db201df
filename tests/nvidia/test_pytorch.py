"""PyTorch in a slice, with NVIDIA's runtime and libcuda: each of its allocators gets the quota, then
PyTorch's own error, and then the quota again."""
import json
import os

import pytest

from real_driver import BUILD, WAYS, environment, in_slice, python, shims

PYTORCH = BUILD / "venv-pytorch/bin/python"
CHUNK_MIB, QUOTA_MIB, CONTEXT_MIB = 64, 2048, 256
SEGMENT_MIB = 20  # CUDACachingAllocator.cpp of PyTorch 2.7: kLargeBuffer, by which an expandable segment grows.
ALLOCATORS = {"blocks": "", "segments": "expandable_segments:True", "pool": "backend:cudaMallocAsync"}
FILLS = """
import json, sys, torch
MiB = 1 << 20
chunk = int(sys.argv[1])

def free():
    return torch.cuda.mem_get_info()[0] // MiB

def fill():
    held = []
    try:
        while True:
            held.append(torch.empty(chunk * MiB, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError as error:
        found, message = [len(held) * chunk, free()], str(error)
    held.clear()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return [*found, free()], message

numbers = torch.arange(3 * MiB)
copied = torch.equal(numbers.cuda().cpu(), numbers)
torch.cuda.empty_cache()
seen = {"backend": torch.cuda.get_allocator_backend(), "total": torch.cuda.mem_get_info()[1] // MiB, "copied": copied, "free": free()}
(first, message), (again, _) = fill(), fill()
print(json.dumps({**seen, "first": first, "again": again, "message": message}))
"""


def run(world, major, way, allocator, *words):
    if not PYTORCH.exists():
        pytest.skip("tests/nvidia/pytorch.txt could not be installed")
    uuids = [device["uuid"] for device in world.json("devices")["devices"]]
    with shims(major, world.socket) as folder:
        variables = {**environment(major, way, folder, uuids), "PYTORCH_CUDA_ALLOC_CONF": ALLOCATORS[allocator]}
        done = in_slice(world, words, variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(not os.environ.get("CARVE_LONG"), reason="PyTorch is 2.5 GB: ./test --long nvidia")
@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize("major", ["535", "550"])
@pytest.mark.parametrize("way", WAYS[1:])
def test_pytorch_fills_a_slice_to_its_quota_and_no_further(world, major, way, allocator):
    seen = run(world, major, way, allocator, *python(FILLS, CHUNK_MIB, interpreter=PYTORCH))
    rest = QUOTA_MIB - CONTEXT_MIB
    held, left = rest, 0
    if allocator == "segments":  # The last chunk needs more whole segments than are left.
        segments = rest // SEGMENT_MIB * SEGMENT_MIB
        held = segments // CHUNK_MIB * CHUNK_MIB
        left = rest - -(-held // SEGMENT_MIB) * SEGMENT_MIB
    message = seen.pop("message")
    assert seen == {"backend": "cudaMallocAsync" if allocator == "pool" else "native", "total": QUOTA_MIB, "copied": True, "free": rest,
                    "first": [held, left, rest], "again": [held, left, rest]}
    # The allocator of pools reports no figures.
    assert allocator == "pool" or "GPU 0 has a total capacity of 2.00 GiB" in message, message

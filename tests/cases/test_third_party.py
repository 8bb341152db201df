"""Tests unmodified third-party programs in slices."""
import shutil
import subprocess
import sys

import pytest

from conftest import GiB, LOAD, MiB

FFMPEG = ["ffmpeg", "-hide_banner", "-loglevel", "error", "-init_hw_device", "cuda=cu:0", "-filter_hw_device", "cu", "-f", "lavfi",
          "-i", "testsrc=size=320x180:rate=25:duration=1", "-vf", "format=nv12,hwupload_cuda,scale_cuda=160:90,hwdownload,format=nv12",
          "-f", "null", "-"]


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed: apt-get install ffmpeg")
def test_ffmpeg_with_cuda_filters_runs_in_a_slice(world):
    done = world.carve("run", "--memory", "1GiB", "--", *FFMPEG)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed: apt-get install ffmpeg")
def test_ffmpeg_fails_if_its_slice_is_too_small(world):
    """The slice has room for a context and 8 MiB, so frames of 4096 x 4096 do not fit."""
    context = world.json("devices")["devices"][0]["context_bytes"]
    big = [w.replace("320x180", "4096x4096").replace("160:90", "4096:4096") for w in FFMPEG]
    done = world.carve("run", "--memory", f"{context // MiB + 8}MiB", "--", *big)
    assert done.returncode not in (0, 125) and "CUDA_ERROR_OUT_OF_MEMORY" in done.stderr, done.stderr


PYNVML = """
import pynvml as n
n.nvmlInit()
print(n.nvmlDeviceGetCount())
h = n.nvmlDeviceGetHandleByIndex(0)
m = n.nvmlDeviceGetMemoryInfo(h)
print(m.total, m.used, m.free)
print(n.nvmlDeviceGetUUID(h))
print(len(n.nvmlDeviceGetComputeRunningProcesses(h)))
"""


def test_pynvml_sees_only_the_slice(world):
    pytest.importorskip("pynvml", reason="nvidia-ml-py could not be installed from PyPI")
    world.begin("run", "--memory", "6GiB", "--name", "neighbour", "--device", "1", "--", LOAD, "--allocate", "5GiB", "--no-touch",
                "--seconds", "30")
    world.attached("neighbour")
    done = world.carve("run", "--memory", "2GiB", "--device", "1", "--", sys.executable, "-c", PYNVML)
    assert done.returncode == 0, done.stderr
    count, memory, uuid, processes = done.stdout.split("\n")[:4]
    total, used, free = map(int, memory.split())
    assert count == "1" and total == 2 * GiB and used + free <= total and used < GiB
    assert uuid == world.json("devices")["devices"][1]["uuid"]
    assert processes == "0"


CTYPES = """
import ctypes, os
cu = ctypes.CDLL("libcuda.so.1")
def must(r): assert r == 0, r
must(cu.cuInit(0))
ctx = ctypes.c_void_p(); dev = ctypes.c_int()
must(cu.cuDeviceGet(ctypes.byref(dev), 0))
must(cu.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), dev)); must(cu.cuCtxSetCurrent(ctx))
free, total = ctypes.c_size_t(), ctypes.c_size_t()
must(cu.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
print(total.value, free.value)
p = ctypes.c_uint64()
must(cu.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(free.value)))
print(cu.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(512)))
must(cu.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
print(free.value)
"""


def test_a_program_can_allocate_exactly_the_free_memory(world):
    done = world.carve("run", "--memory", "2GiB", "--", sys.executable, "-c", CTYPES)
    assert done.returncode == 0, done.stderr
    first, refused, left = done.stdout.split("\n")[:3]
    total, free = map(int, first.split())
    context = world.json("devices")["devices"][0]["context_bytes"]
    assert total == 2 * GiB and free == total - context
    assert refused == "2" and left == "0"


@pytest.mark.parametrize("program", [["ls", "/"], ["sh", "-c", "echo $((6 * 7))"],
                                     [sys.executable, "-c", "import os; print(len(os.listdir('/')))"]])
def test_a_program_without_cuda_is_not_affected(world, program):
    alone = subprocess.run(program, capture_output=True, text=True)
    inside = world.carve("run", "--memory", "1GiB", "--", *program)
    assert (inside.returncode, inside.stdout, inside.stderr) == (alone.returncode, alone.stdout, alone.stderr)

"""Tests memory beyond the quota that is kept on the host: the valid requests and the displayed values."""
import json

import pytest

from conftest import LOAD, GiB, MiB, until
from test_coverage import Watcher


@pytest.mark.parametrize("words, says", [
    (["--oversubscribe", "managed"], "must be used together"),
    (["--spill", "1GiB"], "must be used together"),
    (["--oversubscribe", "swap", "--spill", "1GiB"], "swap"),
    (["--oversubscribe", "managed", "--spill", "some"], "'some'"),
    (["--oversubscribe", "managed", "--spill", "1000"], "'1000'"),
    (["--oversubscribe", "managed", "--spill", "9000TiB"], "of host memory"),
    (["--oversubscribe", "managed", "--spill", "1GiB", "--isolation", "none"], "needs a quota"),
])
def test_an_incomplete_request_is_rejected_with_a_message(world, words, says):
    refused = world.carve("run", "--memory", "1GiB", *words, "--", "true")
    assert refused.returncode == 125 and says in refused.stderr, refused.stderr


@pytest.mark.devices("a10x2", "--spill-limit", "5GiB")
def test_the_spill_of_all_slices_is_limited(world):
    words = ["run", "--memory", "1GiB", "--oversubscribe", "managed"]
    world.begin(*words, "--spill", "3GiB", "--name", "a", "--", "sleep", "100")
    assert until(lambda: "a" in world.slices())
    node = world.json("node")
    assert [node[f"spill_{what}_bytes"] // GiB for what in ("limit", "granted", "free")] == [5, 3, 2]
    assert "5 GiB of host memory, 3 GiB granted, 2 GiB free" in world.carve("node").stdout
    refused = world.carve(*words, "--spill", "3GiB", "--", "true")
    assert refused.returncode == 125 and "3 GiB of the 5 GiB that may be spilled are granted to other slices; request at most 2 GiB" in refused.stderr, refused.stderr
    assert world.carve(*words, "--spill", "2GiB", "--", "true").returncode == 0


def test_oversubscription_is_off_by_default(world):
    over = world.carve("run", "--memory", "1GiB", "--", LOAD, "--allocate", "2GiB")
    assert over.returncode == 1 and "OUT_OF_MEMORY" in over.stderr


def test_the_spill_limit_is_stored_with_the_slice_and_shown(world):
    world.begin("run", "--memory", "1GiB", "--oversubscribe", "managed", "--spill", "3GiB", "--name", "a", "--",
                LOAD, "--allocate", "512MiB", "--seconds", "600")
    world.attached("a")
    assert world.show("a")["parts"][0]["spill_bytes"] == 3 * GiB
    assert "of 3 GiB used" in world.carve("show", "a").stdout
    world.process.kill()
    world.process.wait()
    world.start()
    assert world.show("a")["parts"][0]["spill_bytes"] == 3 * GiB


BEYOND = """
import ctypes, json, time
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p
cu = ctypes.CDLL("libcuda.so.1")
MiB, OUT_OF_MEMORY = 1 << 20, 2
context, free, total = c_void_p(), c_size_t(), c_size_t()
assert cu.cuInit(0) == 0 and cu.cuDevicePrimaryCtxRetain(byref(context), 0) == 0 and cu.cuCtxSetCurrent(context) == 0
said = []
for turn in range(2):
    assert cu.cuMemGetInfo_v2(byref(free), byref(total)) == 0
    said.append([free.value, total.value])
    pieces = []
    while True:
        piece = c_uint64()
        result = cu.cuMemAlloc_v2(byref(piece), c_size_t(100 * MiB))
        if result != 0:
            break
        pieces.append(piece)
    assert result == OUT_OF_MEMORY, result
    time.sleep(0.3)  # Full; gives the watcher time to sample the device.
    said.append(len(pieces))
    # All of it can be written and read, and a prefetch by the program does not move it onto the device.
    for i, piece in enumerate(pieces):
        mark, back = c_uint64(i + 1), c_uint64()
        at = c_uint64(piece.value + 99 * MiB)
        assert cu.cuMemcpyHtoD_v2(at, byref(mark), c_size_t(8)) == 0
        assert cu.cuMemPrefetchAsync(piece, c_size_t(100 * MiB), 0, None) in (0, 1)
        assert cu.cuCtxSynchronize() == 0
        assert cu.cuMemcpyDtoH_v2(byref(back), at, c_size_t(8)) == 0 and back.value == i + 1
    for piece in pieces:
        assert cu.cuMemFree_v2(piece) == 0
print(json.dumps(said))
"""


def test_memory_beyond_the_quota_is_kept_on_the_host(world):
    watcher = Watcher(world)
    done = world.carve("run", "--memory", "1GiB", "--oversubscribe", "managed", "--spill", "2GiB", "--device", "0", "--",
                       "/usr/bin/python3", "-c", BEYOND, timeout=120)
    most = watcher.end()
    assert done.returncode == 0, done.stdout + done.stderr
    context = 256 * MiB
    room = 3 * GiB - context
    seen = [room, 3 * GiB]
    # The piece that is partly on the device and partly on the host is cut at a multiple of 2 MiB.
    count = room // (100 * MiB)
    assert json.loads(done.stdout) == [seen, count, seen, count]
    assert GiB - 100 * MiB < most <= GiB, f"the device held {most}"

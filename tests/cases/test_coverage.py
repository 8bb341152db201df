"""Tests each way of allocating device memory in a slice of 2 GiB: no byte beyond the quota, CUDA's own error,
and all memory usable again afterwards.

The programs are tests/guest/rows.cc, one per row of docs/coverage.md, over several simulated drivers. A
process outside of slices continuously polls the device's own NVML for the bytes in use.
"""
import json
import os
import subprocess

import pytest

from conftest import BUILD, GiB, MiB, SIMULATED_DRIVERS

ROWS = BUILD / "tests/guest_rows"
OUT_OF_MEMORY = 2

WATCHER = """
import ctypes, select, sys
nvml = ctypes.CDLL("libnvidia-ml.so.1")
device, memory, most = ctypes.c_void_p(), (ctypes.c_uint64 * 3)(), 0
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
def used():
    assert nvml.nvmlDeviceGetMemoryInfo(device, memory) == 0
    return memory[2]
print(used(), flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    most = max(most, used())
print(most, used())
"""


class Watcher:
    """Records the bytes that the device reports as in use: before, and the maximum until `end()`."""

    def __init__(self, world):
        environment = {**os.environ, "SIMGPU_DIR": str(world.folder / "state/sim"), "LD_LIBRARY_PATH": str(world.driver)}
        self.process = subprocess.Popen(["/usr/bin/python3", "-c", WATCHER], env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.before = int(self.process.stdout.readline())

    def end(self):
        out, _ = self.process.communicate("\n", timeout=30)
        return int(out.split()[0]) - self.before


def kinds():
    if not ROWS.exists():
        return []
    return subprocess.run([ROWS], capture_output=True, text=True, check=True).stdout.split()


# Memory in files of the simulated device takes up to 45 s to fill, so only one driver is tested with it.
IN_FILES = {"external", "ipc", "vmm-descriptor", "vmm-imported"}
ROWS_AND_DRIVERS = [pytest.param(kind, marks=pytest.mark.devices(spec), id=f"{kind}-{driver}") for kind in kinds()
                    for driver, spec in SIMULATED_DRIVERS.items() if driver == "all" or kind not in IN_FILES]


@pytest.mark.parametrize("kind", ROWS_AND_DRIVERS)
def test_fills_its_slice_and_not_a_byte_more(world, kind):
    watcher = Watcher(world)
    done = world.carve("run", "--memory", "2GiB", "--device", "0", "--", ROWS, kind, timeout=120)
    most = watcher.end()
    if done.returncode == 77:
        pytest.skip(f"the simulated device has no such thing yet: {done.stdout.strip()}")
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout)
    assert said["error"] == [OUT_OF_MEMORY, OUT_OF_MEMORY], said
    first, second = said["count"]
    # Small pieces are parts of 2 MiB blocks. The rest of a block counts as growth if the agent samples at
    # that moment.
    rest = 2 * MiB // (64 * 1024) if said["piece"] < MiB else 0
    assert second > 0 and abs(first - second) <= rest, f"after all was given back, all can be had again: {said}"
    assert said["free"][0] == said["free"][1], f"nothing stays charged: {said}"
    assert most <= 2 * GiB, f"{most - 2 * GiB} bytes beyond the slice"
    assert most >= 2 * GiB - (2 * MiB if rest else 0), f"{2 * GiB - most} bytes of the slice could not be had"

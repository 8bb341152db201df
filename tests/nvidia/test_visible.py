"""Tests CUDA_VISIBLE_DEVICES and what the runtime counts in a slice. The driver must enumerate exactly the
devices that the hooks show."""
import json
import pathlib
import re
import subprocess

import pytest

from real_driver import INITIALISED, WAYS, call, environment, in_slice, python, runtime, shims

NO_DEVICE, INVALID_DEVICE, OLD_DRIVER = 100, 101, 35
COUNT = """
import ctypes, json, os, sys
runtime, count = ctypes.CDLL(sys.argv[1]), ctypes.c_int(-1)
results = []
for words in json.loads(sys.argv[2]):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)
        if words is not None:
            os.environ["CUDA_VISIBLE_DEVICES"] = words
        os.write(write, json.dumps([runtime.cudaGetDeviceCount(ctypes.byref(count)), count.value]).encode())
        assert os.environ.get("CUDA_VISIBLE_DEVICES") == words
        os._exit(0)
    os.close(write)
    results.append(json.loads(os.read(read, 100)))
    os.close(read)
    assert os.waitpid(child, 0)[1] == 0, words
print(json.dumps(results))
"""


@pytest.mark.devices("a10x4")
@pytest.mark.parametrize("way", WAYS[1:])
@pytest.mark.parametrize("release", ["11.8", "12.9", "13.5"])
@pytest.mark.parametrize("major", INITIALISED)
def test_the_runtime_counts_the_devices_of_the_slice(world, major, release, way):
    uuids = [d["uuid"] for d in world.json("devices")["devices"]]
    own, foreign = [uuids[2], uuids[1]], uuids[0]
    expected = {None: 2, own[0]: 1, ",".join(own): 2, f"{own[1]},{foreign}": 1, f"{foreign},{own[1]}": 0, foreign: 0,
                "0": 1, "0,1": 2, "1": 1, "0,1,2": 2, "2": 0, "-1": 0, "": 0, f"{own[0][:12]}": 1, "1,1": INVALID_DEVICE}
    lists = json.dumps(list(expected))
    library = next(runtime(release).glob("libcudart.so.*"))
    with shims(major, world.socket) as folder:
        done = in_slice(world, python(COUNT, library, lists), environment(major, way, folder, uuids), "--device", "2,1", "--devices", "2")
    assert done.returncode == 0, done.stderr
    for (words, count), (result, counted) in zip(expected.items(), json.loads(done.stdout), strict=True):
        if release == "13.5":
            assert result == OLD_DRIVER, "as without Carve: this runtime requires driver 580"
        elif count == INVALID_DEVICE:
            assert result == INVALID_DEVICE, words
        else:
            assert (result, counted if result == 0 else 0) == (0 if count else NO_DEVICE, count), f"CUDA_VISIBLE_DEVICES={words!r}"


STATIC = """
#include <stdio.h>
int cudaGetDeviceCount(int*);
int main() {
  int count = -1, result = cudaGetDeviceCount(&count);
  printf("%d %d\\n", result, count);
}
"""


@pytest.mark.parametrize("way", WAYS[1:])
def test_the_static_runtime_counts_the_same_devices_as_the_shared_one(world, tmp_path, way):
    source = tmp_path / "count.c"
    source.write_text(STATIC)
    linked = [runtime("12.9") / "libcudart_static.a", "-ldl", "-lrt", "-lpthread", "-lstdc++"]
    subprocess.run(["cc", "-o", tmp_path / "count", source, *linked], check=True)
    uuids = [d["uuid"] for d in world.json("devices")["devices"]]
    with shims("550", world.socket) as folder:
        done = in_slice(world, [tmp_path / "count"], environment("550", way, folder, uuids))
    assert done.stdout == "0 1\n", done.stdout + done.stderr


FOUR = [f"GPU-{first}000000-1111-2222-3333-4444444444ff" for first in ("a1", "ab", "c2", "d3")]
VISIBLE = """
import ctypes, json, os, sys
cu = ctypes.CDLL("libcuda.so.1")
results = []
for words in json.loads(sys.argv[1]):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.environ["CUDA_VISIBLE_DEVICES"] = words
        result, count, uuids = cu.cuInit(0), ctypes.c_int(0), []
        cu.cuDeviceGetCount(ctypes.byref(count))
        for i in range(count.value):
            uuid, device = (ctypes.c_ubyte * 16)(), ctypes.c_int(-1)
            assert cu.cuDeviceGet(ctypes.byref(device), i) == 0 and cu.cuDeviceGetUuid(uuid, device) == 0
            uuids.append(bytes(uuid).hex())
        os.write(write, json.dumps([result, uuids]).encode())
        os._exit(0)
    os.close(write)
    results.append(json.loads(os.read(read, 1000)))
    os.close(read)
    assert os.waitpid(child, 0)[1] == 0, words
print(json.dumps(results))
"""


def filled_in(words, uuids):
    """Returns a list of visible_lists.txt with the UUIDs of these devices."""
    def text(match):
        uuid, form = uuids[int(match[1])], match[2] or ""
        bare = uuid[4:] if uuid[4].isalpha() else "f" + uuid[5:]  # Leading digits would be read as a number.
        return {"bare": bare, "lower": "gpu-" + uuid[4:], "upper": uuid.upper()}.get(form) or uuid[:int(form or 40)]
    return re.sub(r"{(\d)(?::(\w+))?}", text, words).encode().decode("unicode_escape")


def lists(uuids):
    """Returns {list: [the driver's result, indexes of devices]} from visible_lists.txt."""
    rows = {}
    for line in pathlib.Path(__file__).with_name("visible_lists.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            words, rest = line[1:].rsplit('"', 1)
            result, *devices = map(int, rest.split())
            rows[filled_in(words, uuids)] = [result, devices]
    return rows


def compared(expected, done, uuids):
    assert done.returncode == 0, done.stderr
    found = {words: [result, [uuids.index(f"GPU-{u[:8]}-{u[8:12]}-{u[12:16]}-{u[16:20]}-{u[20:]}") for u in seen]]
             for words, (result, seen) in zip(expected, json.loads(done.stdout), strict=True)}
    assert found == expected


@pytest.mark.parametrize("major", INITIALISED)
def test_the_driver_reads_lists_as_in_the_table(major):
    expected = lists(FOUR)
    compared(expected, call(python(VISIBLE, json.dumps(list(expected))), environment(major, gpus=FOUR)), FOUR)


@pytest.mark.devices("a10x4")
@pytest.mark.parametrize("way", WAYS[1:])
def test_lists_in_a_slice_refer_to_the_devices_of_the_slice(world, way):
    """The slice has all four devices in another order. Each list must mean the same as to the driver on a
    machine with these devices."""
    uuids = [d["uuid"] for d in world.json("devices")["devices"]]
    granted = json.loads(in_slice(world, python(VISIBLE, '["0,1,2,3"]'), environment("550", gpus=uuids)
                                  | {"LD_PRELOAD": environment("550", "preload")["LD_PRELOAD"]}, "--devices", "4").stdout)[0][1]
    order = [f"GPU-{u[:8]}-{u[8:12]}-{u[12:16]}-{u[16:20]}-{u[20:]}" for u in granted]
    expected = lists(order)
    with shims("550", world.socket) as folder:
        variables = environment("550", way, folder, list(reversed(order)))
        compared(expected, in_slice(world, python(VISIBLE, json.dumps(list(expected))), variables, "--devices", "4"), order)

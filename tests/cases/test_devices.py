"""Tests which devices a program in a slice sees, with their order and sizes, depending on
CUDA_VISIBLE_DEVICES."""
import json

import pytest

from conftest import GiB, MiB, until

PROGRAM = """
import ctypes, json, os, sys
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p
if len(sys.argv) > 1:
    os.environ["CUDA_VISIBLE_DEVICES"] = sys.argv[1]
cu = ctypes.CDLL("libcuda.so.1")
NO_DEVICE, INVALID_DEVICE = 100, 101
seen, count = [], c_int(0)
started = cu.cuInit(0)
assert started in (0, NO_DEVICE, INVALID_DEVICE), started
if started == 0:
    assert cu.cuDeviceGetCount(byref(count)) == 0
for i in range(count.value):
    device, context, uuid, total, free = c_int(), c_void_p(), (ctypes.c_ubyte * 16)(), c_size_t(), c_size_t()
    assert cu.cuDeviceGet(byref(device), i) == 0 and cu.cuDeviceGetUuid_v2(uuid, device) == 0
    assert cu.cuDeviceTotalMem_v2(byref(total), device) == 0
    all = total.value
    assert cu.cuDevicePrimaryCtxRetain(byref(context), device) == 0 and cu.cuCtxSetCurrent(context) == 0
    assert cu.cuMemGetInfo_v2(byref(free), byref(total)) == 0 and total.value == all
    text = bytes(uuid).hex()
    seen.append(["GPU-" + "-".join([text[:8], text[8:12], text[12:16], text[16:20], text[20:]]), all, free.value])
if started == 0:
    assert cu.cuDeviceGet(byref(c_int()), count.value) == INVALID_DEVICE
    assert cu.cuDeviceGet(byref(c_int()), -1) == INVALID_DEVICE
print(json.dumps(seen))
"""
QUOTA = 2 * GiB
CONTEXT = 256 * MiB


@pytest.fixture
def uuids(world):
    return [d["uuid"] for d in world.json("devices")["devices"]]


def seen(world, *arguments, devices=("--devices", "2"), outside=None):
    """Returns the UUIDs that a program sees, in its order; each is a device of the slice's size."""
    environment = {} if outside is None else {"CUDA_VISIBLE_DEVICES": outside}
    done = world.carve("run", "--memory", "2GiB", *devices, "--", "/usr/bin/python3", "-c", PROGRAM, *arguments, env=environment)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert all(row[1:] == [QUOTA, QUOTA - CONTEXT] for row in rows), rows
    return [row[0] for row in rows]


def granted(world, devices=("--devices", "2")):
    found = seen(world, devices=devices)
    assert len(found) == 2
    return found


@pytest.mark.devices("a10x4")
def test_a_program_sees_only_the_devices_of_its_slice(world, uuids):
    assert seen(world, devices=("--device", "2")) == [uuids[2]]


@pytest.mark.devices("a10x4")
@pytest.mark.parametrize("where", ["outside", "inside"])
def test_device_lists_have_the_same_meaning_as_in_the_driver(world, uuids, where):
    """The caller that starts the slice counts the machine's devices; the program in it counts the slice's, as
    NVML shows them. tests/nvidia/visible_lists.txt has the behaviour of the driver."""
    world.begin("run", "--exclusive", "--device", "0", "--name", "first", "--", "sleep", "600")
    assert until(lambda: "first" in world.slices())
    first, second = granted(world)
    i, j = (uuids.index(first), uuids.index(second)) if where == "outside" else (0, 1)
    assert uuids[0] not in (first, second), "so that the two ways of counting differ"
    for words, expected in {
        f"{i},{j}": [first, second],
        f"{j},{i}": [second, first],
        f"{j}": [second],
        f"{second},{first}": [second, first],
        f"{second[:20]}": [second],
        f"GPU-{second[4:20].upper()},{first}": [second, first],
        f"{second},{i}": [second],
        f"{second.lower()}": [],
        f" {i} , {j}": [first, second],
        f"{i},garbage,{j}": [first],
        f"{i},-1,{j}": [first],
        f"{i},17,{j}": [first],
        f"17,{j}": [],
        f"{i},{i}": [],  # Error 101, not 100.
        f"9{'0' * 40},{j}": [],
        "GPU-": [],
        "-1": [],
        "": [],
    }.items():
        if where == "outside" and not expected:
            refused = world.carve("run", "--memory", "2GiB", "--", "true", env={"CUDA_VISIBLE_DEVICES": words})
            assert refused.returncode == 125 and f"'{words}' matches no device of this node" in refused.stderr, refused.stderr
        if where == "outside" and len(expected) < 2:
            refused = world.carve("run", "--memory", "2GiB", "--devices", "2", "--", "true", env={"CUDA_VISIBLE_DEVICES": words})
            assert refused.returncode == 125 and f"'{words}' lists {len(expected)} device" in refused.stderr, refused.stderr
            continue
        found = seen(world, outside=words) if where == "outside" else seen(world, words)
        assert found == expected, f"CUDA_VISIBLE_DEVICES={words!r} {where}"


@pytest.mark.devices("a10x4")
def test_the_callers_list_chooses_the_device(world, uuids):
    for words, expected in {"2": uuids[2], uuids[1]: uuids[1], uuids[3][:20]: uuids[3], "3,0": uuids[3]}.items():
        assert seen(world, devices=(), outside=words) == [expected], words
    printed = world.carve("run", "--memory", "2GiB", "--", "/usr/bin/printenv", "CUDA_VISIBLE_DEVICES", env={"CUDA_VISIBLE_DEVICES": "2"})
    assert printed.stdout == "0\n", "vLLM reads it as a number"
    printed = world.carve("run", "--memory", "2GiB", "--devices", "2", "--", "/usr/bin/printenv", "CUDA_VISIBLE_DEVICES")
    assert printed.stdout == "0,1\n"


@pytest.mark.devices("a10x4")
def test_explain_uses_the_devices_of_the_callers_list(world, uuids):
    world.begin("run", "--exclusive", "--device", "2", "--name", "first", "--", "sleep", "600")
    assert until(lambda: "first" in world.slices())

    def explained(words, *options):
        return world.carve("explain", "--memory", "2GiB", *options, env={"CUDA_VISIBLE_DEVICES": words})
    assert "would be placed on device 1" in explained("1").stdout.splitlines()[0]
    full = explained("2")
    assert full.returncode == 1 and "device 2: an exclusive slice holds the device" in full.stdout, full.stdout
    assert f"device 0: the request names {uuids[2]}" in full.stdout
    assert "would be placed on device 3" in explained("2,3").stdout.splitlines()[0], "the next device of the list"
    few = explained("3", "--devices", "2")
    assert few.returncode == 2 and "'3' lists 1 device of this node" in few.stderr
    assert explained("2", "--device", "0").returncode == 0, "--device chooses"


@pytest.mark.devices("a10x4")
def test_the_callers_list_chooses_several_devices(world, uuids):
    for words in "3,1", "2,0", "1,0,2":
        expected = [uuids[int(n)] for n in words.split(",")][:2]
        assert seen(world, outside=words) == expected, words
    world.begin("run", "--exclusive", "--device", "3", "--name", "first", "--", "sleep", "600")
    assert until(lambda: "first" in world.slices())
    assert seen(world, outside="3,2,1") == [uuids[2], uuids[1]], "the next device of the list takes the place of a full one"
    full = world.carve("run", "--memory", "2GiB", "--devices", "2", "--", "true", env={"CUDA_VISIBLE_DEVICES": "3,0"})
    assert full.returncode == 125 and "an exclusive slice holds the device" in full.stderr, full.stderr
    assert "the request names other devices" in full.stderr
    named = world.carve("run", "--memory", "2GiB", "--devices", "2", "--device", "0,2", "--name", "b", "--", "true")
    assert named.returncode == 0 and {p["uuid"] for p in world.show("b")["parts"]} == {uuids[0], uuids[2]}
    few = world.carve("run", "--memory", "2GiB", "--devices", "2", "--device", "0", "--", "true")
    assert few.returncode == 125 and "2 devices are requested, but the request allows only 1" in few.stderr, few.stderr


@pytest.mark.devices("a10x4")
def test_devices_that_were_not_granted_do_not_exist(world, uuids):
    first, second = granted(world)
    other = next(n for n in range(4) if uuids[n] not in (first, second))
    assert seen(world, f"{second},{uuids[other]}") == [second]
    assert seen(world, f"{uuids[other]},{second}") == [], "the list ends where it names no device, as on a machine without that device"


@pytest.mark.devices("a10x4")
def test_the_program_gets_its_own_variable_back_afterwards(world):
    """Tests device 0 in a slice on the machine's device 3."""
    program = PROGRAM + """
assert os.environ["CUDA_VISIBLE_DEVICES"] == "0"
import subprocess
assert subprocess.run(["printenv", "CUDA_VISIBLE_DEVICES"], capture_output=True, text=True).stdout == "0\\n"
libc = ctypes.CDLL(None); libc.getenv.restype = ctypes.c_char_p
assert libc.getenv(b"CUDA_VISIBLE_DEVICES") == b"0"
"""
    done = world.carve("run", "--memory", "2GiB", "--device", "3", "--", "/usr/bin/python3", "-c", program, "0")
    assert done.returncode == 0 and len(json.loads(done.stdout)) == 1, done.stderr

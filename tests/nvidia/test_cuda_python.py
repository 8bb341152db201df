"""Unmodified cuda-bindings of NVIDIA and Numba find the same entries as without Carve and, in a slice, its
device."""
import functools
import json
import sys

import pytest

from conftest import GiB
from real_driver import ALL, INITIALISED, WAYS, call, environment, in_slice, names, python, shims, tool

# Prints which entry each function pointer of the bindings is, as in lookups.cc by the first name for which
# dlsym returns the same address.
BINDINGS = """
import ctypes, json, sys
from cuda.bindings import driver
try:
    from cuda.bindings._bindings.cydriver import _inspect_function_pointers
except ImportError:
    from cuda.bindings._internal.driver import _inspect_function_pointers

library, first = ctypes.CDLL("libcuda.so.1"), {None: "-", 0: "-"}
for name in open(sys.argv[1]).read().split():
    if hasattr(library, name):
        first.setdefault(ctypes.cast(getattr(library, name), ctypes.c_void_p).value, name)

def result(call, *arguments):
    try:
        return str(call(*arguments))
    except Exception as error:
        return f"{type(error).__name__}: {error}"

try:
    pointers = {name: first.get(pointer, "?") for name, pointer in _inspect_function_pointers().items()}
except RuntimeError as error:
    pointers = str(error)
calls = [("cuInit", 0), ("cuDriverGetVersion",), ("cuDeviceGetCount",), ("cuDeviceGet", 0), ("cuDeviceGet", 1), ("cuDeviceGetName", 40, 0),
         ("cuDeviceTotalMem", 0), ("cuCtxSynchronize",), ("cuMemGetInfo",), ("cuMemAlloc", 1 << 20),
         ("cuGetProcAddress", b"cuMemAlloc", 1, 0)]
out = {" ".join(map(str, words)): result(getattr(driver, words[0]), *words[1:]) for words in calls}
uuid = result(lambda: bytes(driver.cuDeviceGetUuid(0)[1].bytes).hex())
print(json.dumps({"pointers": pointers, "calls": out, "uuid": uuid}))
"""

# Numba's own driver, as it was before it moved to the bindings: what it looks up for each function, and by each of the suffixes that
# versions of Numba have tried. The first call initialises the driver.
NUMBA = """
import json
from numba.cuda.cudadrv import driver, drvapi
SUFFIXES = ("_v3", "_v2", "_v2_ptds", "_v2_ptsz", "_ptds", "_ptsz")
found, devices = {}, "none"
try:
    count = driver.driver.get_device_count()
    devices = [[str(d.uuid), list(d.compute_capability)] for d in map(driver.driver.get_device, range(count))]
except driver.CudaSupportError as error:
    devices = str(error)
for name in drvapi.API_PROTOTYPES:
    found[name] = [driver.driver._find_api(name).__name__] if isinstance(devices, list) else []
    found[name] += [suffix for suffix in SUFFIXES if hasattr(driver.driver.lib, name + suffix)]
print(json.dumps({"found": found, "devices": devices, "binding": bool(driver.USE_NV_BINDING)}))
"""

# cuda-bindings 12.9, which looks the names up by itself, and 13.5.
INTERPRETERS = {"12.9": lambda: sys.executable, "13.5": lambda: str(tool("python"))}
HOOKED = WAYS[1:]
PER_THREAD = {"legacy": {}, "per-thread": {"CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM": "1", "NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM": "1"}}


@pytest.fixture(scope="module")
def bindings(tmp_path_factory):
    """bindings(major, release): runs the program above in the interpreter with these bindings."""
    pytest.importorskip("cuda.bindings")
    folder = tmp_path_factory.mktemp("names")

    def program(major, release):
        file = folder / major
        file.write_text("\n".join(names(major, "libcuda.so.1")))
        return python(BINDINGS, str(file), interpreter=INTERPRETERS[release]())
    return program


@pytest.fixture(scope="module")
def uuids(shared_world):
    return [d["uuid"] for d in shared_world.json("devices")["devices"]]


@functools.cache
def found_natively(words, major, stream, uuids):
    return parsed(call(words, {**environment(major, gpus=uuids), **PER_THREAD[stream]}))


def native(words, major, uuids, stream="legacy"):
    return found_natively(tuple(words), major, stream, tuple(uuids))


def outside(world, words, major, uuids, stream):
    """Returns what a program outside of slices prints with Carve."""
    with shims(major, world.socket) as folder:
        return [parsed(call(words, {**environment(major, way, folder, uuids), **PER_THREAD[stream], "CARVE_SOCKET": str(world.socket)}))
                for way in HOOKED]


def inside(world, words, major, uuids, way):
    """Returns what it prints in a slice on the second device."""
    with shims(major, world.socket) as folder:
        return parsed(in_slice(world, words, environment(major, way, folder, uuids), "--device", "1"))


def parsed(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("stream", PER_THREAD)
@pytest.mark.parametrize("release", INTERPRETERS)
@pytest.mark.parametrize("major", ALL)
def test_the_bindings_find_what_the_driver_has(shared_world, bindings, uuids, major, release, stream):
    words = bindings(major, release)
    expected = native(words, major, uuids, stream)
    assert outside(shared_world, words, major, uuids, stream) == [expected] * len(HOOKED)
    pointers = expected["pointers"]
    if (major, release) == ("470", "13.5"):
        assert pointers == "Failed to get cuGetProcAddress_v2"
        return
    assert sum(name != "-" for name in pointers.values()) > 350 and "?" not in pointers.values()
    assert pointers["__cuMemAlloc_v2"] == "cuMemAlloc_v2"
    assert pointers["__cuLaunchKernel"] == ("cuLaunchKernel" if stream == "legacy" else "cuLaunchKernel_ptsz")
    assert "CUDA_SUCCESS" in expected["calls"]["cuInit 0"] or major == "470"


@pytest.mark.parametrize("way", HOOKED)
@pytest.mark.parametrize("release", INTERPRETERS)
@pytest.mark.parametrize("major", INITIALISED)
def test_the_bindings_see_the_device_of_their_slice(shared_world, bindings, uuids, major, release, way):
    words = bindings(major, release)
    expected, found = native(words, major, uuids), inside(shared_world, words, major, uuids, way)
    assert found["pointers"] == expected["pointers"]
    assert [expected["uuid"], found["uuid"]] == [uuid.removeprefix("GPU-").replace("-", "") for uuid in uuids]
    differ = {name for name, result in expected["calls"].items() if found["calls"][name] != result}
    assert differ == {"cuDeviceGetCount", "cuDeviceGet 1", "cuDeviceTotalMem 0"}
    assert found["calls"]["cuDeviceGetCount"] == expected["calls"]["cuDeviceGetCount"].replace(" 2)", " 1)")
    assert "CUDA_ERROR_INVALID_DEVICE" in found["calls"]["cuDeviceGet 1"] and str(2 * GiB) in found["calls"]["cuDeviceTotalMem 0"]


@pytest.mark.parametrize("stream", PER_THREAD)
@pytest.mark.parametrize("major", ALL)
def test_numba_finds_the_names_that_the_driver_has(shared_world, uuids, major, stream):
    words = python(NUMBA, interpreter=str(tool("python")))
    expected = native(words, major, uuids, stream)
    assert outside(shared_world, words, major, uuids, stream) == [expected] * len(HOOKED)
    found = expected["found"]
    assert not expected["binding"] and len(found) > 50
    # CUDA 13 has these names. Versions of Numba that try "_v2" first would call them with an older driver's
    # arguments.
    assert "_v2" not in found["cuCtxSynchronize"] and "_v2" not in found["cuCtxGetDevice"]
    if major != "470":
        assert found["cuLaunchKernel"][0] == ("cuLaunchKernel" if stream == "legacy" else "cuLaunchKernel_ptsz")
        assert len(expected["devices"]) == 2


@pytest.mark.parametrize("way", HOOKED)
@pytest.mark.parametrize("major", INITIALISED)
def test_numba_sees_the_device_of_its_slice(shared_world, uuids, major, way):
    words = python(NUMBA, interpreter=str(tool("python")))
    expected = native(words, major, uuids)
    assert expected["devices"] == [[uuid, [8, 6]] for uuid in uuids]
    assert inside(shared_world, words, major, uuids, way) == {**expected, "devices": [[uuids[1], [8, 6]]]}

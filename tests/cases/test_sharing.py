"""Memory that one process passes to another: within a slice it is charged once, from another slice it is refused."""
import json

import pytest

from conftest import GiB, MiB

START = """
import ctypes, json, os, socket, subprocess, sys, time
from ctypes import byref, c_int, c_size_t, c_uint64, c_ulonglong, c_void_p
cu = ctypes.CDLL("libcuda.so.1")
MiB, FD = 1 << 20, 1

class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]

class Properties(ctypes.Structure):  # CUmemAllocationProp: pinned, as a descriptor, on device 0.
    _fields_ = [("type", c_int), ("handles", c_int), ("location", c_int), ("device", c_int), ("rest", ctypes.c_ubyte * 16)]

class PoolProperties(ctypes.Structure):  # CUmemPoolProps, the same.
    _fields_ = [("type", c_int), ("handles", c_int), ("location", c_int), ("device", c_int), ("rest", ctypes.c_ubyte * 72)]

def must(result):
    assert result == 0, f"error {result}"

def begin():
    context = c_void_p()
    must(cu.cuInit(0))
    must(cu.cuDevicePrimaryCtxRetain(byref(context), 0))
    must(cu.cuCtxSetCurrent(context))

def free():
    bytes, total = c_size_t(), c_size_t()
    must(cu.cuMemGetInfo_v2(byref(bytes), byref(total)))
    return bytes.value
"""

# Prints the data that an importer needs, and passes the descriptor to each process that connects; ends with its input.
EXPORTER = START + """
begin()
kind, path = sys.argv[1:3]
pointer, handle, fd, before = c_uint64(), Handle(), c_int(-1), free()
if kind == "ipc":
    must(cu.cuMemAlloc_v2(byref(pointer), c_size_t(100 * MiB)))
    must(cu.cuIpcGetMemHandle(byref(handle), pointer))
elif kind == "vmm":
    memory = c_ulonglong()
    must(cu.cuMemCreate(byref(memory), c_size_t(100 * MiB), byref(Properties(1, FD, 1, 0)), c_ulonglong(0)))
    must(cu.cuMemExportToShareableHandle(byref(fd), memory, FD, c_ulonglong(0)))
else:
    pool = c_void_p()
    must(cu.cuMemPoolCreate(byref(pool), byref(PoolProperties(1, FD, 1, 0))))
    must(cu.cuMemAllocFromPoolAsync(byref(pointer), c_size_t(96 * MiB), pool, None))
    must(cu.cuMemPoolExportToShareableHandle(byref(fd), pool, FD, c_ulonglong(0)))
server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen()
held = free()
print(json.dumps({"took": before - held}), flush=True)
for importer in range(2):
    if importer == 1:  # A sibling in the same slice, which attaches for itself.
        inside = subprocess.Popen([sys.executable, "-c", os.environ["IMPORTER"], kind, path], stdout=subprocess.PIPE, text=True)
    connection, _ = server.accept()
    socket.send_fds(connection, [bytes(handle)], [fd.value] if fd.value >= 0 else [])
    connection.close()
said = inside.communicate(timeout=30)[0]
for tries in range(100):  # The importer's own context is given back when its death is seen.
    if free() == held:
        break
    time.sleep(0.05)
print(said, free(), flush=True)
"""

IMPORTER = START + """
kind, path = sys.argv[1:3]
connection = socket.socket(socket.AF_UNIX)
connection.connect(path)
said, fds, _, _ = socket.recv_fds(connection, 64, 1)
begin()
before = free()
if kind == "ipc":
    pointer = c_uint64()
    result = cu.cuIpcOpenMemHandle_v2(byref(pointer), Handle.from_buffer_copy(said), 1)
elif kind == "vmm":
    memory = c_ulonglong()
    result = cu.cuMemImportFromShareableHandle(byref(memory), c_void_p(fds[0]), FD)
else:
    pool = c_void_p()
    result = cu.cuMemPoolImportFromShareableHandle(byref(pool), c_void_p(fds[0]), FD, c_ulonglong(0))
print(result, before - free(), end="")
"""


@pytest.mark.parametrize("kind, refusal", [("ipc", 205), ("vmm", 800), ("pool", 1)])
def test_an_import_is_charged_at_its_exporter_and_from_another_slice_refused(world, kind, refusal):
    """CUDA_ERROR_MAP_FAILED, NOT_PERMITTED, INVALID_VALUE: the documented errors of those calls."""
    path = str(world.folder / "exports")
    exporter = world.begin("run", "--memory", "2GiB", "--device", "0", "--", "/usr/bin/python3", "-c", EXPORTER, kind, path,
                           env={"IMPORTER": IMPORTER})
    took = json.loads(exporter.stdout.readline())["took"]
    assert took == (96 if kind == "pool" else 100) * MiB
    stranger = world.carve("run", "--memory", "2GiB", "--device", "0", "--", "/usr/bin/python3", "-c", IMPORTER, kind, path)
    assert stranger.stdout == f"{refusal} 0", stranger.stdout + stranger.stderr
    out, error = exporter.communicate(timeout=60)
    result, charged, free = map(int, out.split())
    assert (result, charged) == (0, 0), error
    # The charges were the exporter's context, the importer's (now gone), and the memory once.
    assert free == 2 * GiB - 256 * MiB - took

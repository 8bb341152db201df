"""Tests memory that one process passes to another: within a slice it is charged once, and an import from
another slice fails."""
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

class PoolProperties(ctypes.Structure):  # CUmemPoolProps with the same properties.
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
    if importer == 1:  # A sibling in the same slice, which attaches by itself.
        inside = subprocess.Popen([sys.executable, "-c", os.environ["IMPORTER"], kind, path], stdout=subprocess.PIPE, text=True)
    connection, _ = server.accept()
    socket.send_fds(connection, [bytes(handle)], [fd.value] if fd.value >= 0 else [])
    connection.close()
said = inside.communicate(timeout=30)[0]
for tries in range(100):  # The importer's context is released when its death is noticed.
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
def test_an_import_is_charged_to_its_exporter_and_fails_from_another_slice(world, kind, refusal):
    """The errors are CUDA_ERROR_MAP_FAILED, NOT_PERMITTED and INVALID_VALUE, as documented for these calls."""
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
    # The charges were the exporter's context, the importer's context (now released), and the memory once.
    assert free == 2 * GiB - 256 * MiB - took


# Exported memory lives, and is charged, as long as any process or descriptor holds it. BROKER holds what one
# process exported and passes it on. The agent does not know it, because it makes no CUDA call. Each program
# reads its steps from its input, one per line.
STEPS = START + """
import array
kind = sys.argv[1]
memory, pointer, address, opened, handle, fd = c_ulonglong(), c_uint64(), c_uint64(), c_uint64(), Handle(), c_int(-1)
pool, imported = c_void_p(), c_void_p()
class Access(ctypes.Structure):
    _fields_ = [("location", c_int), ("device", c_int), ("flags", c_int)]

def make():
    if kind == "ipc":
        must(cu.cuMemAlloc_v2(byref(pointer), c_size_t(BYTES)))
    elif kind == "pool":
        must(cu.cuMemPoolCreate(byref(pool), byref(PoolProperties(1, FD, 1, 0))))
        must(cu.cuMemAllocFromPoolAsync(byref(pointer), c_size_t(BYTES), pool, None))
    else:
        must(cu.cuMemCreate(byref(memory), c_size_t(BYTES), byref(Properties(1, FD, 1, 0)), c_ulonglong(0)))

def export():
    if kind == "ipc":
        must(cu.cuIpcGetMemHandle(byref(handle), pointer))
    elif kind == "pool":
        must(cu.cuMemPoolExportToShareableHandle(byref(fd), pool, FD, c_ulonglong(0)))
        must(cu.cuMemPoolExportPointer(byref(handle), pointer))
    else:
        must(cu.cuMemExportToShareableHandle(byref(fd), memory, FD, c_ulonglong(0)))

def send():
    socket.send_fds(channel, [bytes(handle)], [fd.value] if fd.value >= 0 else [])

def receive():
    global handle
    said, fds, _, _ = socket.recv_fds(channel, 64, 1)
    handle = Handle.from_buffer_copy(said)
    fd.value = fds[0] if fds else -1

def open_():
    if kind == "ipc":
        must(cu.cuIpcOpenMemHandle_v2(byref(opened), handle, 1))
        return
    if kind == "pool":
        must(cu.cuMemPoolImportFromShareableHandle(byref(pool), c_void_p(fd.value), FD, c_ulonglong(0)))
        must(cu.cuMemPoolImportPointer(byref(opened), pool, byref(handle)))
        return
    must(cu.cuMemImportFromShareableHandle(byref(memory), c_void_p(fd.value), FD))
    must(cu.cuMemAddressReserve(byref(address), c_size_t(BYTES), c_size_t(0), c_uint64(0), c_ulonglong(0)))
    must(cu.cuMemMap(address, c_size_t(BYTES), c_size_t(0), memory, c_ulonglong(0)))
    must(cu.cuMemSetAccess(address, c_size_t(BYTES), byref(Access(1, 0, 3)), c_size_t(1)))
    must(cu.cuMemRelease(memory))

def shut():
    if fd.value >= 0:
        os.close(fd.value)
    fd.value = -1

def release():
    must(cu.cuMemRelease(memory) if kind == "vmm" else cu.cuMemFree_v2(pointer))
    if kind == "pool":
        must(cu.cuMemPoolTrimTo(pool, c_size_t(0)))

def close():
    if kind == "pool":
        must(cu.cuMemFree_v2(opened))
    else:
        must(cu.cuIpcCloseMemHandle(opened) if kind == "ipc" else cu.cuMemUnmap(address, c_size_t(BYTES)))

def own():  # The exporter imports its own pool, which the driver allows.
    must(cu.cuMemPoolImportFromShareableHandle(byref(imported), c_void_p(fd.value), FD, c_ulonglong(0)))
    must(cu.cuMemPoolImportPointer(byref(opened), imported, byref(handle)))

def close_own():
    must(cu.cuMemFree_v2(opened))
    must(cu.cuMemPoolDestroy(imported))

def destroy():
    must(cu.cuMemPoolDestroy(pool))

def fill():  # Waits for the memory that must become free, then allocates all that there is.
    got, total, end = c_uint64(), 0, time.monotonic() + 10
    while True:
        for step in (256 * MiB, 16 * MiB, 2 * MiB):
            while cu.cuMemAlloc_v2(byref(got), c_size_t(step)) == 0:
                total += step
        if total >= int(os.environ["WANTED"]) or time.monotonic() > end:
            return total
        time.sleep(0.01)

def end():
    sys.exit()

BYTES = 512 * MiB
channel = socket.socket(fileno=int(sys.argv[2]))
if kind != "broker":
    begin()
print("ready", flush=True)
for line in sys.stdin:
    said = {"open": open_}.get(line.strip(), globals().get(line.strip()))()
    print(said, flush=True)
"""

# The program of the slice: starts A, B and the broker and lets them take the steps of the case, "A make", "B fill"; "A kill" kills one.
# Prints what "fill" allocated.
STAGE = """
import json, os, signal, socket, subprocess, sys
ends = dict(zip("AB", socket.socketpair()))
actors = {}
for step in json.loads(os.environ["STAGED"]):
    who, what = step.split()
    if who not in actors:
        end = ends["A" if who == "A" else "B"]
        kind = "broker" if who == "broker" else sys.argv[1]
        actors[who] = subprocess.Popen([sys.executable, "-c", os.environ["STEPS"], kind, str(end.fileno())], text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[end.fileno()])
        assert actors[who].stdout.readline() == "ready\\n"
    actor = actors[who]
    if what == "kill":
        actor.kill()
        actor.wait()
        continue
    actor.stdin.write(what + "\\n")
    actor.stdin.flush()
    said = actor.stdout.readline().strip()
    assert said or what == "end", (step, actor.wait())
    if what == "fill":
        print(said, flush=True)
for actor in actors.values():
    actor.kill()
    actor.wait()
"""

BEGIN = ["A make", "A export", "A send", "B receive", "B open", "B shut"]
LIVES_ON = {  # The memory lives in B, or in a descriptor, when the last step fills the slice.
    "the exporter releases all": BEGIN + ["A shut", "A release", "B fill"],
    "a third process fills": BEGIN + ["A shut", "A release", "C fill"],
    "the exporter is killed": BEGIN + ["A kill", "B fill"],
    "the exporter ends": BEGIN + ["A end", "C fill"],
    "the exporter fills": BEGIN + ["A shut", "A release", "A fill"],
}
ONLY_A_DESCRIPTOR = {
    "the descriptor is on its way": ["A make", "A export", "A send", "A shut", "A release", "A fill"],
    "the descriptor is on its way and the exporter killed": ["A make", "A export", "A send", "A kill", "C fill"],
    "a process without CUDA has the descriptor": ["A make", "A export", "A send", "broker receive", "A kill", "C fill"],
}
IS_FREE = {
    "the importer closes": BEGIN + ["A shut", "A release", "B close", "A fill"],
    "the importer is killed": BEGIN + ["A shut", "A release", "C free", "B kill", "C fill"],
    "both are killed": BEGIN + ["A kill", "B kill", "C fill"],
    "no process imported": ["A make", "A export", "A shut", "A release", "A fill"],
    "a process without CUDA closes the descriptor": ["A make", "A export", "A send", "A kill", "broker receive", "broker shut", "C fill"],
}
OWN = ["A make", "A export", "A own", "A shut", "A release"]
OF_ITS_OWN = {  # A pool that its exporter imported.
    "its exporter imported it": (OWN + ["A fill"], 512 * MiB),
    "its exporter imported it and destroyed its own": (OWN + ["A destroy", "C fill"], 512 * MiB),
    "its exporter closed what it imported": (OWN + ["A close_own", "A fill"], 0),
    "its exporter closed what it imported and another fills": (OWN + ["A destroy", "A close_own", "C fill"], 0),
    "its exporter is killed": (OWN + ["A kill", "C fill"], 0),
}
CASES = [(kind, steps, 512 * MiB) for kind in ("vmm", "ipc", "pool") for steps in LIVES_ON.values()] + \
        [("vmm", steps, 512 * MiB) for steps in ONLY_A_DESCRIPTOR.values()] + \
        [("vmm", steps, 0) for steps in IS_FREE.values()] + \
        [(kind, steps, 0) for kind in ("ipc", "pool") for name, steps in IS_FREE.items() if "descriptor" not in name] + \
        [("pool", *steps_and_held) for steps_and_held in OF_ITS_OWN.values()]
NAMES = [f"{kind}-{name}" for kind in ("vmm", "ipc", "pool") for name in LIVES_ON] + [f"vmm-{name}" for name in [*ONLY_A_DESCRIPTOR, *IS_FREE]] + \
        [f"{kind}-{name}" for kind in ("ipc", "pool") for name in IS_FREE if "descriptor" not in name] + \
        [f"pool-{name}" for name in OF_ITS_OWN]


@pytest.mark.parametrize("kind, steps, held", CASES, ids=NAMES)
def test_exported_memory_is_charged_as_long_as_it_lives(world, kind, steps, held):
    # Processes with a context: of 256 MiB each, as long as they live.
    began = {step.split()[0] for step in steps} - {"broker"}
    ended = {step.split()[0] for step in steps if step.endswith((" kill", " end"))}
    wanted = 4 * GiB - held - 256 * MiB * len(began - ended)
    done = world.carve("run", "--memory", "4GiB", "--device", "0", "--name", "staged", "--", "/usr/bin/python3", "-c", STAGE, kind,
                       env={"STEPS": STEPS, "STAGED": json.dumps(steps), "WANTED": str(wanted)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) == wanted, "more than the quota, or never free again"

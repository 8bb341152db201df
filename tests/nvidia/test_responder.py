"""Tests the responder: unmodified libraries initialise with it, and requests that it does not know fail
clearly."""
import pytest

from real_driver import INITIALISED, TWO, call, driver, environment, python, version

DEVICES = """
import ctypes, json
cu = ctypes.CDLL("libcuda.so.1")
count, uuids = ctypes.c_int(-1), []
assert cu.cuInit(0) == 0
assert cu.cuDeviceGetCount(ctypes.byref(count)) == 0
for i in range(count.value):
    uuid, name, memory = (ctypes.c_ubyte * 16)(), ctypes.create_string_buffer(64), ctypes.c_size_t()
    assert cu.cuDeviceGetUuid(uuid, i) == 0 and cu.cuDeviceGetName(name, 64, i) == 0
    assert cu.cuDeviceTotalMem_v2(ctypes.byref(memory), i) == 0
    assert name.value == b"NVIDIA A10" and 22 << 30 <= memory.value <= 24 << 30, (name.value, memory.value)
    uuids.append(bytes(uuid).hex())
print(" ".join(uuids))
"""


@pytest.mark.parametrize("major", INITIALISED)
@pytest.mark.parametrize("count", [1, 2, 8])
def test_libcuda_initialises_with_the_given_devices(major, count):
    gpus = [f"GPU-{i + 1:02x}020304-0506-0708-090a-0b0c0d0e0f10" for i in range(count)]
    done = call(python(DEVICES), environment(major, gpus=gpus))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [uuid.removeprefix("GPU-").replace("-", "") for uuid in gpus]


ADDRESSES = """
import ctypes
cu, nvml = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvidia-ml.so.1")
assert cu.cuInit(0) == 0 and nvml.nvmlInit_v2() == 0
for i in 0, 1:
    address, device, index = ctypes.create_string_buffer(32), ctypes.c_void_p(), ctypes.c_uint(-1)
    assert cu.cuDeviceGetPCIBusId(address, 32, i) == 0
    assert nvml.nvmlDeviceGetHandleByPciBusId_v2(address, ctypes.byref(device)) == 0, address.value
    assert nvml.nvmlDeviceGetIndex(device, ctypes.byref(index)) == 0 and index.value == i
    print(address.value.decode())
"""


@pytest.mark.parametrize("major", INITIALISED)
def test_nvml_finds_a_device_by_the_address_that_libcuda_reports(major):
    done = call(python(ADDRESSES), environment(major))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0000:01:00.0", "0000:02:00.0"]


@pytest.mark.parametrize("major", INITIALISED)
def test_nvidia_smi_prints_its_table(major):
    done = call([driver(major) / "nvidia-smi"], environment(major))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Driver Version: {version(major)}" in done.stdout
    assert done.stdout.count("NVIDIA A10") == 2 and "24576MiB" in done.stdout
    done = call([driver(major) / "nvidia-smi", "-L"], environment(major))
    assert done.stdout == "".join(f"GPU {i}: NVIDIA A10 (UUID: {uuid})\n" for i, uuid in enumerate(TWO))


@pytest.mark.parametrize("major", INITIALISED)
def test_another_version_of_the_kernel_modules_is_rejected(major):
    done = call([driver(major) / "nvidia-smi"], {**environment(major), "RESPONDER_VERSION": "535.1"})
    assert done.returncode != 0 and "version mismatch" in done.stdout


HOSTILE = """
import ctypes, errno, os, random
libc = ctypes.CDLL(None, use_errno=True)
libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]

def ioctl(file, number, size, argument, type=ord("F")):
    done = libc.ioctl(file, 3 << 30 | size << 16 | type << 8 | number, argument)
    return 0 if done == 0 else ctypes.get_errno()

def words(*values):
    return (ctypes.c_uint32 * len(values))(*values)

file, uvm = libc.open(b"/dev/nvidiactl", 2), libc.open(b"/dev/nvidia-uvm", 2)
assert file >= 0 and uvm >= 0 and libc.open(b"/dev/nvidia7", 2) == -1 and libc.open(b"/dev/nvidia-modeset", 2) == -1
short = (0x99, 32), (0x2a, 8), (0x2b, 4), (0x29, 4), (0x27, 40), (0x34, 24), (0x4a, 120), (0x4e, 48), (0x4f, 24), (0x57, 48), (0x58, 40)
for number, size in short:
    assert ioctl(file, number, size, words(*[0] * 32)) == errno.EINVAL, hex(number)
assert ioctl(file, 0x2a, 32, words(*[0] * 32), type=ord("X")) == errno.EINVAL
assert ioctl(uvm, 0x63, 0, words(*[0] * 32)) == errno.EINVAL
memory_ioctls = (0x27, 56), (0x34, 28), (0x4a, 184), (0x4e, 56), (0x4f, 32), (0x57, 56), (0x58, 48)
for number, size in (0x2a, 32), (0x2b, 48), (0x29, 16), (0xc8, 2304), (0xd2, 72), *memory_ioctls:
    for address in None, 8, 1 << 46:
        assert ioctl(file, number, size, address) == errno.EFAULT, (hex(number), address)

root = words(*[0] * 12)
assert ioctl(file, 0x2b, 48, root) == 0 and root[10] == 0 and root[2] != 0
client = root[2]

def alloc(parent, handle, class_, instance=0):
    parameters = words(instance, *[0] * 31)
    a = words(client, parent, handle, class_, *[0] * 8)
    ctypes.cast(ctypes.byref(a, 16), ctypes.POINTER(ctypes.c_uint64))[0] = ctypes.addressof(parameters)
    assert ioctl(file, 0x2b, 48, a) == 0
    return a[10]

def control(object, command, size=256, address=None, by=client):
    buffer = words(*[0] * 256)
    a = words(by, object, command, 0, 0, 0, size, 0)
    ctypes.cast(ctypes.byref(a, 16), ctypes.POINTER(ctypes.c_uint64))[0] = ctypes.addressof(buffer) if address is None else address
    assert ioctl(file, 0x2a, 32, a) == 0
    return a[7]

assert alloc(client, 1, 0x80) == 0 and alloc(1, 2, 0x2080) == 0
assert alloc(client, 3, 0x80, instance=2) == 0x26
assert alloc(99, 3, 0x2080) == 0x36 and alloc(1, 3, 0xdead) == 0x22
assert control(2, 0x2080014a, 268) == 0
assert control(2, 0x2080014a, 12) == 0x3a and control(2, 0x2080014a, 1 << 30) == 0x3a
assert control(2, 0x2080014a, 268, address=8) == 0x3d
assert control(2, 0xdead) == 0x56 and control(2, 0) == 0x56
assert control(99, 0x101) == 0x33 and control(2, 0x101, by=77) == 0x23

def memory(handle, size, attr=0, class_=0x40, parent=1):
    # NV_ESC_RM_ALLOC with NV_MEMORY_ALLOCATION_PARAMS: word 6 has the attributes, and words 16 and 17 the
    # size.
    parameters, a = words(*[0] * 32), words(client, parent, handle, class_, *[0] * 8)
    parameters[6] = attr
    ctypes.cast(ctypes.byref(parameters, 64), ctypes.POINTER(ctypes.c_uint64))[0] = size
    ctypes.cast(ctypes.byref(a, 16), ctypes.POINTER(ctypes.c_uint64))[0] = ctypes.addressof(parameters)
    assert ioctl(file, 0x2b, 48, a) == 0
    return a[10], parameters[16]

def map_gpu(handle, address, length, offset=0):
    a = (ctypes.c_uint64 * 7)()
    a[0], a[1], a[2], a[3], a[5] = 1 << 32 | client, handle << 32, offset, length, address
    assert ioctl(file, 0x57, 56, a) == 0
    return a[6] & 0xffffffff

assert memory(20, 5) == (0, 65536) and memory(21, 5, 1 << 23) == (0, 4096) and memory(22, 5, 3 << 23) == (0, 2 << 20)
assert memory(20, 5)[0] == 0x19 and memory(23, 0)[0] == 0x1f and memory(23, 1 << 62)[0] == 0x51 and memory(23, (1 << 64) - 1)[0] == 0x1f
assert memory(23, 24 << 30)[0] == 0x51 and memory(23, 23 << 30)[0] == 0, "24 GiB, of which some KiB are used"
assert map_gpu(20, 1 << 40, 65536) == 0 and map_gpu(20, 1 << 40, 65537) == 0x1f and map_gpu(20, 1 << 40, 1, 1 << 63) == 0x1f
assert map_gpu(20, (1 << 64) - 4096, 65536) == 0x1f and map_gpu(99, 0, 4096) == 0x33
foreign = (ctypes.c_uint64 * 7)(1 << 32 | client, 0x71 << 32 | 30, 0, 4096, (1 << 40) - 1, 0, 0)
assert ioctl(file, 0x27, 56, foreign) == 0 and foreign[5] & 0xffffffff == 0x1e, "pages that the process does not have"
free = words(client, client, 1, 0)
assert ioctl(file, 0x29, 16, free) == 0 and free[3] == 0
assert control(2, 0x2080014a, 268) == 0x33, "an object ends with its parent"
chance = random.Random(1)
for i in range(20000):
    argument = (ctypes.c_ubyte * 16384)(*chance.randbytes(512))  # UVM_MAP_EXTERNAL_ALLOCATION_PARAMS has 9264 bytes.
    address = chance.choice([ctypes.addressof(argument), chance.getrandbits(47), 0])
    number = chance.choice([0x29, 0x2a, 0x2b, 0xc8, 0xd2, *[number for number, _ in memory_ioctls], chance.getrandbits(8)])
    ioctl(chance.choice([file, uvm]), number, chance.choice([32, 48, 72, 500]), address)
print("alive")
"""


def test_requests_unknown_to_the_responder_fail_as_in_the_kernel(tmp_path):
    log = tmp_path / "log"
    done = call(python(HOSTILE), {**environment("550"), "RESPONDER_LOG": str(log)})
    assert done.returncode == 0 and done.stdout == "alive\n", done.stderr
    assert "control 0xdead: 0x56\n" in log.read_text() and "class 0xdead: 0x22\n" in log.read_text()


CHANNEL = HOSTILE.split("for number, size in short")[0].rsplit("short =", 1)[0] + """
import time
root = words(*[0] * 12)
assert ioctl(file, 0x2b, 48, root) == 0
client = root[2]

def alloc(parent, handle, class_, *values):
    parameters = words(*values, *[0] * (32 - len(values)))
    a = words(client, parent, handle, class_, *[0] * 8)
    ctypes.cast(ctypes.byref(a, 16), ctypes.POINTER(ctypes.c_uint64))[0] = ctypes.addressof(parameters)
    assert ioctl(file, 0x2b, 48, a) == 0
    return a[10]

def mapped(handle, size):
    a = words(client, 1, handle, 0, 0, 0, size, 0, 0, 0, 0, 0, file, 0)
    assert ioctl(file, 0x4e, 56, a) == 0 and a[10] == 0
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    return ctypes.cast(libc.mmap(None, size, 3, 1, file, 0), ctypes.POINTER(ctypes.c_uint32))

def until(true):
    end = time.monotonic() + 30
    while not true() and time.monotonic() < end:
        time.sleep(0.001)
    return true()

SIZE, AT, RELEASE = 65536, 1 << 36, 1 << 29 | 5 << 16 | 0x5c >> 2
assert alloc(client, 1, 0x80) == 0
for handle in 20, 21, 22:
    assert alloc(1, handle, 0x3e, *[0] * 16, SIZE) == 0
memory, control, errors = (mapped(handle, SIZE) for handle in (20, 21, 22))
a = words(client, 1, 0, 20, 0, 0, SIZE, 0, 0, 0, 0, AT >> 32, 0, 0)
assert ioctl(file, 0x57, 56, a) == 0 and a[12] == 0
assert alloc(1, 30, 0xc56f, 22, 0, 0, AT >> 32, 0, 0, 0, 0, 21) == 0x1f, "a ring without entries"
assert alloc(1, 30, 0xc56f, 22, 0, 0, AT >> 32, 8, 0, 0, 0, 99) == 0x33, "no such memory for the control structure"
assert alloc(1, 30, 0xc56f, 22, 0, 0, AT >> 32, 8, 0, 0, 0, 21) == 0

def submit(put, *methods):
    for i, word in enumerate(methods):
        memory[put * 1024 + i] = word
    memory[2 * put - 2], memory[2 * put - 1] = put * 4096, AT >> 32 | len(methods) << 10
    control[0x8c // 4] = put

submit(1, RELEASE, 0xf000, AT >> 32, 77, 0, 1)
assert until(lambda: memory[0xf000 // 4] == 77 and control[0x88 // 4] == 1)
submit(2, RELEASE, 0xf000, AT >> 32, 78, 0, 0)  # Waits until the semaphore has 78.
time.sleep(0.05)
assert control[0x88 // 4] == 1
memory[0xf000 // 4] = 78
assert until(lambda: control[0x88 // 4] == 2)
submit(3, RELEASE, 0xf000, (AT >> 32) + 1, 79, 0, 1)  # The address is not mapped.
assert until(lambda: errors[3] >> 16 == 0xffff) and errors[2] == 31 and control[0x88 // 4] == 2
free = words(client, client, 1, 0)
assert ioctl(file, 0x29, 16, free) == 0 and free[3] == 0
print("alive")
"""


def test_a_channel_executes_waits_and_faults():
    done = call(python(CHANNEL), environment("550"))
    assert done.returncode == 0 and done.stdout == "alive\n", done.stderr

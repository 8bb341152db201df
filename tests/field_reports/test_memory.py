"""Defects of memory that users of other interposers reported, each as a test. The list is table.md."""
from conftest import MiB, until


def test_free_memory_never_underflows_to_17_exabytes(world, inside):
    """More than the quota is in use because a thread's stack grew. The free memory is then 0 and does not
    underflow."""
    said = inside("""
import subprocess, time
begin()
nvml = Nvml()
free, total = info()
pieces = [allocate(free - 4 * MiB)]
must(cu.cuCtxSetLimit(0, c_size_t(64 << 10)))  # Allocates stack memory for every thread that the device can run.
end = time.monotonic() + 2
while time.monotonic() < end:
    free, total = info()
    one, two = nvml.memory(), nvml.memory2()
    for free, used in ((free, total - free), (one.free, one.used), (two.free, two.used)):
        assert free <= 2 << 30, f"{free} bytes free of 2 GiB"
        assert used < 1 << 40, f"{used} bytes used"
    time.sleep(0.05)
print("ok")
""")
    assert said == "ok\n"


def test_churn_of_asynchronous_memory_causes_no_false_out_of_memory(inside):
    inside("""
import random
random.seed(7)
begin()
free, _ = info()
held = []
for turn in range(4000):
    if held and random.random() < 0.5:
        must(cu.cuMemFreeAsync(held.pop(random.randrange(len(held))), None))
    elif len(held) < 40:
        held.append(allocate_async(random.choice((100, 3000, 1 * MiB, 7 * MiB, 20 * MiB))))
for p in held:
    must(cu.cuMemFreeAsync(p, None))
must(cu.cuCtxSynchronize())
assert info()[0] == free, f"{free - info()[0]} bytes are still charged"
allocate(free)  # All of it in one piece.
""")


def test_the_second_process_of_a_slice_sees_the_memory_used_by_the_first(world, inside):
    inside("""
import os
r, w = os.pipe()
first = os.fork()
if first == 0:
    begin()
    allocate(1000 * MiB)
    os.write(w, b"x")
    import time; time.sleep(60)
os.read(r, 1)
begin()
free, total = info()
assert total == 2 << 30
assert free < total - 1500 * MiB, f"{free} of {total} free: the sibling's memory and context are not seen"
pointer = c_uint64()
assert cu.cuMemAlloc_v2(byref(pointer), c_size_t(free + 2 * MiB)) == OUT_OF_MEMORY
allocate(free)
os.kill(first, 9)
""")


def test_with_CUDA_VISIBLE_DEVICES_the_second_device_is_charged_and_not_the_first(world, beside):
    beside("""
import os, time
os.environ["CUDA_VISIBLE_DEVICES"] = "1"
begin()
allocate(700 * MiB)
time.sleep(60)
""", "--devices", "2")
    def charges():
        return [p["charged_bytes"] for p in world.show("beside")["parts"]] if "beside" in world.slices() else []
    assert until(lambda: sum(charges()) >= 700 * MiB)
    first, second = charges()
    assert first == 0 and second >= 700 * MiB


def test_cuMemGetInfo_takes_null(inside):
    """As in the driver, either pointer may be null."""
    inside("""
begin()
free, total = c_size_t(), c_size_t()
native = cu.cuMemGetInfo_v2(byref(free), None), cu.cuMemGetInfo_v2(None, byref(total)), cu.cuMemGetInfo_v2(None, None)
assert native[0] in (0, 1) and native[1] in (0, 1), native
""")


def test_out_of_memory_has_cudas_own_name(inside):
    inside("""
begin()
free, _ = info()
name, pointer = ctypes.c_char_p(), c_uint64()
handle, properties = c_ulonglong(), Properties.on(0)
pitch = c_size_t()
for result in (cu.cuMemAlloc_v2(byref(pointer), c_size_t(3 << 30)),
               cu.cuMemAllocAsync(byref(pointer), c_size_t(3 << 30), None),
               cu.cuMemAllocManaged(byref(pointer), c_size_t(3 << 30), 1),
               cu.cuMemAllocPitch_v2(byref(pointer), byref(pitch), c_size_t(1 << 20), c_size_t(3 << 10), 16),
               cu.cuMemCreate(byref(handle), c_size_t(3 << 30), byref(properties), c_ulonglong(0))):
    assert result == OUT_OF_MEMORY, result
    must(cu.cuGetErrorName(result, byref(name)))
    assert name.value == b"CUDA_ERROR_OUT_OF_MEMORY"
assert info()[0] == free, "a refused call left something charged"
""")


def test_an_asynchronous_free_releases_memory_on_its_own_device(inside):
    """The memory is allocated on device 1 and freed while device 0 is current."""
    inside("""
contexts = [primary(0), primary(1)]
def free_on(device):
    must(cu.cuCtxSetCurrent(contexts[device]))
    return info()[0]
before = [free_on(0), free_on(1)]
pieces = [allocate(200 * MiB), allocate_async(64 * MiB)]
assert free_on(0) == before[0] and free_on(1) < before[1]
must(cu.cuCtxSetCurrent(contexts[0]))
must(cu.cuMemFreeAsync(pieces[0], None))
must(cu.cuMemFreeAsync(pieces[1], None))
for device in (0, 1):
    must(cu.cuCtxSetCurrent(contexts[device]))
    must(cu.cuCtxSynchronize())
assert [free_on(0), free_on(1)] == before
""", "--devices", "2")


def test_memory_by_handle_is_charged_to_its_own_device(inside):
    inside("""
contexts = [primary(0), primary(1)]
must(cu.cuCtxSetCurrent(contexts[1]))
before = info()[0]
must(cu.cuCtxSetCurrent(contexts[0]))
mine = info()[0]
handle, properties = c_ulonglong(), Properties.on(1)
must(cu.cuMemCreate(byref(handle), c_size_t(100 * MiB), byref(properties), c_ulonglong(0)))
assert info()[0] == mine
must(cu.cuCtxSetCurrent(contexts[1]))
assert info()[0] == before - 100 * MiB
must(cu.cuMemRelease(handle))
assert info()[0] == before
""", "--devices", "2")

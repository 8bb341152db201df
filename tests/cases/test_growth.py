"""Memory that no call allocates: heaps, stacks, queues and modules make a context grow, which the agent
measures and charges."""
import pytest

from conftest import MiB, until

STACK, FIFO, HEAP = 0, 1, 2  # CU_LIMIT_STACK_SIZE, CU_LIMIT_PRINTF_FIFO_SIZE, CU_LIMIT_MALLOC_HEAP_SIZE
LIMIT = "must(cu.cuCtxSetLimit({which}, c_size_t({size})))\n"
MODULE = '''
text = b""".version 6.0
.target sm_50
.address_size 64
.global .align 4 .b8 table[419430400];
.visible .entry nothing(.param .u64 p) { ret; }
"""
module = c_void_p()
must(cu.cuModuleLoadData(byref(module), text))
'''
GROWTH = {
    "heap": (LIMIT.format(which=HEAP, size=400 * MiB), 390 * MiB),
    "printf": (LIMIT.format(which=FIFO, size=300 * MiB), 290 * MiB),
    "stack": (LIMIT.format(which=STACK, size=8 << 10), 100 * MiB),
    "module": (MODULE, 390 * MiB),
}
HOLD = "\nimport time\nprint('grown', flush=True)\ntime.sleep(60)\n"


def charged(world):
    return world.show("beside")["parts"][0]["charged_bytes"] if "beside" in world.slices() else 0


@pytest.mark.parametrize("kind", GROWTH)
def test_the_growth_of_a_context_is_charged(world, beside, kind):
    text, least = GROWTH[kind]
    program = beside("begin()\n" + text + HOLD)
    assert program.stdout.readline() == "grown\n"
    assert until(lambda: charged(world) >= 256 * MiB + least), charged(world) // MiB
    assert charged(world) == world.show("beside")["parts"][0]["used_bytes"]


def test_growth_that_ends_is_released(world, beside):
    go = world.folder / "unload"
    program = beside("begin()\n" + MODULE +
                     f"import os, time\nprint('grown', flush=True)\nwhile not os.path.exists('{go}'): time.sleep(0.02)\n"
                     "must(cu.cuModuleUnload(module))\ntime.sleep(600)\n")
    assert program.stdout.readline() == "grown\n"
    assert until(lambda: charged(world) >= 640 * MiB)
    go.touch()
    assert until(lambda: charged(world) < 300 * MiB), charged(world) // MiB


def test_growth_beyond_the_quota_blocks_further_allocations_and_is_shown(world, beside):
    """The driver takes the memory without a call that could be rejected. Then the slice gets no more memory, and
    `carve show` has the reason."""
    program = beside("""
import time
begin()
kept = allocate(1700 * MiB)
must(cu.cuCtxSetLimit(2, c_size_t(600 * MiB)))
pointer, end = c_uint64(), time.monotonic() + 10
while cu.cuMemAlloc_v2(byref(pointer), c_size_t(1 * MiB)) == 0 and time.monotonic() < end:
    must(cu.cuMemFree_v2(pointer)); time.sleep(0.05)
print(cu.cuMemAlloc_v2(byref(pointer), c_size_t(512)), info()[0], flush=True)
must(cu.cuMemFree_v2(kept))
end = time.monotonic() + 10
while cu.cuMemAlloc_v2(byref(pointer), c_size_t(1 * MiB)) != 0 and time.monotonic() < end:
    time.sleep(0.05)
print(cu.cuMemAlloc_v2(byref(pointer), c_size_t(512)), flush=True)
time.sleep(60)
""")
    assert program.stdout.readline() == "2 0\n", "out of memory, and nothing free"
    assert program.stdout.readline() == "0\n", "with room again it gets memory again"
    assert any("further allocations are refused" in e["text"] for e in world.show("beside")["events"]), world.show("beside")["events"]

"""Crashes that users of other interposers reported, each as a test. The list is table.md."""
import shutil
import subprocess

import pytest

from conftest import LOAD, until


def test_memory_by_handle_and_peer_access_use_the_right_one_of_two_devices(inside):
    """As in NCCL, memory on each device is mapped for both, with either context current."""
    inside("""
primary(0)
for device in (0, 1):
    handle, properties, at = c_ulonglong(), Properties.on(device), c_uint64()
    size = c_size_t(8 * MiB)
    must(cu.cuMemCreate(byref(handle), size, byref(properties), c_ulonglong(0)))
    must(cu.cuMemAddressReserve(byref(at), size, c_size_t(0), c_uint64(0), c_ulonglong(0)))
    must(cu.cuMemMap(at, size, c_size_t(0), handle, c_ulonglong(0)))
    access = (Access * 1)(Access(Location(1, device), 3))
    must(cu.cuMemSetAccess(at, size, access, c_size_t(1)))
    must(cu.cuMemRelease(handle))
    must(cu.cuMemUnmap(at, size))
    must(cu.cuMemAddressFree(at, size))
handle, properties = c_ulonglong(), Properties.on(7)
assert cu.cuMemCreate(byref(handle), c_size_t(2 * MiB), byref(properties), c_ulonglong(0)) == 101, "no such device: INVALID_DEVICE"
""", "--devices", "2")


DLSYM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
typedef void *lookup(void *, const char *);
static int depth;
/* As in libraries that wrap dlsym themselves: the next dlsym is looked up with the next dlsym. */
void *dlsym(void *handle, const char *name) {
  static lookup *next;
  if (!next) next = (lookup *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  if (!next) next = (lookup *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  if (++depth > 50) __builtin_trap();
  void *found = next(handle, name);
  --depth;
  return found;
}
__attribute__((constructor)) static void early(void) {
  void *self = dlopen(0, RTLD_NOW);
  dlsym(self, "malloc");
  dlsym(RTLD_DEFAULT, "cuInit");
  dlsym(RTLD_NEXT, "free");
}
"""


def wrapper(world):
    source = world.folder / "wrap.c"
    source.write_text(DLSYM)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", world.folder / "wrap.so", source, "-ldl"], check=True)
    return world.folder / "wrap.so"


def test_a_second_library_that_wraps_dlsym_does_not_recurse(world):
    done = world.carve("run", "--memory", "1GiB", "--", "sh", "-c", f"LD_PRELOAD=$LD_PRELOAD:{wrapper(world)} exec {LOAD} --allocate 2GiB")
    assert done.returncode == 1 and "CUDA_ERROR_OUT_OF_MEMORY" in done.stderr, done.stderr


def test_a_library_before_the_preload_that_looks_up_dlsym_by_version_is_found(world):
    """Its lookups bypass the guest library, which no preload can prevent. The program works, but the agent reports it."""
    world.begin("run", "--memory", "1GiB", "--name", "a", "--", "sh", "-c",
                f"LD_PRELOAD={wrapper(world)}:$LD_PRELOAD exec {LOAD} --allocate 512MiB --seconds 60")
    assert until(lambda: "a" in world.slices() and any("found unattached" in e["text"] for e in world.show("a")["events"]))


def test_a_program_that_requests_a_future_cuda_version_gets_the_drivers_answer(inside):
    """Tests names that no driver has, versions beyond the driver's, and unknown flags; the driver's answer is
    passed on."""
    inside("""
must(cu.cuInit(0))
found, why = c_void_p(), c_int()
assert cu.cuGetProcAddress_v2(b"cuFromTheFuture", byref(found), 12000, c_uint64(0), byref(why)) in (0, 500)
assert not found.value and why.value == 1
assert cu.cuGetProcAddress_v2(b"cuMemAlloc", byref(found), 99000, c_uint64(0), byref(why)) in (0, 1)
must(cu.cuGetProcAddress_v2(b"cuMemAlloc", byref(found), 12000, c_uint64(0), byref(why)))
direct = ctypes.cast(cu.cuMemAlloc_v2, c_void_p).value
assert found.value == direct, "asked by version it is another function than by name"
must(cu.cuGetProcAddress_v2(b"cuMemAlloc", byref(found), 2000, c_uint64(0), byref(why)))
assert found.value != direct, "version 2.0 of the interface had 32-bit sizes"
assert cu.cuGetProcAddress_v2(b"cuMemAlloc", byref(found), 12000, c_uint64(1 << 40), byref(why)) != 0
""")


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed: apt-get install strace")
def test_a_program_under_a_tracer_runs_to_its_end(world):
    """Profilers stop a program at its system calls and inject libraries, so the guest library must not wait for a stopped thread."""
    done = world.carve("run", "--memory", "1GiB", "--", "strace", "-f", "-qq", "-e", "trace=clone,futex", "-o", "/dev/null",
                       LOAD, "--kernels", "100us", "--seconds", "0.5", "--processes", "3")
    assert done.returncode == 0, done.stderr


def test_an_injected_library_that_uses_the_driver_first_stays_within_the_quota(world):
    """As with CUPTI, a library that is loaded into the program calls cuInit and allocates memory before
    main()."""
    source = world.folder / "inject.c"
    source.write_text(r"""
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
__attribute__((constructor)) static void first(void) {
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
  int (*create)(void **, unsigned, int) = (int (*)(void **, unsigned, int))dlsym(cuda, "cuCtxCreate_v2");
  int (*allocate)(unsigned long *, size_t) = (int (*)(unsigned long *, size_t))dlsym(cuda, "cuMemAlloc_v2");
  void *context;
  unsigned long p;
  if (init(0) || create(&context, 0, 0)) exit(40);
  if (allocate(&p, (size_t)2 << 30) != 2 || allocate(&p, 100 << 20)) exit(41);
}
""")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", world.folder / "inject.so", source, "-ldl"], check=True)
    done = world.carve("run", "--memory", "1GiB", "--", "sh", "-c",
                       f"LD_PRELOAD=$LD_PRELOAD:{world.folder}/inject.so exec {LOAD} --allocate 64MiB")
    assert done.returncode == 0, (done.returncode, done.stderr)


@pytest.mark.parametrize("mode", [0, 1, 2], ids=["global", "thread-local", "relaxed"])
def test_a_capture_is_never_disturbed(inside, mode):
    """Calls that are allowed during a capture must neither change the graph nor invalidate the capture."""
    inside(f"""
begin()
stream, graph = c_void_p(), c_void_p()
must(cu.cuStreamCreate(byref(stream), 1))
kept = allocate(4 * MiB)
result = cu.cuStreamBeginCapture_v2(stream, {mode})
if result == 801:
    print("this driver cannot capture"); raise SystemExit(0)
must(result)
info()
must(cu.cuMemsetD8Async(kept, ctypes.c_ubyte(1), c_size_t(MiB), stream))
total = c_size_t()
must(cu.cuDeviceTotalMem_v2(byref(total), 0))
status = c_int()
must(cu.cuStreamIsCapturing(stream, byref(status)))
assert status.value == 1, "the capture was invalidated"
must(cu.cuStreamEndCapture(stream, byref(graph)))
count = c_size_t()
must(cu.cuGraphGetNodes(graph, None, byref(count)))
assert count.value == 1, f"{{count.value}} nodes in a graph of one memset"
""")

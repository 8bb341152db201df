"""Tests modules, kernels and graphs of kernels: launches return and their streams continue. The kernels
themselves have no effect."""
import subprocess

import pytest

from real_driver import CACHE, INITIALISED, call, environment, in_slice, python, shims

ONE = ("GPU-01020304-0506-0708-090a-0b0c0d0e0f10",)
SOURCE = """
.version 7.1
.target sm_86
.address_size 64
.global .align 4 .b8 space[4194304];
.visible .entry add_one(.param .u64 to) {
  .reg .u64 %to, %from;
  .reg .u32 %value;
  ld.param.u64 %to, [to];
  mov.u64 %from, space;
  ld.global.u32 %value, [%from];
  add.u32 %value, %value, 1;
  st.global.u32 [%to], %value;
  ret;
}
"""

LAUNCHES = """
import ctypes, sys
cu = ctypes.CDLL("libcuda.so.1")
P, V, S = ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t
def must(result):
    assert result == 0, result
context, module, kernel, stream, event, graph, ready = V(), V(), V(), V(), V(), V(), V()
space, size, memory, word = P(), S(), P(), ctypes.c_uint32()
must(cu.cuInit(0))
must(cu.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
must(cu.cuModuleLoadData(ctypes.byref(module), open(sys.argv[1], "rb").read()))
must(cu.cuModuleGetFunction(ctypes.byref(kernel), module, b"add_one"))
must(cu.cuModuleGetGlobal_v2(ctypes.byref(space), ctypes.byref(size), module, b"space"))
assert size.value == 4 << 20
must(cu.cuMemAlloc_v2(ctypes.byref(memory), S(4096)))
must(cu.cuStreamCreate(ctypes.byref(stream), 1))
must(cu.cuEventCreate(ctypes.byref(event), 0))
argument = P(memory.value)
arguments = (V * 1)(ctypes.addressof(argument))

def launch(count):
    for i in range(count):
        must(cu.cuLaunchKernel(kernel, 4, 1, 1, 32, 1, 1, 0, stream, arguments, None))

def last_word():
    must(cu.cuMemcpyDtoH_v2(ctypes.byref(word), memory, S(4)))
    return word.value

must(cu.cuMemsetD32Async(memory, 1, S(1), stream))
launch(1500)  # More than the entries of a ring.
must(cu.cuMemsetD32Async(memory, 2, S(1), stream))
must(cu.cuEventRecord(event, stream))
must(cu.cuEventSynchronize(event))
must(cu.cuEventQuery(event))
assert last_word() == 2
must(cu.cuLaunchCooperativeKernel(kernel, 4, 1, 1, 32, 1, 1, 0, stream, arguments))
must(cu.cuStreamBeginCapture_v2(stream, 1))
launch(5)
must(cu.cuMemsetD32Async(memory, 3, S(1), stream))
must(cu.cuStreamEndCapture(stream, ctypes.byref(graph)))
must(cu.cuGraphInstantiateWithFlags(ctypes.byref(ready), graph, ctypes.c_ulonglong(0)))
assert last_word() == 2
for i in range(3):
    must(cu.cuMemsetD32Async(memory, 0, S(1), stream))
    must(cu.cuGraphLaunch(ready, stream))
    must(cu.cuStreamSynchronize(stream))
    assert last_word() == 3
must(cu.cuModuleUnload(module))
must(cu.cuCtxDestroy_v2(context))
print("done")
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    if not (CACHE / "ptxas").exists():
        pytest.skip("ptxas could not be fetched")
    folder = tmp_path_factory.mktemp("module")
    (folder / "add_one.ptx").write_text(SOURCE)
    subprocess.run([CACHE / "ptxas", "-arch=sm_86", "-o", folder / "add_one.cubin", folder / "add_one.ptx"], check=True)
    return folder / "add_one.cubin"


@pytest.mark.parametrize("major", INITIALISED)
def test_launches_return(major, module):
    done = call(python(LAUNCHES, module), environment(major, gpus=ONE))
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr


@pytest.mark.parametrize("way", ["preload", "shim"])
@pytest.mark.parametrize("major", INITIALISED)
def test_launches_return_in_a_slice(world, major, way, module):
    uuids = [d["uuid"] for d in world.json("devices")["devices"]]
    with shims(major, world.socket) as folder:
        done = in_slice(world, python(LAUNCHES, module), environment(major, way, folder, uuids), "--device", "0", "--compute", "50%")
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr

"""Launches past every hook of the guest library by calling the driver's own entry, which it finds in the
driver's file without looking up its name.

bypass_gate.py     The variable BEGAN names a file that is created right before the first launch, and
PYTHONPATH the folder of driver.py.
"""
import ctypes
import os
import subprocess
import time

from driver import *

begin()
module, function = c_void_p(), c_void_p()
ptx = b'.version 6.0\n.target sm_50\n.address_size 64\n.visible .entry carve_spin(.param .u64 n, .param .u64 i, .param .u64 r) { ret; }\0'
must(cu.cuModuleLoadData(byref(module), ptx))
must(cu.cuModuleGetFunction(byref(function), module, b'carve_spin'))
at = next(l for l in open('/proc/self/maps') if 'libcuda.so' in l and ' 00000000 ' in l)
base, path = int(at.split('-')[0], 16), at.split()[-1]
symbols = subprocess.run(['nm', '-D', path], capture_output=True, text=True).stdout
offset = next(int(l.split()[0], 16) for l in symbols.splitlines() if l.endswith(' cuLaunchKernel'))
launch = ctypes.CFUNCTYPE(c_int, c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p)(base + offset)
open(os.environ["BEGAN"], "w").close()
values = [c_uint64(1_000_000), c_uint64(0), c_uint64(0)]
params = (c_void_p * 3)(*[ctypes.addressof(v) for v in values])
end = time.monotonic() + 20
while time.monotonic() < end:
    for _ in range(20): must(launch(function, 1024, 1, 1, 128, 1, 1, 0, None, params, None))
    time.sleep(0.015)

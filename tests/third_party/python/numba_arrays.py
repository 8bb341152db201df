"""A program that uses Numba, which stores arrays on the device through the driver API. It prints the device's
values, the number of 64 MiB arrays that fit, and the error after them."""
import os

import numpy
from numba import cuda

context = cuda.current_context()
free, total = context.get_memory_info()
print(len(cuda.gpus), total, free)
there = cuda.to_device(numpy.arange(100_000))
assert (there.copy_to_host() == numpy.arange(100_000)).all()
held = []
try:
    while True:
        held.append(cuda.device_array(64 << 20, dtype=numpy.uint8))
except cuda.cudadrv.driver.CudaAPIError as refused:
    print(len(held), refused.code)
first = len(held)
held.clear()
context.deallocations.clear()
try:
    while True:
        held.append(cuda.device_array(64 << 20, dtype=numpy.uint8))
except cuda.cudadrv.driver.CudaAPIError:
    print(len(held) == first)
# cuda-core 1.2.2 releases contexts after Python has ended and then crashes, with any driver.
print("done", flush=True)
os._exit(0)

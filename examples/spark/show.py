"""What the tasks of a Spark application see of their GPU: CUDA through ctypes, NVML through pynvml. Prints a line of JSON for each fact."""
import ctypes
import json
import os
import time

import pynvml
from pyspark import BarrierTaskContext
from pyspark.sql import SparkSession

MiB = 1 << 20


def device():
    """The number of devices in NVML, and the memory of the first one in MiB."""
    pynvml.nvmlInit()
    count = pynvml.nvmlDeviceGetCount()
    return count, pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).total // MiB


def allocate(mib):
    """Allocates on device 0 and releases; the result of CUDA."""
    cuda = ctypes.CDLL("libcuda.so.1")
    context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
    assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    result = cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(mib * MiB))
    if result == 0:
        cuda.cuMemFree_v2(pointer)
    return result


def task(_):
    """A fact of one task. No task passes the barrier before all tasks of the stage run."""
    begin = time.time()
    count, total = device()
    task_context = BarrierTaskContext.get()
    task_context.barrier()
    yield {"executor": os.environ["CARVE_ROLE"] + os.environ["CARVE_INDEX"], "begin": begin, "end": time.time(), "devices": count, "mib": total,
           "addresses": task_context.resources()["gpu"].addresses}


def large(_):
    return [allocate(3 * 1024), allocate(5 * 1024)]


spark = SparkSession.builder.appName("show").getOrCreate()
context = spark.sparkContext
for row in context.parallelize(range(20), 20).barrier().mapPartitions(task).collect():
    print(json.dumps({"task": row}), flush=True)
print(json.dumps({"allocations": context.parallelize([0], 1).map(large).collect()[0]}), flush=True)
print(json.dumps({"driver": device()}), flush=True)
spark.stop()

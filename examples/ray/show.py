"""What the tasks of a Ray program see of their GPU, and what Ray's dashboard shows. Prints a line of JSON for each fact."""
import ctypes
import json
import os
import socket
import time
import urllib.request

import pynvml
import ray

MiB = 1 << 20


@ray.remote(num_cpus=0)
class Meeting:
    """Where tasks wait for each other: a task that has a GPU keeps it meanwhile, so each one is on another worker."""
    def __init__(self):
        self.here = set()

    def arrived(self, task):
        self.here.add(task)
        return len(self.here)


@ray.remote(num_gpus=1)
def look(task, meeting, tasks):
    pynvml.nvmlInit()
    count = pynvml.nvmlDeviceGetCount()
    total = pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).total // MiB
    cuda = ctypes.CDLL("libcuda.so.1")
    context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
    assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    results = [cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(mib * MiB)) for mib in (3 * 1024, 5 * 1024)]
    while ray.get(meeting.arrived.remote(task)) < tasks:
        time.sleep(0.1)
    return {"worker": os.environ["CARVE_INDEX"], "devices": count, "mib": total, "results": results}


def dashboard():
    """The GPUs of each node as the dashboard shows them, by the number of GPUs that the node gives to Ray."""
    request = urllib.request.Request("http://127.0.0.1:8265/nodes?view=summary",
                                     headers={"Authorization": "Bearer " + os.environ["RAY_AUTH_TOKEN"]})
    nodes = json.load(urllib.request.urlopen(request, timeout=30))["data"]["summary"]
    return sorted([gpu["name"], gpu["memoryTotal"]] for node in nodes for gpu in node.get("gpus") or [])


def listeners():
    """The addresses on which something listens in this network."""
    rows = [line.split() for name in ("/proc/net/tcp", "/proc/net/tcp6") for line in open(name).readlines()[1:]]
    return [row[1] for row in rows if row[3] == "0A"], [name for _, name in socket.if_nameindex()]


ray.init(log_to_driver=False)
workers = int(os.environ.get("WORKERS", "2"))
while ray.cluster_resources().get("GPU", 0) < workers:
    time.sleep(0.2)
meeting = Meeting.remote()
for fact in ray.get([look.remote(task, meeting, workers) for task in range(workers)]):
    print(json.dumps({"task": fact}), flush=True)
end = time.time() + 30
while len(dashboard()) < workers and time.time() < end:
    time.sleep(0.5)
print(json.dumps({"dashboard": dashboard(), "interfaces": listeners()[1]}), flush=True)

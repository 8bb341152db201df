"""Measures the figures that need the real agent: the first cuInit of a program in a slice, and the time until
a killed process's memory is available to its slice again. The agent is warm. """
import json
import subprocess

from measure import figure
from support.agent import BUILD, Agent

PROBE = [BUILD / "bin/bench_guest", "--attach", "0"]
LIBRARIES = f"LD_LIBRARY_PATH={BUILD / 'tests/standin'}"


def attaching(agent, repeats=31):
    alone, added = [], []
    for _ in range(repeats):
        alone.append(float(subprocess.run(["env", LIBRARIES, *PROBE], capture_output=True, text=True, check=True).stdout) / 1e3)
        inside = agent.carve("run", "--memory", "1GiB", "--", "env", LIBRARIES, *PROBE, check=True)
        added.append(float(inside.stdout) / 1e3 - alone[-1])
    return figure("guest.attach", added, "ms added", 2, native=alone, where="stand-in driver")


# Runs inside a slice: repeatedly lets a child allocate 1 GiB, kills it, and prints the time until all memory
# is free again, in ms.
WIDOW = """
import ctypes, json, os, subprocess, sys, time
from ctypes import byref, c_size_t, c_uint64, c_void_p
cu, context = ctypes.CDLL("libcuda.so.1"), c_void_p()
assert cu.cuInit(0) == 0 and cu.cuDevicePrimaryCtxRetain(byref(context), 0) == 0 and cu.cuCtxSetCurrent(context) == 0
if len(sys.argv) > 1:
    assert cu.cuMemAlloc_v2(byref(c_uint64()), c_size_t(1 << 30)) == 0
    print("held", flush=True)
    time.sleep(60)
def free():
    bytes, total = c_size_t(), c_size_t()
    assert cu.cuMemGetInfo_v2(byref(bytes), byref(total)) == 0
    return bytes.value
took, before = [], free()
for turn in range(REPEATS):
    child = subprocess.Popen([sys.executable, "-c", os.environ["WIDOW"], "hold"], stdout=subprocess.PIPE)
    child.stdout.readline()
    assert free() < before - (1 << 30)
    start = time.perf_counter()
    child.kill()
    while free() != before:
        assert time.perf_counter() - start < 10, "the dead process's memory was not released within 10 s"
    took.append(1e3 * (time.perf_counter() - start))
    child.wait()
print(json.dumps(took))
"""


def giving_back(agent, repeats=31):
    program = WIDOW.replace("REPEATS", str(repeats))
    done = agent.carve("run", "--memory", "4GiB", "--", "env", f"WIDOW={program}", "/usr/bin/python3", "-c", program,
                       check=True)
    return figure("guest.give_back", json.loads(done.stdout), "ms", 5)


if __name__ == "__main__":
    agent = Agent("a10x2")
    try:
        print(json.dumps([attaching(agent), giving_back(agent)]))
    finally:
        agent.end()

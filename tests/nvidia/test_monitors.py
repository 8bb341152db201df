"""Unmodified monitors: nvidia-ml-py (pynvml), gpustat and nvitop. In a slice they start and show its devices,
its quota and its processes; outside of slices they show the same as without Carve."""
import json
import re

import pytest

from conftest import GiB, MiB
from real_driver import INITIALISED, TWO, WAYS, call, environment, in_slice, python, shims, tool, version

# A process that uses the device and runs the commands in its argument. Process 1 and its parent are also on
# its device.
USER = """
import ctypes, json, os, subprocess, sys
assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
os.environ["RESPONDER_PIDS"] = f"1,{os.getpid()},{os.environ['OUTER']}"
done = {name: subprocess.run(words, capture_output=True, text=True) for name, words in json.loads(sys.argv[1]).items()}
print(json.dumps([os.getpid(), {name: [d.returncode, d.stdout, d.stderr] for name, d in done.items()}]))
"""

# Every list of processes and every way to a device that the binding has. The process that runs this is "own".
PYNVML = """
import json, os, pynvml as n

def result(call, *arguments):
    try:
        return call(*arguments)
    except n.NVMLError as error:
        return type(error).__name__

def pids(call, *arguments):
    found = result(call, *arguments)
    return found if isinstance(found, str) else ["own" if row.pid == os.getppid() else row.pid for row in found]

n.nvmlInit()
lists = [getattr(n, f"nvmlDeviceGet{kind}RunningProcesses{version}")
         for kind in ("Compute", "Graphics", "MPSCompute") for version in ("_v2", "_v3")]
devices = []
for i in range(n.nvmlDeviceGetCount()):
    h = n.nvmlDeviceGetHandleByIndex(i)
    one, two = n.nvmlDeviceGetMemoryInfo(h), n.nvmlDeviceGetMemoryInfo(h, version=n.nvmlMemory_v2)
    uuid, bus = n.nvmlDeviceGetUUID(h), n.nvmlDeviceGetPciInfo(h).busId
    found = [n.nvmlDeviceGetHandleByUUID(uuid), n.nvmlDeviceGetHandleByPciBusId(bus)]
    devices.append({"uuid": uuid, "name": n.nvmlDeviceGetName(h), "indexes": [n.nvmlDeviceGetIndex(d) for d in [h, *found]],
                    "memory": [one.total, one.used, one.free], "memory_v2": [two.total, two.used, two.free, two.reserved],
                    "pids": {call.__name__: pids(call, h) for call in lists}, "active": pids(n.nvmlDeviceGetProcessUtilization, h, 0)})
shown = [d["uuid"] for d in devices]
print(json.dumps({"driver": n.nvmlSystemGetDriverVersion(), "devices": devices, "past": result(n.nvmlDeviceGetHandleByIndex, len(devices)),
                  "others": [result(n.nvmlDeviceGetHandleByUUID, uuid) for uuid in UUIDS if uuid not in shown]}))
"""

NVITOP = """
import json, os
from nvitop import CudaDevice, Device

def row(device):
    processes = [["own" if p.pid == os.getppid() else p.pid, p.gpu_memory(), p.gpu_sm_utilization() == "N/A"]
                 for p in device.processes().values()]
    return [device.uuid(), device.memory_total(), device.memory_used(), device.memory_free(), sorted(processes, key=str)]

print(json.dumps({"count": Device.count(), "devices": [row(device) for device in Device.all()],
                  "cuda": [[device.index, device.physical_index, *row(device)] for device in CudaDevice.all()],
                  "visible": Device.parse_cuda_visible_devices()}))
"""
# Of the tables of `nvitop -1`: the memory of each device, and the device and the pid of each process.
NVITOP_MEMORY = re.compile(r"│ +\S+ / (\S+) │")
NVITOP_PROCESS = re.compile(r"^│ +(\d+) +(\d+) [CGX]", re.M)
BINDINGS = ("pynvml", "older pynvml")


def program(uuids):
    """Runs the tools, with the binding in its newest version and in that of tests/requirements.txt."""
    pytest.importorskip("pynvml")
    binding = PYNVML.replace("UUIDS", repr(list(uuids)))
    commands = {"pynvml": python(binding, interpreter=str(tool("python"))), "older pynvml": python(binding),
                "gpustat": [str(tool("gpustat")), "--json"], "nvitop": [str(tool("nvitop")), "-1"],
                "nvitop's interface": python(NVITOP, interpreter=str(tool("python")))}
    return python(USER, json.dumps(commands))


def shown(done):
    """Returns the output of each tool, without values that change constantly."""
    assert done.returncode == 0, done.stderr
    own, printed = json.loads(done.stdout)
    assert all(status == 0 for status, _, _ in printed.values()), printed
    texts = {name: out for name, (_, out, _) in printed.items()}

    def pids(found):
        return sorted(("own" if int(pid) == own else int(pid) for pid in found), key=str)

    out = {name: json.loads(texts[name]) for name in [*BINDINGS, "nvitop's interface"]}
    out["gpustat"] = [[gpu["uuid"], gpu["memory.total"], gpu["memory.used"], pids(p["pid"] for p in gpu["processes"])]
                      for gpu in json.loads(texts["gpustat"])["gpus"]]
    rows = NVITOP_PROCESS.findall(texts["nvitop"])
    out["nvitop"] = [[memory, pids(pid for index, pid in rows if int(index) == i)]
                     for i, memory in enumerate(NVITOP_MEMORY.findall(texts["nvitop"]))]
    return out


@pytest.mark.parametrize("way", WAYS[1:])
@pytest.mark.parametrize("major", INITIALISED)
def test_monitors_show_the_slice(shared_world, major, way):
    uuids = [d["uuid"] for d in shared_world.json("devices")["devices"]]
    with shims(major, shared_world.socket) as folder:
        variables = {**environment(major, way, folder, uuids), "OUTER": str(shared_world.process.pid)}
        found = shown(in_slice(shared_world, program(uuids), variables, "--device", "1"))
    for name in BINDINGS:
        assert (found[name]["driver"], found[name]["past"], found[name]["others"]) == (version(major), "NVMLError_InvalidArgument",
                                                                                      ["NVMLError_NotFound"])
        (device,) = found[name]["devices"]
        assert (device["uuid"], device["name"], device["indexes"]) == (uuids[1], "NVIDIA A10", [0, 0, 0])
        assert device["memory"] == [2 * GiB, 0, 2 * GiB] and device["memory_v2"] == [2 * GiB, 0, 2 * GiB, 0]
        assert len(device["pids"]) == 6 and all(pids == ["own"] for pids in device["pids"].values()) and device["active"] == ["own"], device
    assert found["gpustat"] == [[uuids[1], 2048, 0, ["own"]]]
    assert found["nvitop"] == [["2048MiB", ["own"]]]
    row = [uuids[1], 2 * GiB, 0, 2 * GiB, [["own", 100 * MiB, False]]]
    assert found["nvitop's interface"] == {"count": 1, "devices": [row], "cuda": [[0, 0, *row]], "visible": [0]}


@pytest.mark.parametrize("major", INITIALISED)
def test_monitors_outside_of_slices_show_the_same_as_without_carve(shared_world, major):
    with shims(major, shared_world.socket) as folder:
        carve = {"OUTER": str(shared_world.process.pid), "CARVE_SOCKET": str(shared_world.socket)}
        found = [shown(call(program(TWO), {**environment(major, way, folder), **carve})) for way in WAYS]
    native = found[0]
    assert found == [native] * len(WAYS)
    everyone = sorted([1, "own", shared_world.process.pid], key=str)
    assert native["gpustat"] == [[uuid, 24576, 0, everyone] for uuid in TWO]
    assert native["nvitop"] == [["24.00GiB", everyone]] * 2
    for name in BINDINGS:
        assert [d["uuid"] for d in native[name]["devices"]] == list(TWO)
        assert all(sorted(pids, key=str) == everyone for d in native[name]["devices"] for pids in [*d["pids"].values(), d["active"]])

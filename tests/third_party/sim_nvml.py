"""Runs unmodified pynvml (nvidia-ml-py), a third-party client, with the simulated NVML.

usage: sim_nvml.py BUILD_DIRECTORY Creates a set of three devices in a temporary directory, holds memory on
one of them through the simulated driver, and checks pynvml's answers. Prints one line per check. Exits with
status 1 at the first failure, and with 77 without pynvml.
"""
import os
import subprocess
import sys
import tempfile
import time

build = os.path.abspath(sys.argv[1])
libraries = os.path.join(build, "lib", "carve", "sim")
sim = os.path.join(build, "bin", "carve-sim")
MiB = 1 << 20

try:
    import pynvml
except ImportError:
    private = os.path.join(build, "venv", "bin", "python")  # ./test installs it there.
    if os.path.exists(private) and not sys.executable.startswith(os.path.join(build, "venv")):
        os.execv(private, [private, *sys.argv])
    print("pynvml (nvidia-ml-py) is not installed: skipped")
    sys.exit(77)

if "SIMGPU_DIR" not in os.environ:
    with tempfile.TemporaryDirectory(prefix="carve-sim.") as directory:
        os.chmod(directory, 0o755)
        subprocess.run([sim, "create", directory, "a10x2,h100-80", "--force"], check=True, stdout=subprocess.DEVNULL)
        environment = dict(os.environ, SIMGPU_DIR=directory, LD_LIBRARY_PATH=libraries)
        sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment).returncode)

directory = os.environ["SIMGPU_DIR"]


def check(message, holds, seen=""):
    print(("ok    " if holds else "FAILS ") + message + (f": {seen}" if not holds else ""))
    if not holds:
        sys.exit(1)


def refused(code, call, *arguments):
    try:
        call(*arguments)
    except pynvml.NVMLError as e:
        return e.value == code
    return False


HOLDER = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0
assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 1) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(100 << 20)) == 0
print("held", flush=True)
sys.stdin.read()
"""


def hold(*prefix):
    command = [*prefix, sys.executable, "-c", HOLDER]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


def only_child(pid):
    children = open(f"/proc/{pid}/task/{pid}/children").read().split()
    return int(children[0]) if len(children) == 1 else None


def can(*prefix):
    return subprocess.run([*prefix, "true"], capture_output=True).returncode == 0


check("before nvmlInit every call is refused", refused(pynvml.NVML_ERROR_UNINITIALIZED, pynvml.nvmlDeviceGetCount))
pynvml.nvmlInit()
check("three devices", pynvml.nvmlDeviceGetCount() == 3)
check("driver version", pynvml.nvmlSystemGetDriverVersion() == "580.65.06", pynvml.nvmlSystemGetDriverVersion())
a, b, h = (pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(3))
check("names", [pynvml.nvmlDeviceGetName(x) for x in (a, h)] == ["NVIDIA A10", "NVIDIA H100 80GB HBM3"])
uuid = pynvml.nvmlDeviceGetUUID(b)
check("a UUID leads back to its device", pynvml.nvmlDeviceGetIndex(pynvml.nvmlDeviceGetHandleByUUID(uuid)) == 1)
bus = pynvml.nvmlDeviceGetPciInfo(b).busId
check("a bus id leads back to its device", pynvml.nvmlDeviceGetIndex(pynvml.nvmlDeviceGetHandleByPciBusId(bus)) == 1)
check("an unknown UUID is not found", refused(pynvml.NVML_ERROR_NOT_FOUND, pynvml.nvmlDeviceGetHandleByUUID, "GPU-0"))
check("an index too high is refused",
      refused(pynvml.NVML_ERROR_INVALID_ARGUMENT, pynvml.nvmlDeviceGetHandleByIndex, 3))
check("compute capability", pynvml.nvmlDeviceGetCudaComputeCapability(h) == [9, 0]
      or pynvml.nvmlDeviceGetCudaComputeCapability(h) == (9, 0))
check("architecture", pynvml.nvmlDeviceGetArchitecture(a) == pynvml.NVML_DEVICE_ARCH_AMPERE)

memory = pynvml.nvmlDeviceGetMemoryInfo(b, version=pynvml.nvmlMemory_v2)
check("22731 MiB of an A10 are usable", memory.total == 23028 * MiB and memory.reserved == 297 * MiB)
check("no memory is used yet", memory.used == 0 and memory.free == 22731 * MiB)
check("version 1 counts the reserve as used", pynvml.nvmlDeviceGetMemoryInfo(b).used == memory.reserved)

check("accounting is off", pynvml.nvmlDeviceGetAccountingMode(b) == 0)
try:
    pynvml.nvmlDeviceGetAccountingPids(b)
    check("and lists no process", False)
except pynvml.NVMLError_NotSupported:
    check("and lists no process", True)
pynvml.nvmlDeviceSetAccountingMode(b, 1)
check("it keeps 4000 processes", pynvml.nvmlDeviceGetAccountingBufferSize(b) == 4000)

holder = hold()
rows = pynvml.nvmlDeviceGetComputeRunningProcesses(b)
check("the holder is listed with its pid", [r.pid for r in rows] == [holder.pid], rows)
check("the holder's context has 256 MiB, its allocation 100 MiB", rows[0].usedGpuMemory == 356 * MiB, rows[0].usedGpuMemory)
for version in ("nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses_v3"):
    check(version, [r.pid for r in getattr(pynvml, version)(b)] == [holder.pid])
check("other devices list no process", pynvml.nvmlDeviceGetComputeRunningProcesses(a) == [])
check("used memory is the holder's",
      pynvml.nvmlDeviceGetMemoryInfo(b, version=pynvml.nvmlMemory_v2).used == 356 * MiB)
check("process name", "python" in pynvml.nvmlSystemGetProcessName(holder.pid))
# Each period of 200 ms has one sample, which names one process.
end = time.monotonic() + 10
samples = []
while not samples and time.monotonic() < end:
    try:
        samples = pynvml.nvmlDeviceGetProcessUtilization(b, 0)
    except pynvml.NVMLError_NotFound:
        time.sleep(0.01)
check("process utilisation", {s.pid for s in samples} == {holder.pid})

holder.kill()
holder.wait()
began = time.monotonic()
while pynvml.nvmlDeviceGetMemoryInfo(b, version=pynvml.nvmlMemory_v2).used and time.monotonic() - began < 1:
    pass
took = (time.monotonic() - began) * 1e3
account = pynvml.nvmlDeviceGetAccountingStats(b, holder.pid)
check("a killed process keeps its account", list(pynvml.nvmlDeviceGetAccountingPids(b)) == [holder.pid] and account.isRunning == 0)
check("the account has its peak and times", account.maxMemoryUsage == 356 * MiB and account.time > 0
      and abs(account.startTime / 1e6 - time.time()) < 60, account)
pynvml.nvmlDeviceClearAccountingPids(b)
check("cleared accounts are gone", list(pynvml.nvmlDeviceGetAccountingPids(b)) == [])
check(f"memory of a killed process comes back within 100 ms ({took:.2f} ms)", took < 100)

NAMESPACE = ("unshare", "--pid", "--fork", "--mount", "--mount-proc")
if os.geteuid() == 0 and can(*NAMESPACE):
    outside = hold(*NAMESPACE)
    inside = only_child(outside.pid)
    rows = pynvml.nvmlDeviceGetComputeRunningProcesses(b)
    check("a client of another pid namespace is listed with the pid that it has here",
          [r.pid for r in rows] == [inside], (rows, inside))
    listing = "import pynvml as n; n.nvmlInit(); print(len(n.nvmlDeviceGetComputeRunningProcesses(n.nvmlDeviceGetHandleByIndex(1))))"
    seen = subprocess.run([*NAMESPACE, sys.executable, "-c", listing], capture_output=True, text=True).stdout
    check("and is not listed in a namespace that does not see it", seen.strip() == "0", seen)
    os.kill(inside, 9)
    outside.wait()
else:
    print("skip  pid namespaces: they need root here")
if os.geteuid() == 0 and can("setpriv", "--reuid=65534", "--clear-groups", sys.executable, "-c", ""):
    other = hold("setpriv", "--reuid=65534", "--clear-groups")
    check("a client of another user is listed like any other",
          [r.pid for r in pynvml.nvmlDeviceGetComputeRunningProcesses(b)] == [other.pid])
    other.kill()
    other.wait()
else:
    print("skip  another user: that needs root and an interpreter that every user may run")

check("an A10 does not support MIG", refused(pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.nvmlDeviceGetMigMode, a))
check("MIG is off on an H100", list(pynvml.nvmlDeviceGetMigMode(h)) == [0, 0])
for name in ("Temperature", "PowerUsage", "UtilizationRates", "ClockInfo", "EccMode", "PerformanceState",
             "EnforcedPowerLimit", "TotalEnergyConsumption", "BAR1MemoryInfo", "MaxPcieLinkGeneration",
             "ComputeMode", "PersistenceMode", "CurrentClocksThrottleReasons", "EncoderUtilization"):
    arguments = [a, 0] if name in ("Temperature", "ClockInfo") else [a]
    getattr(pynvml, "nvmlDeviceGet" + name)(*arguments)
check("a device has no fan", refused(pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.nvmlDeviceGetFanSpeed, a))
check("topology", pynvml.nvmlDeviceGetTopologyCommonAncestor(a, b) == pynvml.NVML_TOPOLOGY_NODE)
fields = pynvml.nvmlDeviceGetFieldValues(a, [pynvml.NVML_FI_DEV_ECC_CURRENT, pynvml.NVML_FI_DEV_MEMORY_TEMP])
check("field values have a status each",
      [f.nvmlReturn for f in fields] == [pynvml.NVML_SUCCESS, pynvml.NVML_ERROR_NOT_SUPPORTED])

events = pynvml.nvmlEventSetCreate()
pynvml.nvmlDeviceRegisterEvents(a, pynvml.nvmlEventTypeXidCriticalError, events)
check("without an event the wait times out", refused(pynvml.NVML_ERROR_TIMEOUT, pynvml.nvmlEventSetWait_v2, events, 10))
subprocess.run([sim, "fault", directory, "xid", "31", "--device", "0"], check=True)
data = pynvml.nvmlEventSetWait_v2(events, 1000)
check("an Xid is delivered with its code", data.eventData == 31, data.eventData)
pynvml.nvmlEventSetFree(events)

subprocess.run([sim, "fault", directory, "slow-nvml", "100ms", "--device", "0"], check=True)
began = time.monotonic()
pynvml.nvmlDeviceGetTemperature(a, 0)
check("slow NVML is slow", time.monotonic() - began >= 0.1)
subprocess.run([sim, "fault", directory, "clear"], check=True)
subprocess.run([sim, "fault", directory, "device-lost", "--device", "0"], check=True)
check("a lost device returns NVML_ERROR_GPU_IS_LOST", refused(pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.nvmlDeviceGetMemoryInfo, a))
check("the other devices still work", pynvml.nvmlDeviceGetMemoryInfo(b).total == 23028 * MiB)
subprocess.run([sim, "fault", directory, "clear"], check=True)
pynvml.nvmlShutdown()
check("after nvmlShutdown every call is refused",
      refused(pynvml.NVML_ERROR_UNINITIALIZED, pynvml.nvmlDeviceGetCount))

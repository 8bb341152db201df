"""CUDA's driver and NVML through ctypes for the programs of these tests, with the names from their
manuals."""
import ctypes
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_ulonglong, c_void_p

MiB = 1 << 20
OUT_OF_MEMORY = 2
cu = ctypes.CDLL("libcuda.so.1")


def must(result):
    assert result == 0, f"error {result}"


def begin(device=0):
    context = c_void_p()
    must(cu.cuInit(0))
    must(cu.cuCtxCreate_v2(byref(context), 0, device))
    return context


def primary(device):
    """Makes the device's primary context current."""
    context = c_void_p()
    must(cu.cuInit(0))
    must(cu.cuDevicePrimaryCtxRetain(byref(context), device))
    must(cu.cuCtxSetCurrent(context))
    return context


def info():
    free, total = c_size_t(), c_size_t()
    must(cu.cuMemGetInfo_v2(byref(free), byref(total)))
    return free.value, total.value


def allocate(size):
    pointer = c_uint64()
    must(cu.cuMemAlloc_v2(byref(pointer), c_size_t(size)))
    return pointer


def allocate_async(size):
    pointer = c_uint64()
    must(cu.cuMemAllocAsync(byref(pointer), c_size_t(size), None))
    return pointer


class Location(ctypes.Structure):
    _fields_ = [("type", c_int), ("id", c_int)]


class Properties(ctypes.Structure):
    """CUmemAllocationProp."""
    _fields_ = [("type", c_int), ("handle_types", c_int), ("location", Location), ("win32", c_void_p), ("flags", ctypes.c_ubyte * 8)]

    @classmethod
    def on(cls, device):
        return cls(type=1, location=Location(1, device))


class Access(ctypes.Structure):
    """CUmemAccessDesc: read and write."""
    _fields_ = [("location", Location), ("flags", c_int)]


class Memory(ctypes.Structure):
    """nvmlMemory_t, or with `version` nvmlMemory_v2_t."""
    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


class Memory2(ctypes.Structure):
    _fields_ = [("version", c_uint), ("total", c_ulonglong), ("reserved", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


class ProcessInfo(ctypes.Structure):
    """nvmlProcessInfo_t of the _v3 entries."""
    _fields_ = [("pid", c_uint), ("used", c_ulonglong), ("gpu_instance", c_uint), ("compute_instance", c_uint)]


class AccountingStats(ctypes.Structure):
    _fields_ = [("gpu", c_uint), ("memory", c_uint), ("peak", c_ulonglong), ("time_ms", c_ulonglong), ("start_us", c_ulonglong),
                ("running", c_uint), ("reserved", c_uint * 5)]


class Nvml:
    def __init__(self, index=0):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.device = c_void_p()
        must(self.library.nvmlInit_v2())
        must(self.library.nvmlDeviceGetHandleByIndex_v2(index, byref(self.device)))

    def memory(self):
        m = Memory()
        must(self.library.nvmlDeviceGetMemoryInfo(self.device, byref(m)))
        return m

    def memory2(self):
        m = Memory2(version=ctypes.sizeof(Memory2) | 2 << 24)
        must(self.library.nvmlDeviceGetMemoryInfo_v2(self.device, byref(m)))
        return m

    def processes(self):
        count, rows = c_uint(64), (ProcessInfo * 64)()
        must(self.library.nvmlDeviceGetComputeRunningProcesses_v3(self.device, byref(count), rows))
        return {rows[i].pid: rows[i].used for i in range(count.value)}

    def accounted(self):
        """Returns the pids in NVML's accounting."""
        count, pids = c_uint(4096), (c_uint * 4096)()
        must(self.library.nvmlDeviceGetAccountingPids(self.device, byref(count), pids))
        return set(pids[:count.value])

    def account(self, pid):
        """Returns the account of a process, or the error's number if there is none."""
        stats = AccountingStats()
        return self.library.nvmlDeviceGetAccountingStats(self.device, c_uint(pid), byref(stats)) or stats

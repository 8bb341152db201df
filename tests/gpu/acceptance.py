"""The cases of run.sh, on NVIDIA's own driver and, as a check of the cases, on the simulated driver.

A case is a function that returns its measurements, raises Skipped with a reason, or fails an assertion. The
cases that only a device can answer run first; tests/nvidia covers the others without a device. All cases
share one agent, started here with its own state in a temporary folder. They use the first visible device,
which must be idle, because cases compare the bytes in use on the device before and after.
"""
import argparse
import contextlib
import ctypes
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
MiB, GiB = 1 << 20, 1 << 30
OUT_OF_MEMORY = 2
SMALLEST = 64 << 10  # Bytes of the smallest array.


class Skipped(Exception):
    pass


class Monitor:
    """The device as reported by its own NVML, outside of slices."""

    def __init__(self, environment):
        # A separate process, because the environment selects the simulator when a process starts.
        self.process = subprocess.Popen([sys.executable, __file__, "--watch"], env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        first = json.loads(self.process.stdout.readline())
        if "error" in first:
            raise Skipped(first["error"])
        self.name, self.driver, self.total = first["name"], first["driver"], first["total"]

    def ask(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def used(self):
        return self.ask("used")

    @contextlib.contextmanager
    def watched(self):
        """Yields a list that afterwards contains the maximum of the bytes in use minus those in use
        before."""
        before, most = self.ask("start"), []
        yield most
        most.append(self.ask("most") - before)

    def shows(self, begin, size):
        """Returns whether the device's figure grows while the program that begin() starts holds this many
        bytes."""
        before = self.ask("start")
        return begin().wait(60) == 0 and self.ask("most") >= before + size


def watch():
    """Answers queries from stdin on stdout; in between, polls the device continuously."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError as error:
        print(json.dumps({"error": f"no NVML on this machine: {error}"}), flush=True)
        return
    device, memory, text = ctypes.c_void_p(), (ctypes.c_uint64 * 3)(), ctypes.create_string_buffer(96)
    if nvml.nvmlInit_v2() != 0 or nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) != 0:
        print(json.dumps({"error": "NVML sees no device"}), flush=True)
        return

    def used():
        assert nvml.nvmlDeviceGetMemoryInfo(device, memory) == 0
        return memory[2]

    used()
    said = {"total": memory[0]}
    for key, call in (("name", lambda: nvml.nvmlDeviceGetName(device, text, 96)),
                      ("driver", lambda: nvml.nvmlSystemGetDriverVersion(text, 96))):
        said[key] = text.value.decode() if call() == 0 else "?"
    print(json.dumps(said), flush=True)
    most, lock, asked = [0], threading.Lock(), {}

    def look():
        while True:
            with lock:
                most[0] = max(most[0], used())

    threading.Thread(target=look, daemon=True).start()
    for line in sys.stdin:
        with lock:
            now = used()
            if line.strip() == "start":
                most[0] = now
            print(json.dumps(most[0] if line.strip() == "most" else now), flush=True)


class Machine:
    def __init__(self, options):
        self.build, self.memory, self.seconds = options.build, options.memory, options.seconds
        self.begun = time.monotonic()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cg-"))
        self.simulated = bool(options.sim)
        self.native = dict(os.environ)
        if options.sim:
            self.native["SIMGPU_DIR"] = str(self.folder / "state/sim")
            self.native["LD_LIBRARY_PATH"] = str(self.build / "lib/carve/sim")
        self.environment = {**os.environ, "CARVE_SOCKET": str(self.folder / "s"), "NO_COLOR": "1"}
        words = [self.build / "bin/carved", "--state", self.folder / "state", "--socket", self.folder / "s",
                 "--cdi-dir", self.folder / "cdi", *(["--sim", options.sim] if options.sim else [])]
        self.log = open(self.folder / "log", "ab")
        self.agent = subprocess.Popen(words, stdout=self.log, stderr=self.log)
        try:
            self.wait_for_the_agent()
            self.probe()
        except BaseException:
            self.agent.kill()
            raise

    def wait_for_the_agent(self):
        end = time.monotonic() + 60
        while self.carve("version").returncode != 0:
            if self.agent.poll() is not None or time.monotonic() > end:
                raise SystemExit("run.sh: the agent does not start:\n" + (self.folder / "log").read_text())
            time.sleep(0.05)

    def probe(self):
        """Determines what this driver reports and supports, for the cases that depend on it."""
        self.monitor = Monitor(self.native)
        load = self.build / "bin/carve-load"
        holds = [load, "--allocate", "64MiB", "--no-touch", "--seconds", "0.5"]
        self.shows_use = self.monitor.shows(lambda: subprocess.Popen(holds, env=self.native, stdout=subprocess.DEVNULL), 64 * MiB)
        done = subprocess.run([load, "--kernels", "100us", "--seconds", "0.1"], env=self.native, capture_output=True, text=True, timeout=60)
        self.why_no_kernels = None if done.returncode == 0 else (done.stderr or done.stdout).strip()[-200:]
        # The bytes that the agent reserves for the steps in which managed memory moves to the device.
        self.managed_step = max(0, self.device()["reserved_bytes"] - self.monitor.used())

    def test(self, name):
        path = self.build / "tests" / name
        if not path.exists():
            raise Skipped(f"{name} is not in {self.build}/tests")
        return path

    def left(self):
        return self.seconds - (time.monotonic() - self.begun)

    def needs_figures(self):
        if not self.shows_use:
            raise Skipped("this NVML does not show what other processes hold")

    def needs_kernels(self):
        if self.why_no_kernels is not None:
            raise Skipped(f"the driver does not run this script's kernels: {self.why_no_kernels}")

    def carve(self, *words, timeout=120, **more):
        timeout = max(30, min(timeout, self.left()))
        return subprocess.run([self.build / "bin/carve", *map(str, words)], env={**self.environment, **more},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)

    def run(self, *words, memory=None, timeout=240, **more):
        return self.carve("run", "--memory", memory or self.memory, "--device", "0", "--", *words, timeout=timeout, **more)

    def begin(self, name, *words, memory=None, terms=()):
        return subprocess.Popen([self.build / "bin/carve", "run", "--name", name, "--memory", str(memory or self.memory),
                                 "--device", "0", *terms, "--", *map(str, words)], env=self.environment, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def policy(self, name):
        """Makes the device follow the policy. The device must have no slices."""
        self.idle()
        done = self.carve("node", "set", "--policy", name)
        assert done.returncode == 0, done.stderr
        assert until(lambda: self.device()["policy"]["effective"] == name, 10), f"the device follows {self.device()['policy']}, not {name}"

    def show(self, name):
        done = self.carve("show", name, "-o", "json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def device(self):
        return json.loads(self.carve("devices", "-o", "json").stdout)["devices"][0]

    def leases(self, name):
        shown = self.show(name)
        return shown["parts"][0].get("compute", {}).get("leases", 0) if shown else 0

    def idle(self, seconds=10):
        end = time.monotonic() + seconds
        while self.device()["slices"] and time.monotonic() < end:
            time.sleep(0.02)

    def end(self):
        self.agent.send_signal(signal.SIGTERM)
        self.agent.wait(30)
        self.monitor.process.stdin.close()
        self.monitor.process.wait(10)
        shutil.rmtree(self.folder, ignore_errors=True)


def bytes_of(size):
    number, unit = re.fullmatch(r"(\d+)(MiB|GiB)", size).groups()
    return int(number) * (MiB if unit == "MiB" else GiB)


def until(true, seconds):
    end = time.monotonic() + seconds
    while not (value := true()) and time.monotonic() < end:
        time.sleep(0.01)
    return value


def said(done):
    """Returns the JSON that a program printed, and passes on its skip (status 77) and its failure."""
    if done.returncode == 77:
        raise Skipped((done.stdout + done.stderr).strip().rpartition("\n")[2] or "the program does not support this device")
    assert done.returncode == 0, f"exit status {done.returncode}: {(done.stdout + done.stderr).strip()[-600:]}"
    return json.loads(done.stdout.strip().splitlines()[-1])


# ---- The cases. -------------------------------------------------------------------------------------------------

def identity(m):
    """dlsym and cuGetProcAddress must return the same pointer for an entry, because the hooks rely on it."""
    done = subprocess.run([m.test("gpu_identity"), m.test("cuda_exports.txt")], env=m.native, capture_output=True, text=True)
    assert done.returncode in (0, 77), f"entries whose pointer no export has: {done.stdout}"
    return said(done)


def quota(kind):
    def case(m):
        limit = bytes_of(m.memory)
        with m.monitor.watched() as most:
            done = m.run(m.test("guest_rows"), kind)
        got = said(done)
        beyond = most[0] - limit - (m.managed_step if kind == "managed" else 0)
        assert beyond <= 0, f"{beyond} bytes beyond the slice"
        assert got["error"] == [OUT_OF_MEMORY] * 2, f"refused with an error other than CUDA_ERROR_OUT_OF_MEMORY: {got}"
        # A driver cuts small pieces from a 2 MiB block, whose unused rest may count as growth for a moment.
        apart = abs(got["count"][0] - got["count"][1]) * max(got["piece"], SMALLEST)
        assert got["count"][0] > 0 and apart < (2 * MiB if got["piece"] < MiB else 1), f"freed memory cannot all be allocated again: {got}"
        return {"pieces": got["count"][0], "device_bytes_at_most": most[0] if m.shows_use else None}
    case.__doc__ = f"{kind}: fills to the quota and no byte beyond it, frees, fills again to the same figure"
    return case


def neighbours(m):
    """Two slices are filled at the same time: each gets its quota, and the device never holds more than
    both."""
    m.needs_figures()
    with m.monitor.watched() as most:
        both = [m.begin(f"n{i}", m.test("guest_rows"), "linear") for i in (1, 2)]
        done = [subprocess.CompletedProcess([], p.wait(240), p.stdout.read(), "") for p in both]
    got = [said(d) for d in done]
    assert most[0] <= 2 * bytes_of(m.memory), most
    assert got[0]["count"] == got[1]["count"], got
    return {"pieces": [g["count"][0] for g in got]}


def sharing(m):
    """Two processes of one slice share memory by IPC handle and by descriptor: it is charged once, and both
    see the same bytes."""
    pair = m.test("gpu_pair")

    def words(socket):
        return ["sh", "-c", f"{pair} give {socket} & {pair} take {socket} && wait $!"]
    native = said(subprocess.run(words(m.folder / "native"), env=m.native, capture_output=True, text=True, timeout=60))
    if native["ipc"] != 0 or native["descriptor"] != 0:
        raise Skipped(f"the driver shares no memory between processes, outside slices either: {native}")
    got = said(m.run(*words(m.folder / "pair")))
    assert got["ipc"] == 0 and got["descriptor"] == 0, got
    assert got["charged"] == 0, f"charged twice: {got}"
    return got


def foreign(m):
    """Another slice cannot open memory by IPC handle. The output shows whether descriptors are rejected
    too."""
    pair, socket = m.test("gpu_pair"), m.folder / "foreign"
    giver = m.begin("giver", pair, "give", socket)
    try:
        got = said(m.run(pair, "take", socket))
    finally:
        m.carve("stop", "giver")
        giver.wait(30)
    assert got["ipc"] != 0, "the memory of another slice was opened"
    return got


def death(m):
    """The next program gets the memory of a killed program. Measures the time until then."""
    m.needs_figures()
    took = []
    for _ in range(5):
        program = m.begin("dies", m.build / "bin/carve-load", "--allocate", f"{bytes_of(m.memory) // 2 // MiB}MiB",
                          "--no-touch", "--seconds", "60")
        assert until(lambda: (m.show("dies") or {"parts": [{"charged_bytes": 0}]})["parts"][0]["charged_bytes"] > bytes_of(m.memory) // 2,
                     30)
        pid = next(p["pid"] for p in m.show("dies")["processes"] if p["attached"])
        start = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        program.wait(30)
        m.idle()
        took.append((time.monotonic() - start) * 1000)
        got = said(m.run(m.build / "bin/carve-load", "--allocate", f"{bytes_of(m.memory) // 2 // MiB}MiB", "--no-touch"))
        assert got["error"] is None, got
    return {"ms_until_the_slice_is_gone": round(statistics.median(took), 1)}


def many(m):
    """Sixteen processes fill one slice at the same time, and the device never holds more than the slice."""
    m.needs_figures()
    limit = bytes_of(m.memory) * 8
    with m.monitor.watched() as most:
        got = said(m.run(m.build / "bin/carve-load", "--processes", "16", "--pattern", "fill", "--chunk", "64MiB", "--smallest",
                         "2MiB", "--allocate", f"{limit // MiB}MiB", "--no-touch", "--seconds", "1", memory=f"{limit // MiB}MiB"))
    assert most[0] <= limit, f"{most[0] - limit} bytes beyond the slice"
    return {"device_bytes_at_most": most[0], "error": got["error"]}


def context(m):
    """Compares the bytes of a context as measured by the agent and as reported by the device."""
    m.needs_figures()
    with m.monitor.watched() as most:
        said(m.run(m.build / "bin/carve-load", "--allocate", "2MiB", "--no-touch", "--seconds", "0.5"))
    measured = m.device()["context_bytes"]
    return {"agent_bytes": measured, "device_bytes": most[0] - 2 * MiB}


def bypass(m):
    """The agent reports a program that bypasses the library within a second of its first byte."""
    m.needs_figures()
    way = f"LD_PRELOAD= exec {m.test('escape')} plain 300 60"
    took = []
    for i in range(3):
        before, name = m.monitor.used(), f"escape{i}"
        program = m.begin(name, "sh", "-c", way)
        assert until(lambda: m.monitor.used() >= before + 300 * MiB, 30), "the program took no memory"
        start = time.monotonic()
        told = until(lambda: any("found unattached" in e["text"] for e in (m.show(name) or {"events": []})["events"]), 10)
        took.append(time.monotonic() - start)
        m.carve("stop", name)
        program.wait(30)
        if not told:
            if not visible(m):
                raise Skipped("this machine's NVML names no processes (a pid namespace, or no right to)")
            raise AssertionError("the agent did not report the bypass")
    # On a simulated device other tests run at the same time, so the time is only printed.
    assert m.simulated or max(took) < 1.5, took
    return {"seconds": [round(t, 2) for t in took]}


def visible(m):
    """Returns whether NVML lists the processes of the device. Without the list no bypass can be found."""
    program = subprocess.Popen([m.build / "bin/carve-load", "--allocate", "2MiB", "--seconds", "3"], env=m.native,
                               stdout=subprocess.DEVNULL)
    seen = until(lambda: m.device()["unmanaged_processes"], 3)
    program.wait()
    return bool(seen)


def overhead(m):
    """Measures the time that the hooks add to calls of this driver, alternately in a slice and outside of
    slices."""
    m.needs_kernels()
    rows = {"native": [], "slice": []}
    for _ in range(5):
        done = subprocess.run([m.test("gpu_overhead")], env=m.native, capture_output=True, text=True, timeout=120)
        rows["native"].append(said(done))
        rows["slice"].append(said(m.run(m.test("gpu_overhead"))))
    table = {}
    for name in rows["native"][0]:
        native, inside = (statistics.median(r[name] for r in rows[where]) for where in ("native", "slice"))
        table[name] = {"native_ns": native, "added_ns": round(inside - native, 1)}
    return table


def kernels(m, length, seconds):
    # Long kernels are not queued, because a queue of a thousand would take longer than the case.
    return [m.build / "bin/carve-load", "--kernels", length, "--seconds", seconds, *(["--no-sync"] if length.endswith("us") else [])]


def rate(m, name, share, length, seconds):
    return m.begin(name, *kernels(m, length, seconds), terms=("--compute", f"{share}%"))


def per_second(program):
    got = said(subprocess.CompletedProcess([], program.wait(120), program.stdout.read(), ""))
    return got["kernels_completed"] / (got["elapsed_ns"] / 1e9)


def alone(policy, length):
    def case(m):
        m.needs_kernels()
        m.policy(policy)
        seconds = "1" if m.simulated else "3"
        native = said(subprocess.run(kernels(m, length, "2"), env=m.native, capture_output=True, text=True, timeout=120))
        native = native["kernels_completed"] / (native["elapsed_ns"] / 1e9)
        parts = [round(100 * per_second(rate(m, f"alone{share}", share, length, seconds)) / native, 1) for share in (60, 20)]
        got = {"native_per_second": round(native), "percent": parts}
        want = (60, 20) if policy == "fixed-share" else (100, 100)
        assert m.simulated or all(abs(part - share) <= 3 for part, share in zip(parts, want)), got
        return got
    case.__doc__ = f"{policy}, kernels of {length}: slices of 60% and 20% that are alone, in percent of a program outside a slice"
    return case


def spans_of(path):
    return [tuple(map(int, line.split())) for line in path.read_text().splitlines()]


def within(spans, begin, end):
    return [(max(a, begin), min(b, end)) for a, b in spans if b > begin and a < end]


def joined(spans, pause=20_000):
    """Returns the spans, and joins those that are at most `pause` ns apart, which is the time of a launch."""
    out = [spans[0]]
    for begin, end in spans[1:]:
        if begin - out[-1][1] <= pause:
            out[-1] = (out[-1][0], end)
        else:
            out.append((begin, end))
    return out


def common(some, others):
    """Returns the time during which both lists have a span. Each list must be sorted and without overlaps."""
    total = i = j = 0
    while i < len(some) and j < len(others):
        total += max(0, min(some[i][1], others[j][1]) - max(some[i][0], others[j][0]))
        if some[i][1] < others[j][1]:
            i += 1
        else:
            j += 1
    return total


def device_time(policy, length):
    def case(m):
        if m.simulated:
            raise Skipped("the simulated device does not execute kernels, so they read no clock")
        m.needs_kernels()
        m.policy(policy)
        program, files = m.test("gpu_spans"), [m.folder / f"spans{share}" for share in (60, 20)]
        both = [m.begin(f"spans{share}", program, length, 6, file, terms=("--compute", f"{share}%"))
                for share, file in zip((60, 20), files)]
        assert until(lambda: all(m.leases(f"spans{share}") > 20 for share in (60, 20)), 30), "the slices do not run"
        time.sleep(2)
        m.carve("trace", "--seconds", "2", "-o", m.folder / f"trace-{policy}-{length}.json")
        whole = [m.show(f"spans{share}") for share in (60, 20)]
        shown = [slice["parts"][0]["compute"] for slice in whole]
        got = [said(subprocess.CompletedProcess([], p.wait(60), p.stdout.read(), "")) for p in both]
        all_spans = [joined(spans_of(file)) for file in files]
        begin, end = max(s[0][0] for s in all_spans) + 10**9, min(s[-1][1] for s in all_spans) - 10**9
        sixty, twenty = (within(s, begin, end) for s in all_spans)
        both_at_once = common(sixty, twenty)
        parts = [100 * (sum(b - a for a, b in s) - both_at_once / 2) / (end - begin) for s in (sixty, twenty)]
        if keep := os.environ.get("GPU_KEEP"):
            for file in [*files, m.folder / f"trace-{policy}-{length}.json"]:
                shutil.copy(file, pathlib.Path(keep) / f"{policy}-{length}-{file.name}")
        result = {"kernel_us": [g["length_ns"] / 1000 for g in got], "parts": [round(p, 1) for p in parts],
                  "both_at_once": round(100 * both_at_once / (end - begin), 2),
                  "shown": [c["achieved_1s_bp"] / 100 for c in shown], "overruns": [c["overruns"] for c in shown],
                  "leases": [c["leases"] for c in shown]}
        assert not any(slice["violations"] for slice in whole), [slice["events"][-1] for slice in whole]
        # A switch between the slices takes 0.2 ms of a lease of at least 5 ms, and is charged.
        if policy == "fixed-share":
            assert all(share - 3 <= part <= share for part, share in zip(parts, (60, 20))), result
        else:
            assert parts[0] >= 60 and parts[1] >= 20 and sum(parts) >= 93, result
        return result
    case.__doc__ = f"{policy}, kernels of {length} us: slices of 60% and 20% in percent of the time, by the device's own clock"
    return case


def requests(m):
    """Measures requests of 1 ms that arrive at random, outside of slices and in a latency slice next to a
    slice that is always busy."""
    m.needs_kernels()
    words = ("--kernels", "1ms", "--request", "100", "--seconds", "3")
    native = said(subprocess.run([m.build / "bin/carve-load", *words], env=m.native, capture_output=True, text=True, timeout=60))
    m.policy("guaranteed-burst-share")
    table = {"native_alone_us": [native["p50_ns"] // 1000, native["p99_ns"] // 1000]}
    for name, terms in (("latency", ("--compute", "30%", "--latency")), ("batch", ("--compute", "30%"))):
        load = rate(m, "busy", 60, "1ms", "6")
        assert until(lambda: (m.show("busy") or {"parts": [{"charged_bytes": 0}]})["parts"][0]["charged_bytes"], 30)
        program = m.begin(name, m.build / "bin/carve-load", *words, terms=terms)
        got = said(subprocess.CompletedProcess([], program.wait(60), program.stdout.read(), ""))
        table[f"{name}_us"] = [got["p50_ns"] // 1000, got["p99_ns"] // 1000]
        load.wait(60)
        m.idle()
    return table


def training(m):
    """PyTorch trains outside of slices, in a slice of 60% without others, and in slices of 60% and 20% at the
    same time (fixed-share)."""
    python = os.environ.get("GPU_PYTHON", sys.executable)
    words = [python, HERE / "frameworks/training.py", "3"]
    m.policy("fixed-share")
    native = said(subprocess.run(words, env=m.native, capture_output=True, text=True, timeout=120))["steps_per_second"]

    def steps(program):
        return said(subprocess.CompletedProcess([], program.wait(120), program.stdout.read(), ""))["steps_per_second"] / native

    memory = f"{bytes_of(m.memory) * 2 // MiB}MiB"
    alone = steps(m.begin("alone", *words, memory=memory, terms=("--compute", "60%")))
    both = [m.begin(f"train{share}", *words, m.folder / "ready", i, memory=memory, terms=("--compute", f"{share}%"))
            for i, share in enumerate((60, 20))]
    together = [steps(program) for program in both]
    got = {"native_steps_per_second": round(native, 1), "alone": round(100 * alone, 1), "together": [round(100 * t, 1) for t in together]}
    assert abs(100 * alone - 60) <= 5 and 2.5 <= together[0] / together[1] <= 3.5, got
    return got


def toolkit(m):
    """Runs a program that uses the CUDA runtime, compiled by nvcc and linked statically."""
    nvcc = shutil.which("nvcc") or next((p for p in ("/usr/local/cuda/bin/nvcc",) if os.path.exists(p)), None)
    if not nvcc:
        raise Skipped("nvcc is not installed")
    made = subprocess.run([nvcc, "-o", m.folder / "toolkit", HERE / "toolkit.cu"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    with m.monitor.watched() as most:
        done = m.run(m.folder / "toolkit")
    assert done.returncode == 0, done.stdout + done.stderr
    assert most[0] <= bytes_of(m.memory), f"{most[0] - bytes_of(m.memory)} bytes beyond the slice"
    return {"said": done.stdout.strip().splitlines(), "device_bytes_at_most": most[0]}


def samples(m):
    """Runs NVIDIA's own samples if they are installed ($CUDA_SAMPLES or the toolkit's folders)."""
    folders = [os.environ.get("CUDA_SAMPLES", ""), "/usr/local/cuda/extras/demo_suite", "/usr/local/cuda/samples/bin"]
    found = [p for f in folders if f for name in ("deviceQuery", "vectorAdd", "bandwidthTest", "simpleIPC", "streamOrderedAllocation")
             for p in pathlib.Path(f).rglob(name) if os.access(p, os.X_OK) and p.is_file()]
    if not found:
        raise Skipped("no samples found; CUDA_SAMPLES=FOLDER names their folder")
    codes = {p.name: m.run(p).returncode for p in found}
    assert not any(codes.values()), codes
    return codes


def profiler(m):
    """Runs a program in a slice under NVIDIA's profilers to its end; Nsight Systems and Compute inject
    libraries."""
    found = {"nsys": ["profile", "--force-overwrite", "true", "-o", m.folder / "nsys"], "ncu": ["--launch-count", "1"]}
    codes = {}
    for name, words in found.items():
        if path := shutil.which(name):
            codes[name] = m.run(path, *words, m.build / "bin/carve-load", "--kernels", "50us", "--seconds", "1").returncode
    if not codes:
        raise Skipped("neither nsys nor ncu is installed")
    assert not any(codes.values()), codes
    return codes


def framework(name):
    def case(m):
        python = os.environ.get("GPU_PYTHON", sys.executable)
        with m.monitor.watched() as most:
            done = m.run(python, HERE / "frameworks" / f"{name}.py", memory=f"{bytes_of(m.memory) * 2 // MiB}MiB", timeout=400)
        got = said(done)
        assert most[0] <= bytes_of(m.memory) * 2, f"{most[0]} bytes of the device"
        if "total" in got:
            assert got["total"] == bytes_of(m.memory) * 2, f"sees {got['total']} bytes, not its slice"
        return {**got, "device_bytes_at_most": most[0]}
    case.__doc__ = f"{name}, unmodified: sees the slice as the device, reports its own error when full, computes correctly"
    return case


def cases(m):
    rows = m.build / "tests/guest_rows"
    kinds = subprocess.run([rows], capture_output=True, text=True).stdout.split() if rows.exists() else ["linear"]
    policies, one_by_one = ("fixed-share", "guaranteed-burst-share"), lambda *functions: [(f.__name__, f) for f in functions]
    # First, whether the hooks understand the driver; then what the kernel modules hold and show; then the
    # shares by the device's own clock.
    named = one_by_one(identity, bypass, death, context, many, neighbours)
    named += [(f"device_time.{policy}.{length}us", device_time(policy, length)) for length in (400, 100, 3000) for policy in policies]
    named += one_by_one(training, requests, overhead)
    named += [(f"quota.{kind}", quota(kind)) for kind in kinds if kind != "context"]
    named += one_by_one(sharing, foreign)
    named += [(f"framework.{name}", framework(name)) for name in ("pytorch", "cupy", "jax", "triton")]
    named += [(f"alone.{policy}.{length}", alone(policy, length)) for length in ("100us", "5ms") for policy in policies]
    named += one_by_one(toolkit, samples, profiler)
    return named


def main():
    if sys.argv[1:] == ["--watch"]:
        return watch()
    parser = argparse.ArgumentParser(prog="run.sh", description="Accepts a build on NVIDIA's own driver.")
    parser.add_argument("build", metavar="BIN_DIR", type=pathlib.Path, help="a build folder, or what tests/gpu/pack made")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path, default=pathlib.Path("gpu.json"),
                        help="the file of the results (gpu.json)")
    parser.add_argument("--memory", metavar="SIZE", default="2GiB", help="memory of a case's slice, in MiB or GiB (2GiB)")
    parser.add_argument("--only", metavar="WORD", action="append", help="run only cases whose name contains WORD")
    parser.add_argument("--seconds", metavar="N", type=float, default=420, help="start no case after N seconds (420)")
    parser.add_argument("--sim", metavar="SPEC", help="use simulated devices, as carved --sim does")
    options = parser.parse_args()
    options.build = options.build.resolve()
    if not (options.build / "bin/carved").exists():
        parser.error(f"{options.build} has no bin/carved: use a build folder or one made by tests/gpu/pack")
    if not re.fullmatch(r"\d+(MiB|GiB)", options.memory):
        parser.error(f"--memory {options.memory}: not a number with MiB or GiB, such as 2GiB")
    try:
        m = Machine(options)
    except Skipped as reason:
        print(f"run.sh: {reason}", file=sys.stderr)
        return 2
    where = f"{m.monitor.name}, driver {m.monitor.driver}" + (", simulated" if m.simulated else "")
    document = {"date": time.strftime("%Y-%m-%d"), "where": where, "simulated": m.simulated, "host": platform.platform(),
                "device": m.device(), "cases": []}
    write = lambda: options.json.write_text(json.dumps(document, indent=1) + "\n")
    write()
    print(f"{where}, {m.monitor.total / GiB:.1f} GiB, {m.monitor.used() / MiB:.0f} MiB held by others\n")
    for name, case in cases(m):
        if options.only and not any(word in name for word in options.only):
            continue
        row = {"name": name, "what": case.__doc__, "status": "ok"}
        start = time.monotonic()
        try:
            if m.left() <= 0:
                raise Skipped(f"no time left of {options.seconds:g} s; --only {name} runs it")
            row["measured"] = case(m)
        except Skipped as reason:
            row.update(status="skipped", why=str(reason))
        except (AssertionError, subprocess.TimeoutExpired, ValueError, KeyError, IndexError) as error:
            row.update(status="FAILED", why=str(error) or repr(error))
        row["seconds"] = round(time.monotonic() - start, 1)
        m.idle()
        document["cases"].append(row)
        write()  # The machine may be taken away before the last case.
        text = row.get("why") or json.dumps(row["measured"])
        print(f"{row['status']:8} {name:24} {row['seconds']:6.1f} s  {text[:240]}", flush=True)
    m.end()
    count = {s: sum(c["status"] == s for c in document["cases"]) for s in ("ok", "skipped", "FAILED")}
    print(f"\n{count['ok']} ok, {count['skipped']} skipped, {count['FAILED']} failed; {options.json}")
    return 1 if count["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())

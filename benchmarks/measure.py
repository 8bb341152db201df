"""Shared by the benchmarks: an agent on simulated devices, and figures from repeated measurements."""
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

BUILD = pathlib.Path(__file__).resolve().parents[1] / "build"


def figure(name, values, unit, goal, better="lower", native=None, where="simulated"):
    middle = statistics.median(values)
    spread = (max(values) - min(values)) / middle if len(values) > 1 and middle else None
    return {"name": name, "value": round(middle, 4), "unit": unit, "goal": goal, "better": better,
            "native": None if native is None else round(statistics.median(native), 4), "spread": spread, "where": where}


class Agent:
    def __init__(self, spec="a10x2", *options):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cvb-"))
        self.socket = self.folder / "s"
        self.environment = {**os.environ, "CARVE_SOCKET": str(self.socket)}
        self.command = [BUILD / "bin/carved", "--sim", spec, "--state", self.folder / "state", "--socket", self.socket, *options]
        self.start()

    def start(self):
        self.log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log)
        while subprocess.run(self.words("version"), env=self.environment, capture_output=True).returncode != 0:
            if self.process.poll() is not None:
                raise SystemExit((self.folder / "log").read_text())
            time.sleep(0.005)

    def words(self, *words):
        return [str(BUILD / "bin/carve"), *map(str, words)]

    def carve(self, *words, **options):
        return subprocess.run(self.words(*words), env=self.environment, capture_output=True, text=True, check=True, **options)

    def begin(self, *words):
        return subprocess.Popen(self.words(*words), env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def json(self, *words):
        return json.loads(self.carve(*words, "-o", "json").stdout)

    def cpu_seconds(self, thread=""):
        """Returns the seconds of the agent's threads named `thread...`, to the nanosecond (proc(5), schedstat); stat has 10 ms."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks
                   if (task / "comm").read_text().startswith(thread)) / 1e9

    def end(self):
        for s in self.json("ps")["slices"]:
            subprocess.run(self.words("stop", s["name"]), env=self.environment, capture_output=True)
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def seconds_of(act):
    start = time.perf_counter()
    act()
    return time.perf_counter() - start

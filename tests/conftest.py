"""A small world for whatever runs real programs: an agent of its own on simulated devices, and the command line.

Every case gets an agent with its own socket, ledger and device set in a short temporary folder, so that
cases neither see nor disturb each other. Nothing here knows how Carve works inside.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from over_unix import asked

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("CARVE_BUILD", HERE.parent / "build"))
long_form = bool(os.environ.get("CARVE_LONG"))
LONGEST_CASE = 3600 if long_form else 300  # Seconds.
GiB = 1 << 30
MiB = 1 << 20


def until(true, seconds=10, every=0.05):
    """Waits until `true()` is; its last value. Generous, because shared machines stall."""
    end = time.monotonic() + seconds
    while not (value := true()) and time.monotonic() < end:
        time.sleep(every)
    return value


class World:
    def __init__(self, spec, *arguments):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cv-"))
        self.folder.chmod(0o755)
        self.socket = self.folder / "s"
        self.arguments = ["--sim", spec, "--state", str(self.folder / "state"), "--socket", str(self.socket), *arguments]
        self.environment = {**os.environ, "CARVE_SOCKET": str(self.socket), "NO_COLOR": "1"}
        self.agent_environment = None
        self.programs = []
        self.start()

    def start(self):
        self.log = open(self.folder / "log", "ab")
        self.agent = subprocess.Popen([BUILD / "bin/carved", *self.arguments], stdout=self.log, stderr=self.log,
                                      env=self.agent_environment)
        assert until(lambda: self.carve("version").returncode == 0 or self.agent.poll() is not None, 20)
        assert self.agent.poll() is None, (self.folder / "log").read_text()

    def carve(self, *words, **options):
        options = {"stdin": subprocess.DEVNULL, "timeout": 60, **options}
        return subprocess.run([BUILD / "bin/carve", *map(str, words)], env={**self.environment, **options.pop("env", {})},
                              capture_output=True, text=True, **options)

    def json(self, *words):
        done = self.carve(*words, "-o", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def get(self, target):
        return asked(self.socket, target)

    def begin(self, *words, **options):
        """Starts `carve` with these words and leaves it running."""
        environment = {**self.environment, **options.pop("env", {})}
        program = subprocess.Popen([BUILD / "bin/carve", *map(str, words)], env=environment, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        self.programs.append(program)
        return program

    def slices(self):
        return {s["name"]: s for s in self.json("ps")["slices"]}

    def show(self, name):
        return self.json("show", name)

    def attached(self, name):
        """Waits until a process of the slice has the library inside and holds a context."""
        def holds():
            slice_ = self.slices().get(name)
            return slice_ and sum(p["charged_bytes"] for p in slice_["parts"]) > 0
        assert until(holds), f"nothing in {name} came to hold memory"
        return self.show(name)

    def end(self):
        for name in self.slices() if self.agent.poll() is None else []:
            self.carve("stop", name)
        for program in self.programs:
            try:
                program.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                program.kill()
                program.communicate()
        if self.agent.poll() is None:
            self.agent.send_signal(signal.SIGTERM)
            self.agent.wait(20)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def world(request):
    mark = request.node.get_closest_marker("devices")
    w = World(*(mark.args if mark else ("a10x2",)))
    yield w
    log = (w.folder / "log").read_text()
    w.end()
    report = getattr(request.node, "report", None)
    if report is None or report.failed:
        print("--- the agent's log:\n" + log[-4000:])


@pytest.fixture(autouse=True)
def in_time():
    """A case that hangs fails, and says where, instead of holding up all the others."""
    def late(*_):
        raise TimeoutError(f"the case took more than {LONGEST_CASE} s")
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LONGEST_CASE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "call":
        item.report = outcome.get_result()


def pytest_configure(config):
    config.addinivalue_line("markers", "devices(spec, *arguments): what the case's agent is started with")
    config.addinivalue_line("markers", "alone: measures shares or times on the real clock; nothing may run beside it")


LOAD = BUILD / "bin/carve-load"


def program_of(text):
    """A program of a few lines, with what driver.py has at hand."""
    return [sys.executable, "-c", "from driver import *\n" + text]


@pytest.fixture
def inside(world):
    """inside(TEXT, slice options): runs the Python text in a slice; what it printed. A failed assertion in it fails the test."""
    def run(text, *options, memory="2GiB", status=0, env=None):
        done = world.carve("run", "--memory", memory, *options, "--", *program_of(text), env={"PYTHONPATH": str(HERE), **(env or {})},
                           timeout=120)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout
    return run


@pytest.fixture
def beside(world):
    """The same, left running."""
    def begin(text, *options, name="beside", memory="2GiB"):
        return world.begin("run", "--memory", memory, "--name", name, *options, "--", *program_of(text), env={"PYTHONPATH": str(HERE)})
    return begin

"""An agent for one test or benchmark, with simulated devices, a socket, a ledger, and the command line.

Each agent has its own temporary folder with a short path, so that agents neither see nor disturb each other.
Nothing here depends on how Carve works internally.
"""
import json
import contextlib
import os
import pathlib
import resource
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time

from support.over_unix import asked

BUILD = pathlib.Path(os.environ.get("CARVE_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build"))


def until(true, seconds=10, every=0.05):
    """Waits until `true()` returns a true value, and returns its last value. The default time is generous,
    because shared machines stall."""
    end = time.monotonic() + seconds
    while not (value := true()) and time.monotonic() < end:
        time.sleep(every)
    return value


class Agent:
    """The process `carved --sim SPEC ARGUMENT...`. With a uid, it and its programs run as that ordinary user.
    Without a specification, the devices are those of the driver that the agent finds with `environment`."""

    def __init__(self, spec, *arguments, build=BUILD, uid=None, environment=None):
        self.build = build
        self.user = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cv-"))
        self.folder.chmod(0o755)
        if uid is not None:
            os.chown(self.folder, uid, uid)
        self.socket = self.folder / "s"
        self.arguments = [*(["--sim", spec] if spec else []), "--state", str(self.folder / "state"), "--socket", str(self.socket), *arguments]
        self.environment = {**os.environ, "CARVE_SOCKET": str(self.socket), "NO_COLOR": "1",
                            "XDG_STATE_HOME": str(self.folder / "user-state")}
        self.process_environment = environment  # Environment of the agent, or None for this process's.
        self.programs = []
        self.limits = {}  # Limits of the agent's process, such as {resource.RLIMIT_NOFILE: 100}.
        self.start()

    def start(self):
        self.log = open(self.folder / "log", "ab")
        def limit():
            for kind, most in self.limits.items():
                resource.setrlimit(kind, (most, most))
        self.process = subprocess.Popen([self.build / "bin/carved", *self.arguments], stdout=self.log, stderr=self.log,
                                        env=self.process_environment, preexec_fn=limit if self.limits else None, **self.user)
        assert until(lambda: self.carve("version").returncode == 0 or self.process.poll() is not None, 20, 0.005)
        assert self.process.poll() is None, (self.folder / "log").read_text()

    def pretend_boot(self):
        """While no agent runs, changes the stored data as if it came from an earlier boot of the machine."""
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        with contextlib.closing(sqlite3.connect(self.folder / "state/ledger.db")) as book:
            book.execute("UPDATE record SET from_boot_id = 'an earlier one'")
            book.commit()
        for file in [*self.folder.glob("s.run/*.state"), self.folder / "state/policy.json"]:
            file.write_text(file.read_text().replace(boot, "an earlier one"))

    @property
    def driver(self):
        """Returns the folder of the simulated driver's libraries, which belong to the set
        (src/sim/model/FORMAT.md)."""
        number = (self.folder / "state/sim/driver").read_text().strip()
        return self.build / "lib/carve/sim" / ("" if number == "0" else number)

    def words(self, *words):
        return [str(self.build / "bin/carve"), *map(str, words)]

    def carve(self, *words, **options):
        options = {"stdin": subprocess.DEVNULL, "timeout": 60, **self.user, **options}
        return subprocess.run(self.words(*words), env={**self.environment, **options.pop("env", {})},
                              capture_output=True, text=True, **options)

    def json(self, *words):
        done = self.carve(*words, "-o", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def get(self, target):
        return asked(self.socket, target)

    def begin(self, *words, **options):
        """Starts `carve` with these arguments and leaves it running."""
        environment = {**self.environment, **options.pop("env", {})}
        program = subprocess.Popen(self.words(*words), env=environment, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **{**self.user, **options})
        self.programs.append(program)
        return program

    def slices(self):
        return {s["name"]: s for s in self.json("ps")["slices"]}

    def show(self, name):
        """Returns the output of `carve show` for the slice. Waits until the agent knows the slice, because a
        program started by begin() may create it."""
        def shown():
            done = self.carve("show", name, "-o", "json")
            return done if done.returncode == 0 or "there is no slice" not in done.stderr else None
        done = until(shown)
        assert done and done.returncode == 0, done.stderr if done else f"no slice {name}"
        return json.loads(done.stdout)

    def attached(self, name):
        """Waits until a process of the slice has loaded the library and holds a context."""
        def holds():
            slice_ = self.slices().get(name)
            return slice_ and sum(p["charged_bytes"] for p in slice_["parts"]) > 0
        assert until(holds), f"nothing in {name} came to hold memory"
        return self.show(name)

    def end(self):
        for name in self.slices() if self.process.poll() is None else []:
            self.carve("stop", name)
        for program in self.programs:
            try:
                program.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                program.kill()
                program.communicate()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(20)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

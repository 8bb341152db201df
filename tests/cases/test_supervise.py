"""Tests a program under carve-supervise in a slice that outlives it: its end, its output, and kills of other
programs."""
import json
import os
import signal
import subprocess

import pytest

from conftest import BUILD, GiB, LOAD, until
from support.over_unix import asked

HOLD = [str(LOAD), "--allocate", "256MiB", "--seconds", "600"]


class Supervised:
    """The directory of one program whose slice is `name`. Each attempt is a carve-supervise process."""

    def __init__(self, agent, name="r"):
        self.agent, self.name = agent, name
        self.folder = agent.folder / f"program-{name}"
        self.folder.mkdir()
        request = {"name": name, "memory_bytes": 2 * GiB, "lifetime": "explicit"}
        status, _, text = asked(agent.socket, "/v1/slices", "POST", json.dumps(request))
        assert status == 201, text

    def begin(self, command, attempt=1, **env):
        request = {"directory": ".", "agent_socket": str(self.agent.socket), "slice": self.name, "attempt": attempt,
                   "workdir": "/", "command": list(map(str, command)), "env": {"PATH": os.environ["PATH"], **env}}
        process = subprocess.Popen([BUILD / "bin/carve-supervise"], cwd=self.folder, stdin=subprocess.PIPE, text=True, env={},
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        process.stdin.write(json.dumps(request))
        process.stdin.close()
        return process

    def run(self, command, attempt=1, **env):
        process = self.begin(command, attempt, **env)
        assert process.wait(60) == 0, process.stderr.read()
        return self.state()

    def state(self):
        try:
            return json.loads((self.folder / "state.json").read_text())
        except FileNotFoundError:
            return {"attempt": 0, "program_pid": 0}

    def said(self, stream="stdout"):
        lines = (self.folder / "log/0.log").read_text().splitlines()
        return [line.split(" ", 3)[3] for line in lines if line.split(" ", 3)[1] == stream]

    def slice(self):
        return self.agent.slices()[self.name]

    def holding(self, attempt=1):
        """Waits until the program holds memory in the slice, and returns its pid."""
        assert until(lambda: self.state()["attempt"] == attempt and self.state()["program_pid"])
        self.agent.attached(self.name)
        return self.state()["program_pid"]


@pytest.fixture
def program(world):
    return Supervised(world)


def has_ended(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_the_program_runs_in_its_slice_and_the_slice_outlives_it(world, program):
    state = program.run([LOAD, "--allocate", "1GiB"])
    assert (state["exit_status"], state["signal"]) == (0, 0), program.said("stderr")
    assert state["ended_ns"] > state["started_ns"] > 0
    assert program.slice()["state"] == "granted"
    assert program.run([LOAD, "--allocate", "1GiB"], attempt=2)["exit_status"] == 0, program.said("stderr")
    refused = program.run([LOAD, "--allocate", "3GiB"], attempt=3)["exit_status"]
    assert refused not in (0, 125), "the quota of the slice is 2 GiB"
    assert program.said("system") == ["attempt 1 started", "attempt 1 ended: exit status 0", "attempt 2 started",
                                      "attempt 2 ended: exit status 0", "attempt 3 started", f"attempt 3 ended: exit status {refused}"]


def test_an_attempt_is_begun_only_once(world, program):
    program.run(["sh", "-c", "echo once"])
    again = program.begin(["sh", "-c", "echo twice"])
    assert again.wait(60) == 4 and "attempt 1 was already started" in again.stderr.read()
    assert program.said() == ["once"]


def test_the_environment_is_on_no_command_line(world, program):
    supervisor = program.begin(["sh", "-c", "echo $SECRET; exec sleep 600"], SECRET="hidden")
    assert until(lambda: program.state()["program_pid"] and program.said() == ["hidden"])
    for pid in supervisor.pid, program.state()["program_pid"]:
        with open(f"/proc/{pid}/cmdline") as file:
            assert "hidden" not in file.read()
    with open(f"/proc/{supervisor.pid}/environ") as file:
        assert "hidden" not in file.read()
    supervisor.terminate()
    assert supervisor.wait(60) == 0 and program.state()["signal"] == signal.SIGTERM


def test_a_killed_supervisor_leaves_no_process_and_an_empty_slice(world, program):
    supervisor = program.begin(["sh", "-c", "setsid " + " ".join(HOLD) + " & exec " + " ".join(HOLD)])
    pid = program.holding()
    assert until(lambda: len([p for p in world.show("r")["processes"] if p["attached"]]) == 2)
    pids = [p["pid"] for p in world.show("r")["processes"]]
    supervisor.kill()
    supervisor.wait()
    assert pid in pids and until(lambda: all(map(has_ended, pids)), 60)
    assert until(lambda: program.slice()["state"] == "granted")
    assert program.state()["ended_ns"] == 0
    assert program.run([LOAD, "--allocate", "1GiB"], attempt=2)["exit_status"] == 0, program.said("stderr")


def test_the_program_keeps_running_when_the_agent_is_killed(world, program):
    supervisor = program.begin(HOLD)
    pid = program.holding()
    world.process.kill()
    world.process.wait()
    world.start()
    assert pid in [p["pid"] for p in world.attached("r")["processes"]]
    assert supervisor.poll() is None
    supervisor.terminate()
    assert supervisor.wait(60) == 0 and program.state()["ended_ns"] > 0 and has_ended(pid)
    assert until(lambda: program.slice()["state"] == "granted")


def test_deleting_a_slice_ends_its_program(world, program):
    supervisor = program.begin(HOLD)
    program.holding()
    assert world.carve("stop", "r").returncode == 0
    assert supervisor.wait(60) == 0 and program.state()["signal"] == signal.SIGKILL
    assert until(lambda: "r" not in world.slices())
    late = program.run(["true"], attempt=2)
    assert late["exit_status"] == 125, "the slice has ended"

"""`carve run --time`: the agent sends SIGTERM at the limit and ends the slice after the grace time, whatever has become of `carve`."""
import os
import signal

import pytest

from conftest import until

STUBBORN = ("sh", "-c", "trap '' TERM; while :; do sleep 0.05; done")
is_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root's agent makes cgroups")


def run(world, *options, program=("sleep", "600"), **how):
    return world.carve("run", "--memory", "1GiB", "--name", "a", *options, "--", *program, **how)


def ended_because(world):
    return next(s["ended_because"] for s in world.json("ps", "-a")["slices"] if s["name"] == "a" and s["ended_ns"])


def test_a_program_gets_sigterm_at_the_limit(world):
    done = run(world, "--time", "1s")
    assert done.returncode == 128 + signal.SIGTERM, done.stderr
    assert until(lambda: "a" not in world.slices(), 30)
    assert "its time limit of 1s was reached; SIGTERM was sent, and its processes are killed in 30s" in world.carve("events").stdout
    assert ended_because(world) == "its time limit of 1s was reached"


def test_a_program_that_ignores_sigterm_is_killed_after_the_grace_time(world):
    assert run(world, "-d", "--time", "1s", "--stop-timeout", "1s", program=STUBBORN).returncode == 0
    done = world.carve("wait", "a")
    assert (done.returncode, done.stdout) == (128 + signal.SIGKILL, f"{128 + signal.SIGKILL}\n")
    assert ended_because(world) == "its time limit of 1s was reached"


def test_a_program_that_ends_earlier_is_not_affected(world):
    assert run(world, "--time", "10m", program=("sh", "-c", "exit 7")).returncode == 7
    assert until(lambda: "a" not in world.slices(), 30)
    assert ended_because(world) == "its last process ended"


@is_root
def test_the_limit_holds_when_carve_is_killed_and_when_the_agent_is_restarted(world):
    killed = world.begin("run", "--memory", "1GiB", "--name", "a", "--time", "4s", "--stop-timeout", "1s", "--", *STUBBORN)
    assert until(lambda: world.slices().get("a", {}).get("state") == "running", 30)
    killed.kill()
    killed.wait()
    world.process.kill()
    world.process.wait()
    world.start()
    assert "a" in world.slices(), "the slice survives both"
    assert until(lambda: "a" not in world.slices(), 60)
    assert ended_because(world) == "its time limit of 4s was reached"


def test_the_limit_is_shown_and_can_be_changed(world):
    assert run(world, "-d", "--time", "2h").returncode == 0
    assert "time limit of 2h set by " in world.carve("show", "a").stdout and "limit        2h00m, " in world.carve("show", "a").stdout
    assert world.carve("set", "a", "--time", "0").stdout == "a: no time limit\n"
    assert "\nlimit " not in world.carve("show", "a").stdout
    assert world.carve("set", "a", "--time", "1s", "--stop-timeout", "5s").stdout == "a: time limit in 1s\n"
    assert world.carve("wait", "a").stdout == f"{128 + signal.SIGTERM}\n"


@pytest.mark.parametrize("words, answer", [(("--time", "soon"), "'soon' is not a duration"), (("--time", "4000d"), "exceeds the maximum"),
                                           (("--time", "1s", "--stop-timeout", "-1s"), "is not a duration")])
def test_a_wrong_time_is_rejected(world, words, answer):
    done = run(world, *words)
    assert done.returncode == 125 and answer in done.stderr
    assert world.slices() == {}

"""Tests `carve up` and `carve down`, which start and stop the whole product for an ordinary user."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from conftest import BUILD, HERE, until

pytestmark = [
    pytest.mark.usefixtures("own_network"),
    pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed: apt-get install haproxy"),
]
USER = 65534


@pytest.fixture
def home():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cvu-"))
    os.chown(folder, USER, USER) if os.geteuid() == 0 else None
    yield folder
    carve(folder, "down", "--all")
    shutil.rmtree(folder, ignore_errors=True)


def as_user(home):
    identity = {"user": USER, "group": USER, "extra_groups": []} if os.geteuid() == 0 else {}
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_RUNTIME_DIR": str(home), "NO_COLOR": "1"}
    return {"env": environment, "text": True, "stdin": subprocess.DEVNULL, "cwd": "/", **identity}


def carve(home, *words):
    return subprocess.run([str(BUILD / "bin/carve"), *words], capture_output=True, timeout=120, **as_user(home))


def test_up_reports_why_a_program_did_not_start(home):
    state = home / "state"
    state.write_text("not a folder")
    failed = carve(home, "up", "--sim", "a10x2", "--state", str(state))
    assert failed.returncode == 1 and "carved ended: " in failed.stderr and str(state) in failed.stderr, failed.stderr


def test_up_reports_why_devices_cannot_be_simulated(home):
    for spec, reason in ("nope", "no profile is named 'nope'; the profiles are a10, "), ("a10x0", "a10x0"):
        failed = carve(home, "up", "--sim", spec)
        assert failed.returncode == 1 and f"carved ended: carved: --sim {spec}: " in failed.stderr, failed.stderr
        assert reason in failed.stderr.removeprefix(f"carve: carved ended: carved: --sim {spec}: "), failed.stderr


def test_up_starts_everything_and_down_leaves_the_programs_running(home):
    first = carve(home, "up", "--sim", "a10x2")
    assert first.returncode == 0 and "2 devices, simulated: a10x2" in first.stdout, first.stderr
    again = carve(home, "up", "--sim", "a10x2")
    programs = [line for line in first.stdout.splitlines() if not line.startswith("console ")]  # Each address has a new code.
    assert [line for line in again.stdout.splitlines() if not line.startswith("console ")] == programs, "it changes nothing if both run"
    other = carve(home, "up", "--sim", "t4x1")
    assert other.returncode == 1 and "is already running, with --sim a10x2; stop it first with carve down --all" in other.stderr
    other = carve(home, "up", "--state", str(home / "other"))
    assert other.returncode == 1 and "is already running, with its state in " in other.stderr and not (home / "other").exists(), other.stderr
    applied = carve(home, "apply", "-f", str(HERE.parent / "examples/service.yaml"), "--wait")
    assert applied.returncode == 0, applied.stderr

    def replicas():
        return json.loads(carve(home, "get", "service", "demo", "-o", "json").stdout)["status"]
    before = replicas()
    assert before["phase"] == "Running" and before["restarts"] == 0
    down = carve(home, "down")
    assert "still running" in down.stdout and "demo-1-0" in down.stdout
    ways = "carve up, then carve down --all"
    assert ways in down.stdout and ways in carve(home, "down", "--all").stdout, "no agent, so nothing ended them"
    assert carve(home, "up", "--sim", "a10x2").returncode == 0, "the state is unlocked when down has returned"
    assert until(lambda: replicas()["phase"] == "Running", 30) and replicas()["restarts"] == 0
    assert [r["slice"] for r in replicas()["replicaList"]] == ["demo-1-0", "demo-1-1"]
    with subprocess.Popen([str(BUILD / "bin/carve"), "run", "--memory", "1GiB", "--name", "own", "--", "sleep", "600"], **as_user(home)) as own:
        assert until(lambda: "own" in carve(home, "ps", "-o", "name").stdout)
        ended = carve(home, "down", "--all")
        assert ended.returncode == 0 and "still running" not in ended.stdout, ended.stdout
        assert ended.stdout.startswith("service/demo stopped\n") and "slice       own ended\n" in ended.stdout, ended.stdout
    assert own.returncode == 128 + 9
    assert carve(home, "get", "services").returncode == 1

"""`carve exec` runs another process in the slice of a running program, with the slice's limits."""
import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys

import pytest

from conftest import BUILD, LOAD, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root's agent makes cgroups")


@pytest.fixture
def slice_(world):
    done = world.carve("run", "-d", "--memory", "2GiB", "--name", "a", "--", LOAD, "--allocate", "1GiB", "--no-touch", "--seconds", "600")
    assert done.returncode == 0, done.stderr
    world.attached("a")
    return "a"


def test_a_process_joins_the_quota_and_the_cgroup(world, slice_):
    fits = world.carve("exec", "a", "--", LOAD, "--allocate", "256MiB", "--no-touch")
    assert fits.returncode == 0 and json.loads(fits.stdout)["error"] is None, fits.stderr
    refused = world.carve("exec", "a", "--", LOAD, "--allocate", "1GiB", "--no-touch")
    assert json.loads(refused.stdout)["error"] == "CUDA_ERROR_OUT_OF_MEMORY", "1 GiB of 2 GiB is in use"
    inside = world.begin("exec", "a", "--", "sh", "-c", "echo $$ $CARVE_SLICE $CUDA_VISIBLE_DEVICES; sleep 600")
    pid, name, devices = inside.stdout.readline().split()
    assert (name, devices) == ("a", "0")
    assert any(line.startswith("0::") and line.endswith("/a") for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines())
    assert int(pid) in [p["pid"] for p in world.show("a")["processes"]]
    assert world.carve("stop", "a").returncode == 0 and inside.wait(10) == 128 + signal.SIGKILL


@pytest.mark.parametrize("program, status", [
    (["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -TERM $$"], 128 + signal.SIGTERM), (["/no/such/program"], 127), (["/etc/passwd"], 126)])
def test_the_exit_status_is_that_of_the_process_and_the_slice_stays(world, slice_, program, status):
    assert world.carve("exec", "a", "--", *program).returncode == status
    assert world.slices()["a"]["state"] == "running"


def test_input_variables_and_signals_pass_through(world, slice_):
    done = subprocess.run(world.words("exec", "-i", "-e", "MINE=yes", "a", "sh", "-c", "cat; echo $MINE; echo err >&2"), input="in\n",
                          env=world.environment, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("in\nyes\n", "err\n")
    program = world.begin("exec", "a", "--", "sh", "-c", "trap 'echo got it; exit 5' TERM; echo ready; while :; do sleep 0.05; done")
    assert program.stdout.readline() == "ready\n"
    program.terminate()
    assert program.wait(10) == 5 and program.stdout.read() == "got it\n"


def test_a_terminal_has_its_size_and_its_interrupt_key(world, slice_):
    pid, terminal = pty.fork()
    if pid == 0:
        script = "stty rows 33 cols 77; stty size; trap 'echo interrupted; exit 9' INT; echo ready; while :; do sleep 0.05; done"
        os.execve(BUILD / "bin/carve", ["carve", "exec", "-it", "a", "--", "sh", "-c", script], world.environment)
    output = b""

    def has(text):
        nonlocal output
        if select.select([terminal], [], [], 0.05)[0]:
            output += os.read(terminal, 4096)
        return text in output
    assert until(lambda: has(b"33 77") and has(b"ready")), output
    os.write(terminal, b"\x03")
    assert until(lambda: has(b"interrupted")), output
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    os.close(terminal)


def test_only_a_running_program_can_be_joined(world):
    assert world.carve("slice", "create", "--memory", "1GiB", "--name", "box").returncode == 0
    for name, says in ("none", "there is no slice 'none'"), ("box", "box"):
        done = world.carve("exec", name, "--", "true")
        assert done.returncode == 125 and says in done.stderr, done.stderr
    assert "box" in world.slices()
    done = world.carve("exec", "a")
    assert done.returncode == 125 and "a slice and a program are required" in done.stderr


def test_the_program_may_have_ended_while_its_descendants_run(world):
    world.carve("run", "--memory", "1GiB", "--name", "a", "--", "sh", "-c", "setsid sleep 600 >/dev/null 2>&1 &")
    assert world.slices()["a"]["state"] == "lingering"
    done = world.carve("exec", "a", "--", "true")
    assert done.returncode == 125 and "the program of slice a is not running" in done.stderr
    assert world.slices()["a"]["state"] == "lingering", "the rejected process entered the slice"


def test_a_process_inside_a_slice_cannot_join_another(world, slice_):
    done = world.carve("run", "--memory", "1GiB", "--", BUILD / "bin/carve", "exec", "a", "--", "true")
    assert done.returncode == 125 and "manage slices from a process outside of slices" in done.stderr


def test_another_user_cannot_join_and_root_can(world, slice_):
    def as_nobody(*words):
        return subprocess.run(["setpriv", "--reuid=65534", "--regid=0", "--clear-groups", BUILD / "bin/carve", *words], cwd="/",
                              env=world.environment, capture_output=True, text=True, timeout=60)
    done = as_nobody("exec", "a", "--", "true")
    assert done.returncode == 125 and "there is no slice 'a'" in done.stderr
    world.programs.append(subprocess.Popen(
        ["setpriv", "--reuid=65534", "--regid=0", "--clear-groups", BUILD / "bin/carve", "run", "--memory", "1GiB", "--name", "theirs", "--",
         "sleep", "600"], env=world.environment, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    assert until(lambda: world.slices().get("theirs", {}).get("state") == "running")
    assert as_nobody("exec", "theirs", "--", "id", "-u").stdout == "65534\n"
    assert world.carve("exec", "theirs", "--", "id", "-u").stdout == "0\n"


def test_the_process_stays_in_the_slice_when_the_agent_is_killed(world, slice_):
    inside = world.begin("exec", "a", "--", "sh", "-c", f"echo $$; while [ ! -e {world.folder}/go ]; do sleep 0.05; done; exec {LOAD} --allocate 1GiB --no-touch")
    pid = int(inside.stdout.readline())
    world.process.kill()
    world.process.wait()
    world.start()
    assert until(lambda: pid in [p["pid"] for p in world.show("a")["processes"]])
    (world.folder / "go").touch()
    assert json.loads(inside.stdout.read())["error"] == "CUDA_ERROR_OUT_OF_MEMORY"


def test_a_slice_has_one_program(world):
    """Another process of the owner asks to become the program, while the first one runs and after its end."""
    enter = f"import sys; sys.path.insert(0, {str(BUILD.parent / 'tests')!r}); from support.over_unix import asked; " \
            "print(*asked(sys.argv[1], '/v1/slices/a/enter', 'POST', '{}')[::2]); sys.stdout.flush(); import time; time.sleep(600)"

    def answer():
        process = subprocess.Popen([sys.executable, "-c", enter, str(world.socket)], stdout=subprocess.PIPE, text=True)
        world.programs.append(process)
        line = process.stdout.readline()
        process.kill()
        return line

    stays = world.folder / "stays"
    done = world.carve("run", "-d", "--memory", "1GiB", "--name", "a", "--", "sh", "-c", f"sleep 600 & echo $! > {stays}; exec sleep 600")
    assert done.returncode == 0 and until(lambda: stays.exists() and stays.read_text().strip())
    assert answer().startswith("409 ") and "already has a program" in answer()
    world.carve("stop", "a")
    foreground = world.carve("run", "--memory", "1GiB", "--name", "a", "--", "sh", "-c", "sleep 600 > /dev/null 2>&1 & exit 3", timeout=30)
    assert foreground.returncode == 3 and world.slices()["a"]["state"] != "ended", "its descendant keeps the slice"
    assert answer().startswith("409 ") and "carve exec a" in answer()
    assert world.carve("exec", "a", "--", "true").returncode == 125, "the program is not running"

"""Attacks on the neighbours of a slice: a hostile slice, or a hostile local user, must not cost others their agent.

Each attack goes on for some seconds while neighbour.py looks at the agent as the innocent do. The long form is longer and
harder. Where an attack needs what a machine lacks (/dev/fuse), it is skipped with the reason.
"""
import pathlib
import subprocess
import sys
import tempfile
import time

import pytest
from conftest import BUILD, long_form, until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from neighbour import Neighbour

pytestmark = pytest.mark.alone
SECONDS = 20 if long_form else 5
NOBODY = 65534
LIBCUDA = BUILD / "lib/carve/sim/libcuda.so.1"


def ready(program):
    line = program.stdout.readline()
    assert line.startswith("ready"), line + program.stderr.read()
    return line.split()


def looked_at(world, what, seconds=SECONDS):
    """Looks at the agent for so long; the neighbour with its figures."""
    with Neighbour(world) as neighbour:
        time.sleep(seconds)
    print(f"{what}: {neighbour.figures()}")
    return neighbour


@pytest.fixture
def as_nobody():
    """as_nobody(TEXT): runs Python as an ordinary user, outside of every slice, until the end of the case."""
    programs = []

    def begin(text, *arguments):
        programs.append(subprocess.Popen([sys.executable, "-c", text, *map(str, arguments)], user=NOBODY, group=NOBODY, extra_groups=[],
                                         stdin=subprocess.DEVNULL))
    yield begin
    for program in programs:
        program.kill()
        program.wait()


def test_a_quiet_machine_keeps_the_limits(world):
    looked_at(world, "quiet", 3).assert_undisturbed()


@pytest.mark.parametrize("locks", [10_000, 100_000] if long_form else [10_000])
def test_forged_blocks_and_a_long_list_of_locks(world, locks):
    ready(world.begin("run", "--memory", "1GiB", "--name", "bad", "--", BUILD / "tests/adverse_lock_flood", locks))
    looked_at(world, f"{locks} locks, 8,192 forged blocks").assert_undisturbed()
    assert world.carve("stop", "bad").returncode == 0


def hanging(world, *arguments):
    """A process in the slice `bad` whose files cannot be read; its pid."""
    directory = tempfile.mkdtemp(dir=world.folder)
    program = world.begin("run", "--memory", "1GiB", "--name", "bad", "--", "env", "LD_PRELOAD=", BUILD / "tests/adverse_fuse_hang",
                          directory, *arguments)
    line = program.stdout.readline().split()
    if not line and program.wait() == 77:
        pytest.skip("/dev/fuse cannot be opened, or mounts are not allowed")
    assert line and line[0] == "ready", program.stderr.read()
    return int(line[1])


def hangs(pid):
    """Whether a reader of the process's command line waits for it."""
    try:
        subprocess.run(["cat", f"/proc/{pid}/cmdline"], capture_output=True, timeout=1)
    except subprocess.TimeoutExpired:
        return True
    return False


def test_a_process_that_keeps_its_files_from_being_read(world):
    """The agent must inspect it, because it took memory without the guest library. The finding is shown."""
    pid = hanging(world, LIBCUDA)
    assert until(lambda: hangs(pid))
    with Neighbour(world) as neighbour:
        assert until(lambda: any(v["kind"] == "unreadable-process" for v in world.show("bad")["violations"]), 20)
        time.sleep(SECONDS)
    print(f"unreadable process: {neighbour.figures()}")
    neighbour.assert_undisturbed()
    kinds = {v["kind"]: v for v in world.show("bad")["violations"]}
    assert f"process {pid} " in kinds["unreadable-process"]["text"]
    assert kinds["bypass"]["count"] == 1, "it holds memory without having attached"
    assert str(pid) in str(world.show("bad")["processes"])
    stopping = time.monotonic()
    assert world.carve("stop", "bad").returncode == 0
    print(f"stopped in {time.monotonic() - stopping:.2f} s")


def test_the_next_agent_starts_beside_a_process_that_cannot_be_read(world):
    pid = hanging(world, LIBCUDA)
    assert until(lambda: hangs(pid))
    world.process.kill()
    world.process.wait()
    world.start()
    looked_at(world, "after a restart").assert_undisturbed()
    assert world.slices()["bad"]["state"] == "running"


@pytest.mark.parametrize("milliseconds", [4000])
def test_a_driver_that_answers_slowly_when_the_agent_starts(world, milliseconds):
    """The next agent serves with the devices of the last start, and measures them when NVML has answered."""
    world.begin("run", "--memory", "1GiB", "--name", "a", "--", BUILD / "bin/carve-load", "--allocate", "64MiB", "--seconds", "60")
    world.attached("a")
    fault = [BUILD / "bin/carve-sim", "fault", world.folder / "state/sim", "slow-nvml"]
    subprocess.run([*fault, f"{milliseconds}ms"], check=True)
    world.process.kill()
    world.process.wait()
    world.start()
    assert [d["health"]["state"] for d in world.json("devices")["devices"]] == ["unresponsive"] * 2
    looked_at(world, "NVML is slow").assert_undisturbed()
    refused = world.carve("run", "--memory", "1GiB", "--", "true")
    assert refused.returncode != 0 and "NVML has not answered" in refused.stderr, refused.stderr
    subprocess.run([*fault, "0ms"], check=True)
    assert until(lambda: all(d["health"]["state"] == "ok" for d in world.json("devices")["devices"]), 60)
    assert "NVML answered" in world.carve("events").stdout
    assert world.slices()["a"]["state"] == "running"


SILENT_ATTACHERS = """
import socket, sys, time
path, count = sys.argv[1], int(sys.argv[2])
held = []
while True:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.setblocking(False)
    try:
        s.connect(path)
    except OSError:
        time.sleep(0.001)
    held.append(s)
    if len(held) > count: held.pop(0).close()
"""


def test_silent_connections_to_the_attach_socket(world, as_nobody):
    for _ in range(3):
        as_nobody(SILENT_ATTACHERS, f"{world.socket}.attach", 300)
    neighbour = looked_at(world, "silent attachers")
    neighbour.assert_undisturbed()
    done = world.carve("run", "--memory", "1GiB", "--", BUILD / "bin/carve-load", "--allocate", "64MiB")
    assert done.returncode == 0, done.stderr

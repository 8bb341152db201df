"""Attacks on the neighbours of a slice. A hostile slice or a hostile local user must not block the agent for
others.

Each attack lasts for a few seconds while neighbour.py observes the agent as an innocent process would. The
long form is longer and harder. An attack that needs something that the machine lacks (/dev/fuse) is skipped
with the reason.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import pytest
from conftest import BUILD, Agent, long_form, until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from support.over_unix import asked
from neighbour import LINES_AT_ONCE, NOBODY, PYTHON, Neighbour, as_nobody, flood_as_nobody, lines_left_out  # as_nobody is a fixture.

pytestmark = pytest.mark.alone
SECONDS = 20 if long_form else 3
AGENTS_USER = 1500
# The driver that the attacker loads. A sanitized driver cannot be loaded into a program that is not
# sanitized; in that case the attacker allocates no memory.
SANITIZED = re.search(r"^CARVE_SANITIZE:STRING=.", (BUILD / "CMakeCache.txt").read_text(), re.M)
LIBCUDA = () if SANITIZED else (BUILD / "lib/carve/sim/libcuda.so.1",)


@pytest.fixture(params=["root", "user"] if long_form else ["root"])
def world(request):
    """The attacked agent: root's and, in the long form, an ordinary user's."""
    mark = request.node.get_closest_marker("devices")
    agent = Agent(*(mark.args if mark else ("a10x2",)), uid=AGENTS_USER if request.param == "user" else None)
    yield agent
    print("--- the agent's log:\n" + (agent.folder / "log").read_text()[-4000:])
    agent.end()


def ready(program):
    line = program.stdout.readline()
    assert line.startswith("ready"), line + program.stderr.read()
    return line.split()


def looked_at(world, what, seconds=SECONDS):
    """Observes the agent for this long; returns the neighbour with its figures."""
    with Neighbour(world) as neighbour:
        time.sleep(seconds)
    print(f"{what}: {neighbour.figures()}")
    return neighbour


def test_the_limits_are_kept_on_a_quiet_machine(world):
    looked_at(world, "quiet", 3).assert_undisturbed()


@pytest.mark.parametrize("locks", [10_000, 100_000] if long_form else [10_000])
def test_the_agent_survives_forged_blocks_and_a_long_list_of_locks(world, locks):
    ready(world.begin("run", "--memory", "1GiB", "--name", "bad", "--", BUILD / "tests/adverse_lock_flood", locks))
    looked_at(world, f"{locks} locks, 8,192 forged blocks").assert_undisturbed()
    assert world.carve("stop", "bad").returncode == 0


@pytest.mark.devices("a10x2", "--policy", "guaranteed-burst-share")
def test_shares_on_the_other_device_are_kept_next_to_a_long_list_of_locks(world):
    """Runs two neighbours with 60 % and 20 %, whose gates would open if the heartbeat stopped."""
    def busy():
        return {name: world.show(name)["parts"][0]["compute"]["busy_ns"] for name in ("large", "small")}

    for name, share in ("large", "60%"), ("small", "20%"):
        world.begin("run", "--memory", "1GiB", "--compute", share, "--device", "1", "--name", name, "--", BUILD / "bin/carve-load",
                    "--kernels", "500us", "--no-sync", "--seconds", "600")
    def runs(name):
        slice_ = world.slices().get(name)
        return slice_ and slice_["parts"][0].get("compute", {}).get("busy_ns")

    assert until(lambda: runs("large") and runs("small"))

    def ratio(seconds):
        before = busy()
        time.sleep(seconds)
        after = busy()
        return (after["large"] - before["large"]) / (after["small"] - before["small"])

    alone = ratio(4)
    ready(world.begin("run", "--memory", "1GiB", "--device", "0", "--name", "bad", "--", BUILD / "tests/adverse_lock_flood", 10_000))
    beside = ratio(SECONDS)
    print(f"large : small {alone:.2f} alone, {beside:.2f} beside 10,000 locks")
    assert abs(beside / alone - 1) <= 0.05, (alone, beside)
    for name in "large", "small":
        assert not world.show(name).get("violations"), world.show(name)["violations"]


ATTACH_AS_OTHERS = """
import array, socket, struct, sys, os
path, layout = os.environ["CARVE_SOCKET"] + ".attach", int(sys.argv[1])
image = 0
print("ready", flush=True)
while True:
    image += 1
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        try:
            s.connect(path)
            s.send(struct.pack("<IIIIQ5Q", 0x41565243, layout, 64, 1, image, 0, 0, 0, 0, 0))
            s.recvmsg(4096, socket.CMSG_SPACE(12))
        except OSError:
            pass
"""


@pytest.mark.parametrize("layout", [7, 99], ids=["another image each time", "a wrong layout each time"])
def test_the_agent_survives_a_process_that_attaches_continuously(world, layout):
    """Another image makes the agent inspect the process; a wrong layout is an event."""
    ready(world.begin("run", "--memory", "1GiB", "--name", "bad", "--", PYTHON, "-c", ATTACH_AS_OTHERS, layout))
    looked_at(world, f"attaching without pause, layout {layout}").assert_undisturbed()
    events = [e for e in world.json("events")["events"] if e["slice"] == "bad"]
    assert len(events) <= 100 + 2 * SECONDS + 10, "a slice may cause 100 events at once, and one each second"
    assert (world.folder / "log").stat().st_size < 200_000


def hanging(world, *arguments):
    """Starts a process in the slice `bad` whose files cannot be read; returns its pid."""
    directory = tempfile.mkdtemp(dir=world.folder)
    os.chmod(directory, 0o777)
    program = world.begin("run", "--memory", "1GiB", "--name", "bad", "--", "env", "LD_PRELOAD=", BUILD / "tests/adverse_fuse_hang",
                          directory, *arguments)
    line = program.stdout.readline().split()
    if not line and program.wait() == 77:
        pytest.skip("/dev/fuse cannot be opened, or mounts are not allowed")
    assert line and line[0] == "ready", program.stderr.read()
    return int(line[1])


def hangs(pid):
    """Returns whether a reader of the process's command line blocks."""
    try:
        subprocess.run(["cat", f"/proc/{pid}/cmdline"], capture_output=True, timeout=1)
    except subprocess.TimeoutExpired:
        return True
    return False


def test_the_agent_survives_a_process_whose_files_cannot_be_read(world):
    """The agent must inspect the process, because it allocated memory without the guest library, and shows
    the finding."""
    pid = hanging(world, *LIBCUDA)
    assert until(lambda: hangs(pid))
    with Neighbour(world) as neighbour:
        assert until(lambda: any(v["kind"] == "unreadable-process" for v in world.show("bad")["violations"]), 20)
        time.sleep(SECONDS)
    print(f"unreadable process: {neighbour.figures()}")
    neighbour.assert_undisturbed()
    kinds = {v["kind"]: v for v in world.show("bad")["violations"]}
    assert f"process {pid} " in kinds["unreadable-process"]["text"]
    assert SANITIZED or kinds["bypass"]["count"] == 1, "it holds memory without having attached"
    assert str(pid) in str(world.show("bad")["processes"])
    stopping = time.monotonic()
    assert world.carve("stop", "bad").returncode == 0
    print(f"stopped in {time.monotonic() - stopping:.2f} s")


def test_the_next_agent_starts_next_to_a_process_that_cannot_be_read(world):
    pid = hanging(world, *LIBCUDA)
    assert until(lambda: hangs(pid))
    world.process.kill()
    world.process.wait()
    world.start()
    looked_at(world, "after a restart").assert_undisturbed()
    assert world.slices()["bad"]["state"] == "running"


@pytest.mark.parametrize("milliseconds", [4000])
def test_the_agent_starts_with_a_driver_that_answers_slowly(world, milliseconds):
    """The next agent serves with the devices of the last start and measures them once NVML has answered."""
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
    assert refused.returncode != 0 and "NVML has not responded" in refused.stderr, refused.stderr
    subprocess.run([*fault, "0ms"], check=True)
    assert until(lambda: all(d["health"]["state"] == "ok" for d in world.json("devices")["devices"]), 60)
    assert "NVML responded" in world.carve("events").stdout
    assert world.slices()["a"]["state"] == "running"


def test_the_agent_survives_silent_connections_to_the_attach_socket(world, as_nobody):
    for _ in range(3):
        as_nobody("silent-attachers", f"{world.socket}.attach", 300)
    neighbour = looked_at(world, "silent attachers")
    neighbour.assert_undisturbed()
    done = world.carve("run", "--memory", "1GiB", "--", BUILD / "bin/carve-load", "--allocate", "64MiB")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("what, threads", [("slow-readers", 300), ("silent-callers", 300), ("streams", 100), ("expensive-requests", 16)])
def test_one_user_of_the_api_does_not_delay_others(world, as_nobody, what, threads):
    """The other user may use the API's socket like a member of the group carve."""
    for number in range(30):
        world.carve("slice", "create", "--memory", "1MiB", "--isolation", "none", "--name", f"s{number}")
        world.carve("stop", f"s{number}")
    os.chmod(world.socket, 0o666)
    as_nobody(what, world.socket, threads)
    neighbour = looked_at(world, f"{threads} {what} of one user")
    neighbour.assert_undisturbed()
    stream = world.begin("events", "--watch")
    assert until(lambda: world.carve("ps").returncode == 0)
    done = world.carve("run", "--memory", "1GiB", "--name", "after", "--", BUILD / "bin/carve-load", "--allocate", "64MiB")
    assert done.returncode == 0, done.stderr
    assert any("after" in stream.stdout.readline() for _ in range(2000)), "root's stream has a place"
    assert world.carve("ps").returncode == 0


def test_one_user_does_not_fill_the_log(world):
    """Another user changes the size of slices without pause, and each change is a line of the log. The first
    100 changes of a slice are not limited."""
    os.chmod(world.socket, 0o666)
    for number in range(12):
        own = {"name": f"own-{number}", "memory_bytes": 768 << 20, "lifetime": "explicit", "owner_uid": NOBODY}
        status, _, answer = asked(world.socket, "/v1/slices", "POST", json.dumps(own))
        assert status == 201, answer
    seconds = flood_as_nobody("resizes", world.socket, 12)
    assert world.carve("slice", "create", "--memory", "1GiB", "--name", "after").returncode == 0
    world.process.terminate()
    assert world.process.wait(20) == 0
    log = (world.folder / "log").read_text()
    logged = len(re.findall(rf" info own-\d+: updated by uid {NOBODY}", log))
    left_out = lines_left_out(log, f"uid {NOBODY}")
    print(f"{logged} lines in {seconds:.1f} s, {left_out} left out")
    world.start()
    assert logged <= LINES_AT_ONCE + seconds + 1
    assert logged + left_out == 1200
    assert " info after: granted" in log, "root has lines of its own"

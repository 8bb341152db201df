"""Attacks from inside a slice as root: limits cannot be written, other slices cannot be changed, and the
agent cannot be stopped."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import pytest

from conftest import GiB, LOAD, MiB, until

HOSTILE = pathlib.Path(__file__).with_name("hostile.py")


def attack(world, *what, through=(), seconds=60):
    done = world.carve("run", "--memory", "1GiB", "--name", "bad", "--", *through, "/usr/bin/python3", HOSTILE, world.socket, *what,
                       timeout=seconds)
    assert "HARM" not in done.stdout and "ok " in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0, done.stderr
    return done.stdout


def neighbour(world):
    world.begin("run", "--memory", "2GiB", "--name", "other", "--", LOAD, "--allocate", "1GiB", "--seconds", "600")
    return world.attached("other")


def still_well(world):
    other = world.show("other")
    assert other["state"] == "running" and other["parts"][0]["charged_bytes"] == GiB + 256 * MiB
    assert world.process.poll() is None
    assert until(lambda: set(world.slices()) == {"other"})


@pytest.mark.skipif(os.geteuid() != 0, reason="the pages of an ordinary user's agent protect against accidents only")
def test_even_root_cannot_write_the_pages_that_limit_a_slice(world):
    neighbour(world)
    attack(world, "pages")
    attack(world, "mounts", through=("setpriv", "--bounding-set", "-sys_admin"))
    still_well(world)


def test_the_api_rejects_callers_inside_a_slice(world):
    neighbour(world)
    attack(world, "control")
    still_well(world)


@pytest.mark.skipif(os.geteuid() != 0, reason="the cgroups of slices need root")
def test_a_process_that_moves_to_another_slices_cgroup_is_reported(world):
    """Uid 0 may do so without any capability."""
    neighbour(world)
    find = ["find", "/sys/fs/cgroup", "-path", "*carve-*/other", "-type", "d"]
    groups = subprocess.run(find, capture_output=True, text=True).stdout.split()
    pid = int(world.show("other")["processes"][0]["pid"])
    group = next((g for g in groups if str(pid) in pathlib.Path(g, "cgroup.procs").read_text().split()), None)
    if group is None:
        pytest.skip("slices have no cgroups here")
    world.begin("run", "--memory", "1GiB", "--name", "bad", "--", "sh", "-c", f"echo $$ > {group}/cgroup.procs; exec sleep 600")
    moved = lambda name: [e["text"] for e in world.show(name)["events"] if "moved itself from slice bad into slice other" in e["text"]]
    assert until(lambda: "other" in world.slices() and moved("other")), world.show("other")["events"]


@pytest.mark.alone
@pytest.mark.devices("a10x1", "--audit", "kill", "--policy", "guaranteed-burst-share")
def test_false_reports_of_work_cost_a_neighbour_neither_its_share_nor_its_life(world):
    """The neighbour has 50 %, its kernels never pause, and --audit kill stops a slice that runs beyond its leases."""
    world.begin("run", "--memory", "1GiB", "--compute", "50%", "--name", "good", "--", LOAD, "--kernels", "500us", "--no-sync",
                "--seconds", "600")
    world.begin("run", "--memory", "1GiB", "--compute", "10%", "--name", "bad", "--",
                "/usr/bin/python3", HOSTILE, world.socket, "false_work")

    def used():
        part = world.show("good")["parts"][0]
        return part["compute"], part["utilization_percent"]

    assert until(lambda: "bad" in world.slices())
    assert until(lambda: any("false report" in e["text"] for e in world.show("bad")["events"]), 30), world.show("bad")["events"]
    before = used()[0]
    time.sleep(3)  # The window of the figures.
    after, shown = used()
    share = (after["busy_ns"] - before["busy_ns"]) / (after["as_of_ns"] - before["as_of_ns"])
    assert share >= 0.5 * 0.95, (share, shown)
    assert share + 0.15 >= shown / 100, (share, shown, "it is charged what the driver shows")
    good, bad = world.show("good"), world.show("bad")
    assert good["state"] == "running" and not good.get("violations"), good
    assert [v["kind"] for v in bad["violations"]] == ["false-report"], bad["violations"]


def test_the_api_rejects_heirs_of_a_connection(world):
    neighbour(world)
    assert attack(world, "heirs").count("ok ") == 4
    still_well(world)


def test_invalid_messages_on_the_attach_socket_do_no_harm(world):
    neighbour(world)
    attack(world, "messages")
    still_well(world)


def test_random_writes_to_the_own_report_page_harm_no_other_slice(world):
    neighbour(world)
    attack(world, "scribble")
    still_well(world)
    assert world.carve("run", "--memory", "1GiB", "--", LOAD, "--allocate", "512MiB").returncode == 0


def test_charges_cannot_be_dropped_by_pretending_to_be_another_program(world):
    neighbour(world)
    attack(world, "shedding")
    still_well(world)


def test_the_bytes_of_dead_processes_are_free_within_milliseconds(world):
    print(attack(world, "reclaim"))


def test_unmanaged_processes_are_reported_but_not_as_slices(world):
    neighbour(world)
    environment = {"SIMGPU_DIR": str(world.folder / "state/sim"), "LD_LIBRARY_PATH": str(LOAD.parents[1] / "lib/carve/sim")}
    unmanaged = subprocess.Popen([LOAD, "--allocate", "512MiB", "--seconds", "30"], env={**os.environ, **environment},
                                stdout=subprocess.DEVNULL)
    try:
        assert until(lambda: any(str(unmanaged.pid) in s for s in world.json("devices")["devices"][0]["unmanaged_processes"]))
        # The process's context is seen first, and its memory later.
        assert until(lambda: world.json("devices")["devices"][0]["used_outside_slices_bytes"] >= 512 << 20), world.json("devices")
        assert "used outside of slices" in world.carve("top", "--once").stdout
        assert any("audit" in c["name"] for c in world.json("doctor")["checks"])
        out = subprocess.run(["/usr/bin/python3", "-c", f"""
import socket, struct
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect("{world.socket}.attach")
s.send(struct.pack("<IIIIQ5Q", 0x41565243, 1, 64, 1, 1, 0, 0, 0, 0, 0))
print(struct.unpack_from("<I", s.recv(256), 12)[0])"""], capture_output=True, text=True)
        assert out.stdout.strip() == "1", "not a slice: left alone"
    finally:
        unmanaged.kill()
        unmanaged.wait()


def talk(world, data, pause=0.0):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(15)
    s.connect(str(world.socket))
    for piece in data if isinstance(data, list) else [data]:
        try:
            s.sendall(piece)
        except OSError:
            break
        time.sleep(pause)
    answer = b""
    try:
        while part := s.recv(65536):
            answer += part
    except OSError:
        pass
    return answer


def post(path, body, method="POST"):
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@pytest.mark.parametrize("request_, status, says", [
    (b"\0\1\2\3\r\n\r\n", "400", "invalid-argument"),
    (post("/v1/slices", b"{"), "400", "not JSON"),
    (post("/v1/slices", b'{"memory_bytes":"4GiB"}'), "400", "memory_bytes"),
    (post("/v1/slices", b'{"memory_bytes":-1}'), "400", "memory_bytes"),
    (post("/v1/slices", b'{"memory_bytes":1e99}'), "400", "memory_bytes"),
    (post("/v1/slices", b'{"memory_bytes":18446744073709551615}'), "409", " usable"),
    (post("/v1/slices", b'{"total_memory_bytes":18446744073709551615,"devices":16}'), "400", "multiple of 16 MiB"),
    (post("/v1/slices", b'{"memory":1}'), "400", "unknown field"),
    (post("/v1/slices", b'{"memory_bytes":1048576,"devices":0}'), "400", "0 devices"),
    (post("/v1/slices", b'{"memory_bytes":1048576,"devices":4294967295}'), "400", "1 to 16"),
    (post("/v1/slices", b'{"memory_bytes":1048576,"name":"../../etc/passwd"}'), "400", "not a slice name"),
    (post("/v1/slices", b'{"memory_bytes":1048576,"name":"a\\u0000b"}'), "400", "contains a NUL character"),
    (post("/v1/slices", b'{"memory_bytes":1048576,"device":"7"}'), "400", "no device"),
    (post("/v1/slices", b'{"memory_bytes":1048576,"policy":"best"}'), "400", "is not fixed-share, guaranteed-burst-share or native-burst-share"),
    (post("/v1/slices", b'{"memory_bytes":1048576,"share_bp":10001}'), "400", "100%"),
    (post("/v1/slices", b'{"exclusive":true,"share_bp":1}'), "400", "whole devices"),
    (post("/v1/slices", b"[" * 5000 + b"]" * 5000), "400", "deeper"),
    (post("/v1/slices", b"x" * 70000), "413", "65536"),
    (post("/v1/slices/none", b"", "DELETE"), "404", "no slice"),
    (post("/v1/slices/a/b/c", b""), "404", "no /v1"),
    (post("/v1/devices", b"", "PATCH"), "405", "PATCH"),
    (post("/v1/slices/%2e%2e/enter", b"{}"), "404", "no slice"),
    (b"GET /v1/version HTTP/1.1\r\nX: " + b"y" * 9000 + b"\r\n\r\n", "431", "8192"),
])
def test_a_hostile_request_gets_a_problem_document_and_changes_nothing(world, request_, status, says):
    answer = talk(world, request_)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status}".encode()), answer[:300]
    assert says in body.decode() and b"application/problem+json" in head, body
    assert world.slices() == {} and world.process.poll() is None


def test_slow_and_silent_callers_do_not_block_others(world):
    silent = [socket.socket(socket.AF_UNIX) for _ in range(100)]
    for s in silent:
        s.connect(str(world.socket))
        s.sendall(b"POST /v1/slices HTTP/1.1\r\nContent-Length: 10\r\n\r\n{")
    start = time.monotonic()
    assert world.carve("ps").returncode == 0
    assert time.monotonic() - start < 2
    dropped = until(lambda: all(closed(s) for s in silent), 15, 0.5)
    assert dropped, "a request that never ends is hung up on"


CROWD = """
import socket, sys, threading
def reads_slowly():
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(sys.argv[1])
        s.sendall(b"GET /v1/events HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n" * 16)
    except OSError:
        return None
    return s
def reconnects():
    while True:
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(sys.argv[1])
            s.sendall(b"POST /v1/slices HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 60000\\r\\n\\r\\n{")
            s.recv(10)
        except OSError:
            pass
        s.close()
held = [reads_slowly() for _ in range(200)]
for _ in range(200):
    threading.Thread(target=reconnects, daemon=True).start()
print("there", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_many_connections_of_one_user_do_not_block_root(world):
    os.chmod(world.socket, 0o666)
    crowd = subprocess.Popen(["/usr/bin/python3", "-c", CROWD, world.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=65534,
                             group=65534, extra_groups=[])
    try:
        assert crowd.stdout.readline() == b"there\n"
        for _ in range(5):
            assert world.carve("ps").returncode == 0
            assert world.carve("run", "--memory", "1GiB", "--", "true").returncode == 0
    finally:
        crowd.kill()
        crowd.wait()
    assert world.slices() == {}


def closed(s):
    s.setblocking(False)
    try:
        return s.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_slow_nvml_stalls_neither_the_agent_nor_its_heartbeat(world):
    neighbour(world)

    def checks():  # The exit status reports the degraded state.
        return json.loads(world.carve("doctor", "-o", "json").stdout)["checks"]

    sim = [LOAD.with_name("carve-sim"), "fault", world.folder / "state/sim"]
    subprocess.run([*sim, "slow-nvml", "3000ms"], check=True, capture_output=True)
    time.sleep(1.2)
    start = time.monotonic()
    assert world.carve("run", "--memory", "1GiB", "--", "true").returncode == 0
    assert time.monotonic() - start < 2
    assert until(lambda: any(c["name"] == "driver samples" and c["status"] == "failed" for c in checks()), 15)
    subprocess.run([*sim, "clear"], check=True, capture_output=True)


def test_memory_that_no_call_requested_is_charged_within_two_seconds(world):
    # Without the guest library: a process of the slice that was started without it.
    script = f"echo $$ > {world.folder}/pid; LD_PRELOAD= exec {LOAD} --allocate 700MiB --seconds 600"
    world.begin("run", "--memory", "1GiB", "--name", "a", "--", "sh", "-c", script)
    assert until(lambda: world.slices().get("a", {}).get("parts", [{}])[0].get("charged_bytes", 0) >= 700 * MiB, 10)
    os.kill(int((world.folder / "pid").read_text()), signal.SIGKILL)
    assert until(lambda: not world.slices())


def test_driver_reported_memory_beyond_the_quota_is_reported(world):
    script = f"LD_PRELOAD= exec {LOAD} --allocate 2GiB --seconds 600"
    world.begin("run", "--memory", "1GiB", "--name", "a", "--", "sh", "-c", script)
    assert until(lambda: "a" in world.slices() and any("quota of 1 GiB" in e["text"] for e in world.show("a")["events"]))


def test_broken_assumptions_of_the_guest_library_are_shown_once(world):
    world.begin("run", "--memory", "1GiB", "--name", "a", "--", "/usr/bin/python3", HOSTILE, world.socket, "degrade")

    def said():
        return [e["text"] for e in world.show("a")["events"] if "guest library" in e["text"]]

    assert until(lambda: "a" in world.slices() and said())
    assert len(said()) == 1 and "3 assumptions" in said()[0]


def test_a_lost_device_is_shown_and_gets_no_new_slice(world):
    subprocess.run([LOAD.with_name("carve-sim"), "fault", world.folder / "state/sim", "device-lost", "--device", "0"], check=True,
                   capture_output=True)
    assert until(lambda: world.json("devices")["devices"][0]["health"]["state"] == "lost")
    shown = world.carve("run", "--memory", "1GiB", "--device", "0", "--", "true")
    assert shown.returncode == 125 and "lost" in shown.stderr
    assert world.carve("run", "--memory", "1GiB", "--", "true").returncode == 0


def test_a_device_that_was_lost_before_the_agent_started_is_shown_with_its_slices(world):
    world.begin("run", "--memory", "2GiB", "--device", "0", "--name", "a", "--", "sleep", "600")
    assert until(lambda: world.slices().get("a", {}).get("state") == "running")
    subprocess.run([LOAD.with_name("carve-sim"), "fault", world.folder / "state/sim", "device-lost", "--device", "0"], check=True,
                   capture_output=True)
    world.process.kill()
    world.process.wait()
    world.start()

    def device():
        return {d["index"]: d for d in world.json("devices")["devices"]}
    assert device()[0]["health"]["state"] == "lost" and device()[0]["granted_bytes"] == 2 << 30
    assert device()[1]["health"]["state"] == "ok"
    assert "lost" in world.carve("devices").stdout
    shown = world.carve("run", "--memory", "1GiB", "--device", "0", "--", "true")
    assert shown.returncode == 125 and "device 0" in shown.stderr, shown.stderr
    assert world.carve("run", "--memory", "1GiB", "--", "true").returncode == 0
    assert world.get("/metrics")[0] == 200
    world.carve("stop", "a")
    assert until(lambda: "a" not in world.slices())
    assert device()[0]["health"]["state"] == "lost", "also without a slice"

"""The controller with two agents: both nodes are listed, and each of the three programs can be killed and
restarted by itself."""
import datetime
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from conftest import BUILD, GiB, HERE, LOAD, until
from support.controller import Controller
from support.over_unix import asked

UNIT = HERE.parent / "deploy/carve-controller.service.in"
PROGRAM = BUILD / "bin/carve-controller"


@pytest.fixture
def controller(world, second):
    """A controller with the nodes a (two A10) and b (one T4)."""
    c = Controller({"a": world, "b": second})
    yield c
    print("--- the controller's log:\n" + c.log())
    c.end()


def run_slice(agent, name="kept"):
    """Starts a slice that holds memory, and returns the pid of its program."""
    agent.begin("run", "--memory", "2GiB", "--name", name, "--", LOAD, "--allocate", "1GiB", "--seconds", "600")
    (pid,) = [p["pid"] for p in agent.attached(name)["processes"] if p["attached"]]
    return pid


def still_runs(agent, name, pid):
    os.kill(pid, 0)
    slice_ = agent.show(name)
    return slice_["state"] == "running" and pid in [p["pid"] for p in slice_["processes"]]


def refused(*words, env=None):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=60, env=env)


INSIDE = """
import os, socket, sys, time
def status(method, path, body):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.sendall(f"{method} {path} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n{body}".encode())
    return s.recv(65536).split(b" ")[1].decode()
for _ in range(2):
    print(status("GET", "/v1/nodes", ""), status("PATCH", "/v1/nodes/a/slices/bad", '{"memory_bytes":17179869184}'),
          status("DELETE", "/v1/nodes/a/slices/kept", ""), status("POST", "/v1/nodes/a/slices", '{"memory_bytes":1073741824}'), flush=True)
    sys.stdin.read(1)
"""


def test_a_caller_inside_a_slice_is_rejected_even_while_its_agent_hangs(world, controller):
    pid = run_slice(world)
    words = world.words("run", "--memory", "1GiB", "--name", "bad", "--", "/usr/bin/python3", "-c", INSIDE, controller.socket)
    program = subprocess.Popen(words, env=world.environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert program.stdout.readline().split() == ["403"] * 4
    checks = json.loads(world.carve("doctor", "-o", "json").stdout)["checks"]
    if any(c["name"] == "cgroup per slice" and c["status"] == "ok" for c in checks):
        os.kill(world.process.pid, signal.SIGSTOP)
        try:
            program.stdin.write("x")
            program.stdin.flush()
            assert program.stdout.readline().split() == ["403"] * 4
        finally:
            os.kill(world.process.pid, signal.SIGCONT)
    program.communicate(timeout=30)
    assert program.returncode == 0
    still_runs(world, "kept", pid)
    assert len(controller.nodes()) == 2


def test_both_nodes_are_listed_with_their_devices_and_slices(world, second, controller):
    run_slice(world)
    for name, agent, count in ("a", world, 2), ("b", second, 1):
        controller.node_becomes(name, "reachable")
        slices = 1 if agent is world else 0
        assert until(lambda: controller.nodes()[name]["slices"] == slices, 60), controller.nodes()[name]
        devices = agent.json("devices")["devices"]
        fields = {"index": "index", "uuid": "uuid", "name": "name", "usableBytes": "usable_bytes", "freeBytes": "free_bytes"}
        expected = [{f: d[of] for f, of in fields.items()} for d in devices]
        listed = lambda: [{f: d[f] for f in fields} for d in controller.nodes()[name]["devices"]]
        assert len(expected) == count
        assert until(lambda: listed() == expected, 60), listed()  # The controller reads devices and slices apart.
        node = controller.nodes()[name]
        assert node["socket"] == str(agent.socket) and node["problem"] == ""
        assert node["version"] == agent.json("version")["version"]
        assert node["firstSeenAt"] <= node["lastSeenAt"]
    assert sum(d["usableBytes"] - d["freeBytes"] for d in controller.nodes()["a"]["devices"]) == 2 * GiB
    version = controller.json("/v1/version")
    assert version["program"] == "carve-controller" and version["pid"] == controller.process.pid
    assert version["state"] == str(controller.state)


def test_killing_the_controller_stops_no_slice_and_a_new_one_knows_its_nodes(world, second, controller):
    pid = run_slice(world)
    for name in "ab":
        controller.node_becomes(name, "reachable")
    first = {name: node["firstSeenAt"] for name, node in controller.nodes().items()}
    controller.kill()
    assert still_runs(world, "kept", pid)
    controller.start()
    for name in "ab":
        node = controller.node_becomes(name, "reachable")
        assert node["firstSeenAt"] == first[name] < node["lastSeenAt"]
    assert still_runs(world, "kept", pid)
    assert controller.nodes()["a"]["slices"] == 1


def test_a_killed_agent_makes_its_node_unreachable_until_it_is_back(world, second, controller):
    pid = run_slice(world)
    controller.node_becomes("a", "reachable")
    first = controller.nodes()["a"]["firstSeenAt"]
    world.process.send_signal(signal.SIGKILL)
    world.process.wait()
    lost = controller.node_becomes("a", "unreachable")
    assert f"{world.socket} exists, but its agent has ended" in lost["problem"]
    assert lost["firstSeenAt"] == first and len(lost["devices"]) == 2
    assert controller.nodes()["b"]["reachability"] == "reachable"
    os.kill(pid, 0)
    world.start()
    back = controller.node_becomes("a", "reachable")
    assert back["problem"] == "" and back["firstSeenAt"] == first and back["slices"] == 1
    assert still_runs(world, "kept", pid)
    log = controller.log()
    assert log.count("node a: lost; ") == 1 and log.count("node a: agent restarted, carved ") == 1, log


def test_a_stopped_agent_is_unreachable_and_does_not_delay_others(world, second, controller):
    """A stopped agent accepts connections but never answers."""
    controller.node_becomes("b", "reachable")
    world.process.send_signal(signal.SIGSTOP)
    try:
        assert f"the agent at {world.socket} did not answer within 5 s" in controller.node_becomes("a", "unreachable")["problem"]
        seen = controller.nodes()["b"]["lastSeenAt"]
        assert until(lambda: controller.nodes()["b"]["lastSeenAt"] > seen, 60)
        assert controller.nodes()["b"]["reachability"] == "reachable"
    finally:
        world.process.send_signal(signal.SIGCONT)
    controller.node_becomes("a", "reachable")


def test_the_controller_stores_the_last_answers_when_it_ends(world, second, controller):
    controller.node_becomes("a", "reachable")
    assert until(lambda: controller.nodes()["a"]["lastSeenAt"] > controller.nodes()["a"]["firstSeenAt"], 60)
    seen = controller.nodes()["a"]["lastSeenAt"]
    controller.process.terminate()
    assert controller.process.wait(20) == 0
    assert not controller.socket.exists()
    with sqlite3.connect(controller.state / "controller.db") as database:
        stored = dict(database.execute("SELECT name, last_seen_ns FROM node"))
    microseconds = datetime.datetime.fromisoformat(seen[:26] + "+00:00").timestamp() * 1e6
    assert stored["a"] / 1000 >= microseconds - 1


def test_a_damaged_database_is_moved_aside(world, second, controller):
    controller.kill()
    for part in ("-wal", "-shm"):
        (controller.state / ("controller.db" + part)).unlink(missing_ok=True)
    (controller.state / "controller.db").write_bytes(b"this is no database" * 1000)
    controller.start()
    controller.node_becomes("a", "reachable")
    (aside,) = controller.state.glob("controller.db.corrupt-*")
    assert aside.read_bytes().startswith(b"this is no database")
    assert "the controller database was damaged" in controller.log()


def test_a_second_controller_with_the_same_state_or_socket_is_rejected(world, second, controller):
    other = controller.folder / "other"
    node = ["--node", f"a={world.socket}"]
    by_state = refused(*node, "--state", controller.state, "--socket", other)
    pid = controller.process.pid
    assert (by_state.returncode, by_state.stderr) == (
        1, f"carve-controller: --state {controller.state}: another controller, process {pid}, is using this state; stop it first\n")
    by_socket = refused(*node, "--state", other, "--socket", controller.socket)
    assert (by_socket.returncode, by_socket.stderr) == (
        1, f"carve-controller: --socket {controller.socket}: another controller or agent, process {pid}, is using this socket; stop it first\n")
    by_agent = refused("--node", f"b={second.socket}", "--state", other, "--socket", world.socket)
    assert by_agent.returncode == 1 and f"process {world.process.pid}, is using this socket" in by_agent.stderr
    assert world.carve("version").returncode == 0, "the agent's socket was taken from it"
    assert controller.answers()


@pytest.mark.parametrize("words, message", [
    (["--node", "a"], "--node 'a' must be NAME=SOCKET, such as a=/run/carve/carved.sock"),
    (["--node", "a=/x", "--node", "a=/y"], "--node 'a=/y': node a already has the socket /x; use a different name for each node"),
    (["--node", "A=/x"],
     "--node 'A=/x': 'A' is not a valid node name; use 1 to 48 characters from a-z, 0-9 and -, with a letter or a digit at both ends"),
    (["--node", "a=/x", "--socket", "/" + "s" * 107],
     f"--socket /{'s' * 79}: the path has 108 bytes, and a unix socket's path has at most 107; use a shorter path"),
    (["--node", "a=/x", "--listen", "0.0.0.0:8470"],
     "--listen 0.0.0.0:8470: an address other than loopback needs --tls-cert FILE and --tls-key FILE; add them, or use 127.0.0.1:8470"),
    (["--nodes", "a=/x"], "unknown option --nodes; carve-controller --help lists the options"),
])
def test_an_invalid_option_gives_one_message_and_exit_status_2(words, message):
    done = refused(*words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"carve-controller: {message}\n")


def test_help_version_and_completion_are_printed():
    assert refused("--help").returncode == 0 and "--node NAME=SOCKET" in refused("--help").stdout
    assert re.fullmatch(r"carve-controller \d+\.\d+\.\d+\n", refused("--version").stdout)
    assert "complete -o default -F _carve_controller carve-controller" in refused("--completion", "bash").stdout


def test_the_defaults_are_this_machines_node_and_a_socket_next_to_the_agents(world):
    environment = {**os.environ, "CARVE_SOCKET": str(world.socket), "XDG_STATE_HOME": str(world.folder / "st"), "HOME": str(world.folder)}
    environment.pop("CARVE_CONTROLLER", None)
    state = ["--state", str(world.folder / "cst")] if os.geteuid() == 0 else []  # Root's default state is that of the machine.
    with open(world.folder / "controller.log", "w") as log:
        process = subprocess.Popen([PROGRAM, *state], env=environment, stdout=log, stderr=log)
    try:
        socket = world.folder / "controller.sock"
        assert until(lambda: socket.exists() or process.poll() is not None, 20)
        assert process.poll() is None, (world.folder / "controller.log").read_text()
        (node,) = json.loads(asked(socket, "/v1/nodes")[2])["items"]
        host = os.uname().nodename.partition(".")[0].lower()
        assert (node["metadata"]["name"], node["status"]["agent"]["socket"]) == (host, str(world.socket))
    finally:
        process.terminate()
        assert process.wait(20) == 0


def tcp_answer(controller, target):
    (address,) = re.findall(r"API served at (http://127\.0\.0\.1:\d+)", controller.log())
    try:
        with urllib.request.urlopen(address + target, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.fixture
def as_the_unit_says(world):
    """as_the_unit_says(FAMILIES): a controller with only these address families and with a TCP address."""
    started = []

    def start(families):
        before = [sys.executable, HERE / "support/address_families.py", *families, "--"]
        started.append(Controller({"a": world}, "--listen", "127.0.0.1:0", "--console", "none", before=before))
        return started[0]
    yield start
    for c in started:
        c.end()


def test_every_tcp_caller_without_a_token_is_rejected_under_the_units_address_families(as_the_unit_says):
    (families,) = re.findall(r"^RestrictAddressFamilies=(.*)$", UNIT.read_text(), re.M)
    controller = as_the_unit_says(families.split())
    controller.node_becomes("a", "reachable")
    for target in "/v1/nodes", "/v1/version", "/", "/v1/nothing":
        status, text = tcp_answer(controller, target)
        assert status == 401 and json.loads(text)["type"] == "carve:unauthenticated", target
        assert str(controller.folder) not in text and "GPU-" not in text


def test_the_controller_reports_that_it_cannot_listen_without_inet(world):
    done = subprocess.run(
        [sys.executable, HERE / "support/address_families.py", "AF_UNIX", "--", PROGRAM, "--node", f"a={world.socket}", "--state",
         world.folder / "cst", "--socket", world.folder / "c", "--listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "carve-controller: --listen 127.0.0.1:0: Address family not supported by protocol\n" in done.stderr


@pytest.mark.usefixtures("own_network")
def test_the_first_controller_of_a_machine_gets_the_default_address(world):
    first = Controller({"a": world})
    second = Controller({"a": world})
    try:
        assert first.json("/v1/version")["endpoint"] == "http://127.0.0.1:8470"
        assert tcp_answer(first, "/v1/nodes")[0] == 401
        assert second.json("/v1/version")["endpoint"] == ""
        assert "API not served over TCP: 127.0.0.1:8470: Address already in use; use another address with --listen HOST:PORT" in second.log()
    finally:
        first.end()
        second.end()


def test_the_controller_starts_without_the_default_address_if_inet_is_missing(world):
    before = [sys.executable, HERE / "support/address_families.py", "AF_UNIX", "--"]
    controller = Controller({"a": world}, before=before)
    try:
        assert controller.json("/v1/version")["endpoint"] == ""
    finally:
        controller.end()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_another_user_who_may_open_the_socket_sees_the_nodes(controller):
    controller.node_becomes("a", "reachable")
    controller.folder.chmod(0o755)
    controller.socket.chmod(0o666)
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        status, _, text = asked(controller.socket, "/v1/nodes")
        os._exit(0 if status == 200 and len(json.loads(text)["items"]) == 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

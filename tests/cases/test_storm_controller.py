"""A storm of kills: the controller, supervisors, replicas, agents and HAProxy get SIGKILL at random moments
during rollouts while clients send requests without a pause. CARVE_LONG=1 runs 200 kills instead of 10."""
import collections
import contextlib
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import sqlite3
import threading
import time
import urllib.request

import pytest

from conftest import HERE, long_form, until
from support.over_unix import OverUnix, asked
from support.services import Services

pytestmark = [
    pytest.mark.usefixtures("own_network"),
    pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed: apt-get install haproxy"),
]
SERVER = HERE / "support/http_server.py"
CLIENTS = 4
REPLICAS = 3

# A replica's program holds a lock named after it while it runs, so that a second instance is detected.
PROGRAM = f"""
import fcntl, os, sys
name = "-".join(os.environ["CARVE_" + word] for word in ("SERVICE", "REVISION", "REPLICA"))
journal = os.open("journal", os.O_WRONLY | os.O_APPEND)
lock = os.open(name + ".lock", os.O_CREAT | os.O_RDWR)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    os.write(journal, ("twice " + name + chr(10)).encode())
    sys.exit(1)
os.set_inheritable(lock, True)
os.write(journal, ("started " + name + chr(10)).encode())
os.execvp("python3", ["python3", {str(SERVER)!r}])
"""


@pytest.fixture
def services(world, second):
    s = Services({"n1": world, "n2": second})
    s.agent = world
    s.agents = {"n1": world, "n2": second}
    (s.folder / "programs").mkdir()
    (s.folder / "programs/journal").touch()
    yield s
    print("--- the controller's log:\n" + s.log()[-20000:])
    s.end()


def document(folder, replicas=REPLICAS, spec=1): return {"apiVersion": "carve.dev/v1", "kind": "Service",
"metadata": {"name": "demo"}, "spec": {"replicas": replicas, "gpu": {"memory": "6GiB", "share": "10%"},
"port": 8000, "run": {"command": ["python3", "-c", PROGRAM], "workdir": str(folder / "programs"), "env":
{"SPEC": str(spec)}}}}


class Load:
    """Clients that send requests without a pause; each failure is recorded with its time."""

    def __init__(self, endpoint):
        self.host = endpoint.removeprefix("http://")
        self.answers, self.failures, self.ends = 0, [], False
        self.threads = [threading.Thread(target=self.run) for _ in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self):
        while not self.ends:
            begin = time.monotonic()
            try:
                connection = http.client.HTTPConnection(self.host, timeout=60)
                connection.request("GET", "/")
                response = connection.getresponse()
                response.read()
                problem = None if response.status == 200 else f"status {response.status}"
                connection.close()
            except (OSError, http.client.HTTPException) as error:
                problem = repr(error)
            if problem:
                self.failures.append((begin, time.monotonic(), problem))
                time.sleep(0.005)  # Does not spin on a refused connection.
            else:
                self.answers += 1

    def end(self):
        self.ends = True
        for thread in self.threads:
            thread.join()


class Twins(threading.Thread):
    """Continuously checks for a slice that both agents have."""

    def __init__(self, agents):
        super().__init__()
        self.agents, self.found, self.looks, self.ends = agents, set(), 0, False
        self.start()

    def run(self):
        while not self.ends:
            with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
                self.found |= set.intersection(*(slices_of(agent) for agent in self.agents))
                self.looks += 1
            time.sleep(0.02)

    def end(self):
        self.ends = True
        self.join()


def slices_of(agent):
    return {s["name"] for s in json.loads(asked(agent.socket, "/v1/slices")[2])["slices"] if s["state"] != "ended"}


def free_bytes(agents):
    return [d["free_bytes"] for agent in agents.values() for d in agent.json("devices")["devices"]]


def listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def has_ended(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def name_of(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


class Storm:
    """Kills programs, and records what each kill may have cost."""

    def __init__(self, services, dice):
        self.services, self.dice, self.spec = services, dice, 1
        self.kills = collections.Counter()
        self.ended = collections.Counter()  # Programs that were killed, by replica.
        self.excuses = []  # (from, until, requests that may fail because they were in flight).

    def replicas(self):
        """Returns the serving replicas with their programs' processes; empty until the controller has noticed
        earlier ends."""
        out = []
        for replica in self.services.service("demo")["status"].get("replicaList", []):
            if replica["state"] != "Ready":
                continue
            if not listens(replica["port"]):
                return []
            with contextlib.suppress(AssertionError, OSError):
                processes = self.services.agents[replica["node"]].show(replica["slice"])["processes"]
                out += [(replica["slice"], p["pid"]) for p in processes if name_of(parent(p["pid"])).startswith("carve-supervise"[:15])]
        return out

    def served(self):
        """Returns the replicas that answer through the endpoint, because the status may come from the
        previous controller."""
        endpoint = self.services.service("demo")["status"]["endpoint"]
        return {answer for answer in (answer_of(endpoint) for _ in range(4 * REPLICAS)) if answer}

    def rollout(self):
        self.spec += 1
        self.services.apply(document(self.services.folder, spec=self.spec))

    def kill(self):
        kind = self.dice.choice(["controller", "supervisor", "replica", "agent", "haproxy"])
        getattr(self, kind)()
        self.kills[kind] += 1

    def controller(self):
        self.services.restart()

    def agent(self):
        agent = self.dice.choice(list(self.services.agents.values()))
        agent.process.kill()
        agent.process.wait()
        agent.start()

    def supervisor(self):
        self.end_program(parent)

    def replica(self):
        self.end_program(lambda pid: pid)

    def end_program(self, victim):
        chosen = []

        def is_killed():  # A rollout may end the chosen program first.
            ready = self.replicas()
            if len(ready) < 2 or len(self.served()) < 2:
                return False
            chosen[:] = self.dice.choice(ready)
            with contextlib.suppress(OSError):
                begin = time.monotonic()
                os.kill(victim(chosen[1]), signal.SIGKILL)
                chosen.append(begin)
            return len(chosen) == 3

        assert until(is_killed, 120, 0.1), "no served replica beside the one that is killed"
        name, pid, begin = chosen
        assert until(lambda: has_ended(pid), 10, 0.005)
        self.ended[name] += 1
        self.excuses.append((begin, time.monotonic(), CLIENTS))

    def master(self):
        return int((self.services.state / "proxy/haproxy.process").read_text().split()[1])

    def haproxy(self):
        master = self.master()
        assert name_of(master) == "haproxy"
        begin = time.monotonic()
        os.kill(master, signal.SIGKILL)  # Its workers end slightly later.
        endpoint = self.services.service("demo")["status"]["endpoint"]
        assert until(lambda: self.master() != master and answer_of(endpoint), 60, 0.02), "HAProxy is started again"
        self.excuses.append((begin, time.monotonic(), None))


def answer_of(endpoint):
    with contextlib.suppress(OSError, http.client.HTTPException), urllib.request.urlopen(endpoint, timeout=10) as response:
        return response.read().decode()
    return ""


def unexcused(failures, excuses):
    """Returns the failed requests that were not in flight at a kill that can end requests, and those beyond
    the number that were."""
    left = [count for _, _, count in excuses]
    out = []
    for begin, end, problem in failures:
        for i, (start, over, _) in enumerate(excuses):
            if begin <= over and end >= start and left[i] != 0:
                left[i] = left[i] - 1 if left[i] is not None else None
                break
        else:
            out.append((begin, end, problem))
    return out


def shape(status):
    """Returns the parts that do not depend on revision, node, device or port."""
    return {"replicas": sorted((r["index"], r["state"]) for r in status["replicaList"]),
            **{word: status[word] for word in ("phase", "replicas", "desiredReplicas", "readyReplicas", "memoryText", "endpoint")}}


def settled(services):
    """Waits until the service runs with only the replicas of its current revision and all of them are ready.
    Returns its status."""
    def rests():
        status = services.service("demo")["status"]
        return (status["phase"] == "Running" and len(status["replicaList"]) == REPLICAS and status["updatedReplicas"] == REPLICAS
                and {r["state"] for r in status["replicaList"]} == {"Ready"})
    assert until(rests, 180, 0.1), services.service("demo")["status"]
    return services.service("demo")["status"]


def test_no_kill_duplicates_a_replica_or_loses_a_ready_one(world, second, services):
    seed = int(os.environ.get("CARVE_SEED", "1"))
    dice = random.Random(seed)
    free = free_bytes(services.agents)
    services.apply(document(services.folder), "--wait")
    undisturbed = settled(services)
    storm = Storm(services, dice)
    load, twins = Load(undisturbed["endpoint"]), Twins([world, second])
    try:
        for kill in range(200 if long_form else 10):
            if kill % 4 == 0:
                storm.rollout()
            time.sleep(dice.random())  # Random, so that a kill can hit any step.
            storm.kill()
        storm.rollout()
        assert until(lambda: services.service("demo")["status"]["revision"] == storm.spec, 60)
        status = settled(services)
    finally:
        load.end()
        twins.end()
    print(f"seed {seed}: {dict(storm.kills)}, {storm.spec} revisions, {load.answers} requests answered, "
          f"{len(load.failures)} failed in flight, {twins.looks} looks")
    assert not unexcused(load.failures, storm.excuses), unexcused(load.failures, storm.excuses)[:10]
    assert load.answers > 100 and twins.looks > 10 and not twins.found
    assert shape(status) == shape(undisturbed)
    names = {f"demo-{storm.spec}-{index}" for index in range(REPLICAS)}
    assert set(world.slices()) | set(second.slices()) == names
    journal = (services.folder / "programs/journal").read_text().splitlines()
    assert not [line for line in journal if line.startswith("twice")]
    starts = collections.Counter(line.split()[1] for line in journal)
    assert all(count <= 1 + storm.ended[name] for name, count in starts.items()), "a program starts again only after its end"
    assert all(starts[name] == 1 + storm.ended[name] for name in names)
    services.carve("delete", "service/demo")
    assert until(lambda: services.items() == [] and free_bytes(services.agents) == free, 120), "all slices are accounted for"


def requested(services):
    """Returns the replicas in the controller's database whose slice is requested but not granted, with the
    request's id."""
    with contextlib.closing(sqlite3.connect(f"file:{services.state}/controller.db?mode=ro", uri=True)) as db:
        return dict(db.execute("SELECT slice, request_id FROM replica WHERE is_granted = 0 AND node != ''"))


def answered(caller, method, body=None):
    """Returns the service through a connection that is already open."""
    caller.request(method, "/v1/services/demo", body)
    answer = caller.getresponse()
    text = answer.read().decode()
    assert answer.status == 200, text
    return json.loads(text)


@pytest.mark.parametrize("killed", [True, False], ids=["killed before the answer", "no answer in time"])
def test_repeating_a_request_that_may_have_been_granted_returns_the_same_slice(world, second, services, killed):
    services.apply(document(services.folder, replicas=0))
    assert until(lambda: all(n["reachability"] == "reachable" for n in services.nodes().values()), 60)
    caller = OverUnix(services.socket)  # The agents identify the caller before they are stopped.
    assert answered(caller, "GET")["spec"]["replicas"] == 0
    for agent in (world, second):
        agent.process.send_signal(signal.SIGSTOP)
    try:
        # No replica has a slice yet, so the controller calls no agent before it requests the first slice.
        answered(caller, "PATCH", json.dumps({"spec": {"replicas": 1}}))
        assert until(lambda: requested(services), 30, 0.001)
        before = requested(services)
        if killed:
            services.kill()
        else:  # The next turn asks again after the agents' timeout.
            assert until(lambda: all(n["reachability"] == "unreachable" for n in services.nodes().values()), 60)
            assert requested(services) == before
    finally:
        for agent in (world, second):
            agent.process.send_signal(signal.SIGCONT)
    if killed:
        services.start()
    assert until(lambda: services.service("demo")["status"]["readyReplicas"] == 1, 60)
    assert [*world.slices(), *second.slices()] == ["demo-1-0"]
    with contextlib.closing(sqlite3.connect(f"file:{services.state}/controller.db?mode=ro", uri=True)) as db:
        assert dict(db.execute("SELECT slice, request_id FROM replica WHERE slice = 'demo-1-0'")) == before
    assert (services.folder / "programs/journal").read_text().splitlines() == ["started demo-1-0"]

"""Two coordinators, each with its scheduler on its own host: they and the API server are killed while pods
are bound, and a referee checks the result. CARVE_KUBE_BINDS is the number of bindings: 300, or 10,000 in the
long form, which kills as often as on a bad day."""
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from cluster import A10, SYSTEM, HERE, node_object, pod_object, until, uuid_of

LONG = bool(os.environ.get("CARVE_LONG"))
BINDS = int(os.environ.get("CARVE_KUBE_BINDS", 10_000 if LONG else 300))
LEAST_KILLS = {"coordinator": 4, "kube-apiserver": 1}
COORDINATOR_EVERY, SERVER_EVERY = (2, 5), (30, 30) if LONG else (8, 12)  # In seconds.
WAITING, STANDING = 60, 150  # Simultaneous pods: not bound yet, and bound.
NODES = range(100, 115)


@pytest.fixture
def two(cluster):
    """The cluster with Carve installed, 15 nodes with four devices each, and two coordinators."""
    cluster.install()
    cluster.delete_pods()
    cluster.replace_nodes([node_object(n, devices=4) for n in NODES])
    pairs = [cluster.start("a1"), cluster.start("a2", answers_webhooks=False)]
    assert until(lambda: all(pair.health()[0] == 200 for pair in pairs)), [pair.health() for pair in pairs]
    yield cluster, pairs
    cluster.delete_pods()
    for pair in pairs:
        pair.end()


@pytest.fixture
def referee(cluster):
    devices = cluster.folder / "devices.json"
    devices.write_text(json.dumps({uuid_of(n, i): A10 for n in NODES for i in range(4)}))
    process = subprocess.Popen([sys.executable, HERE / "referee.py", f"127.0.0.1:{cluster.port + 1}", devices],
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "watching\n"
    yield process
    process.kill()


def holder(cluster):
    lease = cluster.kubectl("get", "lease", "carve-scheduler", "-n", SYSTEM, "-o", "jsonpath={.spec.holderIdentity}", check=False)
    return lease.split("_")[0]


def limits_of(chance):
    if chance.random() < 0.1:
        return {"carve.dev/devices": "1"}
    limits = {"carve.dev/memory": f"{chance.choice([1, 2, 4, 6, 8, 10, 14])}Gi"}
    if chance.random() < 0.5:
        limits["carve.dev/compute"] = str(chance.choice([10, 20, 30, 50]))
    return limits


class Load:
    """Creates, binds and deletes pods at random. The API server may be down at any call."""
    PATH = "/api/v1/namespaces/default/pods"

    def __init__(self, cluster, seed):
        self.cluster, self.chance = cluster, random.Random(seed)
        self.created, self.bound, self.there, self.waiting = 0, set(), set(), set()

    def call(self, *words):
        try:
            return self.cluster.api.call(*words)
        except (OSError, http.client.HTTPException, ValueError):
            return 0, {}

    def look(self):
        status, answer = self.call("GET", self.PATH)
        if status != 200:
            return
        pods = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in answer["items"]}
        self.there = {name for name, node in pods.items() if node}
        self.waiting = set(pods) - self.there
        self.bound |= self.there

    def create(self, most):
        """Only one coordinator serves the webhook. While it or the API server is down, no pod can be
        created."""
        for _ in range(min(WAITING - len(self.waiting), most - self.created)):
            if self.call("POST", self.PATH, pod_object(f"p{self.created}", limits_of(self.chance)))[0] not in (201, 409):
                return
            self.created += 1

    def delete(self):
        """Deletes pods to make room, including one that is waiting and may just be being bound."""
        gone = self.chance.sample(sorted(self.there), max(len(self.there) - STANDING, min(5, len(self.there))))
        for name in gone + self.chance.sample(sorted(self.waiting), min(1, len(self.waiting)) * self.chance.choice((0, 0, 1))):
            self.call("DELETE", f"{self.PATH}/{name}?gracePeriodSeconds=0")

    def step(self, most=sys.maxsize):
        self.look()
        self.create(most)
        self.delete()


class Killer:
    """Kills the active coordinator and the API server at random moments, and restarts what has ended."""

    def __init__(self, cluster, pairs, seed):
        self.cluster, self.pairs, self.chance = cluster, pairs, random.Random(seed)
        self.kills = dict.fromkeys(LEAST_KILLS, 0)
        self.history = []
        now = time.monotonic()
        self.next = {"coordinator": now + self.chance.uniform(*COORDINATOR_EVERY),
                     "kube-apiserver": now + self.chance.uniform(*SERVER_EVERY)}

    def step(self):
        now = time.monotonic()
        if now >= self.next["kube-apiserver"]:
            self.cluster.programs.kill("kube-apiserver")
            self.cluster.programs.start("kube-apiserver")
            self.count("kube-apiserver")
            self.next["kube-apiserver"] = now + self.chance.uniform(*SERVER_EVERY)
        if now >= self.next["coordinator"]:
            active = holder(self.cluster)
            for pair in self.pairs:
                if pair.name == active:
                    pair.kill("coordinator")
                    self.count("coordinator")
            self.next["coordinator"] = now + self.chance.uniform(*COORDINATOR_EVERY)
        self.start_what_ended()

    def start_what_ended(self):
        self.cluster.programs.start_what_ended()
        for pair in self.pairs:
            pair.start_what_ended()

    def count(self, name):
        self.kills[name] += 1
        self.history.append(f"{time.strftime('%H:%M:%S')} {name}")

    def is_enough(self):
        return all(self.kills[name] >= least for name, least in LEAST_KILLS.items())


def test_no_device_is_granted_twice_while_coordinators_and_api_server_are_killed(two, referee):
    cluster, pairs = two
    load = Load(cluster, seed=7)
    assert until(lambda: holder(cluster) in ("a1", "a2"))
    killer = Killer(cluster, pairs, seed=8)
    last, at = 0, time.monotonic()
    while len(load.bound) < BINDS or not killer.is_enough():
        load.step()
        killer.step()
        if len(load.bound) > last:
            last, at = len(load.bound), time.monotonic()
        assert time.monotonic() - at < 180, (killer.kills, len(load.bound), [p.log()[-2000:] for p in pairs])
    # The scheduler of the active pair dies with its coordinator, so that the other pair takes over. An API
    # server that has ended is restarted.
    def is_held():
        killer.start_what_ended()
        return holder(cluster) in ("a1", "a2")
    assert until(is_held, 60)
    first = holder(cluster)
    active = next(p for p in pairs if p.name == first)
    active.kill("scheduler")
    active.kill("coordinator")
    active.start_coordinator()
    end = load.created + 20

    def is_bound():
        load.step(end)
        return load.created == end and not load.waiting
    assert until(is_bound, 120, 0.3), (load.waiting, [p.log()[-2000:] for p in pairs])
    assert holder(cluster) != first
    referee.send_signal(signal.SIGTERM)
    verdict = json.loads(referee.communicate(timeout=60)[0])
    assert verdict["wrong"] == [], (verdict["wrong"], killer.history[-300:], [p.log()[-20000:] for p in pairs])
    assert verdict["bound"] >= len(load.bound) >= BINDS and verdict["events"] > 2 * verdict["bound"], verdict
    print(f"{verdict['bound']} pods bound, {verdict['events']} events, kills {killer.kills}")


def test_an_idle_replica_binds_nothing(two):
    cluster, pairs = two
    assert until(lambda: holder(cluster) in ("a1", "a2"))
    cluster.create(pod_object("p", {"carve.dev/memory": "1Gi"}))
    cluster.slices("p")
    idle = next(p for p in pairs if p.name != holder(cluster))
    question = {"PodName": "q", "PodNamespace": "default", "PodUID": "u", "Node": "n100"}
    request = urllib.request.Request(f"http://127.0.0.1:{idle.ports + 1}/bind", json.dumps(question).encode())
    answer = urllib.request.urlopen(request, timeout=10)
    assert "does not hold the Lease" in json.loads(answer.read())["Error"]

"""Two coordinators, each beside its scheduler on a host of its own: they are killed while pods are bound, and a referee watches."""
import json
import os
import random
import signal
import subprocess
import sys
import urllib.request

import pytest

from cluster import A10, SYSTEM, HERE, node_object, pod_object, until, uuid_of

LONG = bool(os.environ.get("CARVE_LONG"))
PODS = 10_000 if LONG else 300
NODES = range(100, 115)


@pytest.fixture
def two(cluster):
    """The cluster with Carve installed, 15 nodes of four devices, and two coordinators."""
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
    token = cluster.folder / "admin-token"
    token.write_text(cluster.api.token)
    process = subprocess.Popen([sys.executable, HERE / "referee.py", f"https://127.0.0.1:{cluster.port}", cluster.dir / "pki/apiserver.crt",
                                token, devices], stdout=subprocess.PIPE, text=True)
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
    """Pods that are created in batches and deleted at random when they were bound."""

    def __init__(self, cluster, seed):
        self.cluster, self.chance = cluster, random.Random(seed)
        self.created, self.bound, self.deleted = 0, set(), set()

    def create(self, count):
        for _ in range(count):
            pod = pod_object(f"p{self.created}", limits_of(self.chance))
            # The webhook is one coordinator's; a pod that comes while it is killed is created when it is back.
            assert until(lambda: self.cluster.api.call("POST", "/api/v1/namespaces/default/pods", pod)[0] == 201)
            self.created += 1

    def look(self):
        """How many were bound so far."""
        for pod in self.cluster.api.get("/api/v1/namespaces/default/pods")["items"]:
            if pod["spec"].get("nodeName"):
                self.bound.add(pod["metadata"]["name"])
        return len(self.bound)

    def delete(self, most):
        there = sorted(self.bound - self.deleted)
        for name in self.chance.sample(there, min(most, len(there))):
            self.deleted.add(name)
            self.cluster.api.call("DELETE", f"/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds=0")

    def binds(self, count):
        """Whether so many were bound; otherwise room is made."""
        if self.look() >= count:
            return True
        self.delete(5)
        return False


def test_no_device_is_granted_twice_while_coordinators_are_killed(two, referee):
    cluster, pairs = two
    load = Load(cluster, seed=7)
    assert until(lambda: holder(cluster) in ("a1", "a2"))
    kills = 0
    for batch in range(PODS // 60):
        load.create(60)
        assert until(lambda: load.binds(batch * 60 + 20), 90), (len(load.bound), [p.log()[-2000:] for p in pairs])
        victim = next(p for p in pairs if p.name == holder(cluster))
        victim.kill("coordinator")
        victim.start_coordinator()
        kills += 1
    # The scheduler of the active pair dies with its coordinator: the other pair takes over.
    first = holder(cluster)
    active = next(p for p in pairs if p.name == first)
    active.kill("scheduler")
    active.kill("coordinator")
    active.start_coordinator()
    load.create(20)
    assert until(lambda: load.binds(load.created), 120, 0.3), (len(load.bound), [p.log()[-2000:] for p in pairs])
    assert holder(cluster) != first
    referee.send_signal(signal.SIGTERM)
    verdict = json.loads(referee.communicate(timeout=20)[0])
    assert verdict["wrong"] == []
    assert verdict["bound"] == load.created and verdict["events"] > 2 * load.created, verdict
    assert kills == PODS // 60


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

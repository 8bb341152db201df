"""Causes each alert of deploy/prometheus/rules.yaml with real agents and a real controller, which Prometheus scrapes, and
removes the cause. Alertmanager must report both. The durations of the rules are shortened. The two alerts about a cluster
get their series from the test."""
import contextlib
import os
import subprocess

import pytest
import yaml

from conftest import LOAD, until
from support.jobs import mgpu
from support.monitored import RULES, Monitored

pytestmark = pytest.mark.usefixtures("own_network")
SERVICE = {"apiVersion": "carve.dev/v1", "kind": "Service"}


@pytest.fixture(scope="module")
def monitored(own_network):
    world = Monitored()
    yield world
    world.end()


def restart(agent):
    agent.process.kill()
    agent.process.wait()
    agent.start()


@contextlib.contextmanager
def agent_down(w):
    w.n2.process.kill()
    w.n2.process.wait()
    yield {"instance": w.addresses["n2"], "job": "carve-agent"}
    w.n2.start()


@contextlib.contextmanager
def controller_down(w):
    w.controller.kill()
    yield {"instance": w.addresses["controller"]}
    w.controller.start()


@contextlib.contextmanager
def device_lost(w):
    w.fault(w.n2, "device-lost", "--device", 3)
    yield {"instance": w.addresses["n2"], "device": "3"}
    w.fault(w.n2, "clear")
    restart(w.n2)  # The Xid of the lost device counts until then.


@contextlib.contextmanager
def xid(w):
    w.fault(w.n2, "xid", 31, "--device", 2)
    yield {"instance": w.addresses["n2"], "device": "2", "xid": "31"}


@contextlib.contextmanager
def unmanaged_process(w):
    w.load("neighbour", "--device", 0)
    environment = {"SIMGPU_DIR": str(w.n1.folder / "state/sim"), "LD_LIBRARY_PATH": str(LOAD.parents[1] / "lib/carve/sim")}
    program = subprocess.Popen([LOAD, "--allocate", "64MiB", "--seconds", "600"], env={**os.environ, **environment},
                               stdout=subprocess.DEVNULL)
    yield {"instance": w.addresses["n1"], "device": "0"}
    program.kill()
    program.wait()
    w.stop("neighbour")


@contextlib.contextmanager
def setting_pending(w):
    w.load("holder")
    assert w.n1.carve("node", "set", "--policy", "native-burst-share").returncode == 0
    yield {"instance": w.addresses["n1"], "setting": "policy"}
    w.stop("holder")


@contextlib.contextmanager
def slice_near_quota(w):
    w.load("full", memory="1GiB", allocate="750MiB")
    yield {"slice": "full", "account": "root"}
    w.stop("full")


@contextlib.contextmanager
def share_not_enforced(w):
    """An arbiter schedules 64 slices, and a slice without isolation counts too. The 65th may use the whole device."""
    words = [("--memory", "1GiB", "--compute", "30%", "--name", "shares")]
    words += [("--memory", "64MiB", "--isolation", "none", "--name", f"free{i}") for i in range(64)]
    for one in words:
        assert w.n2.carve("slice", "create", "--device", 0, *one).returncode == 0
    yield {"slice": "shares", "instance": w.addresses["n2"]}
    w.stop("free63", agent=w.n2)


@contextlib.contextmanager
def violation(w):
    w.n1.begin("run", "--memory", "1GiB", "--name", "bypass", "--", "sh", "-c", f"LD_PRELOAD= exec {LOAD} --allocate 64MiB --seconds 600")
    yield {"slice": "bypass", "kind": "bypass"}
    w.stop("bypass")


@contextlib.contextmanager
def slice_idle(w):
    assert w.n1.carve("slice", "create", "--memory", "1GiB", "--name", "idle").returncode == 0
    yield {"slice": "idle", "account": "root"}
    w.stop("idle")


def deleted(w, kind, name):
    w.controller.carve("delete", kind, name)
    assert until(lambda: w.n1.slices() == {}, 60), w.n1.slices()


@contextlib.contextmanager
def service_unavailable(w):
    w.controller.apply({**SERVICE, "metadata": {"name": "broken"}, "spec": {"gpu": {"memory": "1GiB"}, "run": {"command": ["false"]}}})
    yield {"service": "broken", "namespace": "default"}
    deleted(w, "service", "broken")


@contextlib.contextmanager
def replica_pending(w):
    w.controller.apply({**SERVICE, "metadata": {"name": "large"},
                        "spec": {"replicas": 3, "gpu": {"memory": "20GiB"}, "run": {"command": ["sleep", "600"]}}})
    yield {"service": "large", "namespace": "default"}
    deleted(w, "service", "large")


@contextlib.contextmanager
def pending_too_long(w):
    w.controller.queue("train", maxRunning=1)
    names = [w.controller.submit(*mgpu(), "--", "sleep", "600") for _ in range(2)]
    yield {"queue": "train"}
    for name in names:
        w.controller.carve("cancel", name)
    w.controller.all_slices_end()


@contextlib.contextmanager
def budget_near_limit(w):
    w.load("billed", "--compute", "50%")
    w.controller.apply({"apiVersion": "carve.dev/v1", "kind": "Budget", "metadata": {"name": "b"},
                        "spec": {"account": "root", "gpuHours": "0.001"}})
    yield {"budget": "b", "account": "root"}
    w.stop("billed")
    w.controller.carve("delete", "budget", "b")


@contextlib.contextmanager
def pool_drift(w):
    pool = {"apiVersion": "carve.dev/v1", "kind": "Pool", "metadata": {"name": "p"}}
    w.controller.apply({**pool, "spec": {"labels": {"zone": "a"}}})
    w.controller.carve("node", "pool", "n1", "p")
    w.controller.apply({**pool, "spec": {"labels": {"zone": "b"}}})
    yield {"pool": "p"}
    w.controller.apply({**pool, "spec": {"labels": {"zone": "b"}, "labelSync": True}})


@contextlib.contextmanager
def of_cluster(w, series, healthy):
    w.cluster.text = series
    yield {}
    w.cluster.text = healthy


CAUSES = {
    "CarveAgentDown": agent_down,
    "CarveControllerDown": controller_down,
    "CarveDeviceLost": device_lost,
    "CarveXid": xid,
    "CarveUnmanagedProcess": unmanaged_process,
    "CarveSettingPending": setting_pending,
    "CarveSliceNearQuota": slice_near_quota,
    "CarveShareNotEnforced": share_not_enforced,
    "CarveViolation": violation,
    "CarveSliceIdle": slice_idle,
    "CarveServiceUnavailable": service_unavailable,
    "CarveReplicaPending": replica_pending,
    "CarvePendingTooLong": pending_too_long,
    "CarveBudgetNearLimit": budget_near_limit,
    "CarvePoolDrift": pool_drift,
    "CarveLedgerDrift": lambda w: of_cluster(w, "carve_ledger_drift_devices 2\n", "carve_ledger_drift_devices 0\n"),
    "CarveLeaseLost": lambda w: of_cluster(w, "carve_coordinator_active 0\n", "carve_coordinator_active 1\n"),
}


def test_each_rule_has_a_cause():
    rules = [rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    assert sorted(rules) == sorted(CAUSES)


@pytest.mark.parametrize("alert", CAUSES)
def test_an_alert_fires_and_is_resolved(monitored, alert):
    receiver, already = monitored.monitoring.receiver, len(monitored.monitoring.receiver.seen)

    def has(status, labels):
        return any(name == alert and what == status and labels.items() <= known.items() for name, what, known in receiver.seen[already:])
    with CAUSES[alert](monitored) as labels:
        fired = until(lambda: has("firing", labels), 60)
        assert fired, (receiver.seen[already:], monitored.monitoring.get("alerts"))
    assert until(lambda: has("resolved", labels), 60), (receiver.seen[already:], monitored.monitoring.get("alerts"))

"""Tests the coordinator with a real API server and a real scheduler: installation, dialects, rejections,
placement and forgery."""
import http.client
import itertools
import json
import os
import pathlib
import re
import ssl
import subprocess
import urllib.error
import urllib.request

import pytest

from cluster import A10, BIN, BUILD, GiB, ROOT, SYSTEM, node_object, pod_object, until

# The purpose of each node; the tests choose nodes with a nodeSelector.
NODES = [node_object(0), node_object(1), node_object(2, "binpack"), node_object(3, "spread", placement="spread"),
         node_object(4, "one", devices=1), node_object(5, "share", devices=1, mode="none")]


def on(node):
    return {"nodeSelector": {"kubernetes.io/hostname": node}}


@pytest.fixture(scope="module")
def carve(cluster):
    """The cluster with Carve installed and one coordinator with its scheduler."""
    cluster.install()
    cluster.replace_nodes(NODES)
    pair = cluster.start("h1")
    assert until(lambda: pair.health()[0] == 200), pair.health()[1] + pair.log()
    bundle = "jsonpath={.webhooks[0].clientConfig.caBundle}"
    assert until(lambda: cluster.kubectl("get", "mutatingwebhookconfiguration", "carve", "-o", bundle)
                 and cluster.kubectl("get", "validatingwebhookconfiguration", "carve", "-o", bundle)), pair.log()
    yield cluster
    pair.end()


@pytest.fixture(autouse=True)
def no_pods(carve):
    yield
    carve.delete_pods()


def test_the_installed_objects_exist(carve):
    assert carve.kubectl("get", "daemonset", "carve-agent", "-n", SYSTEM, "-o", "name")
    assert carve.kubectl("get", "priorityclass", "carve-preemptible", "-o", "jsonpath={.value}").strip() == "-1000"
    assert carve.kubectl("get", "pdb", "carve-coordinator", "-n", SYSTEM, "-o", "name")


def test_an_unknown_label_of_a_node_or_namespace_is_rejected(carve):
    for label in ("carve.dev/mod=memory", "carve.dev/memory-unit=128MiB"):
        said = carve.refused("label", "node", "n0", label)
        assert f"unknown label '{label.split('=')[0]}'; a node can have carve.dev/agent, carve.dev/bookkeeper" in said
    assert "a namespace can have carve.dev/account, carve.dev/sharing" in carve.refused("label", "namespace", "default", "carve.dev/sharng=disabled")
    assert "must be enabled or disabled, not 'disable'" in carve.refused("label", "namespace", "default", "carve.dev/sharing=disable")
    for known in (("node", "n0", "carve.dev/placement=spread"), ("node", "n0", "carve.dev/placement-"),
                  ("namespace", "default", "carve.dev/sharing=enabled"), ("namespace", "default", "carve.dev/sharing-")):
        carve.kubectl("label", *known)
    # An object that already has such a label can still be changed.
    binding = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
    kept = carve.api.get(f"{binding}/carve-labels")
    carve.api.call("DELETE", f"{binding}/carve-labels")
    assert until(lambda: "labeled" in carve.kubectl("label", "node", "n0", "carve.dev/mod=memory", check=False))
    kept["metadata"] = {"name": "carve-labels"}
    assert carve.api.call("POST", binding, kept)[0] == 201
    assert until(lambda: "unknown label" in carve.kubectl("label", "node", "n0", "carve.dev/other=x", "--dry-run=server", check=False))
    carve.kubectl("label", "node", "n0", "rack=a")
    carve.kubectl("label", "node", "n0", "rack-", "carve.dev/mod-")


def test_the_agent_runs_on_nodes_with_the_right_labels(carve):
    def wanted():
        return carve.api.get(f"/apis/apps/v1/namespaces/{SYSTEM}/daemonsets/carve-agent")["status"].get("desiredNumberScheduled")
    assert until(lambda: wanted() == 0)
    labels = ("carve.dev/bookkeeper=extender", "ack.node.gpu.schedule=cgpu", "vke.node.gpu.schedule=mgpu")
    for number, label in enumerate(labels):
        carve.kubectl("label", "node", f"n{number}" if number < 2 else "one", label)
        assert until(lambda: wanted() == number + 1), label
    for name in ("n0", "n1", "one"):
        carve.kubectl("label", "node", name, "carve.dev/agent=host")
    assert until(lambda: wanted() == 0), "their agents are services of the host"
    for name, label in zip(("n0", "n1", "one"), labels):
        carve.kubectl("label", "node", name, "carve.dev/agent-", label.split("=")[0] + "-")


def test_the_account_of_a_namespace_pays_for_its_pods(carve):
    def account(name):
        return carve.api.get(f"/api/v1/namespaces/default/pods/{name}")["metadata"]["labels"].get("carve.dev/account")
    limits = {"carve.dev/memory": "1Gi"}
    carve.create(pod_object("before", limits))
    assert account("before") is None, "without a label the namespace itself is the account"
    carve.kubectl("label", "namespace", "default", "carve.dev/account=research")
    try:
        names = (f"paid{number}" for number in itertools.count())

        def labelled():
            name = next(names)
            carve.create(pod_object(name, limits))
            return account(name) == "research" and name
        paid = until(labelled, 30)
        assert paid, "the coordinator caches a namespace for 5 s"
        said = carve.refused("label", "pod", paid, "carve.dev/account=production", "--overwrite")
        assert "the label carve.dev/account of a pod with slices is immutable" in said
        other = pod_object("other", limits)
        other["metadata"].setdefault("labels", {})["carve.dev/account"] = "production"
        said = carve.refused("create", "-f", "-", stdin=json.dumps(other))
        assert "account 'research' pays for the pods of namespace default" in said
    finally:
        carve.kubectl("label", "namespace", "default", "carve.dev/account-")


@pytest.mark.parametrize("overlay", ["default", "unit-128MiB", "tainted", "plain-nvidia-gpu"])
def test_the_server_accepts_each_overlay(carve, overlay):
    manifests = carve.kubectl("kustomize", str(ROOT / "deploy/kubernetes/overlays" / overlay))
    text = carve.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-", stdin=manifests)
    assert "carve-coordinator serverside-applied" in text and "error" not in text


def test_a_node_is_tainted_before_it_gets_the_agent(carve):
    policy = str(ROOT / "deploy/kubernetes/overlays/tainted/taint.yaml")
    carve.kubectl("apply", "-f", policy)
    label = ("label", "node", "n1", "carve.dev/bookkeeper=extender")
    assert until(lambda: "node n1 has no taint carve.dev/gpu; add it first" in carve.kubectl(*label, "--dry-run=server", check=False))
    carve.kubectl("taint", "node", "n1", "carve.dev/gpu=:NoSchedule")
    carve.kubectl(*label)
    carve.create(pod_object("tolerates", {"carve.dev/memory": "1Gi"}, **on("n1")))
    carve.slices("tolerates")
    carve.kubectl("label", "node", "n1", "carve.dev/bookkeeper-")
    carve.kubectl("taint", "node", "n1", "carve.dev/gpu-")
    carve.kubectl("delete", "-f", policy)


STATEFUL_SET = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "binpack", "namespace": "default"},
                "spec": {"replicas": 3, "serviceName": "binpack", "podManagementPolicy": "Parallel",
                         "selector": {"matchLabels": {"app": "binpack"}},
                         "template": {"metadata": {"labels": {"app": "binpack"}},
                                      "spec": {"containers": [{"name": "binpack-1", "image": "i", "command": ["bash", "gpushare/run.sh"],
                                                               "resources": {"limits": {"aliyun.com/gpu-mem": "16"}}}]}}}}


def test_a_stateful_set_runs_unchanged_with_either_unit(carve):
    def bound_memory(name):
        return carve.slices(name)["containers"]["binpack-1"]["parts"][0][1]
    settings = ("patch", "configmap", "carve-settings", "-n", SYSTEM, "--type=merge", "-p")
    carve.kubectl("apply", "-f", "-", stdin=STATEFUL_SET)
    assert until(lambda: len(carve.api.get("/api/v1/namespaces/default/pods")["items"]) == 3)
    assert [bound_memory(f"binpack-{i}") for i in range(3)] == [16 * GiB] * 3
    pod = carve.pod("binpack-0")
    assert pod["spec"]["schedulerName"] == "carve-scheduler"
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"carve.dev/memory": "16Gi", "carve.dev/slot": "1"}
    refused = carve.refused(*settings, '{"data":{"gpuMemoryUnit":"128MiB"}}')
    assert "gpuMemoryUnit stays 1GiB: 3 pods were created with units of 1 GiB: default/binpack-0, default/binpack-1" in refused
    carve.kubectl("delete", "statefulset", "binpack")
    carve.delete_pods()
    assert until(lambda: "configmap" in carve.kubectl(*settings, '{"data":{"gpuMemoryUnit":"128MiB"}}', check=False))
    def has_unit(size):
        """Returns whether the webhook, which reads the settings every 5 s, already has this unit."""
        carve.create(pod_object("probe", {"aliyun.com/gpu-mem": "16"}))
        memory = carve.slices("probe")["containers"]["c"]["parts"][0][1]
        carve.delete_pods()
        return memory == 16 * size
    assert until(lambda: has_unit(128 << 20))
    carve.kubectl("apply", "-f", "-", stdin=STATEFUL_SET)
    assert until(lambda: len(carve.api.get("/api/v1/namespaces/default/pods")["items"]) == 3)
    assert [bound_memory(f"binpack-{i}") for i in range(3)] == [2 * GiB] * 3
    slices = carve.slices("binpack-0")["containers"]["binpack-1"]
    assert (slices["unit"], slices["units"]) == (128 << 20, 16)
    carve.kubectl("delete", "statefulset", "binpack")
    carve.delete_pods()
    assert until(lambda: "configmap" in carve.kubectl(*settings, '{"data":{"gpuMemoryUnit":"1GiB"}}', check=False))
    assert until(lambda: has_unit(GiB))
    assert "gpuMemoryUnit 64MiB: must be 1GiB or 128MiB" in carve.refused(*settings, '{"data":{"gpuMemoryUnit":"64MiB"}}')


DIALECTS = {
    "carve": ({"carve.dev/memory": "4Gi", "carve.dev/compute": "30"}, [[4 * GiB, 3000]]),
    "carve-two": ({"carve.dev/memory": "8Gi", "carve.dev/devices": "2"}, [[4 * GiB, 0], [4 * GiB, 0]]),
    "carve-whole": ({"carve.dev/devices": "1"}, [[A10, 10000]]),
    "vke": ({"vke.volcengine.com/mgpu-core": "20", "vke.volcengine.com/mgpu-memory": "1000"}, [[1000 << 20, 2000]]),
    "hami": ({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "25"}, [[3000 << 20, 2500]]),
    "hami-part": ({"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "50"}, None),
}


def test_each_dialect_gets_its_slices(carve):
    for name, (limits, _) in DIALECTS.items():
        carve.create(pod_object(name, limits))
    for name, (_, wanted) in DIALECTS.items():
        parts = carve.slices(name)["containers"]["c"]["parts"]
        if wanted is None:
            assert 0 < parts[0][1] <= A10 / 2, parts
        elif name == "carve-whole":
            assert parts[0][1] == A10, parts
        else:
            assert [part[1:] for part in parts] == wanted, name


REFUSALS = {
    "units": ({"carve.dev/memory": "4096"}, {}, "container c: carve.dev/memory: 4096 is 4096 bytes; write 4Gi or 4096Mi"),
    "dividing": ({"carve.dev/memory": "10Gi", "carve.dev/devices": "3"}, {},
                 "carve.dev/memory: 10Gi does not divide equally over 3 devices"),
    "compute": ({"carve.dev/memory": "1Gi", "carve.dev/compute": "130"}, {}, "carve.dev/compute: 130 on 1 device"),
    "devices": ({"carve.dev/devices": "0"}, {}, "carve.dev/devices: 0; must be 1 to 16"),
    "unknown": ({"carve.dev/memroy": "1Gi"}, {}, "carve.dev/memroy: unknown limit; use one of carve.dev/memory, carve.dev/compute"),
    "mixing": ({"carve.dev/memory": "1Gi", "aliyun.com/gpu-mem": "1"}, {}, "mixes carve.dev/memory"),
    "ack": ({"aliyun.com/gpu-mem": "4", "aliyun.com/gpu-core.percentage": "7"}, {},
            "aliyun.com/gpu-core.percentage: 7; must be 5 to 100 in steps of 5"),
    "vke": ({"vke.volcengine.com/mgpu-core": "30", "vke.volcengine.com/mgpu-memory": "256"}, {},
            "single-card sharing needs more than 256 MiB"),
    "hami": ({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "5", "nvidia.com/gpucores": "120"}, {}, "nvidia.com/gpucores: 120; must be 0 to 100"),
    "guard": ({"carve.dev/memory": "1Gi"}, {"hostPID": True}, "hostPID"),
    "node": ({"carve.dev/memory": "1Gi"}, {"nodeName": "n0"}, "Carve's scheduler chooses the node; use nodeSelector"),
    "claims": ({"carve.dev/memory": "1Gi"}, {"resourceClaims": [{"name": "nic", "resourceClaimName": "x"}]},
               "does not allocate resource claims"),
    "claims without a slice": ({"cpu": "1"}, {"resourceClaims": [{"name": "nic", "resourceClaimName": "x"}], "schedulerName": "carve-scheduler"},
                               "carve-scheduler does not allocate resource claims"),
    "scheduler": ({"carve.dev/memory": "1Gi"}, {"schedulerName": "other"}, "schedulerName"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_each_rejection_reaches_the_user(carve, name):
    limits, spec, message = REFUSALS[name]
    assert message in carve.refused("apply", "-f", "-", stdin=pod_object(f"refused-{name.replace(' ', '-')}", limits, **spec))


def test_quotas_and_namespaces_are_enforced(carve):
    carve.kubectl("create", "namespace", "whole")
    carve.kubectl("label", "namespace", "whole", "carve.dev/sharing=disabled")
    ours, theirs = {"carve.dev/memory": "1Gi"}, {"aliyun.com/gpu-mem": "1"}
    assert "sharing is disabled in namespace whole" in carve.refused("apply", "-f", "-", stdin=pod_object("p", ours, "whole"))
    carve.kubectl("create", "namespace", "counted")
    carve.kubectl("create", "quota", "q", "-n", "counted", "--hard=requests.aliyun.com/gpu-mem=4")
    assert "set requests.carve.dev/memory" in carve.refused("apply", "-f", "-", stdin=pod_object("p", theirs, "counted"))
    carve.kubectl("create", "quota", "ours", "-n", "counted", "--hard=requests.carve.dev/memory=2Gi")
    status = ("get", "quota", "ours", "-n", "counted", "-o", "jsonpath={.status.hard}")
    assert until(lambda: "requests.carve.dev/memory" in carve.kubectl(*status))
    text = carve.refused("apply", "-f", "-", stdin=pod_object("p", {"carve.dev/memory": "4Gi"}, "counted"))
    assert "exceeded quota: ours" in text
    for limits in ({"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "100"}, {"carve.dev/devices": "1"}):
        # The coordinator caches what it knows about a namespace for 5 s.
        assert until(lambda: "has a quota on requests.carve.dev/memory" in carve.kubectl(
            "apply", "-f", "-", "--dry-run=server", stdin=pod_object("p", limits, "counted"), check=False))


def test_a_limit_range_does_not_mix_dialects(carve):
    carve.kubectl("create", "namespace", "ranged")
    carve.kubectl("apply", "-f", "-", stdin={
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "most", "namespace": "ranged"},
        "spec": {"limits": [{"type": "Container", "max": {"carve.dev/memory": "2Gi", "carve.dev/compute": "50"}}]}})

    def limits(name):
        return carve.pod(name, "ranged")["spec"]["containers"][0]["resources"].get("limits", {})
    assert until(lambda: "Warning: container c has a slice because a LimitRange" in carve.kubectl(
        "apply", "-f", "-", "--dry-run=server", stdin=pod_object("warned", {}, "ranged"), check=False))
    carve.create(pod_object("units", {"aliyun.com/gpu-mem": "1"}, "ranged"))
    assert limits("units") == {"carve.dev/memory": "1Gi", "carve.dev/slot": "1", "carve.dev/compute": "50"}
    assert "maximum carve.dev/memory usage per Container is 2Gi" in carve.refused(
        "apply", "-f", "-", stdin=pod_object("large", {"aliyun.com/gpu-mem": "4"}, "ranged"))
    assert "No limit is specified" in carve.refused("apply", "-f", "-", stdin=pod_object("theirs", {"nvidia.com/gpu": "1"}, "ranged"))
    init = [{"name": "i", "image": "i"}]
    carve.create(pod_object("init", {"aliyun.com/gpu-mem": "1"}, "ranged", initContainers=init))
    assert carve.pod("init", "ranged")["spec"]["initContainers"][0]["resources"]["limits"] == {"carve.dev/memory": "2Gi", "carve.dev/compute": "50"}
    carve.delete_pods("ranged")


def test_a_manifest_can_be_applied_twice(carve):
    cases = {"ack": {"aliyun.com/gpu-mem": "2"}, "whole": {"carve.dev/devices": "1"}, "ours": {"carve.dev/memory": "1Gi"}}
    for name, limits in cases.items():
        pod = pod_object(f"twice-{name}", limits, tolerations=[{"key": "a", "operator": "Exists"}])
        carve.kubectl("apply", "-f", "-", stdin=pod)
        spec = carve.pod(f"twice-{name}")["spec"]
        # kubectl prints "configured" whenever its own patch is not empty.
        assert "pod/twice" in carve.kubectl("apply", "-f", "-", stdin=pod), name
        assert {**carve.pod(f"twice-{name}")["spec"], "nodeName": ""} == {**spec, "nodeName": ""}, name
        assert carve.kubectl("diff", "-f", "-", stdin=pod) == "", name
    other = pod_object("twice-ack", {"aliyun.com/gpu-mem": "4"}, tolerations=[{"key": "a", "operator": "Exists"}])
    assert "aliyun.com/gpu-mem of a pod cannot be changed (2, now 4)" in carve.refused("apply", "-f", "-", stdin=other)
    carve.slices("twice-ack")
    # As with `kubectl replace --force`; without a kubelet the pod would never end.
    copy = carve.pod("twice-ack")
    assert copy["spec"]["nodeName"]
    del copy["metadata"]["resourceVersion"]
    carve.delete_pods()
    said = carve.kubectl("create", "-f", "-", stdin=copy)
    assert "is left out: Carve's scheduler chooses the node again" in said and "created" in said, said
    assert carve.slices("twice-ack")["containers"]["c"]["parts"][0][1] == 2 * GiB


def test_a_setting_takes_effect_when_it_is_written(carve):
    settings = ("patch", "configmap", "carve-settings", "-n", SYSTEM, "--type=merge", "-p")
    assert "default-scheduler does not call this coordinator" in carve.refused(*settings, '{"data":{"schedulers":"default-scheduler"}}')
    carve.kubectl(*settings, '{"data":{"strategy":"spread","sharing":"disabled"}}')
    try:
        assert until(lambda: "sharing                disabled" in carve_verb(carve, "settings"), 5)
        assert "binpack -> spread (when the coordinator is restarted)" in carve_verb(carve, "settings")
        assert "sharing is disabled" in carve.refused("apply", "-f", "-", stdin=pod_object("shared", {"carve.dev/memory": "1Gi"}))
    finally:
        carve.kubectl(*settings, '{"data":{"strategy":"binpack","sharing":"enabled"}}')


def test_a_pod_that_the_webhook_does_not_see_is_rejected(carve):
    for namespace in ("kube-system", SYSTEM):
        text = carve.refused("apply", "-f", "-", stdin=pod_object("unseen", {"carve.dev/memory": "1Gi"}, namespace))
        assert f"pods in namespace {namespace} cannot have slices" in text
    carve.kubectl("apply", "-k", str(ROOT / "deploy/kubernetes/overlays/removed"), "--dry-run=server")


def test_a_pod_that_exceeds_every_total_gets_a_reason(carve):
    """The scheduler rejects all nodes before it calls the coordinator."""
    carve.create(pod_object("toomuch", {"carve.dev/memory": "64Gi"}))
    events = ("get", "events", "--field-selector=reason=CarveInsufficientCapacity,involvedObject.name=toomuch", "-o",
              "jsonpath={.items[*].message}")
    assert until(lambda: "0/6 nodes can serve" in carve.kubectl(*events), 60), carve.kubectl("describe", "pod", "toomuch")


def test_a_plain_pod_never_reaches_the_webhook(carve):
    pair = carve.pairs["h1"]
    pair.kill("coordinator")
    try:
        for name, limits in (("plain", {"cpu": "1"}), ("theirs", {"nvidia.com/gpu": "1"}), ("amd", {"amd.com/gpu": "1"})):
            carve.create(pod_object(name, limits))
            assert "carve.dev/request" not in carve.pod(name)["metadata"].get("annotations", {})
        for limits in ({"carve.dev/memory": "1Gi"}, {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}, {"aliyun.com/gpu-mem": "1"},
                       {"nvidia.com/mig-1g.5gb": "1"}, {"volcano.sh/vgpu-memory": "1"}):
            assert "failed calling webhook" in carve.refused("apply", "-f", "-", stdin=pod_object("ours", limits))
    finally:
        pair.start_coordinator()
    assert until(lambda: pair.health()[0] == 200), pair.log()


def test_devices_are_filled_or_spread_by_strategy(carve):
    for node in ("binpack", "spread"):
        for i in range(2):
            carve.create(pod_object(f"{node}-{i}", {"carve.dev/memory": "4Gi"}, **on(node)))
            carve.slices(f"{node}-{i}")
    used = {node: {carve.slices(f"{node}-{i}")["containers"]["c"]["parts"][0][0] for i in range(2)} for node in ("binpack", "spread")}
    assert len(used["binpack"]) == 1 and len(used["spread"]) == 2, used


def test_the_17th_slice_waits_only_on_a_node_with_isolation(carve):
    for i in range(17):
        carve.create(pod_object(f"s{i}", {"carve.dev/memory": "1Gi"}, **on("one")))
        carve.create(pod_object(f"t{i}", {"aliyun.com/gpu-mem": "1"}, **on("share")))
    for i in range(17):
        carve.slices(f"t{i}")
    def waiting():
        pods = carve.api.get("/api/v1/namespaces/default/pods")["items"]
        return [p["metadata"]["name"] for p in pods if p["metadata"]["name"].startswith("s") and not p["spec"].get("nodeName")]
    assert until(lambda: len(waiting()) == 1), waiting()
    name = waiting()[0]
    def event():
        return [note for about, reason, note in carve.events() if (about, reason) == (name, "CarveInsufficientCapacity")]
    assert until(event)
    assert event()[0].startswith("0/1 nodes can serve: 1 16 slices on every device"), event()


def test_a_pod_with_higher_priority_preempts_others(carve):
    carve.kubectl("create", "priorityclass", "important", "--value=1000")
    for i in range(2):
        carve.create(pod_object(f"small-{i}", {"carve.dev/memory": "10Gi"}, **on("one")))
        carve.slices(f"small-{i}")
    carve.create(pod_object("important", {"carve.dev/memory": "12Gi"}, priorityClassName="important", **on("one")))
    # Without a kubelet a victim ends only when it is deleted immediately.
    def victims():
        pods = carve.api.get("/api/v1/namespaces/default/pods")["items"]
        return [p["metadata"]["name"] for p in pods if "deletionTimestamp" in p["metadata"]]
    assert until(lambda: victims()), carve.kubectl("describe", "pod", "important")
    assert len(victims()) == 1 and victims()[0].startswith("small"), victims()
    for name in victims():
        carve.kubectl("delete", "pod", name, "--force", "--grace-period=0")
    assert carve.slices("important")["node"] == "one"


def metrics(carve, token):
    """Returns the coordinator's metrics, or the status with which it rejects the request."""
    request = urllib.request.Request(f"https://127.0.0.1:{carve.pairs['h1'].webhook}/metrics", headers={"Authorization": f"Bearer {token}"})
    try:
        return urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=30).read().decode()
    except urllib.error.HTTPError as error:
        return str(error.code)


def test_a_change_of_a_nodes_label_makes_the_scheduler_retry(carve):
    """For the scheduler the node has 16 GiB, 8 on each device. The pod would fit only on nodes that its
    selector excludes. The test simulates a request with 100 names, which may be a sample of the nodes; the
    label is written, and the scheduler retries."""
    for i in range(2):
        carve.create(pod_object(f"large-{i}", {"carve.dev/memory": "14Gi"}, **on("spread")))
        carve.slices(f"large-{i}")
    carve.create(pod_object("waits", {"carve.dev/memory": "12Gi"}, **on("spread")))

    def answers():
        """Returns how often the coordinator answered /filter. (An event FailedScheduling counts only the
        first two times.)"""
        (count,) = re.findall(r'^carve_extender_seconds_count\{verb="filter"\} (\d+)$', metrics(carve, carve.api.token), re.M)
        return int(count)
    assert until(lambda: ("waits", "FailedScheduling") in [(name, reason) for name, reason, _ in carve.events()])
    assert "carve.dev/retry" not in carve.pod("waits")["metadata"]["labels"]
    before = answers()
    question = {"Pod": carve.pod("waits"), "NodeNames": [f"full-{i}" for i in range(100)]}
    connection = http.client.HTTPConnection("127.0.0.1", carve.pairs["h1"].ports + 1, timeout=10)
    connection.request("POST", "/filter", json.dumps(question))
    assert json.loads(connection.getresponse().read())["NodeNames"] == []
    assert until(lambda: carve.pod("waits")["metadata"]["labels"].get("carve.dev/retry") == "1"), carve.pod("waits")["metadata"]
    assert until(lambda: answers() >= before + 2), "the case and the scheduler have asked: " + carve.kubectl("describe", "pod", "waits")


def patched(carve, api, path, body):
    return api.call("PATCH", path, body, "application/merge-patch+json")


def test_forged_annotations_are_rejected(carve):
    forged = {"carve.dev/slices": json.dumps({"v": 1, "node": "n0", "containers": {}})}
    carve.create(pod_object("copied", {"carve.dev/memory": "30Gi"}, annotations=forged))
    assert "carve.dev/slices" not in carve.pod("copied")["metadata"]["annotations"], "the webhook removes it"
    path = "/api/v1/namespaces/default/pods/copied"
    for target in (path, path + "/status"):
        for what in ({"annotations": forged}, {"annotations": {"carve.dev/request": None}}, {"labels": {"carve.dev/sliced": "no"}}):
            status, answer = patched(carve, carve.api, target, {"metadata": what})
            assert status == 422 and "only the coordinator may change" in answer["message"], (target, what, answer)
    binding = {"metadata": {"name": "copied", "annotations": forged}, "target": {"kind": "Node", "name": "n0"}}
    status, answer = carve.api.call("POST", path + "/binding", binding)
    assert status == 422 and "only the coordinator may write a binding" in answer["message"], answer
    text = carve.refused("apply", "-f", "-", stdin=pod_object("p", {"cpu": "1"}, "kube-system", labels={"carve.dev/sliced": "true"}))
    assert "pods in this namespace cannot have slices" in text


def test_only_its_own_agent_may_describe_a_node(carve):
    from cluster import Api
    devices = {"metadata": {"annotations": {"carve.dev/devices": NODES[0]["metadata"]["annotations"]["carve.dev/devices"] + " "}}}
    status, answer = patched(carve, carve.api, "/api/v1/nodes/n0", devices)
    assert status == 422 and "only the agent of a node may write its carve.dev/devices" in answer["message"], answer
    status, answer = patched(carve, carve.api, "/api/v1/nodes/n0", {"metadata": {"annotations": {"carve.dev/ledger": "{}"}}})
    assert status == 422 and "only the agent of a node may write its carve.dev/devices" in answer["message"], answer
    token = carve.token("carve-agent", "--bound-object-kind=Node", "--bound-object-name=n0")
    agent = Api(carve.port, str(carve.dir / "pki/apiserver.crt"), token)
    status, answer = patched(carve, agent, "/api/v1/nodes/n0", devices)
    assert status == 200, answer
    resources = {"status": {"capacity": {"carve.dev/slot": "256"}, "conditions": [{"type": "CarveReady", "status": "True"}]}}
    status, answer = agent.call("PATCH", "/api/v1/nodes/n0/status", resources, "application/strategic-merge-patch+json")
    assert status == 200, answer
    for path, body, message in (
            ("n1", devices, "the agent of node n0 may not change node n1"),
            ("n0", {"metadata": {"labels": {"team": "a"}}}, "may change only labels and annotations of carve.dev"),
            ("n0", {"spec": {"unschedulable": True}}, "may change only labels and annotations of carve.dev"),
            ("n0/status", {"status": {"capacity": {"cpu": "1000"}}}, "may change only resources of carve.dev and its own conditions")):
        status, answer = patched(carve, agent, f"/api/v1/nodes/{path}", body)
        assert status == 422 and message in answer["message"], (path, answer)
    part = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "forged"},
            "spec": {"driver": "carve.dev", "nodeName": "n1", "devices": [],
                     "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}}}
    status, answer = agent.call("POST", "/apis/resource.k8s.io/v1/resourceslices", part)
    assert status == 422 and "only the agent of a node may write its ResourceSlices" in answer["message"], answer


def test_the_value_of_a_system_label_cannot_be_changed(carve):
    key = "vke.volcengine.com/mgpu-compute-policy"
    carve.kubectl("label", "node", "n1", f"{key}=fixed-share")
    text = carve.refused("label", "node", "n1", f"{key}=native-burst-share", "--overwrite")
    assert f"{key} is a system label: its value 'fixed-share' on node n1 cannot be edited" in text
    carve.kubectl("label", "node", "n1", f"{key}-")


def test_only_accounts_that_may_read_metrics_get_them(carve):
    carve.kubectl("create", "serviceaccount", "reader")

    def read():
        return metrics(carve, carve.kubectl("create", "token", "reader").strip())
    assert read() == "403"
    carve.create(pod_object("counted", DIALECTS["vke"][0]))
    carve.slices("counted")
    carve.kubectl("create", "clusterrolebinding", "reader", "--clusterrole=carve-metrics-reader", "--serviceaccount=default:reader")
    text = until(lambda: (t := read()) != "403" and t)
    assert "carve_coordinator_active 1" in text and 'carve_binds_total{result="bound"}' in text
    assert re.search(r'carve_webhook_total\{dialect="vke",result="sliced"\} [1-9]', text), text


def carve_verb(cluster, *words, status=0):
    env = {**os.environ, "PATH": f"{BUILD}/bin:{BIN}:{os.environ['PATH']}", "KUBECONFIG": str(cluster.config)}
    done = subprocess.run(["kubectl", "carve", *words], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_kubectl_carve_shows_the_cluster(carve):
    carve.create(pod_object("seen", {"aliyun.com/gpu-mem": "3"}, **on("share")))
    carve.create(pod_object("big", {"carve.dev/memory": "30Gi"}))
    carve.slices("seen")
    nodes = json.loads(carve_verb(carve, "nodes", "-o", "json"))["nodes"]
    assert {n["name"]: n["memory_used_bytes"] for n in nodes}["share"] == 3 * GiB
    assert re.search(r"^all +10 .* 3 GiB/", carve_verb(carve, "devices"), re.M)
    assert re.search(r"default +seen +c +share +0 +3 GiB .* 3 x 1 GiB", carve_verb(carve, "slices", "-n", "default"))
    assert "0/6 nodes can serve" in carve_verb(carve, "explain", "big")
    assert "gpuMemoryUnit" in carve_verb(carve, "settings", "-o", "yaml")
    assert [n["name"] for n in json.loads(carve_verb(carve, "nodes", "-l", "kubernetes.io/hostname=one", "-o", "json"))["nodes"]] == ["one"]
    doctor = carve_verb(carve, "doctor")
    assert re.search(r"API server +Deployed +Kubernetes 1\.", doctor) and re.search(r"webhook of pods +Deployed", doctor), doctor
    assert "requests no slice" in carve_verb(carve, "explain", "other", status=1)
    assert "it fits on" in carve_verb(carve, "explain", "big", "-o", "yaml")


def test_kubectl_carve_works_for_a_user_of_one_namespace(carve):
    carve.kubectl("create", "namespace", "team")
    carve.kubectl("create", "serviceaccount", "dev", "-n", "team")
    carve.kubectl("create", "rolebinding", "dev", "-n", "team", "--clusterrole=edit", "--serviceaccount=team:dev")
    config = carve.folder / "dev.kubeconfig"
    config.write_text(pathlib.Path(carve.config).read_text())
    carve.kubectl("config", "set-context", "--current", "--namespace=team", config=config)

    def verb(*words, status=0):
        env = {**os.environ, "PATH": f"{BUILD}/bin:{BIN}:{os.environ['PATH']}", "KUBECONFIG": str(config)}
        done = subprocess.run(["kubectl", "carve", *words], env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr
    carve.create(pod_object("mine", {"carve.dev/memory": "2Gi"}, "team", **on("n0")))
    carve.create(pod_object("large", {"carve.dev/memory": "30Gi"}, "team"))
    carve.slices("mine", "team")
    user = "--as=system:serviceaccount:team:dev"
    assert "bound to node n0" in verb("explain", "pod/mine", user)
    events = ("get", "events", "-n", "team", "--field-selector=reason=CarveInsufficientCapacity", "-o", "name")
    assert until(lambda: carve.kubectl(*events).strip(), 60)
    assert "too small" in verb("explain", "large", user)
    assert re.search(r"team +mine +c +n0", verb("slices", user)) and "other namespaces is unknown" in verb("slices", user)
    assert "pod/large\npod/mine\n" in verb("slices", "-o", "name", user)
    assert "ClusterRole carve-viewer" in verb("nodes", user, status=1)
    assert "gpuMemoryUnit" in verb("-o", "jsonpath={.settings[*].setting}", "settings")
    carve.kubectl("create", "clusterrolebinding", "dev", "--clusterrole=carve-viewer", "--serviceaccount=team:dev")
    assert until(lambda: re.search(r"^n0 ", verb("nodes", "n0", user), re.M))
    assert "nodes can serve" in verb("explain", "large", user)
    # The namespace of the context is one whose pods this user may not list.
    carve.kubectl("config", "set-context", "--current", "--namespace=default", config=config)
    assert re.search(r"^n0 ", verb("nodes", "n0", user), re.M)
    assert "Forbidden" in verb("slices", user, status=1)
    assert re.search(r"coordinator +Unknown", verb("doctor", user, status=1))
    carve.kubectl("config", "set-context", "--current", "--namespace=team", config=config)
    assert "No resources found" in verb("slices", "-n", "nosuch") and "did you mean 'nodes'" in verb("nods", status=2)
    assert "Usage" in verb("help", "nodes") and "kubectl-carve " in verb("version")
    assert "devices\n:4" in verb("__complete", "dev")
    carve.delete_pods("team")


def test_the_replay_reads_a_snapshot_of_the_cluster(carve):
    # The last pod needs a whole device, which may be that of the only node for the second pod.
    for name, limits in (("a", {"carve.dev/memory": "4Gi", "carve.dev/compute": "30"}), ("c", {"aliyun.com/gpu-mem": "3"}),
                         ("b", {"carve.dev/devices": "1"})):
        carve.create(pod_object(name, limits, **(on("share") if name == "c" else {})))
        carve.slices(name)
    file = carve.folder / "fleet.json"
    file.write_text(carve_verb(carve, "snapshot"))
    fleet = json.loads(file.read_text())
    assert len(fleet["nodes"]) == 6 and {held["name"] for held in fleet["held"]} == {f"default/{name}/c" for name in "abc"}
    replay = [BUILD / "bin/carve-replay", "--snapshot", file, "--strategy", "binpack"]
    done = subprocess.run([*replay, "--explain", "num_gpu=1,gpu_memory_mib=4096,gpu_milli=300"], capture_output=True, text=True)
    assert done.returncode == 0 and "It would be placed on" in done.stdout, done.stdout + done.stderr
    done = subprocess.run([*replay, "--consolidate", "1"], capture_output=True, text=True)
    assert done.returncode in (0, 1) and "carve-replay:" not in done.stderr, done.stdout + done.stderr


def test_a_watch_prints_what_changes(carve):
    env = {**os.environ, "PATH": f"{BUILD}/bin:{BIN}:{os.environ['PATH']}", "KUBECONFIG": str(carve.config)}
    file = carve.folder / "watched"
    with open(file, "w") as out:
        watch = subprocess.Popen(["kubectl", "carve", "slices", "-n", "default", "-w"], env=env, stdout=out, stderr=subprocess.STDOUT)
    try:
        assert until(lambda: "NAMESPACE" in file.read_text()), file.read_text()
        carve.create(pod_object("watched", {"aliyun.com/gpu-mem": "3"}, **on("share")))
        assert until(lambda: re.search(r"watched +c +share +0 +3 GiB", file.read_text())), file.read_text()
        assert watch.poll() is None
    finally:
        watch.kill()
        watch.wait()


def test_only_those_who_may_update_slices_can_resize(carve):
    carve.create(pod_object("resized", {"carve.dev/memory": "2Gi"}, **on("n0")))
    carve.slices("resized")
    carve.kubectl("create", "serviceaccount", "editor")
    carve.kubectl("create", "rolebinding", "editor", "--clusterrole=edit", "--serviceaccount=default:editor")
    as_editor = ("--as=system:serviceaccount:default:editor",)
    patch = ("patch", "pod", "resized", "--type=merge", "-p",
             json.dumps({"metadata": {"annotations": {"carve.dev/resize": '{"v":1,"containers":{"c":{"memory":4294967296}}}'}}}))
    assert "may not update slices.carve.dev in namespace default" in carve.refused(*patch, *as_editor)
    carve.kubectl("create", "rolebinding", "resizes", "--clusterrole=carve-slice-editor", "--serviceaccount=default:editor")
    assert until(lambda: "patched" in carve.kubectl(*patch, *as_editor, check=False))

    def memory():
        return carve.slices("resized")["containers"]["c"]["parts"][0][1]
    assert until(lambda: memory() == 4 * GiB)
    # No agent runs here, so the test writes the node's result with the token of the node's agent.
    agent = carve.agent_api("n0")

    def node_answers(size, refusal=""):
        result = {"uid": carve.pod("resized")["metadata"]["uid"], "container": "c", "memory": size, "refusal": refusal}
        ledger = json.dumps({"v": 1, "results": [result]}, separators=(",", ":"))
        status, answer = agent.call("PATCH", "/api/v1/nodes/n0", {"metadata": {"annotations": {"carve.dev/ledger": ledger}}},
                                    "application/merge-patch+json")
        assert status == 200, answer

    def is_changing():
        return "memory_before" in carve.slices("resized")["containers"]["c"]
    assert is_changing()
    node_answers(4 * GiB)
    assert until(lambda: not is_changing())
    assert "carve.dev/resize" not in carve.pod("resized")["metadata"]["annotations"]
    assert "at most 22731 MiB fits" in carve_verb(carve, "set", "resized", "--memory", "30Gi", status=1)
    node_answers(6 * GiB)
    assert "container c: 6 GiB instead of 4 GiB" in carve_verb(carve, "set", "resized", "--memory", "6Gi")
    node_answers(1 * GiB, "container c: its programs hold 2 GiB")
    assert "its programs hold 2 GiB" in carve_verb(carve, "set", "resized", "--memory", "1Gi", status=1)
    assert (memory(), carve_verb(carve, "set", "resized", "--memory", "6Gi")) == (6 * GiB, "pod default/resized already has these amounts\n")
    assert "has no slice" in carve_verb(carve, "set", "resized", "-c", "other", "--memory", "6Gi", status=1)
    assert "changes the slices of a running pod" in carve.refused("create", "-f", "-", stdin={
        **pod_object("early", {}), "metadata": {"name": "early", "annotations": {"carve.dev/resize": "{}"}}})


def test_a_preemption_is_completed_and_its_room_is_reserved(carve):
    carve.kubectl("apply", "-f", "-", stdin={"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                                             "metadata": {"name": "high"}, "value": 1000})
    for name, size in (("a", 12), ("b", 12), ("c", 8), ("d", 8)):
        carve.create(pod_object(name, {"carve.dev/memory": f"{size}Gi"}, **on("spread")))
        carve.slices(name)
    devices = {name: carve.slices(name)["containers"]["c"]["parts"][0][0] for name in "abcd"}
    assert devices["a"] != devices["b"] and devices["c"] != devices["d"], devices
    carve.create(pod_object("high", {"carve.dev/memory": "20Gi"}, priorityClassName="high", **on("spread")))

    def leaving():
        return {name for name in "abcd" if carve.pod(name)["metadata"].get("deletionTimestamp")}

    def is_room():
        return any({name for name in "abcd" if devices[name] == device} <= leaving() for device in devices.values())
    assert until(is_room), (leaving(), carve.kubectl("describe", "pod", "high"))
    assert until(lambda: carve.pod("high")["status"].get("nominatedNodeName") == "spread")
    # It would fit only where the room is: three of the four pods leave.
    carve.create(pod_object("thief", {"carve.dev/memory": "16Gi"}, **on("spread")))
    for name in leaving():  # There is no kubelet to end them.
        carve.api.call("DELETE", f"/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds=0")
    assert carve.slices("high")["containers"]["c"]["parts"][0][1] == 20 * GiB
    assert not carve.pod("thief")["spec"].get("nodeName")

"""Tests a node of a real cluster whose pods get their slices with resource claims (DRA): kubelet, containerd,
kube-scheduler, the agent with simulated devices, and carve-kubelet as the driver."""
import json
import os
import signal
import subprocess

import pytest

from node_cluster import BUILD, IMAGE, LOAD, ROOT, GiB, KUBE_BUILD, NodeCluster, missing, until

if missing():
    pytest.skip(missing(), allow_module_level=True)

SLICES = "resourceslices.resource.k8s.io"
PREPARE_FAILED = "FailedPrepareDynamicResources"
NONE = "localhost/none:1"  # An image that does not exist: the pod is prepared, but no container starts.
FULL = "CUDA_ERROR_OUT_OF_MEMORY"


@pytest.fixture(scope="module")
def cluster():
    c = NodeCluster()
    try:
        c.begin()
        install(c)
        c.kubectl("label", "node", c.node, "carve.dev/bookkeeper=dra")
        assert until(lambda: label(c) == "dra" and slice_object(c)), c.log("carve-kubelet")
        yield c
    finally:
        for name in ("carved", "carve-kubelet"):
            print(f"--- the end of {name}'s log:\n" + c.log(name))
        c.end()


@pytest.fixture(autouse=True)
def clean(cluster):
    yield
    cluster.kubectl("delete", "pods,resourceclaims", "--all", "--grace-period=1", "--wait=true")
    assert until(lambda: not cluster.slices()), cluster.slices()
    assert until(lambda: not cluster.cdi_files())


def install(cluster):
    """Installs the classes and the policy of overlay dra; this node's agent runs outside of the cluster."""
    folder = ROOT / "deploy/kubernetes/overlays/dra"
    cluster.kubectl("apply", "-f", folder / "classes.yaml", "-f", folder / "policy.yaml")


def label(cluster):
    return cluster.node_object()["metadata"]["labels"].get("carve.dev/node")


def slice_object(cluster):
    found = [s for s in cluster.get(SLICES)["items"] if s["spec"]["driver"] == "carve.dev"]
    return found[0] if found else None


def devices(cluster):
    return slice_object(cluster)["spec"]["devices"]


def request(memory=None, compute=None, count=1, name="gpu", **more):
    amounts = {key: value for key, value in (("memory", memory), ("compute", compute)) if value is not None}
    exactly = {"deviceClassName": "carve.dev", "count": count, **({"capacity": {"requests": amounts}} if amounts else {}), **more}
    return {"name": name, "exactly": exactly}


def claim(name, *requests, config=None):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name},
            "spec": {"devices": {"requests": list(requests), **({"config": config} if config else {})}}}


def template(name, *requests):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name},
            "spec": {"spec": {"devices": {"requests": list(requests)}}}}


def pod(name, claims, command="sleep 600", containers=("main",), image=IMAGE, init=(), **spec):
    """`claims` contains the names of claims, or of templates with the prefix `template:`; each container uses all
    of them."""
    def source(text):
        kind = "resourceClaimTemplateName" if text.startswith("template:") else "resourceClaimName"
        return {"name": text.split(":")[-1], kind: text.split(":")[-1]}

    def container(called, runs):
        return {"name": called, "image": image, "imagePullPolicy": "Never", "command": ["/bin/bash", "-c", runs],
                "resources": {"claims": [{"name": text.split(":")[-1]} for text in claims]}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [container(c, command) for c in containers], "hostNetwork": True, "restartPolicy": "Never",
                     "initContainers": [container(f"init{i}", runs) for i, runs in enumerate(init)],
                     "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False,
                     "resourceClaims": [source(text) for text in claims], **spec}}


def create(cluster, *objects):
    cluster.kubectl("create", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))


def refused(cluster, document):
    done = cluster.kubectl("create", "--dry-run=server", "-f", "-", text=json.dumps(document), check=False)
    return done.stderr if done.returncode else ""


def ready(cluster, name):
    assert until(lambda: cluster.is_ready(name)), (cluster.events(name), cluster.waiting(name), cluster.log("carve-kubelet"))


def memory_inside(cluster, name, container="main"):
    words = cluster.inside(name, "/bin/guest_program", "monitor", container=container).split()
    return int(words[1]) if len(words) > 1 else None


def results(cluster, name):
    return cluster.get("resourceclaim", name)["status"].get("allocation", {}).get("devices", {}).get("results", [])


def slices_of_claim(cluster, name):
    uid = cluster.get("resourceclaim", name)["metadata"]["uid"]
    return [s for s in cluster.slices() if s.get("holder", {}).get("claim") == uid]


def told(cluster, name, reason, text=""):
    return any(r == reason and text in note for r, note in cluster.events(name))


def prepared(cluster, name):
    """Whether the pod has passed the preparation: its container waits for its image."""
    return until(lambda: "ErrImageNeverPull" in json.dumps((cluster.get("pod", name) or {}).get("status", {})))


def test_the_node_offers_its_devices_in_a_resource_slice(cluster):
    found = slice_object(cluster)
    spec = found["spec"]
    assert found["metadata"]["name"] == f"{cluster.node}-carve-0" and spec["nodeName"] == cluster.node
    assert spec["pool"]["name"] == cluster.node and spec["pool"]["resourceSliceCount"] == 1
    assert [d["attributes"]["uuid"]["string"] for d in spec["devices"]] == cluster.devices()
    assert spec["devices"][0]["capacity"]["memory"]["requestPolicy"]["validRange"]["step"] == "1Mi"
    assert cluster.condition("CarveReady")["status"] == "True", cluster.condition("CarveReady")
    for resource in ("slot", "memory", "compute"):
        assert until(lambda resource=resource: cluster.allocatable(f"carve.dev/{resource}") == 0), resource
    version = found["metadata"]["resourceVersion"]
    create(cluster, claim("c", request("1Gi")), pod("p", ["c"], image=NONE))
    assert prepared(cluster, "p")
    assert slice_object(cluster)["metadata"]["resourceVersion"] == version, "a claim changes nothing in the object"


def test_pods_and_containers_of_a_claim_share_its_slice(cluster):
    create(cluster, claim("shared", request("2Gi", "30")), pod("one", ["shared"], containers=("main", "side")))
    ready(cluster, "one")
    [slice_] = slices_of_claim(cluster, "shared")
    assert slice_["parts"][0]["quota_bytes"] == 2 * GiB and slice_["parts"][0]["share_bp"] == 3000
    assert results(cluster, "shared")[0]["consumedCapacity"] == {"memory": "2Gi", "compute": "30", "slices": "1"}
    for container in ("main", "side"):
        assert memory_inside(cluster, "one", container) == 2 * GiB
    assert json.loads(cluster.inside("one", LOAD, "--allocate", "3GiB", "--no-touch"))["error"] == FULL
    assert told(cluster, "one", "CarveSliceReady", "granted 2 GiB on device 0")
    # kubelet does not call the driver for a second pod, whose processes are looked up.
    create(cluster, pod("two", ["shared"]))
    ready(cluster, "two")
    assert memory_inside(cluster, "two") == 2 * GiB
    assert [s["name"] for s in slices_of_claim(cluster, "shared")] == [slice_["name"]]
    cluster.remove("one", "--wait=true")
    assert memory_inside(cluster, "two") == 2 * GiB
    cluster.remove("two", "--wait=true")
    assert until(lambda: not cluster.slices())
    create(cluster, pod("three", ["shared"]))
    ready(cluster, "three")
    assert memory_inside(cluster, "three") == 2 * GiB, "a claim is prepared again"


def test_an_init_container_uses_the_claim(cluster):
    create(cluster, claim("c", request("1Gi")), pod("p", ["c"], init=["/bin/guest_program monitor"]))
    ready(cluster, "p")
    assert cluster.output("p", "init0").split()[1] == str(GiB)


def test_amounts_add_up_on_each_device(cluster):
    create(cluster, *(template(f"t{i}", request("12Gi")) for i in range(3)),
           *(pod(f"p{i}", [f"template:t{i}"], image=NONE) for i in range(3)))
    waits = until(lambda: [p for p in ("p0", "p1", "p2") if told(cluster, p, "FailedScheduling", "cannot allocate all claims")])
    assert len(waits) == 1, "one device has no room for two"
    others = [p for p in ("p0", "p1", "p2") if p not in waits]
    assert all(prepared(cluster, p) for p in others)
    assert sorted(part["index"] for s in cluster.slices() for part in s["parts"]) == [0, 1]
    cluster.remove(others[0], "--wait=true")
    assert prepared(cluster, waits[0]), "it gets the room"


def test_the_17th_claim_goes_to_the_next_device(cluster):
    create(cluster, template("t", request("64Mi")), *(pod(f"p{i}", ["template:t"], image=NONE) for i in range(17)))
    def allocated():
        claims = cluster.get("resourceclaims")["items"]
        return [r for c in claims for r in c.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])]
    assert until(lambda: len(allocated()) == 17), len(allocated())
    used = [result["device"] for result in allocated()]
    assert sorted((used.count("gpu-0"), used.count("gpu-1"))) == [1, 16]
    assert {result["consumedCapacity"]["memory"] for result in allocated()} == {"256Mi"}, "the least that a context needs"
    # kubelet may not read a claim in the first moment (NodeAuthorizer), and then retries only after a minute.
    assert until(lambda: cluster.slices())


def test_several_devices_and_parameters(cluster):
    parameters = {"apiVersion": "carve.dev/v1", "kind": "SliceParameters", "latencyClass": "latency", "isolation": "memory"}
    config = [{"opaque": {"driver": "carve.dev", "parameters": parameters}}]
    create(cluster, claim("both", request("4Gi", "10", count=2), config=config), pod("p", ["both"]))
    ready(cluster, "p")
    [slice_] = slices_of_claim(cluster, "both")
    assert sorted(part["index"] for part in slice_["parts"]) == [0, 1]
    assert (slice_["latency_class"], slice_["isolation"]) == ("latency", "memory")
    assert cluster.inside("p", "/bin/guest_program", "monitor").split()[1] == str(4 * GiB)
    wrong = [{"opaque": {"driver": "carve.dev", "parameters": {**parameters, "kind": "Wish"}}}]
    create(cluster, claim("wrong", request("1Gi"), config=wrong), pod("q", ["wrong"]))
    assert until(lambda: told(cluster, "q", PREPARE_FAILED, "must have apiVersion carve.dev/v1 and kind SliceParameters")), cluster.events("q")
    assert told(cluster, "q", "CarveRefused", "not 'carve.dev/v1' and 'Wish'")


def test_a_container_with_two_claims_gets_no_slice(cluster):
    create(cluster, claim("a", request("1Gi")), claim("b", request("1Gi")), pod("p", ["a", "b"], command=f"{LOAD} --allocate 1MiB; sleep 600"))
    text = "container main has 2 claims of carve.dev; use one claim with 2 requests"
    assert until(lambda: told(cluster, "p", "CarveRefused", text)), cluster.events("p")
    assert until(lambda: '"error":"' in cluster.output("p").replace(" ", "")), cluster.output("p")


def test_a_limit_requests_whole_devices(cluster):
    whole = pod("p", [])
    whole["spec"]["containers"][0]["resources"] = {"limits": {"whole.carve.dev/gpu": "1"}}
    create(cluster, whole)
    ready(cluster, "p")
    usable = cluster.device_documents()[0]["usable_bytes"]
    assert memory_inside(cluster, "p") == usable >> 20 << 20
    [made] = cluster.get("resourceclaims")["items"]
    assert made["metadata"]["name"].startswith("p-")


def views(cluster, *words):
    """Returns what kubectl-carve prints, in words."""
    path = f"{KUBE_BUILD}/bin:{os.environ['PATH']}"
    done = subprocess.run([BUILD / "bin/kubectl-carve", *words, "--kubeconfig", cluster.config], env={**os.environ, "PATH": path},
                          capture_output=True, text=True, timeout=60)
    print(done.stdout + done.stderr)
    return " ".join(done.stdout.split())


def test_the_views_show_claims_and_explain_why_they_wait(cluster):
    create(cluster, claim("web", request("12Gi", "30")), claim("big", request("20Gi", count=2)),
           pod("web", ["web"], image=NONE), pod("big", ["big"], image=NONE))
    assert prepared(cluster, "web")
    assert "localhost dra memory-and-compute fixed-share" in views(cluster, "nodes")
    assert "12 GiB/" in views(cluster, "devices") and "30%/100% 1 ok" in views(cluster, "devices")
    assert "default web localhost 0 12 GiB 30% memory+compute claim web" in views(cluster, "slices").replace(" - ", " ")
    why = views(cluster, "explain", "big")
    assert "claim big waits: node localhost: device 0: 20 GiB needed" in why, why
    assert "claim web has 12 GiB on device 0 of node localhost, 30% compute" in views(cluster, "explain", "web")


def fault(cluster, *words):
    subprocess.run([BUILD / "bin/carve-sim", "fault", cluster.folder / "state/sim", *map(str, words)], check=True, capture_output=True)


def health_of(cluster, name):
    return json.dumps(cluster.get("pod", name)["status"]["containerStatuses"][0].get("allocatedResourcesStatus", []))


def test_a_lost_device_takes_no_claim_until_it_is_back(cluster):
    create(cluster, claim("c", request("1Gi")), pod("p", ["c"]))
    ready(cluster, "p")
    assert until(lambda: '"Healthy"' in health_of(cluster, "p")), health_of(cluster, "p")
    fault(cluster, "device-lost", "--device", 0)
    try:
        assert until(lambda: devices(cluster)[0].get("taints")), devices(cluster)[0]
        assert devices(cluster)[0]["taints"][0]["key"] == "carve.dev/unhealthy"
        assert "taints" not in devices(cluster)[1]
        assert until(lambda: '"Unhealthy"' in health_of(cluster, "p")), health_of(cluster, "p")
        create(cluster, claim("both", request("1Gi", count=2)), pod("waits", ["both"], image=NONE))
        assert until(lambda: told(cluster, "waits", "FailedScheduling"))
    finally:
        fault(cluster, "clear")
        cluster.stop("carved")
        cluster.start_agent()
    assert until(lambda: "taints" not in devices(cluster)[0]), devices(cluster)[0]
    assert prepared(cluster, "waits"), cluster.events("waits")


def test_a_cordoned_device_is_tainted(cluster):
    cluster.kubectl("annotate", "node", cluster.node, f"carve.dev/cordon={cluster.devices()[1]}")
    assert until(lambda: "carve.dev/cordon" in json.dumps(devices(cluster)[1].get("taints", [])))
    cluster.kubectl("annotate", "node", cluster.node, "carve.dev/cordon-")
    assert until(lambda: "taints" not in devices(cluster)[1])


def test_the_object_comes_back_when_kubelet_restarts(cluster):
    create(cluster, claim("c", request("1Gi")), pod("p", ["c"]))
    ready(cluster, "p")
    before = slice_object(cluster)["metadata"]["uid"]
    cluster.restart_kubelet()
    assert until(lambda: (slice_object(cluster) or {"metadata": {"uid": before}})["metadata"]["uid"] != before), cluster.log("carve-kubelet")
    assert until(lambda: memory_inside(cluster, "p") == GiB), "the pod runs on"
    assert until(lambda: cluster.carve("show", cluster.slices()[0]["name"]).returncode == 0)


def test_programs_killed_during_the_preparation(cluster):
    cluster.stop("carved")  # The preparation waits for the agent.
    create(cluster, claim("c", request("1Gi")), pod("p", ["c"]))
    assert until(lambda: results(cluster, "c"))
    cluster.programs.kill("kubelet")
    cluster.stop("carve-kubelet", signal.SIGKILL)
    cluster.start_agent()
    cluster.start_kubelet_program()
    cluster.programs.start("kubelet")
    ready(cluster, "p")
    assert memory_inside(cluster, "p") == GiB
    cluster.stop("carve-kubelet", signal.SIGKILL)
    cluster.remove("p", "--wait=false")
    assert until(lambda: (cluster.get("pod", "p") or {"metadata": {}})["metadata"].get("deletionTimestamp"))
    cluster.kubectl("delete", "resourceclaim", "c", "--wait=false")
    assert len(cluster.slices()) == 1, "the slice remains until the driver is back"
    cluster.start_kubelet_program()
    assert until(lambda: cluster.get("pod", "p") is None and not cluster.slices(), 90), cluster.log("carve-kubelet")


AMOUNTS = {
    "capacity memory: 4096; whole MiB from 1Mi up, such as 4Gi": {"memory": "4096"},
    "capacity memory: 500m; whole MiB": {"memory": "0.5"},
    "capacity memory: -1Gi; whole MiB": {"memory": "-1Gi"},
    "capacity compute: 0; percent of one device, 1 to 100": {"compute": "0"},
    "capacity compute: 101; percent": {"compute": "101"},
    "capacity compute: -1; percent": {"compute": "-1"},
    "capacity compute: 100m; percent": {"compute": "100m"},
    "asks for memory and compute; there is no memroy": {"memroy": "4Gi"},
    "asks for memory and compute; there is no slices": {"slices": "2"},
}


@pytest.mark.parametrize("message", AMOUNTS)
def test_a_claim_with_wrong_amounts_is_rejected(cluster, message):
    wrong = {"deviceClassName": "carve.dev", "capacity": {"requests": AMOUNTS[message]}}
    alternative = {"name": "gpu", "firstAvailable": [{"name": "small", **wrong}]}
    for requests in ({"name": "gpu", "exactly": wrong}, alternative):
        assert message in refused(cluster, claim("c", requests))
        assert message in refused(cluster, template("t", requests))
    other = {"name": "gpu", "exactly": {**wrong, "deviceClassName": "other.dev"}}
    assert refused(cluster, claim("c", other)) == "", "claims of other classes are not checked"
    assert refused(cluster, claim("c", request("4Gi", "30"), request(name="rest"))) == ""


def test_a_quick_change_of_the_bookkeeper_and_back_keeps_the_driver(cluster):
    """kubelet does not register the driver again, because its sockets stayed."""
    for way in ("extender", "dra") * 3:
        cluster.kubectl("label", "node", cluster.node, "--overwrite", f"carve.dev/bookkeeper={way}")
    assert until(lambda: label(cluster) == "dra" and slice_object(cluster))
    cluster.kubectl("delete", "resourceslice", "--all")
    assert until(lambda: slice_object(cluster)), "it is created again"


def test_the_node_changes_its_bookkeeper_when_it_is_empty(cluster):
    create(cluster, claim("c", request("1Gi")), pod("p", ["c"], image=NONE))
    assert prepared(cluster, "p")
    cluster.kubectl("label", "node", cluster.node, "--overwrite", "carve.dev/bookkeeper=extender")
    try:
        assert until(lambda: "bookkeeper dra -> extender" in cluster.condition("CarveSettingPending")["message"])
        assert label(cluster) == "dra" and until(lambda: "carve.dev/blocked" in json.dumps(devices(cluster)))
        cluster.remove("p", "--wait=true")
        assert until(lambda: label(cluster) == "extender" and cluster.allocatable("carve.dev/slot") == 256)
    finally:
        cluster.kubectl("label", "node", cluster.node, "--overwrite", "carve.dev/bookkeeper=dra")
    assert until(lambda: label(cluster) == "dra" and slice_object(cluster))
    assert until(lambda: cluster.allocatable("carve.dev/slot") == 0)

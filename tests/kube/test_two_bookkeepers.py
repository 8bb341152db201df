"""Tests a cluster in which one node is used through the scheduler extender and another one through DRA, with the
cluster's own scheduler, Carve's scheduler and the coordinator. No kubelet runs: pods are bound but do not start."""
import json

import pytest

from cluster import A10, GiB, node_object, pod_object, until, uuid_of
from node_cluster import ROOT

OVERLAY = ROOT / "deploy/kubernetes/overlays/dra"
DEVICES = 4
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


def resource_slice(name, uid):
    """Returns the object that carve-kubelet would write for a node with A10 devices."""
    memory = f"{A10 >> 20}Mi"
    amounts = {"memory": {"value": memory, "requestPolicy": {"default": memory, "validRange": {"min": "1Mi", "max": memory, "step": "1Mi"}}},
               "compute": {"value": "100", "requestPolicy": {"default": "0", "validRange": {"min": "0", "max": "100", "step": "1"}}},
               "slices": {"value": "16", "requestPolicy": {"default": "1", "validValues": ["1"]}}}
    devices = [{"name": f"gpu-{i}", "allowMultipleAllocations": True, "attributes": {"index": {"int": i}}, "capacity": amounts}
               for i in range(DEVICES)]
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
            "metadata": {"name": f"{name}-carve-0", "ownerReferences": [owner]},
            "spec": {"driver": "carve.dev", "nodeName": name, "devices": devices,
                     "pool": {"name": name, "generation": 1, "resourceSliceCount": 1}}}


@pytest.fixture(scope="module")
def carve(cluster):
    cluster.install()
    cluster.kubectl("apply", "-f", str(OVERLAY / "classes.yaml"), "-f", str(OVERLAY / "policy.yaml"))
    by_claims = node_object(1, "claims", devices=DEVICES)
    by_claims["metadata"]["labels"]["carve.dev/node"] = "dra"
    for kind in ("capacity", "allocatable"):
        by_claims["status"][kind] = {k: v for k, v in by_claims["status"][kind].items() if not k.startswith("carve.dev/")}
    cluster.replace_nodes([node_object(0, "limits"), by_claims])
    pair = cluster.start("h1")
    assert until(lambda: pair.health()[0] == 200), pair.log()
    uid = cluster.api.get("/api/v1/nodes/claims")["metadata"]["uid"]
    slices = "/apis/resource.k8s.io/v1/resourceslices"
    status, answer = cluster.agent_api("claims").call("POST", slices, resource_slice("claims", uid))
    assert status == 201, answer
    yield cluster
    cluster.delete_pods()
    cluster.api.call("DELETE", CLAIMS)
    cluster.api.call("DELETE", f"{slices}/claims-carve-0")
    for pair in list(cluster.pairs.values()):
        pair.end()
    cluster.pairs.clear()


def with_claim(name, template, **limits):
    pod = pod_object(name, limits, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": template}])
    pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    return pod


def bound(carve):
    pods = carve.api.get("/api/v1/namespaces/default/pods")["items"]
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in pods if pod["spec"].get("nodeName")}


def test_40_claims_beside_pods_with_limits(carve):
    template = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "two"},
                "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {
                    "deviceClassName": "carve.dev", "capacity": {"requests": {"memory": "2Gi", "compute": "5"}}}}]}}}}
    carve.kubectl("create", "-f", "-", stdin=json.dumps(template))
    carve.create(*(with_claim(f"claim-{i}", "two") for i in range(40)),
                 *(pod_object(f"limit-{i}", {"carve.dev/memory": "4Gi"}) for i in range(10)))
    assert until(lambda: len(bound(carve)) == 50, 120), sorted(bound(carve))
    assert {node for name, node in bound(carve).items() if name.startswith("claim-")} == {"claims"}
    assert {node for name, node in bound(carve).items() if name.startswith("limit-")} == {"limits"}
    by_device = {}
    for claim in carve.api.get(CLAIMS)["items"]:
        [result] = claim["status"]["allocation"]["devices"]["results"]
        assert result["consumedCapacity"] == {"memory": "2Gi", "compute": "5", "slices": "1"}
        by_device[result["device"]] = by_device.get(result["device"], 0) + 1
    assert sum(by_device.values()) == 40 and max(by_device.values()) <= A10 // (2 * GiB), by_device
    held = {uuid_of(0, i): 0 for i in range(2)}
    for i in range(10):
        [[uuid, memory, _]] = carve.slices(f"limit-{i}")["containers"]["c"]["parts"]
        held[uuid] += memory
    assert sum(held.values()) == 40 * GiB and max(held.values()) <= A10


def test_a_pod_uses_only_one_of_the_two_ways(carve):
    both = with_claim("both", "two", **{"carve.dev/memory": "1Gi"})
    assert "does not allocate resource claims" in carve.refused("apply", "-f", "-", stdin=both)

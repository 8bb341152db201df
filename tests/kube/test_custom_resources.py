"""A real API server and Carve's custom resources: their definitions, the examples, and documents that it must refuse."""
import copy
import json
import subprocess

import pytest
import yaml

from cluster import BUILD, ROOT, until

EXAMPLES = ROOT / "examples"
KINDS = ["services", "applications", "pools", "queues", "jobs", "tariffs", "budgets", "rayclusters"]

SERVICE = {"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": "refused"}, "spec": {"run": {"command": ["sleep"]}}}
JOB = {"apiVersion": "carve.dev/v1", "kind": "Job", "metadata": {"name": "refused"}, "spec": {"queue": "q", "run": {"command": ["a"]}}}
QUEUE = {"apiVersion": "carve.dev/v1", "kind": "Queue", "metadata": {"name": "refused"}, "spec": {"gpu": "mgpu"}}
BUDGET = {"apiVersion": "carve.dev/v1", "kind": "Budget", "metadata": {"name": "refused"}, "spec": {"account": "a", "gpuHours": "1"}}
TARIFF = {"apiVersion": "carve.dev/v1", "kind": "Tariff", "metadata": {"name": "refused"},
          "spec": {"currency": "EUR", "from": "2026-09-01", "pricePerGpuHour": "1"}}
CLUSTER = {"apiVersion": "carve.dev/v1", "kind": "RayCluster", "metadata": {"name": "refused"},
           "spec": {"queue": "q", "engineHome": "/ray", "workers": [{"replicas": 1}]}}
POOL = {"apiVersion": "carve.dev/v1", "kind": "Pool", "metadata": {"name": "refused"}, "spec": {}}

# Document, path of the field, its value, the part of the message that names the field, and a part of the reason.
REFUSED = [
    (SERVICE, "spec.replicas", 65, "spec.replicas", "less than or equal to 64"),
    (SERVICE, "spec.replicas", -1, "spec.replicas", "greater than or equal to 0"),
    (SERVICE, "spec.replcas", 1, 'unknown field "spec.replcas"', ""),
    (SERVICE, "metadata.account", "a", 'unknown field "metadata.account"', ""),
    (SERVICE, "metadata.name", "a" * 49, "metadata.name", "may not be more than 48 bytes"),
    (SERVICE, "spec.run", {}, "spec.run", "there is nothing to run; add command, image or both"),
    (SERVICE, "spec.run.image", "-rm", "spec.run.image", "should match"),
    (SERVICE, "spec.run.env", {"A": 1}, "spec.run.env.A", "string"),
    (SERVICE, "spec.port", 70000, "spec.port", "65535"),
    (SERVICE, "spec.targetPort", 80, "spec.targetPort", "requires spec.port; add it"),
    (SERVICE, "spec.update", {"maxSurge": 0}, "spec.update", "no replica could be replaced"),
    (SERVICE, "spec.readiness.httpGet.path", "a", "spec.readiness.httpGet.path", "should match"),
    (SERVICE, "spec.gpu", {"devices": 1}, "spec.gpu.memory", "the replica has no memory"),
    (SERVICE, "spec.gpu", {"exclusive": True, "share": "30%"}, "spec.gpu.share", "leave out share"),
    (SERVICE, "spec.gpu", {"memory": "1GiB", "devices": 17}, "spec.gpu.devices", "16"),
    (SERVICE, "spec.gpu", {"memory": "1GiB", "policy": "none"}, "spec.gpu.policy", "fixed-share"),
    (SERVICE, "spec.tolerations", [{"operator": "Equal"}], "spec.tolerations[0].key", "is required"),
    (SERVICE, "spec.tolerations", [{"key": "a"}] * 33, "spec.tolerations", "32"),
    (SERVICE, "spec.autoscale", {"metric": "gpuUtilization", "min": 3, "max": 2, "target": 1}, "spec.autoscale.max", "must not be less"),
    (SERVICE, "spec.restartPolicy", "Sometimes", "spec.restartPolicy", "Always"),
    (JOB, "spec.queue", "", "spec.queue", "at least 1"),
    (JOB, "spec.engine", "dask", "spec.engine", "spark"),
    (JOB, "spec.workers", 2, "spec.workers", "has no effect except on a ray job"),
    (JOB, "spec.retries", 101, "spec.retries", "100"),
    (JOB, "spec.run.command", [], "spec.run.command", "at least 1"),
    (QUEUE, "spec.quota", {"devices": 1, "memory": "1GiB"}, "spec.quota", "set either devices, or memory and compute"),
    (QUEUE, "spec.computeGroups", ["A"], "spec.computeGroups[0]", "should match"),
    (BUDGET, "spec.amount", "3", "spec", "set either gpuHours or amount"),
    (BUDGET, "spec.at", [0], "spec.at[0]", "1"),
    (BUDGET, "spec.then", "kill", "spec.then", "hold"),
    (TARIFF, "spec.currency", "euro", "spec.currency", "should match"),
    (TARIFF, "spec.pricePerGpuHour", "1e9", "spec.pricePerGpuHour", "should match"),
    (CLUSTER, "spec.workers", [], "spec.workers", "at least 1"),
    (CLUSTER, "spec.engineHome", "ray", "spec.engineHome", "should match"),
    (POOL, "spec.taints", [{"key": "a", "effect": "Never"}], "spec.taints[0].effect", "NoSchedule"),
    (POOL, "spec.bestEffort", "maybe", "spec.bestEffort", "allow"),
]


@pytest.fixture(scope="module")
def server(cluster):
    definitions = subprocess.run([BUILD / "bin/carve-controller", "--custom-resources"], capture_output=True, text=True, check=True).stdout
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=definitions)
    for kind in KINDS:
        cluster.kubectl("wait", "--for=condition=Established", f"crd/{kind}.carve.dev", "--timeout=30s")
    # kubectl learns of the kinds a moment later.
    assert until(lambda: "rayclusters" in cluster.kubectl("api-resources", "--api-group=carve.dev", "--cached=false", check=False))
    yield cluster
    for kind in KINDS:
        cluster.kubectl("delete", f"{kind}.carve.dev", "--all", "--all-namespaces")


def changed(document, path, value):
    document = copy.deepcopy(document)
    *above, field = path.split(".")
    at = document
    for name in above:
        at = at.setdefault(name, {})
    at[field] = value
    return document


def is_carves(path):
    return all((d or {}).get("apiVersion") == "carve.dev/v1" for d in yaml.safe_load_all(path.read_text()))


def test_the_definitions_are_structural(server):
    for kind in KINDS:
        conditions = server.api.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{kind}.carve.dev")["status"]["conditions"]
        assert {c["type"]: c["status"] for c in conditions} == {"NamesAccepted": "True", "Established": "True"}, conditions


def test_the_definitions_are_those_of_the_kustomization(server):
    folder = ROOT / "deploy/kubernetes/controller"
    assert "custom-resources.yaml" in (folder / "kustomization.yaml").read_text()
    assert server.kubectl("diff", "-f", folder / "custom-resources.yaml") == ""


def test_the_server_accepts_the_examples(server):
    files = [path for path in sorted(EXAMPLES.glob("*.yaml")) if is_carves(path)]
    assert len(files) >= 8
    for path in files:
        assert "created" in server.kubectl("apply", "-f", path), path
        assert "unchanged" in server.kubectl("apply", "-f", path), path
    shown = server.kubectl("get", "carve", "--all-namespaces")
    for name in ("service.carve.dev/demo", "application.carve.dev/chat", "queue.carve.dev/train", "budget.carve.dev/research"):
        assert name in shown
    heading = server.kubectl("get", "cvsvc").splitlines()[0].split()
    assert heading == ["NAME", "STATUS", "READY", "WANTED", "GPU", "REVISION", "RESTARTS", "ENDPOINT", "AGE"]
    server.kubectl("scale", "services.carve.dev/demo", "--replicas=3")
    assert server.api.get("/apis/carve.dev/v1/namespaces/default/services/demo")["spec"]["replicas"] == 3


def test_the_unchanged_documents_are_accepted(server):
    """The documents of the next test are refused only because of the changed field."""
    for document in (SERVICE, JOB, QUEUE, BUDGET, TARIFF, CLUSTER, POOL):
        server.kubectl("apply", "--dry-run=server", "-f", "-", stdin=document)


NAMES = [f"{document['kind']}.{path}-{i}" for i, (document, path, *_) in enumerate(REFUSED)]


@pytest.mark.parametrize("document, path, value, field, reason", REFUSED, ids=NAMES)
def test_the_server_refuses_wrong_documents_and_names_the_field(server, document, path, value, field, reason):
    text = server.kubectl("apply", "--dry-run=server", "-f", "-", stdin=changed(document, path, value), check=False)
    assert "(server dry run)" not in text and field in text and reason in text, text


def test_a_queue_keeps_its_kind_of_gpu(server):
    server.kubectl("apply", "-f", "-", stdin=changed(QUEUE, "metadata.name", "kept"))
    patch = json.dumps({"spec": {"gpu": "gpu"}})
    text = server.kubectl("patch", "queues.carve.dev/kept", "--type=merge", "-p", patch, check=False)
    assert "spec.gpu" in text and "is immutable" in text

"""carve-controller --kubernetes with a real API server: services as Deployments. The nodes have no kubelet; the tests make pods ready."""
import copy
import json
import time

import pytest

from cluster import ROOT, SYSTEM, node_object, until
from cluster_controller import SERVICE, ClusterController, Pods, lease_version

DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/web"
DEPLOYMENTS = "/apis/apps/v1/deployments?labelSelector=app.kubernetes.io/managed-by=carve"
CUSTOM = "/apis/carve.dev/v1/namespaces/default/services"


def changed(**spec):
    out = copy.deepcopy(SERVICE)
    out["spec"].update(spec)
    return out


@pytest.fixture(scope="module")
def server(cluster):
    cluster.kubectl("create", "namespace", SYSTEM, check=False)
    cluster.kubectl("apply", "--server-side", "-k", ROOT / "deploy/kubernetes/controller")
    cluster.kubectl("scale", "deployment/carve-controller", "-n", SYSTEM, "--replicas=0")  # The tests start it as processes.
    cluster.kubectl("wait", "--for=condition=Established", "crd/services.carve.dev", "--timeout=30s")
    assert until(lambda: "rayclusters" in cluster.kubectl("api-resources", "--api-group=carve.dev", "--cached=false", check=False))
    node = node_object(90)
    node["metadata"]["annotations"] = {}
    cluster.api.call("POST", "/api/v1/nodes", node)
    yield cluster
    cluster.api.call("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")


@pytest.fixture
def controller(server, tmp_path):
    a = ClusterController(server, tmp_path, "a")
    a.start()
    yield a
    server.kubectl("delete", "services.carve.dev,applications.carve.dev", "--all", "--wait=false")
    # The garbage collector notices a new kind only at its next look, after up to 30 s.
    assert until(lambda: Pods(server).run("web") or server.api.get(DEPLOYMENTS)["items"] == [], 90)
    a.end()


@pytest.fixture
def pods(server):
    return Pods(server)


def without_changing(o):
    """Returns an object without what differs between two objects of the same document."""
    o = copy.deepcopy(o)
    for key in ("uid", "resourceVersion", "createdAt", "account", "ownerUid", "annotations", "generation"):
        o["metadata"].pop(key, None)
    status = o["status"]
    for key in ("updatedAt", "replicaList"):
        status.pop(key)
    for condition in status["conditions"]:
        condition.pop("lastTransitionTime")
    return o


def test_kubectl_and_carve_apply_the_same_file_alike(server, controller, pods):
    file = json.dumps(SERVICE)
    assert "service/web created" in controller.carve("apply", "-f", "-", stdin=file).stdout
    pods.until_running(controller, "web")
    of_carve = without_changing(controller.object("service/web"))
    controller.carve("delete", "service/web", "--wait=false")
    assert until(lambda: pods.run("web") or server.api.get(CUSTOM)["items"] == [], 60)
    assert server.kubectl("get", "deployments,services,controllerrevisions,replicasets", "-l", "app.kubernetes.io/name=web",
                          "-o", "name").strip() == "", "nothing is left"
    server.kubectl("apply", "-f", "-", stdin=file)
    pods.until_running(controller, "web")
    assert without_changing(controller.object("service/web")) == of_carve
    shown = server.kubectl("get", "cvsvc", "web").splitlines()[1].split()
    assert shown[:4] == ["web", "Running", "2", "2"]
    assert "web   Running  2/2" in controller.carve("get", "services").stdout


def test_a_service_is_updated_undone_and_scaled(server, controller, pods):
    controller.carve("apply", "-f", "-", stdin=SERVICE)
    pods.until_running(controller, "web")
    first = {pod["metadata"]["name"] for pod in pods.all("web")}
    deployment = server.api.get(DEPLOYMENT)
    owner = deployment["metadata"]["ownerReferences"][0]
    assert owner["kind"] == "Service" and owner["controller"] and owner["uid"] == controller.object("service/web")["metadata"]["uid"]
    assert server.api.get("/api/v1/namespaces/default/services/web")["spec"]["ports"][0]["port"] == 8000

    controller.carve("apply", "-f", "-", stdin=changed(run={"image": "localhost/busybox:1", "command": ["sleep", "7200"]}))
    pods.until_running(controller, "web", condition=lambda s: s["revision"] == 2)
    second = {pod["metadata"]["name"] for pod in pods.all("web")}
    assert not first & second and len(second) == 2

    controller.carve("rollout", "undo", "--no-wait", "service/web")
    pods.until_running(controller, "web", condition=lambda s: s["revision"] == 3)
    assert server.api.get(DEPLOYMENT)["spec"]["template"]["spec"]["containers"][0]["command"] == ["sleep", "3600"]

    before = {pod["metadata"]["name"] for pod in pods.all("web")}
    server.kubectl("scale", "services.carve.dev/web", "--replicas=3")
    pods.until_running(controller, "web", condition=lambda s: s["readyReplicas"] == 3)
    assert before < {pod["metadata"]["name"] for pod in pods.all("web")}, "scaling replaces no pod"
    assert controller.object("service/web")["status"]["revision"] == 3

    controller.carve("apply", "-f", "-", stdin={**SERVICE, "spec": {k: v for k, v in SERVICE["spec"].items() if k != "port"}})
    address = "/api/v1/namespaces/default/services/web"
    assert until(lambda: server.api.call("GET", address)[0] == 404), "the Service without a port is deleted"


def test_a_restart_and_a_kill_change_nothing(server, controller, pods, tmp_path):
    controller.carve("apply", "-f", "-", stdin=SERVICE)
    pods.until_running(controller, "web")
    before = server.api.get(DEPLOYMENT)["metadata"]["resourceVersion"], server.api.get(f"{CUSTOM}/web")["metadata"]["resourceVersion"]
    names = {pod["metadata"]["name"] for pod in pods.all("web")}
    controller.kill()
    other = ClusterController(server, tmp_path, "b")
    try:
        other.start()
        assert until(other.is_active, 20)
        assert until(lambda: other.object("service/web")["status"].get("phase") == "Running")
        renewed = lease_version(server)  # The Lease is renewed; nothing else may be written meanwhile.
        assert until(lambda: lease_version(server) != renewed)
        after = server.api.get(DEPLOYMENT)["metadata"]["resourceVersion"], server.api.get(f"{CUSTOM}/web")["metadata"]["resourceVersion"]
        assert after == before and other.writes() == 0, other.log()
        assert {pod["metadata"]["name"] for pod in pods.all("web")} == names
    finally:
        other.end()
        controller.start()


def test_a_kill_in_the_middle_of_an_update_is_made_up_for(server, controller, pods):
    for attempt, seconds in enumerate((0.0, 0.05, 0.1, 0.2, 0.4)):
        document = changed(run={"image": "localhost/busybox:1", "command": ["sleep", str(5000 + attempt)]})
        server.kubectl("apply", "-f", "-", stdin=document)
        time.sleep(seconds)
        controller.kill()
        controller.start()
        pods.until_running(controller, "web", condition=lambda s: s["observedGeneration"] == attempt + 1)
        command = server.api.get(DEPLOYMENT)["spec"]["template"]["spec"]["containers"][0]["command"]
        assert command == ["sleep", str(5000 + attempt)]
    revisions = server.api.get("/apis/apps/v1/namespaces/default/controllerrevisions")["items"]
    assert sorted(r["revision"] for r in revisions) == [1, 2, 3, 4, 5]


def test_two_replicas_one_acts_and_the_other_takes_over(server, controller, pods, tmp_path):
    assert until(controller.is_active, 20)
    other = ClusterController(server, tmp_path, "b")
    other.start()
    try:
        controller.carve("apply", "-f", "-", stdin=SERVICE)
        pods.until_running(controller, "web")
        assert until(lambda: other.object("service/web")["status"].get("phase") == "Running"), "the passive replica serves reads"
        assert not other.is_active() and other.writes() == 0
        controller.kill()
        begin = time.monotonic()
        assert until(other.is_active, 20, 0.02)
        took = time.monotonic() - begin
        print(f"takeover after a kill: {took:.1f} s")
        assert took <= 12  # 10 s, and 2 s for a busy machine.
        server.kubectl("scale", "services.carve.dev/web", "--replicas=1")
        pods.until_running(other, "web", condition=lambda s: s["desiredReplicas"] == 1)
    finally:
        other.end()
        controller.start()


def test_objects_of_others_are_left_alone(server, controller, pods):
    other = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
             "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}},
                      "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}
    server.kubectl("apply", "-f", "-", stdin=other)
    version = server.api.get(DEPLOYMENT)["metadata"]["uid"]
    controller.carve("apply", "-f", "-", stdin=SERVICE)

    def problem():
        conditions = {c["type"]: c for c in controller.object("service/web")["status"].get("conditions", [])}
        return conditions["Progressing"]["reason"] if "Progressing" in conditions else ""
    assert until(lambda: problem() == "NameTaken"), controller.log()[-2000:]
    found = server.api.get(DEPLOYMENT)["metadata"]
    assert found["uid"] == version and "ownerReferences" not in found
    server.kubectl("delete", "deployment", "web")
    pods.until_running(controller, "web")

    # A field that another manager sets stays, and the status names the manager.
    server.kubectl("scale", "deployment/web", "--replicas=1")
    server.kubectl("scale", "services.carve.dev/web", "--replicas=4")
    assert until(lambda: problem() == "FieldConflict"), controller.object("service/web")["status"]
    assert server.api.get(DEPLOYMENT)["spec"]["replicas"] == 1


def test_invalid_and_unsupported_objects_are_reported(server, controller):
    """A rule that the definition cannot express is reported with the message of `carve apply`."""
    document = changed(gpu={"memory": "1 parsec"})
    message = controller.carve("apply", "-f", "-", stdin=document, check=False).stderr
    server.kubectl("apply", "-f", "-", stdin=document)

    def condition(path):
        return (server.api.get(path).get("status", {}).get("conditions") or [{}])[0]
    assert until(lambda: condition(f"{CUSTOM}/web").get("reason") == "Invalid")
    assert condition(f"{CUSTOM}/web")["message"] in message
    assert controller.carve("get", "service/web", check=False).returncode != 0
    server.kubectl("apply", "-f", ROOT / "examples/budget.yaml")
    path = "/apis/carve.dev/v1/budgets/research"
    assert until(lambda: condition(path).get("reason") == "NotSupported")
    assert "does not act on them yet" in condition(path)["message"]
    controller.carve("delete", "budget/research")
    assert server.api.call("GET", path)[0] == 404


def test_an_eas_document_is_kept_with_its_object(server, controller):
    container = {"image": "localhost/busybox:1", "command": "sleep 60", "port": 8000}
    eas = {"metadata": {"name": "web", "instance": 2, "gpu": 1}, "containers": [container]}
    done = controller.carve("eas", "create", "--no-wait", "-", stdin=json.dumps(eas), check=False)
    if done.returncode != 0:
        pytest.fail(done.stderr)
    source = server.api.get(f"{CUSTOM}/web")["spec"]["source"]
    assert source["dialect"] == "eas" and json.loads(source["document"]) == eas

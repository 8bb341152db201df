"""Queues and jobs on a cluster with Kueue. The cluster has no kubelet; the tests end the pods of jobs."""
import json
import subprocess
import time

import pytest

from cluster import HERE, ROOT, SYSTEM, node_object, until
from cluster_controller import ClusterController, lease_version

JOBS = "/apis/carve.dev/v1/namespaces/default/jobs"
NODE = "jobs"
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"


def queue(name, memory="4GiB", compute="100%", **spec):
    return {"apiVersion": "carve.dev/v1", "kind": "Queue", "metadata": {"name": name},
            "spec": {"gpu": "mgpu", "quota": {"memory": memory, "compute": compute}, **spec}}


def job(name, queue="train", core=60, memory=1000, **spec):
    return {"apiVersion": "carve.dev/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"queue": queue, "run": {"image": "localhost/busybox:1", "command": ["sleep", "3600"]},
                     "parameters": {"serverless.custom.job.gpu.enabled": "true", "serverless.custom.job.task.gpus": "1",
                                    "emr.serverless.mgpu.core": str(core), "emr.serverless.mgpu.memory": str(memory)}, **spec}}


@pytest.fixture(scope="module")
def server(cluster):
    cluster.kubectl("create", "namespace", SYSTEM, check=False)
    cluster.kubectl("apply", "--server-side", "-k", ROOT / "deploy/kubernetes/controller")
    cluster.kubectl("scale", "deployment/carve-controller", "-n", SYSTEM, "--replicas=0")  # The tests start it as processes.
    cluster.kubectl("wait", "--for=condition=Established", "crd/jobs.carve.dev", "--timeout=30s")
    assert until(lambda: "rayclusters" in cluster.kubectl("api-resources", "--api-group=carve.dev", "--cached=false", check=False))
    node = node_object(91, NODE)
    node["metadata"]["annotations"] = {}
    for amounts in (node["status"]["capacity"], node["status"]["allocatable"]):
        amounts.update({"carve.dev/memory": "0", "carve.dev/compute": "0"})  # Nothing but the quotas of the queues.
    cluster.api.call("POST", "/api/v1/nodes", node)
    yield cluster
    cluster.api.call("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")


@pytest.fixture(scope="module")
def controller(server, tmp_path_factory):
    a = ClusterController(server, tmp_path_factory.mktemp("c"), "a")
    a.start()
    yield a
    a.end()


@pytest.fixture(scope="module")
def kueue(server, controller):
    """Installs Kueue while the controller runs."""
    begin = time.monotonic()
    done = subprocess.run([HERE / "up.sh", "kueue"], env=server.env, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    print(f"Kueue started in {time.monotonic() - begin:.1f} s")
    yield server
    # Without its manager its webhooks would reject every Job of later tests.
    for kind in ("mutating", "validating"):
        server.kubectl("delete", f"{kind}webhookconfiguration", f"kueue-{kind}")


@pytest.fixture(autouse=True)
def nothing_is_left(server):
    yield
    server.kubectl("delete", "jobs.carve.dev,queues.carve.dev", "--all", "--wait=false")
    assert until(lambda: finish_all(server) or not server.api.get("/apis/batch/v1/namespaces/default/jobs")["items"], 90)
    assert until(lambda: not server.api.get("/apis/carve.dev/v1/queues")["items"], 60)
    assert until(lambda: "clusterqueue.kueue" not in server.kubectl("get", "clusterqueues", "-o", "name", check=False), 60)


def pods_of(server, name):
    return server.api.get(f"/api/v1/namespaces/default/pods?labelSelector=batch.kubernetes.io/job-name={name}")["items"]


def end_pods(server, name, phase="Succeeded", code=0):
    """Ends the pods of a job as a kubelet would."""
    for pod in pods_of(server, name):
        path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}"
        if pod["status"]["phase"] == "Pending":
            ended = {"exitCode": code, "finishedAt": "2026-01-01T00:00:00Z"}
            status = {"phase": phase, "containerStatuses": [{"name": "task", "image": "i", "imageID": "", "ready": False, "restartCount": 0,
                                                             "state": {"terminated": ended}}]}
            server.api.call("PATCH", path + "/status", {"status": status}, "application/merge-patch+json")


def finish_all(server):
    """Removes pods that are ending: there is no kubelet."""
    for pod in server.api.get("/api/v1/namespaces/default/pods")["items"]:
        if "deletionTimestamp" in pod["metadata"]:
            server.api.call("DELETE", f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}?gracePeriodSeconds=0")


def status_of(server, name):
    return server.api.get(f"{JOBS}/{name}").get("status", {})


def until_phase(server, controller, name, phase, seconds=40):
    if not until(lambda: status_of(server, name).get("phase") == phase, seconds):
        print(server.kubectl("get", "clusterqueues,cohorts,resourceflavors,workloads", "-A", "-o", "yaml"))
        pytest.fail(f"{json.dumps(status_of(server, name))}\n{controller.log()[-3000:]}")
    return status_of(server, name)


def condition(server, path):
    return (server.api.get(path).get("status", {}).get("conditions") or [{}])[0]


def test_without_kueue_the_conditions_say_how_to_install_it(server, controller):
    server.kubectl("apply", "-f", "-", stdin=queue("train"))
    server.kubectl("apply", "-f", "-", stdin=job("first"))
    for path in ("/apis/carve.dev/v1/queues/train", f"{JOBS}/first"):
        assert until(lambda: condition(server, path).get("reason") == "KueueMissing"), controller.log()[-2000:]
        assert "install it with 'kubectl apply --server-side" in condition(server, path)["message"]
    assert status_of(server, "first")["phase"] == "Queued"
    web = {"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": "web"},
           "spec": {"run": {"image": "localhost/busybox:1", "command": ["sleep", "60"]}}}
    server.kubectl("apply", "-f", "-", stdin=web)
    assert until(lambda: server.api.call("GET", "/apis/apps/v1/namespaces/default/deployments/web")[0] == 200), "services run"
    server.kubectl("delete", "services.carve.dev/web", "--wait=false")


def test_kueue_is_found_while_the_controller_runs_and_the_second_job_waits(server, controller, kueue):
    server.kubectl("apply", "-f", "-", stdin=queue("train"))
    server.kubectl("apply", "-f", "-", stdin=job("first", tasks=1))
    until_phase(server, controller, "first", "Starting", 60)
    controller.carve("apply", "-f", "-", stdin=job("second"))
    insufficient = "insufficient unused quota for carve.dev/compute"
    assert until(lambda: insufficient in status_of(server, "second").get("reason", "")), status_of(server, "second")
    second = status_of(server, "second")
    assert second["phase"] == "Queued" and second["position"] == 1, second
    assert second["gpu"] == "1000 MiB, 60%" and second["slices"] == 1 and second["shareBp"] == 6000
    train = server.api.get("/apis/carve.dev/v1/queues/train")["status"]
    assert until(lambda: server.api.get("/apis/carve.dev/v1/queues/train")["status"].get("waiting") == 1), train
    train = server.api.get("/apis/carve.dev/v1/queues/train")["status"]
    assert train["running"] == 1 and train["memoryBytes"] == 1000 << 20 and train["computeBp"] == 6000, train
    shown = server.kubectl("get", "cvj", "second").splitlines()[1].split()
    assert shown[:5] == ["second", "custom", "train", "Queued", "1"]

    end_pods(server, "first")
    first = until_phase(server, controller, "first", "Succeeded")
    assert first["exitStatus"] == 0 and first["finishedAt"] and first["pods"][0]["state"] == "Succeeded"
    until_phase(server, controller, "second", "Starting")
    end_pods(server, "second", "Failed", 3)
    second = until_phase(server, controller, "second", "Failed")
    assert second["exitStatus"] == 3 and second["reason"], second


def test_a_pod_of_a_job_requests_its_slice(server, controller, kueue):
    server.kubectl("apply", "-f", "-", stdin=queue("train"))
    controller.carve("apply", "-f", "-", stdin=job("first", core=30, tasks=2))
    until_phase(server, controller, "first", "Starting")
    assert until(lambda: len(pods_of(server, "first")) == 2)
    pod = pods_of(server, "first")[0]
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    assert limits["carve.dev/compute"] == "30" and limits["carve.dev/memory"] == "1000Mi"
    assert pod["metadata"]["annotations"]["carve.dev/policy"] == "fixed-share"
    owner = server.api.get("/apis/batch/v1/namespaces/default/jobs/first")["metadata"]["ownerReferences"][0]
    assert owner["kind"] == "Job" and owner["apiVersion"] == "carve.dev/v1" and owner["controller"]
    assert {p["index"] for p in status_of(server, "first")["pods"]} == {0, 1}


def test_borrowed_quota_comes_back(server, controller, kueue):
    """Two queues of a pool: one borrows the idle quota of the other, which gets it back before any borrower."""
    for name in ("train", "other"):
        server.kubectl("apply", "-f", "-", stdin=queue(name))
    for name in ("own", "borrowing", "third"):
        controller.carve("apply", "-f", "-", stdin=job(name, core=90))
        assert until(lambda: status_of(server, name).get("phase") == ("Queued" if name == "third" else "Starting")), status_of(server, name)
    controller.carve("apply", "-f", "-", stdin=job("lender", "other", core=90))
    assert until(lambda: status_of(server, "lender").get("position") == 1), status_of(server, "lender")
    assert status_of(server, "third")["position"] == 1
    end_pods(server, "borrowing")
    until_phase(server, controller, "lender", "Starting")
    assert status_of(server, "third")["phase"] == "Queued", "the lender's own quota comes first"
    assert status_of(server, "own")["phase"] == "Starting", "no running job is stopped"
    end_pods(server, "own")
    until_phase(server, controller, "third", "Starting")


def test_a_queue_without_a_quota_shares_the_devices_of_the_nodes(server, controller, kueue):
    def set_devices(count):
        amounts = {"carve.dev/memory": f"{22 * count}Gi", "carve.dev/compute": str(100 * count)}
        status, answer = server.api.call("PATCH", f"/api/v1/nodes/{NODE}/status", {"status": {"capacity": amounts, "allocatable": amounts}},
                                         "application/merge-patch+json")
        assert status == 200, answer
    server.kubectl("apply", "-f", ROOT / "examples/queue.yaml")
    path = "/apis/carve.dev/v1/queues/train"
    assert until(lambda: "no node of its pool reports devices" in condition(server, path).get("message", "")), condition(server, path)
    set_devices(1)
    try:
        for name in ("first", "second"):
            controller.carve("apply", "-f", "-", stdin=job(name))
            assert until(lambda: status_of(server, name).get("phase") == ("Starting" if name == "first" else "Queued")), status_of(server, name)
        assert until(lambda: status_of(server, "second").get("position") == 1)
        set_devices(2)
        until_phase(server, controller, "second", "Starting")
    finally:
        set_devices(0)


def test_a_cancelled_job_frees_its_quota(server, controller, kueue):
    server.kubectl("apply", "-f", "-", stdin=queue("train"))
    for name in ("first", "second"):
        controller.carve("apply", "-f", "-", stdin=job(name))
    until_phase(server, controller, "first", "Starting")
    controller.carve("cancel", "first")
    assert until(lambda: finish_all(server) or status_of(server, "first").get("phase") == "Cancelled")
    assert until(lambda: finish_all(server) or status_of(server, "first").get("finishedAt"), 60), status_of(server, "first")
    until_phase(server, controller, "second", "Starting")
    assert server.api.call("GET", "/apis/batch/v1/namespaces/default/jobs/first")[0] == 404


def test_priorities_pass_and_a_restart_changes_nothing(server, controller, kueue):
    server.kubectl("apply", "-f", "-", stdin=queue("train"))
    for name, priority in (("first", 0), ("second", 0), ("urgent", 7)):
        controller.carve("apply", "-f", "-", stdin=job(name, priority=priority))
        assert until(lambda: status_of(server, name).get("phase") == ("Starting" if name == "first" else "Queued")), name
    assert until(lambda: [status_of(server, n)["position"] for n in ("second", "urgent")] == [2, 1])

    assert until(lambda: server.api.get("/apis/carve.dev/v1/queues/train")["status"].get("waiting") == 2)

    def versions():
        paths = [f"{JOBS}/{n}" for n in ("first", "second", "urgent")] + [f"{KUEUE}/clusterqueues/train"]
        paths += [f"/apis/batch/v1/namespaces/default/jobs/{n}" for n in ("first", "second", "urgent")]
        return [server.api.get(path)["metadata"]["resourceVersion"] for path in paths]
    before, writes = versions(), controller.writes()
    controller.kill()
    controller.start()
    assert until(controller.is_active, 20)
    for _ in range(3):
        renewed = lease_version(server)
        assert until(lambda: lease_version(server) != renewed)
    assert versions() == before and controller.writes() == writes, controller.log()[-3000:]


def test_invalid_jobs_are_reported(server, controller, kueue):
    server.kubectl("apply", "-f", "-", stdin=queue("train"))
    without = job("first")
    del without["spec"]["run"]["image"]
    assert "spec.run.image: is required" in controller.carve("apply", "-f", "-", stdin=without, check=False).stderr
    server.kubectl("apply", "-f", "-", stdin=without)
    assert until(lambda: condition(server, f"{JOBS}/first").get("reason") == "Invalid")
    assert "spec.run.image: is required" in condition(server, f"{JOBS}/first")["message"]
    server.kubectl("apply", "-f", "-", stdin=job("second", "nowhere"))
    assert until(lambda: condition(server, f"{JOBS}/second").get("reason") == "NoSuchQueue")
    server.kubectl("apply", "-f", "-", stdin=job("third", engine="ray"))
    assert until(lambda: condition(server, f"{JOBS}/third").get("reason") == "NotSupported")


def test_the_objects_of_a_queue_go_with_it(server, controller, kueue):
    for name in ("train", "other"):
        server.kubectl("apply", "-f", "-", stdin=queue(name))
    assert until(lambda: server.api.call("GET", f"{KUEUE}/clusterqueues/other")[0] == 200)
    assert until(lambda: len(server.api.get(f"{KUEUE}/resourceflavors/carve")["metadata"]["ownerReferences"]) == 2)
    controller.carve("delete", "queue/other")
    assert until(lambda: server.api.call("GET", f"{KUEUE}/clusterqueues/other")[0] == 404, 60)
    for shared in ("resourceflavors", "cohorts"):
        assert until(lambda: len(server.api.get(f"{KUEUE}/{shared}/carve")["metadata"]["ownerReferences"]) == 1, 60), shared
    controller.carve("delete", "queue/train")
    for shared in ("resourceflavors", "cohorts"):
        assert until(lambda: server.api.call("GET", f"{KUEUE}/{shared}/carve")[0] == 404, 60), shared

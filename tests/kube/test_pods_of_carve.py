"""Runs the manifests as they are installed: images built only with tar, and the coordinator and the scheduler
in a pod of a real kubelet."""
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from cluster import BIN, BUILD, ROOT, SYSTEM, Cluster, node_object, pod_object, until

ROLLOUTS = 20 if os.environ.get("CARVE_LONG") else 2

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a kubelet needs root")


@pytest.fixture(scope="module")
def node():
    """A cluster with a kubelet, of which a machine can run only one at a time."""
    with open("/tmp/carve-kubelet.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        c = Cluster(kubelet=True)
        try:
            c.begin()
            yield c
        finally:
            c.end()
            # The agent was killed with its cluster. Only one kubelet runs at a time, so the files of its
            # slots belong to this one.
            for file in pathlib.Path("/var/run/cdi").glob("carve.dev-slot_*.json"):
                if str(c.folder) in file.read_text():
                    file.unlink()


def load(cluster, folder, *arguments):
    image = folder / "image.tar"
    subprocess.run([ROOT / "deploy/image/build", "--output", image, *arguments], check=True, capture_output=True)
    ctr = [BIN / "ctr", "-a", cluster.dir / "containerd/sock", "-n", "k8s.io", "images", "import", image]
    subprocess.run(ctr, check=True, capture_output=True)


def install(cluster, folder):
    """Installs all built programs in pods. The agent has simulated devices and its own folders."""
    (folder / "bin").mkdir()
    for program in (BUILD / "bin").glob("carve*"):
        subprocess.run(["strip", "-o", folder / "bin" / program.name, program], check=True)
    for program in ("sh", "sleep"):
        shutil.copy(f"/bin/{program}", folder / "bin")
    if (BUILD / "lib/carve").exists():
        shutil.copytree(BUILD / "lib/carve", folder / "lib/carve", symlinks=True)
    load(cluster, folder, folder)
    load(cluster, folder, "--program", BIN / "kube-scheduler")
    node, indent = f"{cluster.folder}/n", "\n        - "
    server = f'{{name: KUBERNETES_SERVICE_HOST, value: 127.0.0.1}}{indent}{{name: KUBERNETES_SERVICE_PORT, value: "{cluster.port}"}}'
    cluster.install(scale=None, paths={
        "/var/lib/carve": f"{node}/state", "/run/carve": f"{node}/run",
        "/run/containerd/containerd.sock": f"{cluster.dir}/containerd/sock", "/run/containerd\n": f"{cluster.dir}/containerd\n",
        "path: /var/lib/kubelet/pod-resources\n": f"path: {cluster.dir}/kubelet/pod-resources\n",
        "        - --driver-root=/host\n": "        - --sim=a10x2\n",
        f"{indent}name: NODE_NAME": f"{indent}{server}{indent}name: NODE_NAME"})


@pytest.fixture(scope="module")
def carve(node, tmp_path_factory):
    install(node, tmp_path_factory.mktemp("prefix"))

    def ready():
        status = node.api.get(f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/carve-coordinator")["status"]
        return status.get("readyReplicas") == 1
    assert until(ready, 60), node.kubectl("describe", "pod", "-n", SYSTEM)
    return node


def test_the_deployment_becomes_ready_and_binds(carve):
    carve.replace_nodes([node_object(7)], keep="localhost")
    pod = pod_object("p", {"carve.dev/memory": "4Gi"})
    assert until(lambda: carve.api.call("POST", "/api/v1/namespaces/default/pods", pod)[0] == 201)
    assert carve.slices("p")["node"] == "n7"
    pod = carve.api.get(f"/api/v1/namespaces/{SYSTEM}/pods?labelSelector=app=carve-coordinator")["items"][0]
    assert pod["spec"]["securityContext"]["runAsUser"] == 65532
    doctor = subprocess.run([BUILD / "bin/kubectl-carve", "doctor", "-o", "json"], capture_output=True, text=True,
                            env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "KUBECONFIG": str(carve.config)})
    states = {row["component"]: row["state"] for row in json.loads(doctor.stdout)["components"]}
    assert states["coordinator"] == states["webhook of pods"] == states["policies"] == "Deployed", doctor.stdout


@pytest.fixture(scope="module")
def served(carve):
    """The kubelet's node is ready for Carve when its agent has described it and the kubelet knows its
    slots."""
    carve.delete_pods()
    carve.kubectl("delete", "nodes", "n7", "--ignore-not-found")
    carve.kubectl("label", "node", "localhost", "carve.dev/bookkeeper=extender")

    def is_served():
        found = carve.api.get("/api/v1/nodes/localhost")
        slots = found["status"]["allocatable"].get("carve.dev/slot")
        return found["metadata"]["labels"].get("carve.dev/node") == "extender" and slots == "256"
    assert until(is_served, 60), carve.kubectl("describe", "pod", "-n", SYSTEM)
    return carve


def test_a_stateful_set_of_another_product_stays_within_its_quota(served):
    command = "carve-load --allocate 1GiB --no-touch; carve-load --allocate 3GiB --no-touch; exec sleep 600"
    container = {"name": "binpack-1", "image": "localhost/carve:latest", "imagePullPolicy": "Never",
                 "command": ["/usr/bin/sh", "-c", command],
                 "resources": {"limits": {"aliyun.com/gpu-mem": "2"}}}
    served.kubectl("apply", "-f", "-", stdin={
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "binpack", "namespace": "default"},
        "spec": {"replicas": 3, "serviceName": "binpack", "podManagementPolicy": "Parallel",
                 "selector": {"matchLabels": {"app": "binpack"}},
                 "template": {"metadata": {"labels": {"app": "binpack"}}, "spec": {"hostNetwork": True, "containers": [container]}}}})

    def logs():
        texts = [served.kubectl("logs", f"binpack-{i}", check=False) for i in range(3)]
        return texts if all(text.count("bytes_allocated") == 2 for text in texts) else None
    texts = until(logs, 60)
    assert texts, served.kubectl("get", "events", "-n", "default")
    for text in texts:
        assert '"bytes_allocated":1073741824' in text and '"error":"CUDA_ERROR_OUT_OF_MEMORY"' in text, text
    assert [served.slices(f"binpack-{i}")["containers"]["binpack-1"]["parts"][0][1] for i in range(3)] == [2 << 30] * 3
    served.kubectl("delete", "statefulset", "binpack")
    served.kubectl("delete", "pods", "--all", "--grace-period=1", "--wait=false")


def carve_verb(cluster, *words, status=0):
    env = {**os.environ, "PATH": f"{BUILD}/bin:{BIN}:{os.environ['PATH']}", "KUBECONFIG": str(cluster.config)}
    done = subprocess.run(["kubectl", "carve", *words], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_static_pod_has_no_slice_and_an_event(served):
    pod = pod_object("static", {"carve.dev/memory": "1Gi"}, hostNetwork=True, terminationGracePeriodSeconds=1)
    pod["spec"]["containers"][0].update(image="localhost/busybox:1", imagePullPolicy="Never")
    file = served.dir / "static/pod.json"
    file.write_text(json.dumps(pod))
    try:
        notes = ("get", "events.events.k8s.io", "-n", "default", "-o", "jsonpath={range .items[*]}{.reason}: {.note}{'\\n'}{end}")
        assert until(lambda: "CarveNoSlice: container c requests carve.dev/memory" in served.kubectl(*notes), 60), served.kubectl(*notes)
    finally:
        file.unlink()
    assert until(lambda: not served.api.get("/api/v1/namespaces/default/pods")["items"], 90)


@pytest.fixture(scope="module")
def web(served):
    """Creates a pod that holds one GiB of its 2 GiB."""
    assert until(lambda: not served.api.get("/api/v1/namespaces/default/pods")["items"], 90)
    pod = pod_object("web", {"carve.dev/memory": "2Gi"}, hostNetwork=True)
    pod["spec"]["containers"][0].update(image="localhost/carve:latest", imagePullPolicy="Never",
                                        command=["/usr/bin/sh", "-c", "exec carve-load --allocate 1GiB --no-touch --seconds 600"])
    served.create(pod)

    def is_ready():
        return served.pod("web")["status"].get("containerStatuses", [{}])[0].get("ready")
    assert until(is_ready, 60), served.kubectl("describe", "pod", "web")
    yield served
    served.kubectl("delete", "pod", "web", "--grace-period=1", "--wait=false")


def test_top_shows_what_the_agents_measure(web):
    def rows():
        return json.loads(carve_verb(web, "top", "-o", "json", "-n", "default"))["slices"]
    # A context also counts.
    assert until(lambda: len(found := rows()) == 1 and 1 << 30 <= found[0]["memory_charged_bytes"] < 2 << 30), rows()
    assert (rows()[0]["pod"], rows()[0]["memory_bytes"], rows()[0]["node"]) == ("web", 2 << 30, "localhost")
    assert "default    web  c          localhost  0" in carve_verb(web, "top")
    web.kubectl("label", "node", "localhost", "rack=a", "--overwrite")
    assert "localhost" in carve_verb(web, "top", "-l", "rack=a") and "localhost" not in carve_verb(web, "top", "-l", "rack=b")


def test_a_resize_changes_the_slice_of_a_running_pod(web):
    said = carve_verb(web, "set", "web", "--memory", "3Gi")
    assert "container c: 3 GiB instead of 2 GiB; the scheduler and quotas still count the pod's limits" in said
    assert web.slices("web")["containers"]["c"]["parts"][0][1] == 3 << 30
    assert web.pod("web")["spec"]["containers"][0]["resources"]["limits"]["carve.dev/memory"] == "2Gi"

    def allocated(size):
        return '"error":null' in web.kubectl("exec", "web", "--", "carve-load", "--allocate", size, "--no-touch", check=False)
    before = web.slices("web")["containers"]["c"]["parts"]
    assert until(lambda: allocated("1280MiB"))  # In addition to the program's GiB and two contexts.
    assert "at most 22731 MiB fits" in carve_verb(web, "set", "web", "--memory", "64Gi", status=1)
    # This is less than what is charged: the node rejects it, and the pod keeps its amounts.
    assert "the slice does not get 512 MiB" in carve_verb(web, "set", "web", "--memory", "512Mi", status=1)
    assert web.slices("web")["containers"]["c"] == {**web.slices("web")["containers"]["c"], "parts": before}
    assert "memory_before" not in web.slices("web")["containers"]["c"]
    notes = ("get", "events.events.k8s.io", "-n", "default", "-o", "jsonpath={range .items[*]}{.reason}: {.note}{'\\n'}{end}")
    assert until(lambda: "CarveRefused: container c: the slice does not get 512 MiB" in web.kubectl(*notes)), web.kubectl(*notes)
    assert "CarveSliceChanged: container c: the slice now has 3 GiB of each device" in web.kubectl(*notes)
    # The cache agrees with the node's ledger, so exactly the rest of the device is free for another pod.
    devices = json.loads(carve_verb(web, "devices", "-o", "json"))["devices"]
    assert devices[0]["memory_used_bytes"] == 3 << 30, devices
    carve_verb(web, "set", "web", "--memory", "2Gi")
    assert "CarveLedgerDrift" not in web.kubectl(*notes)
    assert until(lambda: "carve.dev/ledger" not in web.api.get("/api/v1/nodes/localhost")["metadata"]["annotations"])


def test_the_nodes_metrics_name_pods_for_accounts_that_may_read_them(web):
    import ssl
    import urllib.error
    import urllib.request
    tls = ssl._create_unverified_context()
    web.kubectl("create", "serviceaccount", "reader")

    def read(path="/metrics", audience="carve.dev/usage/localhost"):
        bound = [f"--audience={audience}"] if audience and path != "/metrics" else []
        token = web.kubectl("create", "token", "reader", *bound).strip()
        try:
            request = urllib.request.Request(f"https://127.0.0.1:9472{path}", headers={"Authorization": f"Bearer {token}"})
            return urllib.request.urlopen(request, context=tls, timeout=10).read().decode()
        except urllib.error.HTTPError as error:
            return str(error.code)
    assert read() == "403"
    web.kubectl("create", "clusterrolebinding", "reader", "--clusterrole=carve-metrics-reader", "--serviceaccount=default:reader")
    text = until(lambda: (t := read()) != "403" and t)  # An answer is cached for 60 s, but each token is new.
    assert "carve_agent_up 1" in text and 'carve_setting_pending{setting="policy"} 0' in text, text
    charged = [line for line in text.splitlines() if line.startswith("carve_slice_memory_charged_bytes") and 'pod="web"' in line]
    assert len(charged) == 1 and 'namespace="default"' in charged[0] and 'container="c"' in charged[0]
    assert int(charged[0].split()[-1]) >= 1 << 30
    with pytest.raises(OSError):
        urllib.request.urlopen("http://127.0.0.1:9472/metrics", timeout=10).read()

    # The agent's records need a role of their own.
    assert read("/v1/usage?after=0") == "403", "the role for metrics is none for usage"
    web.kubectl("create", "clusterrolebinding", "usage", "--clusterrole=carve-usage-reader", "--serviceaccount=default:reader")
    text = until(lambda: (t := read("/v1/usage?after=0")) != "403" and t)
    records = [r["slice"] for r in json.loads(text)["records"] if r["slice"]["holder"]["pod"]["name"] == "web"]
    assert records and {slice["account"] for slice in records} == {"default"}, text
    assert {s["account"] for s in json.loads(read("/v1/slices"))["slices"] if s["holder"]["pod"]["name"] == "web"} == {"default"}
    devices = {device["uuid"] for device in json.loads(read("/v1/devices"))["devices"]}
    assert {part["device"] for slice in records for part in slice["parts"]} <= devices, text
    assert json.loads(read("/v1/node"))["bookkeeper"] == "kubernetes"
    for audience in ("", "carve.dev/usage/n2", "carve.dev/usage"):
        assert read("/v1/usage?after=0", audience) == "401", f"a token for the API server or another node: {audience}"
    forged = web.api.call("PATCH", "/api/v1/nodes/localhost", {"metadata": {"annotations": {"carve.dev/reader": "{}"}}},
                          "application/merge-patch+json")
    assert forged[0] == 422 and "only the agent of a node may write" in forged[1]["message"], forged
    assert read("/v1/usage?after=x") == "400" and read("/v1/trace?seconds=1") == "404" and read("/v1/slices/web") == "404"


def test_a_crashed_agent_restarts_without_a_restart_of_its_container(web):
    def agents():
        """Returns the agent of this cluster and its parent, without programs that it has forked but not
        executed yet: {pid: parent}."""
        found = {}
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (folder / "cmdline").read_bytes().split(b"\0")
                if words[0] == b"/usr/bin/carved" and f"--state={web.folder}/n/state".encode() in words:
                    found[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
        return {pid: parent for pid, parent in found.items() if parent in found and found[parent] not in found}
    for size, error in (("1GiB", '"error":"CUDA_ERROR_OUT_OF_MEMORY"'), ("512MiB", '"error":null')):
        (crashed,) = agents()
        os.kill(crashed, signal.SIGKILL)
        assert error in web.kubectl("exec", "web", "--", "carve-load", "--allocate", size, "--no-touch", check=False)
        assert until(lambda crashed=crashed: agents() and crashed not in agents())
    (pod,) = web.api.get(f"/api/v1/namespaces/{SYSTEM}/pods?labelSelector=app=carve-agent")["items"]
    assert [status["restartCount"] for status in pod["status"]["containerStatuses"] if status["name"] == "agent"] == [0]


def test_an_init_container_runs_in_the_first_containers_slice(web):
    settings = ("patch", "configmap", "carve-settings", "-n", SYSTEM, "--type=merge", "-p")
    pod = pod_object("shared", {"carve.dev/memory": "2Gi"}, hostNetwork=True)
    run = {"image": "localhost/carve:latest", "imagePullPolicy": "Never"}
    allocate = "carve-load --allocate 1GiB --no-touch --seconds 3; carve-load --allocate 3GiB --no-touch"
    pod["spec"]["initContainers"] = [{"name": "setup", "resources": {"limits": {"carve.dev/memory": "2Gi"}}, **run,
                                      "command": ["/usr/bin/sh", "-c", f"{allocate}; exit 0"]}]
    pod["spec"]["containers"][0].update(command=["/usr/bin/sh", "-c", f"{allocate}; exec sleep 600"], **run)
    assert "init container setup: cannot have a slice, because a kubelet restart may then kill the pod" in web.refused("create", "-f", "-", stdin=pod)
    web.kubectl(*settings, '{"data":{"initContainers":"share"}}')
    assert until(lambda: "created" in web.kubectl("create", "-f", "-", stdin=pod, check=False))

    def logs(container):
        text = web.kubectl("logs", "shared", "-c", container, check=False)
        return text if text.count("bytes_allocated") == 2 else None
    for container in ("setup", "c"):
        text = until(lambda container=container: logs(container), 90)
        assert text, web.kubectl("describe", "pod", "shared")
        assert '"bytes_allocated":1073741824' in text and '"error":"CUDA_ERROR_OUT_OF_MEMORY"' in text, text
    assert list(web.slices("shared")["containers"]) == ["c"]
    held = json.loads(carve_verb(web, "top", "-o", "json", "-n", "default"))["slices"]
    assert [row["container"] for row in held if row["pod"] == "shared"] == ["c"]
    web.kubectl("delete", "pod", "shared", "--grace-period=1", "--wait=false")
    web.kubectl(*settings, '{"data":{"initContainers":"refuse"}}')


def test_programs_keep_running_while_the_agents_are_rolled_out(web):
    """The fd store ends with its container, so report pages are recovered from the mappings of the
    programs."""
    busy = pod_object("busy", {"carve.dev/memory": "2Gi", "carve.dev/compute": "30"}, hostNetwork=True)
    busy["spec"]["containers"][0].update(image="localhost/carve:latest", imagePullPolicy="Never", command=[
        "/usr/bin/sh", "-c", "exec carve-load --allocate 1GiB --no-touch --kernels 200us --seconds 86400"])
    web.create(busy)

    def identities():
        found = [web.pod(name)["status"].get("containerStatuses", [{}])[0] for name in ("web", "busy")]
        return [(s["containerID"], s["restartCount"]) for s in found if s.get("ready")]
    assert until(lambda: len(identities()) == 2, 60), web.kubectl("describe", "pod", "busy")
    before = identities()

    def agent():
        pods = web.api.get(f"/api/v1/namespaces/{SYSTEM}/pods?labelSelector=app=carve-agent")["items"]
        if len(pods) != 1:
            return None  # The previous one is not gone yet, or the next not created.
        (pod,) = pods
        return pod["metadata"]["uid"] if all(s["ready"] for s in pod["status"].get("containerStatuses", [{"ready": False}])) else None

    def rows():
        done = subprocess.run([BUILD / "bin/kubectl-carve", "top", "-o", "json", "-n", "default"], capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "KUBECONFIG": str(web.config)}, timeout=120)
        return {row["pod"]: row for row in json.loads(done.stdout)["slices"]} if done.returncode == 0 else {}
    for _ in range(ROLLOUTS):
        last = until(agent, 60)
        web.kubectl("rollout", "restart", "daemonset/carve-agent", "-n", SYSTEM)
        web.kubectl("rollout", "status", "daemonset/carve-agent", "-n", SYSTEM, "--timeout=100s")
        assert until(lambda: agent() not in (None, last), 60), web.kubectl("describe", "pods", "-n", SYSTEM)

        def is_adopted():
            found = rows()
            return len(found) == 2 and all(1 << 30 <= row["memory_charged_bytes"] < 2 << 30 for row in found.values())
        assert until(is_adopted, 60), rows()
        assert identities() == before
        text = web.kubectl("exec", "web", "--", "carve-load", "--allocate", "1GiB", "--no-touch", check=False)
        assert '"error":"CUDA_ERROR_OUT_OF_MEMORY"' in text, text
    web.kubectl("delete", "pod", "busy", "--grace-period=1", "--wait=false")

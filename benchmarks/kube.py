#!/usr/bin/env python3
"""Measures the coordinator on a real control plane with 5,000 nodes of 8 simulated devices and 50,000 pods in
its cache: filters, take-over, memory, pods per second.

The nodes are objects without a kubelet, and the 50,000 pods are created bound, with their annotations, before
Carve is installed. Pods per second are measured alternately with an extender that accepts every node and
leaves the binding to the scheduler (`native`): pods are created while the scheduler is stopped, and the time
runs from SIGCONT to the last binding. No figures are printed if Kubernetes was not built
(tests/kube/build.sh).
"""
import gc
import http.client
import http.server
import json
import os
import pathlib
import signal
import statistics
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests/kube"), str(HERE.parent / "tests")]
cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
os.environ.setdefault("KUBE_BUILD", str(pathlib.Path(cache) / "carve/kube"))

from measure import cpu_seconds, figure  # noqa: E402

NODES, DEVICES = 5_000, 8
STANDING = int(os.environ.get("CARVE_KUBE_PODS", 50_000))  # Pods in the cache.
PODS, ROUNDS = 200, 5
FILTERS, FILTER_ROUNDS = 400, 5
WRITERS = 6
GOAL_FILTER_MS, GOAL_TAKEOVER_S, GOAL_RSS_MB, GOAL_PODS, GOAL_OF_ECHO = 2, 10, 160, 100, 85


class Echo(http.server.BaseHTTPRequestHandler):
    """An extender that accepts every node and gives all nodes the same score."""
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # Header and body are sent in one write.

    def do_POST(self):
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        names = question["NodeNames"]
        answer = {"NodeNames": names} if self.path == "/filter" else [{"Host": name, "Score": 0} for name in names]
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def start_echo(cluster, pair):
    """Starts a scheduler, `echo-scheduler`, with the echo extender."""
    from cluster import BIN, free_ports
    port = free_ports(2)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = (pair.folder / "scheduler.yaml").read_text()
    config = config.replace("schedulerName: carve-scheduler", "schedulerName: echo-scheduler")
    config = config.replace("leaderElect: true", "leaderElect: false")
    config = config.replace(f"127.0.0.1:{pair.ports + 1}", f"127.0.0.1:{port}")
    config = config.replace("    preemptVerb: preempt\n    bindVerb: bind\n", "")
    (pair.folder / "echo.yaml").write_text(config)
    pair.run("echo", BIN / "kube-scheduler", f"--config={pair.folder}/echo.yaml", f"--secure-port={port + 1}", "--bind-address=127.0.0.1",
             f"--cert-dir={pair.folder}", f"--authentication-kubeconfig={pair.folder}/kubeconfig",
             f"--authorization-kubeconfig={pair.folder}/kubeconfig")


def standing_pod(number):
    """Returns a bound pod with the annotations that the webhook and the coordinator write."""
    from cluster import GiB, pod_object, uuid_of
    node, device = number % NODES, number // NODES % DEVICES
    request = {"v": 1, "dialect": "carve", "given": {"c": {"carve.dev/memory": "2Gi", "carve.dev/compute": "5"}},
               "containers": {"c": {"memory_bytes": 2 * GiB, "devices": 1, "share_bp": 500}}, "cpu": 100}
    slice_ = {"parts": [[uuid_of(node, device), 2 * GiB, 500]], "isolation": "memory+compute", "policy": "fixed-share",
              "latency_class": "batch"}
    annotations = {"carve.dev/request": json.dumps(request, separators=(",", ":")),
                   "carve.dev/slices": json.dumps({"v": 1, "node": f"n{node}", "containers": {"c": slice_}}, separators=(",", ":"))}
    return pod_object(f"standing-{number}", {"cpu": "100m"}, "standing", annotations, {"carve.dev/sliced": "true"}, nodeName=f"n{node}")


def write_all(cluster, path, objects):
    """Creates the objects, over several connections."""
    from cluster import Api
    lock, problems = threading.Lock(), []

    def write():
        api = Api(cluster.port, str(cluster.dir / "pki/apiserver.crt"), cluster.api.token)
        while not problems:
            with lock:
                item = next(objects, None)
            if item is None:
                return
            status, answer = api.call("POST", path, item)
            if status != 201:
                problems.append(answer)
    threads = [threading.Thread(target=write) for _ in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems[0]


def fill(cluster):
    from cluster import node_object, until
    write_all(cluster, "/api/v1/nodes", (node_object(n, devices=DEVICES) for n in range(NODES)))
    cluster.kubectl("create", "namespace", "standing")
    account = "/api/v1/namespaces/standing/serviceaccounts/default"
    assert until(lambda: cluster.api.call("GET", account)[0] == 200)
    write_all(cluster, "/api/v1/namespaces/standing/pods", map(standing_pod, range(STANDING)))


def question(names):
    request = json.dumps({"v": 1, "dialect": "carve", "given": {}, "containers": {"c": {"memory_bytes": 4 << 30, "devices": 1, "share_bp": 3000}},
                          "cpu": 1000})
    pod = {"metadata": {"name": "p", "namespace": "default", "uid": "benchmark", "annotations": {"carve.dev/request": request}}}
    return json.dumps({"Pod": pod, "Nodes": None, "NodeNames": names})


def answers(port):
    """Returns whether a filter request succeeds, which means that the cache is complete."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("POST", "/filter", question(["n0"]))
        answer = connection.getresponse()
        return answer.status == 200 and json.loads(answer.read())["NodeNames"] == ["n0"]
    except (OSError, http.client.HTTPException):
        return False


def filters(port, names):
    """Returns the milliseconds of each filter request over all nodes, on one connection."""
    body = question(names)
    connection = http.client.HTTPConnection("127.0.0.1", port)
    took = []
    gc.disable()
    for _ in range(FILTERS):
        before = time.perf_counter()
        connection.request("POST", "/filter", body)
        answer = connection.getresponse().read()
        took.append(1e3 * (time.perf_counter() - before))
    gc.enable()
    assert len(json.loads(answer)["NodeNames"]) == len(names), answer[:200]
    return took


def pods_a_second(cluster, pair, program, scheduler, name):
    from cluster import pod_object, until
    process = pair.processes[program]
    os.kill(process.pid, signal.SIGSTOP)
    for i in range(PODS):
        limits = {"carve.dev/memory": "4Gi", "carve.dev/compute": "10"}
        cluster.create(pod_object(f"{name}-{i}", limits, schedulerName=scheduler))
    before = time.perf_counter()
    os.kill(process.pid, signal.SIGCONT)
    waiting = "/api/v1/namespaces/default/pods?limit=1&fieldSelector=spec.nodeName="
    assert until(lambda: not cluster.api.get(waiting)["items"], 120, 0.02), pair.log(program)[-2000:]
    rate = PODS / (time.perf_counter() - before)
    cluster.delete_pods()
    return rate


def measured(cluster):
    from cluster import SYSTEM, until
    fill(cluster)
    cluster.install()
    pair = cluster.start("h1")
    assert until(lambda: pair.health()[0] == 200, 120), pair.health()
    patch = ("patch", "configmap", "carve-settings", "-n", SYSTEM, "--type=merge", "-p")
    assert until(lambda: "patched" in cluster.kubectl(*patch, '{"data":{"schedulers":"carve-scheduler, echo-scheduler"}}', check=False))
    start_echo(cluster, pair)
    extender = pair.ports + 1
    pair.kill("coordinator")
    before = time.perf_counter()
    pair.start_coordinator()
    assert until(lambda: answers(extender), 60, 0.01)
    takeover = time.perf_counter() - before
    assert until(lambda: pair.health()[0] == 200, 60)
    coordinator = pair.processes["coordinator"]
    names = [f"n{n}" for n in range(NODES)]
    filters(extender, names)
    busy, rounds = cpu_seconds(coordinator), []
    for _ in range(FILTER_ROUNDS):
        rounds.append(filters(extender, names))
    busy = 1e3 * (cpu_seconds(coordinator) - busy) / FILTERS / FILTER_ROUNDS
    ours, echo = [], []
    for scheduler, program in (("echo-scheduler", "echo"), ("carve-scheduler", "scheduler")):
        pods_a_second(cluster, pair, program, scheduler, f"warm-{program}")
    for i in range(ROUNDS):
        echo.append(pods_a_second(cluster, pair, "echo", "echo-scheduler", f"echo{i}"))
        ours.append(pods_a_second(cluster, pair, "scheduler", "carve-scheduler", f"carve{i}"))
    # Compares runs that are adjacent in time, because the machine's other load changes.
    ratios = [100 * one / other for i, one in enumerate(ours) for other in echo[i:i + 2]]
    status = pathlib.Path(f"/proc/{coordinator.pid}/status").read_text()
    rss = int(status.split("VmRSS:")[1].split()[0]) / 1024
    p50s, p99s = [statistics.median(r) for r in rounds], [statistics.quantiles(r, n=100)[98] for r in rounds]
    return [figure("kube.filter5000.p50", p50s, "ms", GOAL_FILTER_MS),
            figure("kube.filter5000.p99", p99s, "ms", GOAL_FILTER_MS),
            figure("kube.filter5000.cpu", [busy], "ms", GOAL_FILTER_MS),
            figure("kube.takeover", [takeover], "s", GOAL_TAKEOVER_S),
            figure("kube.rss", [rss], "MB", GOAL_RSS_MB),
            figure("kube.pods", ours, "pods/s", GOAL_PODS, better="higher", native=echo),
            figure("kube.pods.of_echo", ratios, "%", GOAL_OF_ECHO, better="higher")]


def main():
    if not (pathlib.Path(os.environ["KUBE_BUILD"]) / "bin/stamp").exists():
        print("kube: no Kubernetes is built; run tests/kube/build.sh", file=sys.stderr)
        print("[]")
        return
    from cluster import Cluster
    cluster = Cluster()
    try:
        cluster.begin()
        print(json.dumps(measured(cluster), indent=1))
    finally:
        cluster.end()


if __name__ == "__main__":
    main()

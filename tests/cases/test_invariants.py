"""Tests three invariants from outside in many tries: an endpoint serves no other program, nothing uses a
device outside of slices, and a request that cannot fit changes nothing.
"""
import collections
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import urllib.error
import urllib.request

import pytest

from conftest import BUILD, LOAD, until, long_form
from support.jobs import mgpu

pytestmark = pytest.mark.usefixtures("own_network")
with_proxy = pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed: apt-get install haproxy")
SEED = int(os.environ.get("CARVE_SEED", "1"))


class Strangers:
    """Servers of another user, which answer every request with "stranger"."""

    def __init__(self):
        self.sockets, self.ends = {}, False

    def take(self, port):
        if port in self.sockets:
            return
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return listener.close()  # The port is in use.
        listener.listen()
        self.sockets[port] = listener
        threading.Thread(target=self.serve, args=(listener,), daemon=True).start()

    def serve(self, listener):
        while not self.ends:
            try:
                connection, _ = listener.accept()
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\nstranger")
                connection.close()
            except OSError:
                pass

    def end(self):
        self.ends = True
        for listener in self.sockets.values():
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()


def replicas_of(services, name):
    return {replica["slice"]: replica for replica in services.service(name)["status"]["replicaList"]}


def kill_replicas(services, name, strangers):
    """Kills the programs of the service and immediately starts foreign servers on their ports. Returns the
    replicas as they were before."""
    before = replicas_of(services, name)
    for slice_, replica in before.items():
        for process in services.agent.show(slice_)["processes"]:
            with contextlib.suppress(ProcessLookupError):  # A retired program may have ended.
                os.kill(process["pid"], signal.SIGKILL)
        strangers.take(replica["port"])
    return before


def are_seen_to_end(services, name, killed):
    """Returns whether the controller knows that these programs have ended. It may already have restarted
    their replicas."""
    now = replicas_of(services, name)
    return all(slice_ not in now or now[slice_]["state"] != "Ready" or now[slice_].get("restarts", 0) > replica.get("restarts", 0)
               for slice_, replica in killed.items())


def request_until(ended, name, endpoint, answers):
    while not ended.is_set():
        try:
            with urllib.request.urlopen(endpoint, timeout=10) as response:
                answers[name, response.read().decode().strip()] += 1
        except (urllib.error.URLError, OSError):
            answers[name, "none"] += 1


@with_proxy
def test_an_endpoint_serves_only_its_own_programs(services):
    """Replicas are killed, restarted and scaled, while another user's servers take the ports that become free
    and the ports that will be used next."""
    chance, names, ports = random.Random(SEED), ("red", "green", "blue"), services.folder / "ports"
    for name in names:
        command = f"echo $PORT >> {ports}; cd $(mktemp -d) && echo {name} > index.html && exec python3 -m http.server $PORT --bind 127.0.0.1"
        services.apply({"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": name},
                        "spec": {"replicas": 1, "port": 8000, "gpu": {"memory": "1GiB"}, "run": {"command": ["sh", "-c", command]},
                                 "readiness": {"httpGet": {"path": "/"}}}})
    endpoints = {name: services.running(name)["endpoint"] for name in names}
    answers, ended, strangers = collections.Counter(), threading.Event(), Strangers()
    kills = reached = 0  # Requests that reached a foreign server before the controller noticed the end.
    clients = [threading.Thread(target=request_until, args=(ended, name, endpoint, answers)) for name, endpoint in endpoints.items()]
    for client in clients:
        client.start()
    try:
        for turn in range(40 if long_form else 8):
            name = chance.choice(names)
            action = chance.choice(("kill", "restart", "scale"))
            if action == "kill":
                services.running(name)  # No replica of an earlier round starts meanwhile.
                before = answers[name, "stranger"]
                killed = kill_replicas(services, name, strangers)
                kills += 1
                # Until the controller has noticed the end, connections go to any program on the port.
                # SECURITY.md documents this interval.
                assert until(lambda name=name, killed=killed: are_seen_to_end(services, name, killed), 30), services.service(name)
                reached += answers[name, "stranger"] - before
            elif action == "restart":
                services.carve("rollout", "restart", f"service/{name}")
            else:
                services.carve("scale", f"service/{name}", "--replicas", chance.choice((1, 2, 3)))
            known = [int(port) for port in ports.read_text().split()]
            for port in {*known, max(known) + 1, max(known) + 2, chance.randrange(min(known), max(known) + 20)}:
                strangers.take(port)
            services.running(chance.choice(names))
        for name in names:
            services.running(name)
            before = answers[name, name]
            assert until(lambda name=name, before=before: answers[name, name] > before, 30), (name, answers)
    finally:
        ended.set()
        for client in clients:
            client.join()
        strangers.end()
    assert strangers.sockets, "no stranger got a port"
    assert {text for (name, text) in answers if text not in (name, "none", "stranger")} == set(), answers
    # Once the controller has noticed an end, only the request that was in progress may have reached the
    # foreign server.
    total = sum(count for (name, text), count in answers.items() if text == "stranger")
    assert total - reached <= kills, (kills, reached, answers)
    print(f"{kills} kills, {reached} requests reached a stranger before the end was seen")


def limits(**of):
    return {"resources": {"limits": {key.replace("__", "/").replace("_", "-").replace("..", "."): value for key, value in of.items()}}}


def pod(name, container, **metadata):
    load = {"name": "main", "command": [str(LOAD), "--allocate", "3GiB", "--no-touch", "--seconds", "600"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": {"containers": [{**load, **container}]}}


REQUESTS = [
    limits(**{"nvidia.com/gpu": 1}), limits(**{"nvidia.com/gpu": 1, "nvidia.com/gpumem": 4000}), limits(**{"aliyun.com/gpu-mem": 4}),
    limits(**{"nvidia.com/gpu.shared": 1}), limits(**{"nvidia.com/mig-1g.10gb": 1}), limits(**{"volcano.sh/vgpu-number": 1}),
    limits(**{"hami.io/gpu": 1}), limits(**{"nvshare.com/gpu": 1}), limits(**{"amd.com/gpu": 1}), limits(**{"gpu.intel.com/i915": 1}),
    limits(**{"tke.cloud.tencent.com/qgpu-core": 30}), limits(**{"carve.dev/memory": "4Gi"}), limits(**{"carve.dev/memroy": "4Gi"}),
    limits(cpu=1), {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}, {"env": [{"name": "CUDA_VISIBLE_DEVICES", "value": "0,1"}]},
]
ANNOTATIONS = [{}, {"gpu-memory": "4000"}, {"gpu-fraction": "0.5"}, {"nvidia.com/use-gputype": "A10"}, {"runai/gpu": "1"}]


def test_nothing_uses_a_device_outside_of_slices(world, services):
    """Pods that request a GPU in every way or not at all and allocate 3 GiB: all of the driver's processes
    must belong to slices."""
    simulated = {"SIMGPU_DIR": str(world.folder / "state/sim"), "LD_LIBRARY_PATH": str(BUILD / "lib/carve/sim")}
    free = [{"name": key, "value": value} for key, value in simulated.items()]
    outcomes = collections.Counter()
    for n, (request, annotations) in enumerate([(r, {}) for r in REQUESTS] + [(limits(cpu=1), a) for a in ANNOTATIONS[1:]]):
        name = f"p{n}"
        path = services.folder / "pod"
        path.write_text(json.dumps(pod(name, {**request, "env": free + request.get("env", [])}, annotations=annotations)))
        done = subprocess.run([BUILD / "bin/carve", "apply", "-f", path], capture_output=True, text=True, timeout=60,
                              env={**world.environment, "CARVE_CONTROLLER": str(services.socket)})
        outcomes[done.returncode] += 1
        assert done.returncode in (0, 1) and (done.returncode == 0 or done.stderr), done
        if done.returncode != 0:
            continue
        # The program runs in a slice, or it has ended without a device.
        assert until(lambda: used(world) or services.service(name)["status"].get("restarts", 0) >= 1
                     or services.service(name)["status"]["phase"] in ("Succeeded", "Failed"), 60), services.service(name)
        # Some programs fail and are restarted, so one may start or end between two observations.
        before, found = in_slices(world), used(world)
        outside = found - before - in_slices(world)
        assert not outside & used(world), (name, request, annotations)
        assert [d["unmanaged_processes"] for d in world.json("devices")["devices"]] == [[], []]
        services.carve("delete", f"service/{name}")
        assert until(lambda: services.items() == [] and world.slices() == {}, 60)
    assert outcomes[0] >= 4 and outcomes[1] >= 8, outcomes


def in_slices(world):
    return {process["pid"] for one in world.json("ps")["slices"] for process in one["processes"]}


def used(world):
    """Returns the processes that the driver reports on its devices, except the agent's."""
    devices = json.loads(subprocess.run([BUILD / "bin/carve-sim", "show", world.folder / "state/sim", "-o", "json"], capture_output=True,
                                        text=True, check=True).stdout)["devices"]
    return {process["pid"] for device in devices for process in device["contexts"]} - {world.process.pid}


def test_a_request_that_cannot_fit_changes_nothing(world, jobs):
    """Two devices have a service, a slice and a job; then every verb is used with updates, services and jobs
    that are too large."""
    jobs.queue()
    service = {"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": "kept"},
               "spec": {"replicas": 2, "gpu": {"memory": "8GiB", "share": "40%"}, "run": {"command": ["sleep", "600"]}}}
    jobs.apply(service, "--wait")
    world.begin("run", "--name", "held", "--memory", "8GiB", "--compute", "40%", "--", "sleep", "600")
    running = jobs.submit(*mgpu(10, 1000), "--", "sleep", "600")
    jobs.becomes(running, "Running")
    assert until(lambda: len(world.slices()) == 4)

    def state():
        slices = {s["name"]: [s["state"], s["parts"][0]["quota_bytes"], s["parts"][0].get("share_bp"), sorted(p["pid"] for p in s["processes"])]
                  for s in world.json("ps")["slices"]}
        return {"slices": slices, "service": jobs.service("kept")["spec"], "phase": jobs.phase(running),
                "replicas": [(r["slice"], r["state"], r.get("restarts")) for r in jobs.service("kept")["status"]["replicaList"]]}

    def document(**gpu):
        return {**service, "spec": {**service["spec"], "gpu": {"memory": "8GiB", "share": "40%", **gpu}}}
    def is_steady():
        """Returns whether the programs that were just started are seen."""
        seen = state()
        return seen == state() and all(pids for *_, pids in seen["slices"].values()) and all(
            replica[1] in ("Running", "Ready") for replica in seen["replicas"])
    assert until(is_steady, 60), state()
    before = state()
    tries = [
        lambda: jobs.apply(document(memory="30GiB"), status=1),
        lambda: jobs.apply(document(devices=3), status=1),
        lambda: jobs.apply({**document(memory="64GiB"), "metadata": {"name": "new"}}, status=1),
        lambda: jobs.carve("eas", "modify", "kept", "-Dmetadata.gpu_memory=40", status=1),
        lambda: jobs.carve("set", "held", "--memory", "40GiB", status=1),
        lambda: jobs.carve("set", "kept-1-0", "--compute", "90%", "--force", status=1),
        lambda: jobs.submit(*mgpu(10, 90000), "--", "true", status=1),
        lambda: jobs.submit("--tasks", 9, *mgpu(60), "--", "true", status=1),
        lambda: jobs.carve("run", "--memory", "30GiB", "--wait", "--", "true", status=125),
        lambda: jobs.carve("run", "--devices", "3", "--memory", "1GiB", "--", "true", status=125),
    ]
    for n, attempt in enumerate(tries):
        message = attempt()
        assert message, n
        assert state() == before, (n, message)
    assert jobs.phase(running) == "Running"
    jobs.becomes(jobs.submit(*mgpu(10, 1000), "--", "true"), "Succeeded")  # The queue is not blocked.

#!/usr/bin/env python3
"""Measures the costs of the controller: starting a program from a document, lists, watchers, a restart after
a kill, idle time.

A service of `sleep` without a GPU runs one supervised program per replica. The controller allows 256
services, and 64 replicas per service, so 4 services give 256 replicas.
"""
import json
import pathlib
import selectors
import socket
import statistics
import subprocess
import threading
import time

from measure import cpu_seconds, figure, seconds_of
from support.agent import BUILD, Agent, until
from support.controller import Controller
from support.over_unix import asked

SERVICES, REPLICAS, WATCHERS = 256, 64, 500
LOAD = BUILD / "bin/carve-load"


def document(name, command, replicas=1, gpu=None):
    spec = {"replicas": replicas, "run": {"command": command}, **({"gpu": gpu} if gpu else {})}
    return {"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def apply(controller, *documents):
    status, _, text = asked(controller.socket, "/v1/documents", "POST", "\n---\n".join(map(json.dumps, documents)))
    assert status == 201, text


def delete_all(controller):
    for item in controller.json("/v1/services?limit=500")["items"]:
        asked(controller.socket, f"/v1/services/{item['metadata']['name']}", "DELETE")
    assert until(lambda: not controller.json("/v1/services?limit=1")["items"], 300, 0.05)


def to_the_program(agent, controller, folder, repeats=9):
    """Measures the time from a document to the program's first instruction, alternately with `carve run`."""
    applied, run = [], []
    for i in range(repeats):
        for took, act in ((run, lambda words: agent.carve("run", "--memory", "1GiB", "--", *words, check=True)),
                          (applied, lambda words: apply(controller, document(f"s{i}", words, gpu={"memory": "1GiB"})))):
            path = folder / f"moment-{len(took)}-{took is run}"
            before = time.time_ns()
            act(["/bin/sh", "-c", f"date +%s%N > {path}.new && mv {path}.new {path}; exec sleep 60" if took is applied
                 else f"date +%s%N > {path}"])
            assert until(path.exists, 30, 0.001)
            took.append((int(path.read_text()) - before) / 1e6)
    delete_all(controller)
    return figure("controller.apply.beyond_run", [a - b for a, b in zip(applied, run)], "ms", 50, native=run)


def lists(controller, repeats=15):
    apply(controller, *[document(f"listed{i}", ["true"], 0) for i in range(SERVICES)])
    took = [1e3 * seconds_of(lambda: asked(controller.socket, "/v1/services?limit=500")) for _ in range(repeats)]
    return figure(f"controller.list{SERVICES}", took, "ms", 20)


def watcher(controller):
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(str(controller.socket))
    stream.sendall(b"GET /v1/watch?kinds=services&labelSelector=watched HTTP/1.1\r\nHost: carve\r\n\r\n")
    return stream


def watches(controller, repeats=9):
    """Measures the time from a change until each watcher receives it; returns the 99th percentile for each
    change."""
    apply(controller, {**document("listed0", ["true"], 0), "metadata": {"name": "listed0", "labels": {"watched": ""}}})
    streams, ready = [watcher(controller) for _ in range(WATCHERS)], selectors.DefaultSelector()
    for stream in streams:
        text = b""
        while b"event: bookmark" not in text:
            text += stream.recv(65536)
        stream.setblocking(False)
        ready.register(stream, selectors.EVENT_READ)
    p99 = []
    for i in range(repeats):
        left, took, start = set(streams), [], time.perf_counter()
        status, _, text = asked(controller.socket, "/v1/services/listed0", "PATCH", json.dumps({"metadata": {"labels": {"n": str(i)}}}))
        assert status == 200, text
        while left:
            for key, _ in ready.select(10):
                if b"event: modified" in key.fileobj.recv(1 << 20) and key.fileobj in left:
                    left.discard(key.fileobj)
                    took.append(1e3 * (time.perf_counter() - start))
        p99.append(statistics.quantiles(took, n=100)[98])
        time.sleep(0.2)  # The service loop may write the status once more.
    for stream in streams:
        stream.close()
    return figure(f"controller.watch{WATCHERS}.p99", p99, "ms", 100)


def attempts(controller):
    """Returns the programs' pids and restarts, by slice."""
    items = controller.json("/v1/services?limit=500")["items"]
    return {r["slice"]: r["restarts"] for item in items for r in item["status"]["replicaList"] if r["state"] in ("Running", "Ready")}


def restart_and_idle(controller, repeats=5):
    """Measures the time from SIGKILL of the controller until its successor shows every replica as running;
    then the cost of an idle controller."""
    apply(controller, *[document(f"many{i}", ["sleep", "100000"], REPLICAS) for i in range(4)])
    assert until(lambda: len(attempts(controller)) == 4 * REPLICAS, 600, 0.2), len(attempts(controller))
    before, took = attempts(controller), []
    for _ in range(repeats):
        controller.kill()
        start = time.perf_counter()
        controller.start()
        while len(attempts(controller)) < 4 * REPLICAS:
            pass
        took.append(1e3 * (time.perf_counter() - start))
    restarted = sum(after != before[name] for name, after in attempts(controller).items())
    time.sleep(3)
    shares = []
    for _ in range(5):
        used = cpu_seconds(controller.process)
        time.sleep(4)
        shares.append(100 * (cpu_seconds(controller.process) - used) / 4)
    status = pathlib.Path(f"/proc/{controller.process.pid}/status").read_text()
    resident = int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024
    delete_all(controller)
    return [figure(f"controller.restart{4 * REPLICAS}", took, "ms", 1000),
            figure(f"controller.restart{4 * REPLICAS}.programs_started_again", [restarted], "", 0),
            figure(f"controller.idle{4 * REPLICAS}.cpu", shares, "% of a core", 0.5),
            figure(f"controller.idle{4 * REPLICAS}.rss", [resident], "MiB", 64)]


class Requests:
    """A thread that requests a list from the controller at a given rate over one connection, until it is
    stopped."""
    PER_SECOND, BURSTS = 2000, 200  # The server handles at most 16 simultaneous requests.

    def __init__(self, controller):
        self.stream, self.answered, self.ends = socket.socket(socket.AF_UNIX), 0, False
        self.stream.connect(str(controller.socket))
        self.thread = threading.Thread(target=self.run)
        self.start = time.perf_counter()
        self.thread.start()

    def run(self):
        burst = b"GET /v1/pools HTTP/1.1\r\nHost: carve\r\n\r\n" * (self.PER_SECOND // self.BURSTS)
        number = 0
        while not self.ends:
            self.stream.sendall(burst)
            expected, seen = self.PER_SECOND // self.BURSTS, b""
            while seen.count(b"HTTP/1.1 200") < expected:
                received = self.stream.recv(1 << 16)
                assert received, "the controller closed the connection"
                seen += received
            self.answered += expected
            number += 1
            time.sleep(max(0, self.start + number / self.BURSTS - time.perf_counter()))

    def end(self):
        """Returns the number of requests per second."""
        self.ends = True
        self.thread.join()
        self.stream.close()
        return self.answered / (time.perf_counter() - self.start)


def shares_beside(agent, controller, repeats=5):
    """Measures how far the achieved shares of two busy slices are from their granted shares, alternately next
    to a loaded and an idle controller. The client that sends the requests uses the same two cores."""
    promised = {"low": 30, "high": 70}
    programs = [subprocess.Popen(agent.words("run", "--device", "0", "--memory", "1GiB", "--compute", f"{share}%", "--name", name, "--",
                                             LOAD, "--kernels", "200us", "--no-sync", "--seconds", "600"),
                                 env=agent.environment, stdout=subprocess.DEVNULL) for name, share in promised.items()]

    def compute():
        slices = json.loads(asked(agent.socket, "/v1/slices")[2])["slices"]
        return {s["name"]: s["parts"][0]["compute"] for s in slices if s["name"] in promised and s["parts"][0].get("compute")}

    def worst(seconds=4):
        before = compute()
        time.sleep(seconds)
        after = compute()
        return max(abs(share - 100 * (after[name]["busy_ns"] - before[name]["busy_ns"]) / (after[name]["as_of_ns"] - before[name]["as_of_ns"]))
                   for name, share in promised.items())

    assert until(lambda: len(compute()) == 2 and all(c["leases"] for c in compute().values()), 30)
    idle, loaded, rates = [], [], []
    for _ in range(repeats):
        idle.append(worst())
        requests = Requests(controller)
        loaded.append(worst())
        rates.append(requests.end())
    for program in programs:
        program.terminate()
        program.wait()
    return [figure("controller.share.beside", loaded, "points", None, native=idle),
            figure("controller.share.beside.requests", rates, "1/s", None, better="higher")]


def main():
    agent = Agent("a10x2")
    controller = Controller({"n1": agent})
    try:
        assert until(lambda: controller.nodes()["n1"]["devices"], 30)
        rows = [to_the_program(agent, controller, controller.folder), lists(controller), watches(controller)]
        delete_all(controller)
        rows += shares_beside(agent, controller) + restart_and_idle(controller)
        print(json.dumps(rows))
    finally:
        controller.end()
        agent.end()


if __name__ == "__main__":
    main()

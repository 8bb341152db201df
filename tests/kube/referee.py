"""Watches all pods and, at each resourceVersion, sums up what their annotations grant on each device.

    referee.py ETCD NODES_JSON

It shares no code with the programs that it checks. ETCD is etcd's client address; the API server must store
objects as JSON. The referee reads etcd because a restarted API server has no history from before its start,
and because etcd's revisions are the resourceVersions. NODES_JSON has the usable bytes of each device by UUID.
At SIGTERM it prints one line of JSON: the number of events, of pods that were bound, and the first 20 errors.
"""
import base64
import http.client
import json
import signal
import sys
import time

MOST_SLICES = 16
PODS = {"key": base64.b64encode(b"/registry/pods/").decode(), "range_end": base64.b64encode(b"/registry/pods0").decode()}


class Referee:
    def __init__(self, usable):
        self.usable = usable
        self.granted = {}  # By the pod's uid: its name and rows (device, bytes, isolated).
        self.events, self.bound, self.wrong, self.first = 0, set(), [], {}

    def take(self, kind, pod):
        self.events += 1
        meta = pod["metadata"]
        uid, name = meta["uid"], f"{meta.get('namespace')}/{meta['name']}"
        over = kind == "DELETED" or pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
        text = meta.get("annotations", {}).get("carve.dev/slices")
        node = pod.get("spec", {}).get("nodeName")
        if bool(text) and not node:
            self.say(meta, f"{name} has slices and no node")
        if text and self.first.setdefault(uid, text) != text:
            self.say(meta, f"{name} has other slices than before")
        if over or not text:
            self.granted.pop(uid, None)
            return
        slices = json.loads(text)
        if node != slices["node"]:
            self.say(meta, f"{name} is on {node} and its slices on {slices['node']}")
        self.bound.add(uid)
        parts = [(part[0], part[1], s["isolation"] != "none") for s in slices["containers"].values() for part in s["parts"]]
        since = self.granted[uid][0].rpartition(" since ")[2] if uid in self.granted else time.strftime("%H:%M:%S")
        self.granted[uid] = (f"{name} since {since}", parts)
        self.check(meta, {part[0] for part in self.granted[uid][1]})

    def check(self, meta, devices):
        for device in devices:
            rows = [(name, row) for name, parts in self.granted.values() for row in parts if row[0] == device]
            total, isolated = sum(row[1] for _, row in rows), sum(row[2] for _, row in rows)
            if device not in self.usable:
                self.say(meta, f"{device} is no device")
            elif total > self.usable[device] or isolated > MOST_SLICES:
                self.say(meta, f"{device}: {total} of {self.usable[device]} bytes, {isolated} slices: {[n for n, _ in rows]}")

    def say(self, meta, message):
        if len(self.wrong) < 20:
            self.wrong.append(f"{meta.get('resourceVersion')}: {message}")


class EtcdPods:
    """Returns the pods in etcd as the events that a watch of the API server would send."""

    def __init__(self, address):
        self.address = address
        self.stored = {}  # Last object of each key.
        self.revision = 0

    def ask(self, path, question):
        connection = http.client.HTTPConnection(self.address, timeout=3600)
        connection.request("POST", path, json.dumps(question))
        return connection.getresponse()

    def listed(self):
        answer = json.loads(self.ask("/v3/kv/range", PODS).read())
        self.revision = int(answer["header"]["revision"])
        for kv in answer.get("kvs", []):
            yield self.event("PUT", kv)

    def changed(self):
        """Yields the events after the last one until the connection ends."""
        answer = self.ask("/v3/watch", {"create_request": {**PODS, "start_revision": self.revision + 1}})
        while (line := answer.readline()).endswith(b"\n"):
            result = json.loads(line)["result"]
            if int(result.get("compact_revision", 0)):
                raise SystemExit(f"the referee lost the history: {result}")
            for event in result.get("events", []):
                yield self.event(event.get("type", "PUT"), event["kv"])
            self.revision = max(self.revision, int(result["header"]["revision"]))

    def event(self, kind, kv):
        if kind == "DELETE":
            return "DELETED", self.stored.pop(kv["key"])
        pod = json.loads(base64.b64decode(kv["value"]))
        pod["metadata"]["resourceVersion"] = kv["mod_revision"]
        self.stored[kv["key"]] = pod
        return "MODIFIED", pod


def watch(referee, pods):
    for kind, pod in pods.listed():
        referee.take(kind, pod)
    print("watching", flush=True)
    while True:
        try:
            for kind, pod in pods.changed():
                referee.take(kind, pod)
        except (OSError, http.client.HTTPException):
            time.sleep(0.1)


def main():
    address, nodes = sys.argv[1:]
    referee = Referee(json.load(open(nodes)))

    def finish(*_):
        print(json.dumps({"events": referee.events, "bound": len(referee.bound), "wrong": referee.wrong}), flush=True)
        sys.exit(0)
    signal.signal(signal.SIGTERM, finish)
    watch(referee, EtcdPods(address))


if __name__ == "__main__":
    main()

"""Watches all pods and adds up, at each resourceVersion, what their annotations grant on each device.

    referee.py SERVER CA TOKEN_FILE NODES_JSON

It shares no code with what it watches. NODES_JSON has the usable bytes of each device by UUID. At SIGTERM it prints one line of JSON:
events seen, pods that were seen bound, and what was wrong (the first 20).
"""
import http.client
import json
import signal
import ssl
import sys

MOST_SLICES = 16


class Referee:
    def __init__(self, usable):
        self.usable = usable
        self.granted = {}  # By the pod's uid: its name and rows of device, bytes, isolated.
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
        self.granted[uid] = (name, parts)
        self.check(meta, {part[0] for part in self.granted[uid][1]})

    def check(self, meta, devices):
        for device in devices:
            rows = [(name, row) for name, parts in self.granted.values() for row in parts if row[0] == device]
            total, isolated = sum(row[1] for _, row in rows), sum(row[2] for _, row in rows)
            if device not in self.usable:
                self.say(meta, f"{device} is no device")
            elif total > self.usable[device] or isolated > MOST_SLICES:
                self.say(meta, f"{device}: {total} of {self.usable[device]} bytes, {isolated} slices: {[n for n, _ in rows]}")

    def say(self, meta, sentence):
        if len(self.wrong) < 20:
            self.wrong.append(f"{meta.get('resourceVersion')}: {sentence}")


def watch(referee, server, ca, token):
    host, port = server.removeprefix("https://").split(":")
    tls = ssl.create_default_context(cafile=ca)
    headers = {"Authorization": f"Bearer {token}"}
    version = ""
    while True:
        connection = http.client.HTTPSConnection(host, int(port), context=tls, timeout=3600)
        try:
            if not version:
                connection.request("GET", "/api/v1/pods", headers=headers)
                listed = json.loads(connection.getresponse().read())
                version = listed["metadata"]["resourceVersion"]
                for pod in listed["items"]:
                    referee.take("ADDED", pod)
                print("watching", flush=True)
            connection.request("GET", f"/api/v1/pods?watch=1&resourceVersion={version}", headers=headers)
            answer = connection.getresponse()
            while line := answer.readline():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise SystemExit(f"the referee lost the history: {event}")
                version = event["object"]["metadata"]["resourceVersion"]
                referee.take(event["type"], event["object"])
        except (OSError, http.client.HTTPException):
            continue


def main():
    server, ca, token_file, nodes = sys.argv[1:]
    referee = Referee(json.load(open(nodes)))

    def finish(*_):
        print(json.dumps({"events": referee.events, "bound": len(referee.bound), "wrong": referee.wrong}), flush=True)
        sys.exit(0)
    signal.signal(signal.SIGTERM, finish)
    watch(referee, server, ca, open(token_file).read().strip())


if __name__ == "__main__":
    main()

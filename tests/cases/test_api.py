"""Tests the controller's API as programs use it: watches, pages of lists, hosts, connection limits and
TLS."""
import http.client
import json
import os
import re
import socket
import ssl
import subprocess

import pytest

from conftest import until
from support.controller import Controller
from support.over_unix import OverUnix, asked

LOOPBACK = ("--listen", "127.0.0.1:0")


@pytest.fixture
def controllers(world):
    """controllers(ARGUMENT...): starts a controller with these arguments."""
    started = []

    def start(*words):
        started.append(Controller({"n1": world}, *words))
        return started[-1]
    yield start
    for c in started:
        print("--- the controller's log:\n" + c.log())
        c.end()


def port_of(controller):
    return int(re.findall(r"API served at https?://127\.0\.0\.1:(\d+)", controller.log())[-1])


def document(name, **labels):
    return {"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": name, "labels": labels},
            "spec": {"replicas": 1, "stopped": True, "run": {"command": ["sleep", "600"], "env": {"TOKEN": "secret"}}}}


def apply(controller, name, **labels):
    status, _, text = asked(controller.socket, "/v1/documents", "POST", json.dumps(document(name, **labels)))
    assert status == 201, text


def token(controller, role="viewer"):
    status, _, text = asked(controller.socket, "/v1/tokens", "POST", json.dumps({"name": role, "role": role, "account": "root"}))
    assert status == 201, text
    return json.loads(text)["token"]


class Watch:
    """A stream of changes. next() waits for an event and returns its id, its type and its document."""

    def __init__(self, path, query="", last=None):
        self.connection = OverUnix(path)
        self.connection.timeout = 60
        self.connection.request("GET", "/v1/watch?" + query, headers={"Last-Event-ID": last} if last is not None else {})
        self.connection.sock.settimeout(60)
        self.answer = self.connection.getresponse()

    def next(self):
        event = {"id": None, "event": None, "data": None}
        while True:
            line = self.answer.readline().decode().rstrip("\n")
            if line == "" and event["data"] is not None:
                return event["id"], event["event"], json.loads(event["data"])
            name, _, value = line.partition(": ")
            if name in event:
                event[name] = value

    def until(self, kind, name):
        """Reads events up to the object's change of this kind; returns its id."""
        while True:
            number, what, object_ = self.next()
            if (what, object_["metadata"].get("name")) == (kind, name):
                return number

    def end(self):
        self.connection.close()


def test_a_watch_sends_the_objects_first_and_continues_after_the_last_event(controllers):
    controller = controllers()
    apply(controller, "a")
    watch = Watch(controller.socket, "kinds=services")
    assert watch.answer.getheader("Content-Type") == "text/event-stream"
    number, kind, object_ = watch.next()
    assert (number, kind, object_["metadata"]["name"], object_["kind"]) == (None, "added", "a", "Service")
    last = watch.next()
    assert last[1] == "bookmark" and last[0] == last[2]["metadata"]["resourceVersion"]
    apply(controller, "b")
    seen = watch.until("added", "b")
    assert int(seen) > int(last[0])
    watch.end()
    asked(controller.socket, "/v1/services/b", "DELETE")
    again = Watch(controller.socket, "kinds=services", last=seen)
    assert int(again.until("deleted", "b")) > int(seen)
    again.end()
    controller.kill()
    controller.start()
    late = Watch(controller.socket, "kinds=services", last="1")
    assert late.answer.status == 410 and json.loads(late.answer.read())["type"] == "carve:gone"


def test_a_watcher_that_does_not_read_is_closed_and_500_others_get_each_change(controllers):
    controller = controllers()
    deaf = socket.socket(socket.AF_UNIX)
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.connect(str(controller.socket))
    deaf.sendall(b"GET /v1/watch HTTP/1.1\r\nHost: carve\r\n\r\n")
    watches = [Watch(controller.socket, "namespace=default&labelSelector=app") for _ in range(500)]
    memory = int(re.search(r"VmRSS:\s+(\d+) kB", open(f"/proc/{controller.process.pid}/status").read())[1])
    print(f"500 watchers: {memory} kB resident")
    assert memory < 128 << 10
    apply(controller, "a", app="web")
    for watch in watches:
        watch.until("added", "a")
    open_before = len(list(open_descriptors(controller)))
    for i in range(400):
        text = document("a", app="web")
        text["metadata"]["annotations"] = {"filler": f"{i}" + "x" * 4000}
        asked(controller.socket, "/v1/documents", "POST", json.dumps(text))
        if len(list(open_descriptors(controller))) < open_before:
            break
    assert len(list(open_descriptors(controller))) < open_before, "its bytes are bounded"
    for watch in watches[:5]:
        assert watch.next()[1] in ("modified", "added")
    for watch in watches:
        watch.end()


def open_descriptors(controller):
    return os.listdir(f"/proc/{controller.process.pid}/fd")


def test_a_list_is_read_in_pages_and_filtered_by_labels(controllers):
    controller = controllers()
    for i in range(7):
        apply(controller, f"s{i}", app="even" if i % 2 == 0 else "odd")
    names, target = [], "/v1/services?limit=3"
    while target:
        page = controller.json(target)
        assert len(page["items"]) <= 3 and page["metadata"]["resourceVersion"]
        names += [item["metadata"]["name"] for item in page["items"]]
        target = page["metadata"]["continue"] and "/v1/services?limit=3&continue=" + page["metadata"]["continue"]
        asked(controller.socket, "/v1/services/s1", "DELETE")
    assert names == [f"s{i}" for i in range(7)] or names == [f"s{i}" for i in range(7) if i != 1]
    odd = controller.json("/v1/services?labelSelector=app%20in%20(odd),app!%3Deven")["items"]
    assert {item["metadata"]["labels"]["app"] for item in odd} == {"odd"}
    status, _, text = asked(controller.socket, "/v1/services?labelSelector=app%3E1")
    assert status == 400 and "labelSelector 'app>1'" in json.loads(text)["detail"]


def over_tcp(controller, target="/v1/version", host=None, context=None, **headers):
    kind = http.client.HTTPSConnection if context else http.client.HTTPConnection
    connection = kind("127.0.0.1", port_of(controller), timeout=30, **({"context": context} if context else {}))
    connection.request("GET", target, headers={**({"Host": host} if host else {}), **headers})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, json.loads(text)


def test_a_forged_host_and_a_foreign_origin_are_rejected(controllers):
    controller = controllers(*LOOPBACK, "--host", "gpu.example")
    bearer = {"Authorization": "Bearer " + token(controller)}
    assert over_tcp(controller, **bearer)[0] == 200
    assert over_tcp(controller, host="gpu.example:80", **bearer)[0] == 200
    for words in {"host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}:
        status, problem = over_tcp(controller, **words, **bearer)
        assert (status, problem["type"]) == (403, "carve:permission-denied"), words


def test_a_watch_ends_when_its_token_is_removed(controllers):
    controller = controllers(*LOOPBACK)
    connection = http.client.HTTPConnection("127.0.0.1", port_of(controller), timeout=60)
    connection.request("GET", "/v1/watch?kinds=services", headers={"Authorization": "Bearer " + token(controller)})
    answer = connection.getresponse()
    assert answer.status == 200 and b"bookmark" in answer.readline() + answer.readline()
    assert asked(controller.socket, "/v1/tokens/viewer", "DELETE")[0] == 200
    apply(controller, "a")
    assert b'"name":"a"' not in answer.read()


def test_connections_from_one_address_are_limited_and_local_callers_are_still_served(controllers):
    controller = controllers(*LOOPBACK)
    connections = [socket.create_connection(("127.0.0.1", port_of(controller)), timeout=30) for _ in range(200)]

    def closed():
        count = 0
        for connection in connections:
            connection.setblocking(False)
            try:
                count += connection.recv(1) == b""
            except BlockingIOError:
                pass
            except ConnectionResetError:
                count += 1
        return count
    assert until(lambda: closed() == 200 - 128, 30), closed()
    assert controller.answers()
    for connection in connections:
        connection.close()
    assert until(lambda: over_status(controller) == 401, 30)


def test_repeating_a_request_with_its_key_changes_nothing_even_after_a_restart(controllers):
    controller = controllers()

    def post(body, key="k"):
        connection = OverUnix(controller.socket)
        connection.request("POST", "/v1/documents", body, {"Idempotency-Key": key})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    first = post(json.dumps(document("a")))
    assert first[0] == 201 and first[1]["items"][0]["action"] == "created"
    controller.kill()
    controller.start()
    assert post(json.dumps(document("a"))) == first
    assert post(json.dumps(document("a")), "other")[1]["items"][0]["action"] == "unchanged"
    status, problem = post(json.dumps(document("b")))
    assert (status, problem["type"]) == (422, "carve:key-reused")
    assert [item["metadata"]["name"] for item in controller.json("/v1/services")["items"]] == ["a"]


def test_carve_get_follows_changes_over_a_restart_and_reads_every_page(controllers, world):
    controller = controllers()
    for i in range(120):
        apply(controller, f"s{i:03}", app="even" if i % 2 == 0 else "odd")
    environment = {**world.environment, "CARVE_CONTROLLER": str(controller.socket)}
    carve = str(world.build / "bin/carve")

    def get(*words):
        done = subprocess.run([carve, "get", *words], capture_output=True, text=True, timeout=60, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout
    assert get("services", "-A", "-o", "name").split() == [f"service/s{i:03}" for i in range(120)]
    assert len(json.loads(get("services", "-o", "json"))["items"]) == 120
    assert len(get("services", "-l", "app in (odd),!x", "-o", "name").split()) == 60
    assert "  name: s000\n" in get("service/s000", "-o", "yaml")
    watch = subprocess.Popen([carve, "get", "services", "-w", "-l", "app=web", "-o", "json"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, env=environment)
    try:
        apply(controller, "first", app="web")
        change = json.loads(watch.stdout.readline())
        assert (change["event"], change["object"]["metadata"]["name"]) == ("added", "first")
        controller.kill()
        controller.start()
        apply(controller, "second", app="web")
        while change["object"]["metadata"]["name"] != "second":
            change = json.loads(watch.stdout.readline())
        assert change["event"] == "added"
    finally:
        watch.terminate()
        watch.wait(20)


def test_logs_are_followed_until_the_object_is_gone(controllers, world):
    controller = controllers()
    go = world.folder / "go"
    text = document("a")
    text["spec"] = {"run": {"command": ["sh", "-c", f"echo one; until [ -e {go} ]; do sleep 0.05; done; echo two; exec sleep 600"]}}
    assert asked(controller.socket, "/v1/documents", "POST", json.dumps(text))[0] == 201
    environment = {**world.environment, "CARVE_CONTROLLER": str(controller.socket)}
    logs = subprocess.Popen([str(world.build / "bin/carve"), "logs", "a", "-f"], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert logs.stdout.readline() == "one\n"
        go.write_text("")
        assert logs.stdout.readline() == "two\n"
        assert asked(controller.socket, "/v1/services/a", "DELETE")[0] == 200
        assert logs.wait(90) == 0
    finally:
        logs.kill()
        asked(controller.socket, "/v1/services/a", "DELETE")
        assert until(lambda: controller.json("/v1/services")["items"] == [], 90, 0.1)


def test_the_description_of_the_api_contains_its_routes_and_kinds(controllers):
    described = controllers().json("/openapi.json")
    assert described["openapi"] == "3.1.0" and "/v1/services/{name}/logs" in described["paths"]
    assert {"Service", "Application", "Problem"} <= set(described["components"]["schemas"])


def over_status(controller):
    try:
        return over_tcp(controller)[0]
    except (OSError, http.client.HTTPException):
        return None


@pytest.fixture
def certificate(world):
    """Creates a certificate for 127.0.0.1 and its key."""
    paths = world.folder / "cert.pem", world.folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=carve", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", paths[1], "-out", paths[0]],
                   check=True, capture_output=True, timeout=60)
    return paths


def test_the_api_is_served_over_tls(controllers, certificate):
    controller = controllers(*LOOPBACK, "--tls-cert", certificate[0], "--tls-key", certificate[1])
    context = ssl.create_default_context(cafile=certificate[0])
    secret = token(controller)
    assert over_tcp(controller, context=context)[0] == 401
    assert over_tcp(controller, context=context, Authorization="Bearer " + secret)[1]["program"] == "carve-controller"
    done = subprocess.run(["curl", "-sS", "--cacert", certificate[0], "-H", "Authorization: Bearer " + secret,
                           f"https://127.0.0.1:{port_of(controller)}/v1/services"], capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout)["items"] == [], done.stderr
    old = ssl.create_default_context(cafile=certificate[0])
    old.set_ciphers("DEFAULT@SECLEVEL=0")
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, OSError)):
        over_tcp(controller, context=old)
    with pytest.raises((OSError, http.client.HTTPException)):
        over_tcp(controller)
    silent = socket.create_connection(("127.0.0.1", port_of(controller)), timeout=60)
    assert silent.recv(1) == b"", "a handshake that does not begin is closed"


def test_a_certificate_with_another_key_is_rejected_at_the_start(world, controllers, certificate):
    other = world.folder / "other.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out", other],
                   check=True, capture_output=True, timeout=60)
    for key, message in (other, f"the key {other} does not belong to the certificate {certificate[0]}"), \
                         (world.folder / "none", f"the key {world.folder / 'none'} cannot be read: No such file or directory"):
        words = controllers().words[:3] + ["--state", str(world.folder / "other-state"), "--socket", str(world.folder / "cs"), *LOOPBACK,
                                           "--tls-cert", str(certificate[0]), "--tls-key", str(key)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and message in done.stderr, done.stderr

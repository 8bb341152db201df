"""Hostile peers of the controller's TCP port: slow ones, thousands of them, garbage, forged names, wrong
tokens. After each attack the controller must answer a good client, and its memory must be bounded."""
import contextlib
import json
import pathlib
import random
import re
import socket
import ssl
import subprocess

import pytest

from conftest import MiB, long_form, until
from support.controller import Controller
from support.over_unix import asked

CONNECTIONS = 10_000
FROM_ONE_ADDRESS = 128
TABLE = 1000
MAX_GROWTH = 128 * MiB  # 64 MiB of incomplete requests, and the memory of each connection.


class Target(Controller):
    """A controller with a TCP port and a good client, whose address is 127.0.0.1."""

    def __init__(self, world, *arguments, trusted=None):
        super().__init__({"n1": world}, "--listen", "127.0.0.1:0", *arguments)
        self.trusted = trusted
        self.port = int(re.findall(r"API served at https?://127\.0\.0\.1:(\d+)", self.log())[-1])
        made = asked(self.socket, "/v1/tokens", "POST", json.dumps({"name": "good", "role": "operator", "account": "root"}))
        self.token = json.loads(made[2])["token"]
        self.before = self.memory()

    def memory(self):
        """Returns the peak memory of the process."""
        return int(re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{self.process.pid}/status").read_text())[1]) << 10

    def descriptors(self):
        return len(list(pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def peer(self, source="127.0.0.2"):
        """Returns a connection from this address, or none if it is refused immediately."""
        s = socket.socket()
        s.bind((source, 0))
        s.settimeout(20)
        with contextlib.suppress(OSError):
            s.connect(("127.0.0.1", self.port))
            return s
        s.close()
        return None

    def exchange(self, request, source="127.0.0.2"):
        """Returns the controller's answer to these bytes, up to the end of the connection."""
        out = b""
        with self.peer(source) as s, contextlib.suppress(ConnectionError):
            s.sendall(request)
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_WR)
            while piece := s.recv(65536):
                out += piece
        return out

    def status(self, request, source="127.0.0.2"):
        return int(self.exchange(request, source)[9:12] or 0)

    def request(self, *headers, line="GET /v1/services", host="127.0.0.1"):
        lines = [f"{line} HTTP/1.1", f"Host: {host}", *headers, "Connection: close"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def assert_unharmed(self):
        s = self.peer("127.0.0.1")
        if self.trusted:
            s = self.trusted.wrap_socket(s, server_hostname="127.0.0.1")
        with s:
            s.sendall(self.request("Authorization: Bearer " + self.token))
            answer = b""
            while piece := s.recv(65536):
                answer += piece
        assert answer.startswith(b"HTTP/1.1 200 "), answer[:200]
        assert self.memory() - self.before < MAX_GROWTH, (self.before, self.memory())
        assert self.process.poll() is None and self.token not in self.log()


@pytest.fixture
def target(world):
    t = Target(world)
    yield t
    print("--- the controller's log:\n" + t.log()[-4000:])
    t.end()


def addresses(count, first=2):
    return [f"127.0.{i // 250}.{i % 250 + first}" for i in range(count)]


def is_closed(s):
    s.setblocking(False)
    try:
        return s.recv(65536) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def close(peers):
    for s in peers:
        s.close()


@pytest.mark.parametrize("begin", [
    b"", b"G", b"GET /v1/services HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ",
    b"POST /v1/documents HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 400_000,
    b"POST /v1/documents HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n40000\r\n" + b"x" * 0x20000,
], ids=["silent", "one byte", "slow header", "slow body", "slow chunk"])
def test_peers_that_fill_the_table_without_finishing_a_request_are_dropped(target, begin):
    peers = []
    for source in addresses(TABLE // 125 + 1):
        for _ in range(125):
            if s := target.peer(source):
                with contextlib.suppress(OSError):
                    s.settimeout(5)
                    s.sendall(begin)
                peers.append(s)
        target.assert_unharmed()
    assert len(peers) > TABLE
    closed = sum(is_closed(s) for s in peers)
    assert closed > 0, "more than the table has were accepted"
    close(peers)


def test_ten_thousand_connections_from_one_address_are_refused(target):
    held = []
    for i in range(CONNECTIONS):
        s = target.peer()
        if s and not (i >= FROM_ONE_ADDRESS and ended(s)):
            held.append(s)
        if i % 1000 == 0:
            target.assert_unharmed()
    assert len(held) <= FROM_ONE_ADDRESS
    target.assert_unharmed()
    close(held)
    assert until(lambda: target.status(target.request()) == 401, 20), "the address may come again"


def ended(s):
    """Waits until the controller has ended the connection."""
    with contextlib.suppress(ConnectionError):
        if s.recv(1) != b"":
            return False
    s.close()
    return True


def test_ten_thousand_connections_from_many_addresses_do_no_harm(target):
    held = []
    for n, source in enumerate(addresses(CONNECTIONS // 100)):
        held += [s for s in (target.peer(source) for _ in range(100)) if s]
        if n % 10 == 9:
            target.assert_unharmed()
            gone = {s for s in held if is_closed(s)}
            held = [s for s in held if s not in gone]
            close(gone)
    assert until(lambda: sum(not is_closed(s) for s in held) <= TABLE, 20), "not more than the table has"
    close(held)
    target.assert_unharmed()


def test_watchers_that_do_not_read_are_closed_and_others_get_every_change(target):
    watch = target.request("Authorization: Bearer " + target.token, line="GET /v1/watch")
    slow = [target.peer() for _ in range(60)]
    for s in slow:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.sendall(watch)
    reader = target.peer("127.0.0.3")
    reader.sendall(watch)
    text, versions = "x" * 100_000, 80
    seen = b""
    for version in range(versions):
        document = {"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": "big", "labels": {"version": str(version)}},
                    "spec": {"stopped": True, "run": {"command": ["sleep", text]}}}
        assert asked(target.socket, "/v1/documents", "POST", json.dumps(document))[0] in (200, 201)
        mark = f'"version":"{version}"'.encode()
        while mark not in seen:
            piece = reader.recv(1 << 20)
            assert piece, "the reader is closed"
            seen = seen[-100:] + piece
    assert until(lambda: target.descriptors() < len(slow), 20), "a stream whose reader stopped is closed"
    target.assert_unharmed()
    close([*slow, reader])


HOSTILE = [
    ("a long line", b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 431),
    ("a long header", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 20_000 + b"\r\n\r\n", 431),
    ("many headers", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"A: b\r\n" * 500 + b"\r\n", 431),
    ("a long body", b"POST /v1/tokens HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
    ("an endless body", b"POST /v1/tokens HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"8000\r\n" + b"x" * 0x8000
     + b"\r\n8000\r\n" + b"x" * 0x8000 + b"\r\n8000\r\n", 413),
    ("a length that wraps", b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 18446744073709551617\r\n\r\nx", 400),
    ("a negative length", b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n", 400),
    ("two lengths", b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", 400),
    ("a length and chunks", b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("a chunk that wraps", b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nx", 400),
    ("no chunk size", b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", 400),
    ("a long chunk extension", b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"a" * 20_000, 431),
    ("another host", b"GET /v1/services HTTP/1.1\r\nHost: attacker.example\r\n\r\n", 403),
    ("two hosts", b"GET /v1/services HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: attacker.example\r\n\r\n", 403),
    ("no host", b"GET /v1/services HTTP/1.1\r\n\r\n", 403),
    ("another origin", b"GET /v1/services HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: https://attacker.example\r\n\r\n", 403),
    ("a TLS greeting", bytes.fromhex("16030100a5010000a10303") + bytes(160), 400),
    ("another protocol", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    ("zeros", bytes(10_000), 400),
]


@pytest.mark.parametrize("request_, status", [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE])
def test_a_hostile_request_is_rejected(target, request_, status):
    assert target.status(request_) == status
    target.assert_unharmed()


def test_garbage_after_a_good_request_ends_the_connection_after_the_answer(target):
    for garbage in (b"\0" * 100, b"GET", b"\r\n\r\n\r\n" + b"\xff" * 9000):
        good = b"GET /v1/services HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        assert target.exchange(good + garbage).startswith(b"HTTP/1.1 401 ")
    pipelined = target.exchange(good * 5000)
    assert 0 < pipelined.count(b"HTTP/1.1 401 ") <= 5000
    target.assert_unharmed()


def test_random_bytes_do_no_harm(target):
    dice = random.Random(7)
    words = [b"GET ", b"POST ", b"/v1/documents", b" HTTP/1.1\r\n", b"Host: 127.0.0.1\r\n", b"Transfer-Encoding: chunked\r\n",
             b"Content-Length: 10\r\n", b"\r\n", b"5\r\nhello\r\n", b"0\r\n\r\n", b"{\"a\":", b"\xff\x00", b"Authorization: Bearer x\r\n"]
    for _ in range(5000 if long_form else 300):
        target.exchange(b"".join(dice.choices(words, k=dice.randrange(1, 20))), f"127.0.1.{dice.randrange(1, 250)}")
    target.assert_unharmed()
    assert json.loads(asked(target.socket, "/v1/services")[2])["items"] == []


def test_wrong_tokens_block_only_their_own_address(target):
    def tries(source, secret):
        return target.status(target.request("Authorization: Bearer " + secret), source)
    statuses = [tries("127.0.0.9", f"wrong-{i}") for i in range(20)]
    assert statuses == [401] * 10 + [429] * 10
    assert tries("127.0.0.9", target.token) == 429, "a closed address learns nothing of a right token"
    assert tries("127.0.0.10", target.token) == 200
    assert "wrong-" not in target.log()
    target.assert_unharmed()


def what_may_change(target):
    services = json.loads(asked(target.socket, "/v1/services")[2])["items"]
    return [(s["metadata"]["name"], s["metadata"]["generation"], s["spec"]) for s in services], asked(target.socket, "/v1/tokens")[2]


def test_a_flood_of_unauthorized_changes_changes_nothing(target):
    wanted = json.dumps({"name": "v", "role": "viewer", "account": "root"})
    viewer = json.loads(asked(target.socket, "/v1/tokens", "POST", wanted)[2])["token"]
    document = json.dumps({"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": "a"},
                           "spec": {"stopped": True, "run": {"command": ["true"]}}})
    changes = [("POST /v1/documents", document), ("DELETE /v1/services/kept", ""), ("POST /v1/services/kept/stop", ""),
               ("PATCH /v1/services/kept", '{"spec": {"replicas": 5}}'),
               ("POST /v1/tokens", '{"name": "x", "role": "operator", "account": "root"}'),
               ("DELETE /v1/tokens/good", ""), ("POST /v1/services/kept/restart", "")]
    kept = document.replace('"a"', '"kept"')
    assert asked(target.socket, "/v1/documents", "POST", kept)[0] == 201
    before = what_may_change(target)
    for _ in range(20):
        for line, body in changes:
            for who, status in ((["Authorization: Bearer " + viewer], 403), ([], 401)):
                request = target.request(*who, f"Content-Length: {len(body)}", line=line) + body.encode()
                assert target.status(request) == status, line
    assert what_may_change(target) == before
    assert viewer not in target.log()
    target.assert_unharmed()


@pytest.fixture
def encrypted(world):
    certificate, key = world.folder / "cert.pem", world.folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=carve", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True, timeout=60)
    t = Target(world, "--tls-cert", certificate, "--tls-key", key, trusted=ssl.create_default_context(cafile=certificate))
    yield t
    t.end()


def test_garbage_instead_of_tls_does_no_harm(encrypted):
    dice = random.Random(3)
    greeting = bytes.fromhex("16030100a5010000a10303")
    for bytes_ in (b"GET / HTTP/1.1\r\n\r\n", bytes(5000), greeting + bytes(160), greeting + dice.randbytes(160), dice.randbytes(5000),
                   bytes.fromhex("1603017fff") + dice.randbytes(9000)):
        assert not encrypted.exchange(bytes_).startswith(b"HTTP/1.1 2")
    peers = []
    for source in addresses(TABLE // 125 + 1):
        for i in range(125):
            if s := encrypted.peer(source):
                with contextlib.suppress(OSError):
                    s.sendall(greeting[:i % (len(greeting) + 1)])
                peers.append(s)
    encrypted.assert_unharmed()
    close(peers)

"""Floods a socket of the agent or the controller as an ordinary user, until it is killed or has acted TIMES
times in each thread.

    flood.py WHAT SOCKET THREADS [TIMES]

The tests pass its text to the interpreter, because another user may not be able to read this checkout.
"""
import http.client
import itertools
import socket
import sys
import threading
import time


def request(target, method="GET", body=b"", length=None):
    length = len(body) if length is None else length
    return f"{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode() + body


def connected(path, kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_UNIX, kind)
    s.settimeout(60)
    s.connect(path)
    return s


def slow_readers(path, target="/v1/slices?all=true"):
    """Reads answers 4 KiB at a time, every 2 s."""
    with connected(path) as s:
        s.sendall(request(target) * 16)
        while s.recv(4096):
            time.sleep(2)


def slow_readers_of_the_controller(path):
    slow_readers(path, "/v1/openapi.json")


def silent_callers(path):
    """Sends a request whose body never arrives."""
    with connected(path) as s:
        s.sendall(request("/v1/slices", "POST", b"{", 60_000))
        s.recv(10)


def silent_attachers(path):
    with connected(path, socket.SOCK_SEQPACKET) as s:
        s.recv(10)


def streams(path):
    with connected(path) as s:
        s.sendall(request("/v1/events?watch=true"))
        while s.recv(4096):
            pass
    time.sleep(0.01)


def expensive_requests(path):
    with connected(path) as s:
        while True:
            for target in "/v1/slices?all=true", "/metrics", "/v1/doctor", "/v1/events":
                s.sendall(request(target))
                if not s.recv(1 << 20):
                    return


def changes(method, target, *bodies):
    """Sends 100 requests one after another."""
    def send(path):
        connection = http.client.HTTPConnection("x")
        connection.sock = connected(path)
        for i in range(100):
            connection.request(method, target, bodies[i % len(bodies)])
            connection.getresponse().read()
        connection.close()
    return send


own_slices = itertools.count()


def resizes(path):
    """Lets each caller change its own slice as often in a row as its user may."""
    changes("PATCH", f"/v1/slices/own-{next(own_slices)}", *(b'{"memory_bytes": %d}' % (mib << 20) for mib in (512, 768)))(path)


def documents(text):
    def send(path):
        with connected(path) as s:
            s.sendall(request("/v1/documents", "POST", text.encode()))
            s.recv(65536)
    return send


WHAT = {
    "slow-readers": slow_readers,
    "slow-readers-of-the-controller": slow_readers_of_the_controller,
    "silent-callers": silent_callers,
    "silent-attachers": silent_attachers,
    "streams": streams,
    "expensive-requests": expensive_requests,
    "refused-changes": changes("DELETE", "/v1/services/none", b""),
    "resizes": resizes,
    "aliases": documents("k: &a 1\n" + "".join(f"k{i}: *a\n" for i in range(70_000))),
    "keys": documents("{" + ",".join(f'"k{i}": {i}' for i in range(60_000)) + "}"),
    "many-documents": documents("apiVersion: carve.dev/v1\nkind: Service\nmetadata: {name: s}\n---\n" * 2_000),
    "deep-document": documents("[" * 100_000),
}


def without_end(act, path):
    while True:
        try:
            act(path)
        except OSError:
            time.sleep(0.01)


def so_often(act, path, times):
    for _ in range(times):
        act(path)


if __name__ == "__main__":
    counted = len(sys.argv) > 4
    target, words = (so_often, [int(sys.argv[4])]) if counted else (without_end, [])
    threads = [threading.Thread(target=target, args=(WHAT[sys.argv[1]], sys.argv[2], *words), daemon=True)
               for _ in range(int(sys.argv[3]))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

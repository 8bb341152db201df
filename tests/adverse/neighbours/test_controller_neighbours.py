"""Attacks of one user of the controller's API: the others must get their answers meanwhile."""
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest
from conftest import long_form

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from support.over_unix import asked

pytestmark = pytest.mark.alone
SECONDS = 20 if long_form else 3
SLOW_S = 1.0
NOBODY = 65534
PYTHON = "/usr/bin/python3"  # Which other users may execute, wherever this checkout is.

DOCUMENTS = """
import socket, sys, threading, time
path, kind = sys.argv[1], sys.argv[2]
body = {"aliases": "k: &a 1\\n" + "".join(f"k{i}: *a\\n" for i in range(70000)),
        "keys": "{" + ",".join(f'"k{i}": {i}' for i in range(60000)) + "}",
        "many": "".join(f"apiVersion: carve.dev/v1\\nkind: Service\\nmetadata: {{name: s{i}}}\\n---\\n" for i in range(2000)),
        "deep": "[" * 100000}[kind].encode()
def send():
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(60)
                s.connect(path)
                s.sendall(b"POST /v1/documents HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
                s.recv(65536)
        except OSError:
            time.sleep(0.01)
for _ in range(30): threading.Thread(target=send, daemon=True).start()
time.sleep(600)
"""

READERS = """
import socket, sys, threading, time
path = sys.argv[1]
def read_slowly():
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(60)
                s.connect(path)
                s.sendall(b"GET /v1/openapi.json HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n" * 16)
                while s.recv(4096): time.sleep(2)
        except OSError:
            time.sleep(0.01)
for _ in range(300): threading.Thread(target=read_slowly, daemon=True).start()
time.sleep(600)
"""


def longest_turn(services):
    return float(re.search(r"^carve_controller_loop_longest_turn_seconds (\S+)", services.text("/metrics"), re.M)[1])


@pytest.mark.parametrize("text, word", [(DOCUMENTS, "aliases"), (DOCUMENTS, "keys"), (DOCUMENTS, "many"), (DOCUMENTS, "deep"), (READERS, "")],
                         ids=["a document of aliases", "a document of keys", "two thousand documents", "a deep document", "slow readers"])
def test_one_user_of_the_controller(services, text, word):
    os.chmod(services.folder, 0o755)
    os.chmod(services.socket, 0o666)
    before = longest_turn(services)
    attacker = subprocess.Popen([PYTHON, "-c", text, str(services.socket), word], user=NOBODY, group=NOBODY, extra_groups=[],
                                stdin=subprocess.DEVNULL)
    times, errors = [], []
    end = time.monotonic() + SECONDS
    try:
        while time.monotonic() < end or len(times) < 5:
            begin = time.monotonic()
            try:
                status = asked(services.socket, "/v1/services?limit=1")[0]
                if status != 200:
                    errors.append(status)
            except OSError as e:
                errors.append(e)
            times.append(time.monotonic() - begin)
            time.sleep(0.05)
        assert attacker.poll() is None
    finally:
        attacker.kill()
        attacker.wait()
    figures = (f"{max(times) * 1000:.0f} ms at most of {len(times)} answers, {len(errors)} errors {errors[:2]}; longest turn of the loop "
               f"{before * 1000:.0f} ms before, {longest_turn(services) * 1000:.0f} ms after")
    print(figures)
    assert not errors, figures
    assert sum(t > SLOW_S for t in times) <= 0.02 * len(times), figures
    services.carve("get", "services")

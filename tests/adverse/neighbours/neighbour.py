"""Measures what an innocent neighbour of an attacker notices: the heartbeat that its process reads, answers
of the API, and attaching.

The limits are those that the product promises. A test counts how often they are exceeded, so that a single
stall of the machine is not a failure.
"""
import mmap
import os
import pathlib
import re
import socket
import struct
import subprocess
import threading
import time

import pytest

STALE_MS = 200  # Age of the heartbeat at which a program stops waiting for its agent.
SLOW_S = 1.0
ATTACH_MAGIC, ATTACH_LAYOUT = 0x41565243, 7
NOBODY = 65534
LINES_AT_ONCE = 1000  # Log lines of one user (core/event_budget.h), and one more each second.
PYTHON = "/usr/bin/python3"  # Other users may execute it, wherever this checkout is.
FLOOD = pathlib.Path(__file__).with_name("flood.py").read_text()


@pytest.fixture
def as_nobody():
    """as_nobody(WHAT, SOCKET, THREADS): runs flood.py as an ordinary user outside of all slices until the end
    of the test."""
    programs = []

    def begin(what, path, threads):
        programs.append(subprocess.Popen([PYTHON, "-c", FLOOD, what, str(path), str(threads)], user=NOBODY, group=NOBODY,
                                         extra_groups=[], stdin=subprocess.DEVNULL))
    yield begin
    ended = [program.poll() for program in programs]
    for program in programs:
        program.kill()
        program.wait()
    assert not any(code is not None for code in ended), f"the attackers ended with {ended}"


def flood_as_nobody(what, path, times):
    """Runs flood.py as an ordinary user until it has acted `times` times; returns the seconds that it
    took."""
    begin = time.monotonic()
    subprocess.run([PYTHON, "-c", FLOOD, what, str(path), "1", str(times)], user=NOBODY, group=NOBODY, extra_groups=[],
                   stdin=subprocess.DEVNULL, check=True)
    return time.monotonic() - begin


def lines_left_out(log, who):
    """Returns how many lines of this cause the log reports as left out."""
    return sum(map(int, re.findall(rf" {who}: (\d+) more lines? in the last \d+ s w[a-z]+ not logged$", log, re.M)))


def connected(kind, path):
    """Returns a socket of this kind that is connected as by the guest library and the CLI, which retry after
    50 ms if the queue is full."""
    end = time.monotonic() + 20
    while True:
        s = socket.socket(socket.AF_UNIX, kind)
        s.settimeout(20)
        try:
            s.connect(path)
            return s
        except BlockingIOError:
            s.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


class Neighbour:
    """Observes an agent in its own threads for the duration of the `with` block."""

    def __init__(self, agent):
        self.agent = agent
        self.ages_ms, self.api_s, self.attach_s, self.errors = [], [], [], []
        self.ends = threading.Event()
        self.threads = [threading.Thread(target=look) for look in (self.heartbeat, self.api, self.attach)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        for thread in self.threads:
            thread.join()

    def heartbeat(self):
        file = os.open(f"{self.agent.socket}.run/heartbeat", os.O_RDONLY)
        page = mmap.mmap(file, 4096, mmap.MAP_SHARED, mmap.PROT_READ)
        while not self.ends.wait(0.005):
            beat, = struct.unpack_from("<Q", page, 0)
            self.ages_ms.append((time.clock_gettime_ns(time.CLOCK_MONOTONIC) - beat) / 1e6)

    def repeat(self, times, call):
        while not self.ends.wait(0.05):
            begin = time.monotonic()
            try:
                call()
            except OSError as e:
                self.errors.append(f"{call.__name__}: {e}")
            times.append(time.monotonic() - begin)

    def api(self):
        def ask():
            with connected(socket.SOCK_STREAM, str(self.agent.socket)) as s:
                s.sendall(b"GET /v1/slices HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                if not s.recv(65536).startswith(b"HTTP/1.1 200"):
                    raise OSError("refused")
        self.repeat(self.api_s, ask)

    def attach(self):
        """Attaches from a process in no slice. The agent answers after it has looked up the process."""
        def ask():
            with connected(socket.SOCK_SEQPACKET, f"{self.agent.socket}.attach") as s:
                s.send(struct.pack("<IIIIQ5Q", ATTACH_MAGIC, ATTACH_LAYOUT, 64, 1, 1, 0, 0, 0, 0, 0))
                if len(s.recv(4096)) == 0:
                    raise OSError("closed without an answer")
        self.repeat(self.attach_s, ask)

    def figures(self):
        def most(times):
            return f"{max(times, default=0) * 1000:.0f} ms of {len(times)}"
        stale = sum(age > STALE_MS for age in self.ages_ms)
        turn = re.search(r"^carve_agent_loop_longest_turn_seconds (\S+)", self.agent.get("/metrics")[2], re.M)
        return (f"heartbeat {max(self.ages_ms):.0f} ms at most, stale {stale} of {len(self.ages_ms)} times; API {most(self.api_s)}; "
                f"attach {most(self.attach_s)}; {len(self.errors)} errors {self.errors[:2]}; "
                f"longest turn of the loop {float(turn[1]) * 1000:.0f} ms")

    def assert_undisturbed(self):
        """Checks that there were enough observations and that at least 98 of 100 kept the limits."""
        figures = self.figures()
        assert len(self.ages_ms) >= 100 and len(self.api_s) >= 5 and len(self.attach_s) >= 5, figures
        assert sum(age > STALE_MS for age in self.ages_ms) <= 0.02 * len(self.ages_ms), figures
        for times in self.api_s, self.attach_s:
            assert sum(t > SLOW_S for t in times) <= 0.02 * len(times), figures
        assert not self.errors, figures

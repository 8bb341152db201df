"""Tests who did what: the caller of the agent's events, and `carve audit`."""
import os
import signal

import pytest

from conftest import Agent, until
from support.controller import Controller

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="run as root these cases also play a user")
USER = {"user": 65533, "group": 65533, "extra_groups": []}


@pytest.fixture
def node():
    agent = Agent("a10x1")
    agent.socket.chmod(0o666)
    yield agent
    agent.end()


def entries(agent, *words, **who):
    done = agent.carve("audit", *words, **who)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[1:]


def test_events_name_the_caller_of_the_request(node):
    program = node.begin("run", "--memory", "1GiB", "--name", "a", "--", "sleep", "600", **USER)
    assert until(lambda: "a" in node.slices())
    assert node.carve("stop", "a").returncode == 0
    program.wait(20)
    assert until(lambda: not node.slices())
    events = node.json("events", "--for", "slice/a")["events"]
    granted = next(e for e in events if e["text"].startswith("granted"))
    assert granted["caller"] == "uid 65533"


def test_audit_lists_requests_with_their_caller_and_result_across_a_kill(node):
    program = node.begin("run", "--memory", "1GiB", "--name", "a", "--", "sleep", "600", **USER)
    assert until(lambda: "a" in node.slices())
    assert node.carve("run", "--memory", "1TiB", "--name", "big", "--", "true", **USER).returncode == 125
    assert node.carve("node", "set", "--label", "zone=a", **USER).returncode == 1
    assert node.carve("set", "a", "--memory", "2GiB").returncode == 0
    node.process.send_signal(signal.SIGKILL)
    node.process.wait()
    node.start()
    node.socket.chmod(0o666)
    assert node.carve("stop", "a").returncode == 0
    program.wait(20)
    lines = [line.split(None, 2)[2] for line in entries(node)]
    acted = [" ".join(line.split()).split(" refused ")[0] for line in lines]
    assert acted == ["uid 65533 create slice a ok", "uid 65533 create slice big", "uid 65533 set node", "root set slice a ok",
                     "root stop slice a ok"], lines
    assert "refused (409)" in lines[1] and "only operators may change the node" in lines[2]
    assert len(entries(node, **USER)) == 3, "a user sees only its own requests"
    assert len(entries(node, "--user", "65533", "--failed")) == 2 and len(entries(node, "--user", "root")) == 2


def test_audit_contains_the_controllers_requests(node):
    controller = Controller({"n": node})
    try:
        node.environment["CARVE_CONTROLLER"] = str(controller.socket)
        assert node.carve("delete", "service/none").returncode == 1
        assert any("DELETE" in line and "/v1/services/none" in line and "refused (404)" in line for line in entries(node))
    finally:
        controller.end()

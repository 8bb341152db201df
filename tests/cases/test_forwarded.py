"""Tests the routes below /v1/nodes/NAME, which the controller forwards to the node's agent with the caller's
rights."""
import json
import os
import signal

import pytest

from conftest import GiB
from support.controller import Controller
from support.over_unix import asked


@pytest.fixture
def controller(world, second):
    """A controller with the nodes a (two A10) and b (one T4)."""
    c = Controller({"a": world, "b": second})
    for name in "ab":
        c.node_becomes(name, "reachable")
    yield c
    print("--- the controller's log:\n" + c.log())
    c.end()


def sent(controller, target, method, body=None):
    status, _, text = asked(controller.socket, target, method, body and json.dumps(body))
    return status, json.loads(text)


def test_a_slice_is_created_changed_and_ended_through_the_controller(world, second, controller):
    assert controller.json("/v1/nodes/b/devices")["devices"] == second.json("devices")["devices"]
    assert controller.json("/v1/nodes/b/version")["version"]
    request = {"name": "far", "memory_bytes": 2 * GiB, "share_bp": 2000}
    status, explained = sent(controller, "/v1/nodes/b/explain", "POST", request)
    assert status == 200 and explained["fits"]
    status, made = sent(controller, "/v1/nodes/b/slices", "POST", request)
    assert status == 201, made
    assert made["owner_uid"] == os.geteuid()
    assert list(second.slices()) == ["far"] and world.slices() == {}
    status, changed = sent(controller, "/v1/nodes/b/slices/far", "PATCH", {"memory_bytes": 3 * GiB})
    assert status == 200 and changed["parts"][0]["quota_bytes"] == 3 * GiB
    assert [s["name"] for s in controller.json("/v1/nodes/b/slices")["slices"]] == ["far"]
    assert sent(controller, "/v1/nodes/a/slices/far", "DELETE")[0] == 404
    assert sent(controller, "/v1/nodes/b/slices/far", "DELETE")[0] == 200
    assert second.slices() == {}


def test_a_rejection_by_the_agent_is_returned_with_its_reasons(controller):
    status, problem = sent(controller, "/v1/nodes/b/slices", "POST", {"memory_bytes": 400 * GiB})
    assert status == 409 and problem["type"] == "carve:insufficient-capacity" and problem["reasons"]


def test_a_silent_agent_delays_the_api_only_once(second, controller):
    second.process.send_signal(signal.SIGSTOP)
    try:
        status, problem = sent(controller, "/v1/nodes/b/devices", "GET")
        assert status == 503 and "node b" in problem["detail"]
        status, problem = sent(controller, "/v1/nodes/b/devices", "GET")
        assert status == 503, problem
        assert "did not respond" in problem["detail"] or "did not answer" in problem["detail"]
        assert sent(controller, "/v1/nodes/a/devices", "GET")[0] == 200, "the other node is not affected"
    finally:
        second.process.send_signal(signal.SIGCONT)
    controller.node_becomes("b", "reachable")

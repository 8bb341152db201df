"""Tests that the referee finds errors."""
import json

from referee import Referee


def pod(name, grants, node="n1", says="n1", isolation="memory"):
    slices = {"v": 1, "node": says, "containers": {"c": {"parts": [[device, size, 0] for device, size in grants], "isolation": isolation}}}
    return {"metadata": {"name": name, "namespace": "a", "uid": name, "annotations": {"carve.dev/slices": json.dumps(slices)}},
            "spec": {"nodeName": node} if node else {}, "status": {"phase": "Pending"}}


def wrong(*events):
    referee = Referee({"GPU-0": 100})
    for kind, given in events:
        referee.take(kind, given)
    return referee.wrong


def test_valid_events_pass():
    assert wrong(("ADDED", pod("p", [("GPU-0", 60)])), ("DELETED", pod("p", [("GPU-0", 60)])), ("ADDED", pod("q", [("GPU-0", 100)]))) == []


def test_errors_are_found():
    assert "120 of 100 bytes" in wrong(("ADDED", pod("p", [("GPU-0", 60)])), ("ADDED", pod("q", [("GPU-0", 60)])))[0]
    assert "17 slices" in wrong(*(("ADDED", pod(f"p{i}", [("GPU-0", 1)])) for i in range(17)))[0]
    assert "no device" in wrong(("ADDED", pod("p", [("GPU-9", 1)])))[0]
    assert "its slices on n2" in wrong(("ADDED", pod("p", [("GPU-0", 1)], says="n2")))[0]
    assert "no node" in wrong(("ADDED", pod("p", [("GPU-0", 1)], node=None)))[0]
    assert "other slices" in wrong(("ADDED", pod("p", [("GPU-0", 1)])), ("MODIFIED", pod("p", [("GPU-0", 2)])))[0]

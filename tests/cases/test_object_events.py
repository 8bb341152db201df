"""Tests events of the controller's objects: one for each object and reason, with a count, kept over a restart
and after the object's end."""
import json
import signal

import pytest

from conftest import until
from support.over_unix import asked

pytestmark = pytest.mark.usefixtures("own_network")


def document(command=("sleep", "1000"), replicas=1, memory="5GiB", name="demo", **spec):
    return {"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"replicas": replicas, "gpu": {"memory": memory}, "run": {"command": list(command)}, **spec}}


def events(services, object_):
    """Returns the events of an object by reason."""
    items = json.loads(services.carve("events", "--for", object_, "-o", "json"))["items"]
    reasons = [item["reason"] for item in items]
    assert len(set(reasons)) == len(reasons), "one event for each reason"
    times = [item["lastAt"] for item in items]
    assert times == sorted(times), "the last one is the newest"
    return {item["reason"]: item for item in items}


def has(services, object_, *reasons):
    assert until(lambda: set(reasons) <= set(events(services, object_)), 60, 0.1), (events(services, object_), services.log())
    return events(services, object_)


def test_the_life_of_a_service_is_shown_in_events(services):
    services.apply(document())
    first = services.running()
    found = has(services, "service/demo", "Created", "Revised", "ReplicaCreated", "ReplicaStarted", "RolloutCompleted")
    assert found["ReplicaCreated"]["message"] == f"replica 0 of revision 1: slice {first['replicaList'][0]['slice']} on node n1"
    services.apply(document(command=("sleep", "2000")))
    services.running(revision=2)
    found = has(services, "service/demo", "ReplicaEnded")
    assert found["Revised"]["message"] == "revision 2" and found["Revised"]["count"] == 2
    assert found["Revised"]["firstAt"] < found["Revised"]["lastAt"]
    services.carve("rollout", "undo", "service/demo")
    assert has(services, "service/demo", "Undone")["Undone"]["message"] == "to revision 1"
    services.carve("scale", "service/demo", "--replicas", "2")
    assert has(services, "service/demo", "Scaled")["Scaled"]["message"] == "1 -> 2 replicas"
    services.carve("delete", "service/demo")
    assert until(lambda: services.items() == [], 60, 0.1)
    assert {"Deleting", "Deleted"} <= set(events(services, "service/demo")), "events outlive their object"
    table = services.carve("events", "--for", "service/demo")
    assert table.split("\n")[0].split() == ["LAST", "FIRST", "COUNT", "TYPE", "REASON", "BY", "MESSAGE"]
    by = {reason: event["caller"] for reason, event in events(services, "service/demo").items()}
    assert {reason for reason, caller in by.items() if caller == "root"} == {"Created", "Changed", "Scaled", "Undone", "Deleting"}, by
    assert by["ReplicaStarted"] == by["Deleted"] == "", "the controller itself"
    assert "service/demo" in services.carve("events", "--objects")
    assert "there is no service other" in services.carve("events", "--for", "service/other", status=1)


def test_a_new_object_has_no_events_of_a_deleted_one_with_its_name(services):
    services.apply(document())
    services.running()
    services.carve("delete", "service/demo")
    assert until(lambda: services.items() == [], 60, 0.1)
    services.apply(document(replicas=0))
    assert "Deleted" not in has(services, "service/demo", "Created")
    lives = json.loads(services.carve("events", "--for", "service/demo", "--all-lives", "-o", "json"))["items"]
    assert len({e["uid"] for e in lives}) == 2 and [e["reason"] for e in lives].count("Created") == 2
    assert "UID" in services.carve("events", "--for", "service/demo", "--all-lives").split("\n")[0]


def test_a_failing_program_and_a_rejected_slice_are_events(services):
    services.apply(document(command=("sh", "-c", "exit 3")))
    assert until(lambda: events(services, "service/demo").get("ReplicaFailed", {}).get("count", 0) >= 2, 60, 0.1)
    failed = events(services, "service/demo")["ReplicaFailed"]
    assert failed["type"] == "Warning" and "exit status 3" in failed["message"]
    services.apply(document(memory="20GiB", replicas=3, name="large"))
    refused = has(services, "service/large", "PlacementRefused")["PlacementRefused"]
    conditions = {c["type"]: c for c in services.service("large")["status"]["conditions"]}
    assert refused["type"] == "Warning" and refused["message"] == conditions["Progressing"]["message"]


def test_nodes_and_pools_have_events_that_survive_a_restart(services):
    has(services, "node/n1", "Created", "NodeRunning")
    services.carve("cordon", "n1")
    assert has(services, "node/n1", "Cordoned")["Cordoned"]["message"].startswith("by root since ")
    services.carve("uncordon", "n1")
    services.apply({"apiVersion": "carve.dev/v1", "kind": "Pool", "metadata": {"name": "p"}, "spec": {"type": "ecs"}})
    has(services, "pool/p", "Created", "SlicingUnavailable")
    services.process.send_signal(signal.SIGTERM)
    services.process.wait(20)
    services.start()
    assert {"Created", "Cordoned", "Uncordoned", "NodeRunning"} <= set(events(services, "node/n1"))
    status, _, text = asked(services.socket, "/v1/events?limit=2")
    assert status == 200 and len(json.loads(text)["items"]) == 2

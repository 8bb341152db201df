"""Tests slices of pods, which are granted as they were placed elsewhere, each for one container."""
import json

import pytest

from conftest import GiB, MiB
from support.over_unix import asked

POD = {"namespace": "a", "name": "web-0", "uid": "0b6c0e4e-1d2f-4b55-9d53-8f1f6a3f2f10", "container": "main"}


def call(world, method, target, document=None):
    """Returns the status and the document of the answer."""
    status, _, text = asked(world.socket, target, method, None if document is None else json.dumps(document))
    return status, json.loads(text)


def uuids(world):
    return [d["uuid"] for d in world.json("devices")["devices"]]


def part(uuid, memory, share=0):
    return {"device": uuid, "memory_bytes": memory, "share_bp": share}


def request(*parts, **more):
    return {"placed": list(parts), "lifetime": "explicit", "holder": {"pod": POD}, **more}


def grant(world, *parts, **more):
    return call(world, "POST", "/v1/slices", request(*parts, **more))


def pod(**changes):
    return {"pod": {**POD, **changes}}


def test_parts_that_differ_are_granted_where_they_were_placed(world):
    first, second = uuids(world)
    status, slice_ = grant(world, part(second, 3 * GiB, 2500), part(first, GiB, 500))
    assert status == 201, slice_
    assert [(p["uuid"], p["quota_bytes"], p["share_bp"]) for p in slice_["parts"]] == [(second, 3 * GiB, 2500), (first, GiB, 500)]
    assert slice_["isolation"] == "memory+compute" and slice_["holder"] == {"pod": POD}
    shown = world.carve("show", slice_["name"]).stdout
    assert "pod a/web-0, container main" in shown and POD["uid"] in shown
    assert world.slices()[slice_["name"]]["holder"] == {"pod": POD}
    events = [e["text"] for e in world.json("events")["events"] if e["slice"] == slice_["name"]]
    assert "granted 3 GiB on device 1 and 1 GiB on device 0 for pod a/web-0, container main" in events
    status, refused = call(world, "PATCH", f"/v1/slices/{slice_['name']}", {"memory_bytes": GiB})
    assert status == 409 and "differ" in refused["detail"]
    world.process.kill()
    world.process.wait()
    world.start()
    again = world.show(slice_["name"])
    assert again["holder"] == {"pod": POD}
    assert [(p["quota_bytes"], p["share_bp"]) for p in again["parts"]] == [(3 * GiB, 2500), (GiB, 500)]


def test_repeating_a_request_returns_the_same_slice(world):
    first, second = uuids(world)
    status, slice_ = grant(world, part(first, 2 * GiB))
    assert status == 201
    status, again = grant(world, part(first, 2 * GiB))
    assert status == 201 and again["name"] == slice_["name"] and len(world.slices()) == 1
    for other in (part(first, GiB), part(second, 2 * GiB), part(first, 2 * GiB, 1000)):
        status, refused = grant(world, other)
        assert (status, refused["type"]) == (409, "carve:already-exists")
        assert f"pod a/web-0, container main already has the slice '{slice_['name']}' with different terms, 2 GiB on device 0" in refused["detail"]
    assert grant(world, part(first, 2 * GiB), holder=pod(container="sidecar"))[0] == 201
    assert grant(world, part(first, 2 * GiB), holder=pod(uid="another"))[0] == 201
    assert len(world.slices()) == 3
    # After the pod's slice has ended, the same request creates a new one.
    assert call(world, "DELETE", f"/v1/slices/{slice_['name']}")[0] == 200
    assert grant(world, part(second, GiB))[0] == 201


def test_a_placement_that_the_node_cannot_grant_is_rejected_and_not_changed(world):
    first, second = uuids(world)
    usable = world.json("devices")["devices"][0]["usable_bytes"]
    status, refused = grant(world, part(first, usable + MiB))
    assert (status, refused["type"]) == (409, "carve:insufficient-capacity") and "device 0: " in refused["detail"]
    assert grant(world, part(first, usable - GiB))[0] == 201
    status, refused = grant(world, part(first, 2 * GiB), holder=pod(uid="u2"))
    assert status == 409 and refused["detail"] == "device 0: 2 GiB needed, 1 GiB free", refused
    # Nothing is granted in part.
    status, refused = grant(world, part(second, 2 * GiB), part(first, 2 * GiB), holder=pod(uid="u2"))
    assert status == 409 and world.json("devices")["devices"][1]["granted_bytes"] == 0
    status, refused = grant(world, part("GPU-00000000-0000-0000-0000-000000000000", GiB), holder=pod(uid="u2"))
    assert status == 400 and "there is no device" in refused["detail"]
    status, refused = grant(world, part(second, GiB), policy="native-burst-share", holder=pod(uid="u2"))
    assert status == 409 and "effective policy is fixed-share" in refused["detail"]


@pytest.mark.devices("a10x1")
def test_the_limit_of_sixteen_isolated_slices_per_device_applies_to_placed_slices(world):
    (only,) = uuids(world)
    for number in range(16):
        assert grant(world, part(only, GiB), holder=pod(uid=f"u{number}"))[0] == 201
    status, refused = grant(world, part(only, GiB), holder=pod(uid="u16"))
    assert status == 409 and "it has 16 isolated slices, the maximum" in refused["detail"]
    assert grant(world, part(only, GiB), holder=pod(uid="u16"), isolation="none")[0] == 201


def test_a_whole_device_is_granted_as_placed(world):
    first, second = uuids(world)
    assert grant(world, part(first, 0), exclusive=True)[0] == 201
    status, refused = grant(world, part(first, GiB), holder=pod(uid="u2"))
    assert status == 409 and "an exclusive slice holds the device" in refused["detail"]
    status, refused = grant(world, part(second, GiB), exclusive=True, holder=pod(uid="u2"))
    assert status == 409 and "the request is for a whole device of 1 GiB" in refused["detail"]

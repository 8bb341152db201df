"""A program allocates more than it requested, next to another one that requests the rest of the device. The
same two programs run without and with isolation (on a simulated device of 15 GiB)."""
import pytest

from conftest import LOAD, until

GiB = 1 << 30
# Pod 1 requests 5 GiB and allocates 10; pod 2 requests 10 GiB and allocates 9.
POD1 = ["--allocate", "10GiB", "--no-touch"]
POD2 = ["--allocate", "9GiB", "--no-touch"]


def pod(name, memory, isolation, program, *seconds):
    return ["run", "--memory", memory, "--isolation", isolation, "--device", 0, "--name", name, "--", LOAD, *program, *seconds]


def used(world):
    return world.json("devices")["devices"][0]["used_bytes"]


@pytest.mark.devices("demo15x1")
def test_the_neighbour_has_no_room_without_isolation(world):
    world.begin(*pod("pod1", "5GiB", "none", POD1, "--seconds", 600))
    assert until(lambda: used(world) >= 10 * GiB), "pod 1 takes twice what it asked for"
    done = world.carve(*pod("pod2", "10GiB", "none", POD2))
    assert done.returncode == 1, done.stdout
    assert world.slices()["pod1"]["state"] == "running"


@pytest.mark.devices("demo15x1")
def test_only_the_program_that_exceeds_its_request_fails_with_isolation(world):
    world.begin(*pod("pod2", "10GiB", "memory", POD2, "--seconds", 600))
    assert until(lambda: used(world) >= 9 * GiB)
    done = world.carve(*pod("pod1", "5GiB", "memory", POD1))
    assert done.returncode == 1, done.stdout
    assert world.slices()["pod2"]["state"] == "running"
    # Also in the other order: pod 1 has taken nothing of what pod 2 requests.
    world.carve("stop", "pod2")
    assert until(lambda: not world.slices())
    assert world.carve(*pod("pod1", "5GiB", "memory", POD1)).returncode == 1
    assert world.carve(*pod("pod2", "10GiB", "memory", POD2)).returncode == 0

"""A program that takes more than its slice asked for, next to another that asks for the rest of the device: the same two programs, without
and with isolation (simulated device of 15 GiB)."""
import pytest

from conftest import LOAD, until

GiB = 1 << 30
# Pod 1 asks for 5 GiB and takes 10; pod 2 asks for 10 GiB and takes 9.
POD1 = ["--allocate", "10GiB", "--no-touch"]
POD2 = ["--allocate", "9GiB", "--no-touch"]


def pod(name, memory, isolation, program, *seconds):
    return ["run", "--memory", memory, "--isolation", isolation, "--device", 0, "--name", name, "--", LOAD, *program, *seconds]


def used(world):
    return world.json("devices")["devices"][0]["used_bytes"]


@pytest.mark.devices("demo15x1")
def test_without_isolation_the_neighbour_has_no_room(world):
    world.begin(*pod("pod1", "5GiB", "none", POD1, "--seconds", 600))
    assert until(lambda: used(world) >= 10 * GiB), "pod 1 takes twice what it asked for"
    done = world.carve(*pod("pod2", "10GiB", "none", POD2))
    assert done.returncode == 1, done.stdout
    assert world.slices()["pod1"]["state"] == "running"


@pytest.mark.devices("demo15x1")
def test_with_isolation_the_program_that_exceeds_its_request_fails_alone(world):
    world.begin(*pod("pod2", "10GiB", "memory", POD2, "--seconds", 600))
    assert until(lambda: used(world) >= 9 * GiB)
    done = world.carve(*pod("pod1", "5GiB", "memory", POD1))
    assert done.returncode == 1, done.stdout
    assert world.slices()["pod2"]["state"] == "running"
    # In the other order too: pod 1 has taken nothing of what pod 2 asks for.
    world.carve("stop", "pod2")
    assert until(lambda: not world.slices())
    assert world.carve(*pod("pod1", "5GiB", "memory", POD1)).returncode == 1
    assert world.carve(*pod("pod2", "10GiB", "memory", POD2)).returncode == 0

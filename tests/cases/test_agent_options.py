"""The effects of the agent's own options."""
import pytest

from conftest import GiB, LOAD, MiB, until


@pytest.mark.devices("a10x1", "--context-charge", "reserve")
def test_contexts_may_be_the_reserves_business(world):
    """A slice of 1 GiB then holds 1 GiB, and the context that the driver reports in addition is not charged."""
    world.begin("run", "--memory", "1GiB", "--name", "a", "--", LOAD, "--allocate", "1GiB", "--no-touch", "--seconds", "30")
    assert world.attached("a")["parts"][0]["charged_bytes"] == GiB
    assert until(lambda: world.show("a")["parts"][0]["used_bytes"] == GiB), world.show("a")
    assert world.show("a")["parts"][0]["charged_bytes"] == GiB
    over = world.carve("run", "--memory", "1GiB", "--", LOAD, "--allocate", "1026MiB", "--no-touch")
    assert "CUDA_ERROR_OUT_OF_MEMORY" in over.stdout


@pytest.mark.devices("a10x1", "--reserve", "4GiB")
def test_the_reserve_can_be_chosen(world):
    (device,) = world.json("devices")["devices"]
    assert device["reserved_bytes"] == 4 * GiB
    assert device["usable_bytes"] == device["native_bytes"] - 4 * GiB


@pytest.mark.devices("a10x2", "--strategy", "spread")
def test_the_strategy_can_be_chosen(world):
    for name in ("a", "b"):
        world.begin("run", "--memory", "1GiB", "--name", name, "--", "sleep", "30")
    assert until(lambda: len(world.slices()) == 2)
    assert {world.slices()[n]["parts"][0]["index"] for n in ("a", "b")} == {0, 1}

"""Tests the effects of the agent's options."""
import resource
import subprocess

import pytest

from conftest import BUILD, GiB, LOAD, MiB, until


@pytest.mark.devices("a10x1", "--context-charge", "reserve")
def test_contexts_can_be_charged_to_the_reserve(world):
    """A slice of 1 GiB can then allocate 1 GiB, and the context that the driver reports in addition is not
    charged."""
    world.begin("run", "--memory", "1GiB", "--name", "a", "--", LOAD, "--allocate", "1GiB", "--no-touch", "--seconds", "30")
    assert world.attached("a")["parts"][0]["charged_bytes"] == GiB
    assert until(lambda: world.show("a")["parts"][0]["used_bytes"] == GiB), world.show("a")
    assert world.show("a")["parts"][0]["charged_bytes"] == GiB
    over = world.carve("run", "--memory", "1GiB", "--", LOAD, "--allocate", "1026MiB", "--no-touch")
    assert "CUDA_ERROR_OUT_OF_MEMORY" in over.stdout


def test_a_slice_smaller_than_a_context_is_rejected_with_both_figures_and_a_suggestion(world, beside):
    refused = world.carve("run", "--memory", "128MiB", "--device", "0", "--", "true")
    wanted = ("128 MiB is less than the 256 MiB that one context takes on it; request at least 256 MiB, "
              "or start carved with --context-charge reserve")
    assert refused.returncode == 125 and wanted in refused.stderr, refused.stderr
    program = beside("import time; begin(); print('begun', flush=True); time.sleep(60)", memory="256MiB", name="small")
    assert world.attached("small")
    refused = world.carve("set", "small", "--memory", "128MiB")
    assert refused.returncode == 1 and wanted in refused.stderr, refused.stderr
    assert program.poll() is None


# 17 contexts of 256 MiB, in addition to the memory that the driver reserves.
@pytest.mark.devices("a10x1", "--context-charge", "reserve", "--reserve", "7GiB")
def test_sixteen_slices_of_128_mib_run_on_one_device_and_the_seventeenth_is_rejected(world, beside):
    text = "import time\nbegin()\nallocate(128 * MiB)\nprint(info(), flush=True)\ntime.sleep(120)"
    for number in range(16):
        program = beside(text, name=f"s{number}", memory="128MiB")
        assert program.stdout.readline() == f"(0, {128 * MiB})\n", number
    refused = world.carve("run", "--memory", "128MiB", "--device", "0", "--", "true")
    assert refused.returncode == 125 and "it has 16 isolated slices, the maximum" in refused.stderr, refused.stderr
    last = beside(text, "--isolation", "none", name="s16", memory="128MiB")
    assert last.stdout.readline().startswith("("), last.communicate()[1]
    assert len(world.slices()) == 17
    # The driver reports the contexts, but they are charged to no slice.
    def used(name):
        return world.show(name)["parts"][0]["used_bytes"], world.show(name)["parts"][0]["charged_bytes"]
    assert until(lambda: {used(f"s{n}") for n in range(16)} == {(128 * MiB, 128 * MiB)}), [used(f"s{n}") for n in range(16)]


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


def test_the_agent_starts_with_a_hundred_descriptors(world):
    """The agent starts with a low limit of descriptors. Slices can then attach while descriptors are left."""
    world.process.terminate()
    world.process.wait()
    world.limits = {resource.RLIMIT_NOFILE: 100}
    world.start()
    done = world.carve("run", "--memory", "1GiB", "--", LOAD, "--allocate", "64MiB")
    assert done.returncode == 0, done.stderr


def test_a_driver_before_510_is_rejected_with_a_suggestion(tmp_path):
    done = subprocess.run([BUILD / "bin/carved", "--sim", "a10x1@470", "--state", tmp_path / "state", "--socket", tmp_path / "s"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "is older than driver 510; install a newer driver" in done.stderr, done.stderr

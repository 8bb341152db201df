"""Escapes from limits that users of other interposers reported, each as a test. The list is table.md."""
import os
import shutil

import pytest

from conftest import BUILD, LOAD, until

ESCAPE = BUILD / "tests/escape"


def is_told(world, name):
    return until(lambda: name in world.slices() and any("found unattached" in e["text"] for e in world.show(name)["events"]))


def test_a_session_with_a_clean_environment_is_found(world):
    """su, sudo, ssh and cron start programs in this way, with a clean environment."""
    driver = world.folder / "state/sim"
    clean = f"env -i PATH=/usr/bin:/bin " \
             f"SIMGPU_DIR={driver} LD_LIBRARY_PATH={BUILD}/lib/carve/sim {ESCAPE} plain 300 600"
    world.begin("run", "--memory", "1GiB", "--name", "a", "--", "sh", "-c", clean)
    assert is_told(world, "a")


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root and unshare")
def test_a_container_within_the_slice_is_found(world):
    """Its own namespaces and a clean environment, as with docker in docker, but still the slice's cgroup."""
    driver = world.folder / "state/sim"
    nested = f"unshare --pid --mount --ipc --uts --fork env -i PATH=/usr/bin:/bin " \
             f"SIMGPU_DIR={driver} LD_LIBRARY_PATH={BUILD}/lib/carve/sim {ESCAPE} plain 300 600"
    world.begin("run", "--memory", "1GiB", "--name", "a", "--", "sh", "-c", nested)
    assert is_told(world, "a")


SWITCHES = ["CUDA_DISABLE_CONTROL=true", "CUDA_DEVICE_MEMORY_LIMIT=64g", "CUDA_DEVICE_MEMORY_LIMIT_0=64g",
            "GPU_CORE_UTILIZATION_POLICY=disable",
            "CARVE_DISABLE=1", "CARVE_MEMORY=64GiB"]


@pytest.mark.parametrize("switch", SWITCHES)
def test_no_variable_disables_the_limit(world, switch):
    done = world.carve("run", "--memory", "1GiB", "--", "env", switch, LOAD, "--allocate", "2GiB", "--no-touch")
    assert done.returncode == 1 and "CUDA_ERROR_OUT_OF_MEMORY" in done.stderr


def test_a_program_gets_no_device_without_its_agent(world):
    done = world.carve("run", "--memory", "1GiB", "--", "env", "CARVE_SOCKET=/nonexistent", LOAD, "--allocate", "64MiB", "--no-touch")
    assert done.returncode == 1 and "CUDA_ERROR_SYSTEM_NOT_READY" in done.stderr


def test_a_program_that_allocates_memory_without_cuda_is_found(world):
    """Vulkan and OpenGL programs do this: they have memory on the device without libcuda."""
    world.begin("run", "--memory", "1GiB", "--name", "a", "--", BUILD / "tests/escape_raw", "300", "600")
    assert is_told(world, "a")

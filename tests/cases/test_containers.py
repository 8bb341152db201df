"""Containers in slices: podman starts images that contain no part of Carve."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import GiB, until
from support.image import IMAGE, carve_image

pytestmark = [
    pytest.mark.skipif(shutil.which("podman") is None, reason="podman is not installed: apt-get install podman runc"),
    pytest.mark.skipif(os.geteuid() != 0, reason="podman reads devices that root announced"),
]
def podman(*words, device, flags=(), **options):
    flags = ["--rm", "--network", "host", *flags]
    if pathlib.Path("/sys/fs/cgroup/unified").exists():  # On a hybrid host crun has no controllers of version 1.
        flags += ["--runtime", "runc", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000"]
    return subprocess.Popen(["podman", "run", *flags, "--device", device, IMAGE, *map(str, words)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, **options)


def test_an_unmodified_image_stays_within_its_slice(world, carve_image):
    assert world.carve("slice", "create", "--memory", "2GiB", "--name", "case-a").returncode == 0
    over = podman("/bin/carve-load", "--allocate", "3GiB", "--no-touch", device="carve.dev/slice=case-a")
    out, err = over.communicate(timeout=60)
    assert over.returncode == 1 and json.loads(out)["error"] == "CUDA_ERROR_OUT_OF_MEMORY", err
    script = "/bin/carve-load --allocate 1GiB --no-touch --seconds 600 & while [ ! -e /go/on ]; do /bin/sleep 0.02; done; kill $!"
    inside = podman("/bin/bash", "-c", script, device="carve.dev/slice=case-a", flags=["--volume", f"{world.folder}:/go"])
    shown = world.attached("case-a")
    process = next(p for p in shown["processes"] if p["attached"])
    assert process["inner_pid"] != process["pid"], "the process has a pid of its own namespace"
    assert shown["parts"][0]["used_bytes"] >= GiB or until(lambda: world.show("case-a")["parts"][0]["used_bytes"] >= GiB)
    (world.folder / "on").touch()
    out, err = inside.communicate(timeout=60)
    assert inside.returncode == 0, err
    assert "case-a" in world.slices(), "a slice made for containers outlives them"
    assert world.carve("slice", "rm", "case-a").returncode == 0
    assert until(lambda: "case-a" not in world.slices())


def test_the_library_in_a_container_cannot_be_disabled_by_the_environment(world, carve_image):
    """The environment has no effect if the library replaces the driver's file."""
    assert world.carve("slice", "create", "--memory", "1GiB", "--name", "case-b").returncode == 0
    script = "unset LD_PRELOAD CARVE_SOCKET LD_LIBRARY_PATH CUDA_VISIBLE_DEVICES; " \
             "CARVE_SOCKET=/nowhere exec /bin/carve-load --allocate 2GiB --no-touch --device 0"
    refused = podman("/bin/bash", "-c", script, device="carve.dev/slice=case-b")
    out, err = refused.communicate(timeout=60)
    assert refused.returncode == 1 and "OUT_OF_MEMORY" in json.loads(out)["error"], (out, err)
    world.carve("slice", "rm", "case-b")


def test_a_container_outlives_its_agent_and_starts_programs_under_the_next(world, carve_image):
    assert world.carve("slice", "create", "--memory", "2GiB", "--name", "case-d").returncode == 0
    load = "/bin/carve-load --no-touch --allocate"
    script = f"{load} 1GiB --seconds 600 & while [ ! -e /go/on ]; do /bin/sleep 0.02; done; {load} 768MiB; {load} 512MiB && kill $!"
    container = podman("/bin/bash", "-c", script, device="carve.dev/slice=case-d", flags=["--volume", f"{world.folder}:/go"])
    world.attached("case-d")
    world.process.kill()
    world.process.wait()
    world.log.close()
    world.start()
    (world.folder / "on").touch()
    out, err = container.communicate(timeout=60)
    assert container.returncode == 0, (out, err)
    refused, granted = [json.loads(line)["error"] for line in out.splitlines()]
    assert (refused, granted) == ("CUDA_ERROR_OUT_OF_MEMORY", None), "the memory of the first program counts under the next agent"
    world.carve("slice", "rm", "case-d")


def test_a_removed_slice_is_no_longer_a_cdi_device(world, carve_image):
    assert world.carve("slice", "create", "--memory", "1GiB", "--name", "case-c").returncode == 0
    world.carve("slice", "rm", "case-c")
    gone = podman("/bin/sleep", "1", device="carve.dev/slice=case-c")
    gone.communicate(timeout=60)
    assert gone.returncode not in (0, 1)


def test_a_container_has_only_the_two_devices_of_its_slice(world, carve_image):
    assert world.carve("slice", "create", "--memory", "2GiB", "--devices", "2", "--name", "case-e").returncode == 0
    over = "; ".join(f"/bin/carve-load --no-touch --device {device} --allocate {amount}"
                     for device in (0, 1, 2) for amount in ("1GiB", "3GiB"))
    container = podman("/bin/bash", "-c", f"{over}; exit 0", device="carve.dev/slice=case-e")
    out, err = container.communicate(timeout=60)
    assert container.returncode == 0, err
    answers = [json.loads(line)["error"] for line in out.splitlines()]
    full = "CUDA_ERROR_OUT_OF_MEMORY"
    assert answers[:4] == [None, full, None, full], answers
    assert len(answers) == 6 and all(a == "CUDA_ERROR_INVALID_DEVICE" for a in answers[4:]), answers
    world.carve("slice", "rm", "case-e")


def test_nvidias_runtime_adds_no_whole_device_to_the_slice(world, carve_image):
    assert world.carve("slice", "create", "--memory", "1GiB", "--name", "case-f").returncode == 0
    shown = podman("/bin/bash", "-c", "echo $NVIDIA_VISIBLE_DEVICES", device="carve.dev/slice=case-f")
    out, err = shown.communicate(timeout=60)
    assert (shown.returncode, out) == (0, "void\n"), err
    world.carve("slice", "rm", "case-f")


def test_a_container_with_two_slices_does_not_start(world, carve_image):
    for name in ("case-g", "case-h"):
        assert world.carve("slice", "create", "--memory", "1GiB", "--name", name).returncode == 0
    both = podman("/bin/sleep", "1", device="carve.dev/slice=case-g", flags=["--device", "carve.dev/slice=case-h"])
    both.communicate(timeout=60)
    assert both.returncode not in (0, 1)
    (first,) = [e for e in world.json("events")["events"] if e["slice"] in ("case-g", "case-h") and "started" in e["text"]]
    assert first, "one slice got the container, the other refused it"
    for name in ("case-g", "case-h"):
        world.carve("slice", "rm", name)

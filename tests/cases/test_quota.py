"""Tests the quota: a slice's explicit allocations and contexts together never exceed it, not even by one
byte."""
import json
import threading
import time

import pytest

from conftest import GiB, LOAD, MiB, long_form, over_drivers, until


def load(world, slice_options, *words):
    done = world.carve("run", *slice_options, "--", LOAD, *words, timeout=120)
    return done, json.loads(done.stdout)


def test_exceeding_the_quota_gives_cudas_own_error_and_nothing_else(world):
    done, said = load(world, ["--memory", "2GiB"], "--allocate", "3GiB")
    assert done.returncode == 1
    assert said["error"] == "CUDA_ERROR_OUT_OF_MEMORY"
    assert "CUDA_ERROR_OUT_OF_MEMORY" in done.stderr


@over_drivers
@pytest.mark.parametrize("kind", ["device", "managed", "pitched"])
@pytest.mark.parametrize("lookup", ["dlsym", "getproc"])
def test_every_kind_of_memory_counts(world, kind, lookup, driver):
    _, inside = load(world, ["--memory", "2GiB"], "--allocate", "1GiB", "--kind", kind, "--lookup", lookup, "--no-touch")
    assert inside["error"] is None
    _, over = load(world, ["--memory", "2GiB"], "--allocate", "2GiB", "--kind", kind, "--lookup", lookup, "--no-touch")
    assert over["error"] == "CUDA_ERROR_OUT_OF_MEMORY"


def test_what_was_written_can_be_read_back(world):
    _, said = load(world, ["--memory", "2GiB"], "--allocate", "300MiB", "--chunk", "7MiB")
    assert said["error"] is None and said["bytes_verified"] == 300 * MiB


def test_a_slice_smaller_than_a_context_is_rejected_with_the_size_of_a_context(world):
    done = world.carve("run", "--memory", "64MiB", "--", "true")
    assert done.returncode == 125 and "256 MiB" in done.stderr, done.stderr


def test_nothing_is_rejected_without_isolation(world):
    _, said = load(world, ["--memory", "1GiB", "--isolation", "none"], "--allocate", "3GiB", "--no-touch")
    assert said["error"] is None


def test_two_slices_do_not_affect_each_other(world):
    world.begin("run", "--memory", "10GiB", "--device", "0", "--name", "big", "--", LOAD, "--allocate", "9GiB", "--no-touch",
                "--seconds", "20")
    world.attached("big")
    done, said = load(world, ["--memory", "10GiB", "--device", "0"], "--allocate", "9GiB", "--no-touch")
    assert said["error"] is None


def test_churn_never_causes_a_false_failure(world):
    _, said = load(world, ["--memory", "3GiB"], "--allocate", "1GiB", "--chunk", "40MiB", "--pattern", "churn", "--no-touch",
                   "--seconds", "2")
    assert said["error"] is None and said["bytes_allocated"] > 0


def watched(world, program):
    """Continuously polls and records the slice's charge."""
    while program.poll() is None:
        if race := world.slices().get("race"):
            yield race["parts"][0]["charged_bytes"]
        time.sleep(0.005)


@pytest.mark.parametrize("step", ["2MiB", "512B"])
def test_racing_for_the_last_bytes_neither_exceeds_the_quota_nor_loses_a_byte(world, step):
    """16 processes in one slice of 12 GiB, each with a context, allocate smaller and smaller pieces until no
    memory is left."""
    rounds = 200 if long_form else 8
    context = world.json("devices")["devices"][0]["context_bytes"]
    load = f"{LOAD} --processes 16 --allocate 12GiB --chunk 512MiB --pattern fill --smallest {step} --no-touch --seconds 0.1"
    program = world.begin("run", "--memory", "12GiB", "--device", "0", "--name", "race", "--", "sh", "-c",
                          f"for i in $(seq {rounds}); do {load} --seed $i || exit; done")
    seen = []
    watcher = threading.Thread(target=lambda: seen.extend(watched(world, program)))
    watcher.start()
    out, err = program.communicate(timeout=900)
    watcher.join()
    assert program.returncode == 0, err
    lines = [json.loads(line) for line in out.splitlines()]
    assert len(lines) == rounds
    room = 12 * GiB - 16 * context
    for said in lines:
        # At the second barrier all 16 hold their pieces, and for each one more allocation has failed.
        assert said["error"] is None
        assert said["bytes_allocated"] == room, "every byte of the slice can be had, and not one more"
    assert max(seen) > 8 * GiB, "the watcher looked while it was full"
    if step == "2MiB":  # Smaller pieces share blocks of 2 MiB, whose rest is charged as growth.
        assert max(seen) <= 12 * GiB


def test_the_bytes_of_a_killed_process_are_released(world):
    go = world.folder / "go"
    script = f"{LOAD} --allocate 3GiB --no-touch --seconds 600 & pid=$!; while [ ! -e {go} ]; do sleep 0.02; done; " \
             f"kill -9 $pid; wait $pid; exec {LOAD} --allocate 3GiB --no-touch"
    program = world.begin("run", "--memory", "4GiB", "--name", "a", "--", "sh", "-c", script)
    assert until(lambda: "a" in world.slices() and world.show("a")["parts"][0]["charged_bytes"] >= 3 * GiB)
    go.touch()
    out, err = program.communicate(timeout=60)
    assert program.returncode == 0, err
    assert json.loads(out.splitlines()[-1])["error"] is None

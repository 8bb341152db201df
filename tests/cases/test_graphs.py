"""Tests CUDA graphs: a program that launches graphs gets the same device time as one that launches
kernels."""
import json

import pytest

from conftest import LOAD

pytestmark = pytest.mark.alone

MS = 1_000_000


def load(world, *words):
    done = world.carve("run", "--memory", "2GiB", "--device", "0", "--", LOAD, *words, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("lookup", ["dlsym", "getproc"])
def test_a_chain_of_ten_kernels_takes_the_time_of_ten(world, lookup):
    said = load(world, "--kernels", "2ms", "--graphs", "--seconds", "1", "--lookup", lookup)
    assert said["error"] is None and said["kernels_completed"] >= 10 and said["kernels_completed"] % 10 == 0
    assert said["p50_ns"] >= 20 * MS
    assert said["kernel_ns"] <= said["elapsed_ns"]


def test_launches_of_one_graph_in_several_streams_do_not_overlap(world):
    """A kernel that fills a fifth of the device could run next to others, but launches of one executable are ordered."""
    words = ["--kernels", "2ms", "--grid", "100", "--streams", "4", "--no-sync", "--seconds", "1"]
    graphs, kernels = load(world, *words, "--graphs"), load(world, *words)
    assert graphs["kernel_ns"] <= graphs["elapsed_ns"]
    assert kernels["kernel_ns"] > 1.5 * kernels["elapsed_ns"]


def test_programs_share_a_device_by_graphs_as_by_kernels(world):
    said = load(world, "--kernels", "1ms", "--graphs", "--seconds", "2", "--processes", "3", "--no-sync")
    assert said["error"] is None and said["kernels_completed"] % 10 == 0
    assert said["kernel_ns"] <= 1.02 * said["elapsed_ns"]

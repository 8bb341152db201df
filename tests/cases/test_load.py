"""Tests carve-load, the program that simulates users' programs."""
import json
import subprocess

import pytest

from conftest import GiB, LOAD


def test_fill_allocates_what_the_context_leaves_of_the_quota(world):
    done = world.carve("run", "--memory", "2GiB", "--", LOAD, "--pattern", "fill", "--allocate", "100GiB", "--chunk", "64MiB",
                       "--smallest", "2MiB", "--no-touch")
    assert done.returncode == 0, done.stderr
    context = world.json("devices")["devices"][0]["context_bytes"]
    assert json.loads(done.stdout)["bytes_allocated"] == 2 * GiB - context


@pytest.mark.parametrize("pattern", ["fill", "churn"])
def test_a_pattern_without_an_amount_is_rejected(pattern):
    done = subprocess.run([LOAD, "--pattern", pattern, "--seconds", "1"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "require --allocate SIZE" in done.stderr, done.stderr

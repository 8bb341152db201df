"""Kills (kill -9) a custom job's tasks and supervisors, the controller and the agent at random moments that
are drawn from a seed."""
import random
import sys

import pytest

from conftest import long_form
from support.job_kills import begin, run_kills
from support.jobs import mgpu

pytestmark = pytest.mark.usefixtures("own_network")

COUNT = 60 if long_form else 6
VICTIMS = {"controller": {"Succeeded"}, "agent": {"Succeeded"}, "task-0": {"Failed"}, "task-1": {"Failed"},
           "task-0 supervisor": {"Lost"}, "task-1 supervisor": {"Lost"}}
TASK = "import os, time; time.sleep(0.5 + 0.3 * int(os.environ['CARVE_TASK_INDEX']))"


@pytest.mark.parametrize("retries", [0, 1])
def test_jobs_survive_kills_at_random_moments(jobs, retries):
    """Each job has a defined phase, its slices are released, and its invoice is the sum over its usage
    records."""
    begin(jobs)
    jobs.queue()
    victims = VICTIMS if retries == 0 else {victim: {"Succeeded"} for victim in VICTIMS}
    late = run_kills(jobs, random.Random(20 + retries), COUNT // 2,
                     lambda number: jobs.submit("--tasks", 2, "--retries", retries, *mgpu(), "--", sys.executable, "-c", TASK),
                     victims, 0.8, print)
    print(f"slices back after at most {max(late):.3f} s (simulated devices)")
    if long_form:
        assert max(late) < 1, late

"""Objects that are deleted just after their creation hold no device.

The programs end with SIGTERM, and the grace period is longer than any wait in this file. So the tests notice
a signal that is sent before the program is executed and is not repeated.
"""
import json
import shutil
import time

import pytest

from conftest import until
from support.jobs import mgpu
from support.over_unix import asked

pytestmark = [
    pytest.mark.usefixtures("own_network"),
    pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed: apt-get install haproxy"),
]
COUNT = 40
LONGEST_LIFE_S = 0.1


def document(name):
    return {"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"replicas": 1, "gpu": {"memory": "1GiB", "share": "5%"},
                     "run": {"command": ["sleep", "3600"]},
                     "terminationGracePeriodSeconds": 3600}}


def lives():
    """Returns the time from creation to deletion of each object, in seconds."""
    return [LONGEST_LIFE_S * i / (COUNT - 1) for i in range(COUNT)]


def test_a_service_that_is_deleted_immediately_frees_its_device(world, services):
    assert until(lambda: services.nodes()["n1"]["devices"], 30)
    for i, life in enumerate(lives()):
        name = f"brief-{i}"
        assert asked(services.socket, "/v1/documents", "POST", json.dumps(document(name)))[0] == 201
        time.sleep(life)
        assert asked(services.socket, f"/v1/services/{name}", "DELETE")[0] == 200
    assert until(lambda: services.items() == [] and not world.slices(), 60, 0.1), (services.items(), world.slices())


def test_a_job_that_is_deleted_immediately_frees_its_device(world, jobs):
    jobs.queue()
    for life in lives():
        name = jobs.submit("--tasks", 1, *mgpu(5, 256), "--", "sleep", "3600")
        time.sleep(life)
        assert asked(jobs.socket, f"/v1/jobs/{name}", "DELETE")[0] == 200
    assert until(lambda: jobs.items() == [] and not world.slices(), 60, 0.1), (jobs.items(), world.slices())

"""Many jobs wait in a full queue of a running controller. Tests the list, the limit, the decision after a job
ends, and kill -9. CARVE_LONG=1 uses 10,000 jobs, the maximum of waiting jobs, instead of 300."""
import json

import pytest

from conftest import long_form, until
from support.controller import Controller
from support.jobs import Jobs
from support.over_unix import OverUnix

pytestmark = pytest.mark.usefixtures("own_network")
WAITING = 10_000 if long_form else 300
PAGE = 500
RUNNING = 2  # One job on each device.
PARAMETERS = {"serverless.custom.job.gpu.enabled": "true", "serverless.custom.job.task.gpus": "1",
              "emr.serverless.mgpu.core": "99", "emr.serverless.mgpu.memory": "20000"}
NO_CAPACITY = "node n1: devices 0, 1: 20000 MiB needed, 2731 MiB free"


@pytest.fixture
def jobs(world):
    j = Jobs({"n1": world})
    j.agent = world
    yield j
    print("--- the controller's log:\n" + j.log()[-8000:])
    Controller.end(j)  # Ends the agent's slices instead of thousands of jobs one by one.


class Submitter:
    """A connection that is kept open."""

    def __init__(self, jobs):
        self.jobs, self.connection = jobs, OverUnix(jobs.socket)

    def ask(self, method, target, document=None):
        self.connection.request(method, target, json.dumps(document) if document else None)
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())

    def submit(self, number):
        return self.ask("POST", "/v1/jobs", {
            "apiVersion": "carve.dev/v1", "kind": "Job", "metadata": {"name": name_of(number)},
            "spec": {"queue": "train", "parameters": PARAMETERS, "run": {"command": ["sleep", "36000"]}}})

    def listed(self):
        items, token = [], ""
        while True:
            status, page = self.ask("GET", f"/v1/jobs?limit={PAGE}&continue={token}")
            assert status == 200 and len(page["items"]) <= PAGE, page
            items += page["items"]
            token = page["metadata"]["continue"]
            if not token:
                return {item["metadata"]["name"]: item["status"] for item in items}


def name_of(number):
    return f"job-{number:05d}"


def waiting_are(submitter, first, last):
    """Waits until exactly these jobs are waiting, each at its position and with its reason."""
    count = last - first + 1
    assert until(lambda: submitter.ask("GET", "/v1/queues/train")[1]["status"]["waiting"] == count, 120, 0.2)

    def is_right():
        waiting = {name: s for name, s in submitter.listed().items() if s["phase"] == "Queued"}
        return list(waiting) == [name_of(i) for i in range(first, last + 1)] and all(
            (s["position"], s["reason"]) == (i + 1, NO_CAPACITY if i == 0 else f"{name_of(first)} is first in the queue")
            for i, s in enumerate(waiting.values()))
    assert until(is_right, 60, 0.2), list(submitter.listed().items())[:5]


def figure(jobs, name):
    return next(float(line.split()[1]) for line in jobs.text("/metrics").splitlines() if line.startswith(name + " "))


def test_many_jobs_wait_and_survive_a_kill(jobs):
    jobs.queue()
    submitter = Submitter(jobs)
    for number in range(RUNNING + WAITING):
        status, answer = submitter.submit(number)
        assert status == 201, (number, answer)
    last = RUNNING + WAITING - 1
    waiting_are(submitter, RUNNING, last)
    assert figure(jobs, "carve_queue_waiting_jobs") == WAITING
    if long_form:
        status, answer = submitter.submit(last + 1)
        assert (status, answer["detail"]) == (429, "10000 jobs are already waiting, which is the limit; submit again later")
    assert submitter.ask("POST", f"/v1/jobs/{name_of(0)}/cancel")[0] == 200
    waiting_are(submitter, RUNNING + 1, last)  # One job has ended, so the first waiting one has started.
    print(f"decision over {WAITING} waiting jobs: {figure(jobs, 'carve_queue_decision_seconds') * 1000:.1f} ms")
    jobs.kill()
    jobs.start()
    submitter = Submitter(jobs)
    waiting_are(submitter, RUNNING + 1, last)
    running = [name for name, status in submitter.listed().items() if status["phase"] == "Running"]
    assert running == [name_of(1), name_of(2)] and len(jobs.agent.slices()) == RUNNING

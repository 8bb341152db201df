"""A controller with queues and jobs, for tests."""
import json
import pathlib
import subprocess

from support.agent import until
from support.services import Services

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


class Jobs(Services):
    """A controller whose jobs and queues are removed when it ends."""

    def queue(self, name="train", **spec):
        self.apply({"apiVersion": "carve.dev/v1", "kind": "Queue", "metadata": {"name": name}, "spec": spec})

    def submit(self, *words, status=0, engine="custom", queue="train"):
        """Returns the output of `carve submit`, which without --wait is the job's name."""
        before, after = (words[:words.index("--")], words[words.index("--"):]) if "--" in words else (words, ())
        return self.carve("submit", engine, "-q", queue, *before, *after, status=status).strip()

    def begin_submit(self, *words, environment=None, engine="custom", queue="train"):
        return subprocess.Popen([str(self.agent.build / "bin/carve"), "submit", engine, "-q", queue, *map(str, words)], text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**self.agent.environment, "CARVE_CONTROLLER": str(self.socket), **(environment or {})})

    def job(self, name):
        return json.loads(self.carve("get", "job", name, "-o", "json"))

    def status(self, name, kind="job"):
        return json.loads(self.carve("get", kind, name, "-o", "json"))["status"]

    def phase(self, name):
        return self.status(name)["phase"]

    def becomes(self, name, *phases, seconds=60, kind="job"):
        """Waits until the job has one of the phases; returns its status."""
        assert until(lambda: self.status(name, kind)["phase"] in phases, seconds), (self.status(name, kind), self.log())
        return self.status(name, kind)

    def items(self):
        return [(kind, item["metadata"]["name"]) for kind in ("jobs", "rayclusters")
                for item in json.loads(self.carve("get", kind, "-o", "json"))["items"]]

    def all_slices_end(self):
        assert until(lambda: self.agent.slices() == {}, 60), self.agent.slices()


MGPU = ("--conf", "serverless.custom.job.gpu.enabled=true", "--conf", "serverless.custom.job.task.gpus=1")


def mgpu(core=30, memory=1000):
    return (*MGPU, "--conf", f"emr.serverless.mgpu.core={core}", "--conf", f"emr.serverless.mgpu.memory={memory}")

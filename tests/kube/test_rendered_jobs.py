"""A real API server accepts the output of `carve submit --render`."""
import contextlib
import subprocess

import pytest

from cluster import ROOT, until
from support import network
from support.agent import BUILD, Agent
from support.controller import Controller

EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def render():
    """Renders a job with its own controller."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(network.own_network())
        agent = Agent("a10x2")
        stack.callback(agent.end)
        controller = Controller({"n1": agent})
        stack.callback(controller.end)
        environment = {**agent.environment, "CARVE_CONTROLLER": str(controller.socket), "SPARK_HOME": str(agent.folder)}
        (agent.folder / "bin").mkdir()
        (agent.folder / "bin/spark-class").write_text("#!/bin/sh\n")
        (agent.folder / "bin/spark-class").chmod(0o755)

        def carve(*words):
            done = subprocess.run([BUILD / "bin/carve", *map(str, words)], env=environment, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
            return done.stdout
        carve("apply", "-f", EXAMPLES / "queue.yaml")
        def rendered(engine, parameters, *words):
            return carve("submit", engine, "-q", "train", "--params", EXAMPLES / parameters, "--render", "--name", *words)
        made = {"custom": rendered("custom", "job.sql", "a", "--tasks", 2, "--", "python3", "train.py"),
                "spark": rendered("spark", "spark/show.conf", "b", "--", "show.py")}
    return made


@pytest.fixture(scope="module")
def server(cluster):
    """The cluster without Carve's webhooks, which no coordinator answers during these tests, and without the
    policy about pods that the webhooks do not see."""
    path = "/apis/admissionregistration.k8s.io/v1"
    objects = (("mutatingwebhookconfigurations", "carve"), ("validatingwebhookconfigurations", "carve"),
               ("validatingadmissionpolicybindings", "carve-requests"))
    kept = [(f"{path}/{kind}", name, answer) for kind, name in objects
            for status, answer in [cluster.api.call("GET", f"{path}/{kind}/{name}")] if status == 200]
    for kind, name, _ in kept:
        assert cluster.api.call("DELETE", f"{kind}/{name}")[0] == 200
    yield cluster
    for kind, name, configuration in kept:
        configuration["metadata"] = {"name": name, "labels": configuration["metadata"].get("labels", {})}
        assert cluster.api.call("POST", kind, configuration)[0] == 201


def test_the_server_accepts_a_custom_job(server, render):
    text = server.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=render["custom"].replace("IMAGE", "busybox"))
    assert "job.batch/a created (server dry run)" in text
    refused = render["custom"].replace("IMAGE", "busybox").replace("completionMode", "completionModes")
    assert "unknown field" in server.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=refused, check=False)


def test_the_server_accepts_sparks_pod_template(server, render):
    template = render["spark"].replace("IMAGE", "busybox").replace("metadata:\n", "metadata:\n  name: b\n")  # Spark sets the names of pods.

    def applied():  # The API server notices the removal only a moment later.
        return server.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=template, check=False)
    assert until(lambda: "pod/b created (server dry run)" in applied()), applied()

"""Tests manifests written for other systems: which container runs, and which port a Kubernetes Service
sets."""
import json
import shutil
import urllib.request

import pytest

from conftest import until
from support.services import Services

pytestmark = pytest.mark.usefixtures("own_network")
with_proxy = pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed: apt-get install haproxy")
SERVE = "cd $(mktemp -d) && echo {0} > index.html && exec python3 -m http.server {1} --bind 127.0.0.1"


@pytest.fixture
def services(services):
    assert until(lambda: services.nodes()["n1"]["devices"], 30)
    return services


def deployment(name, command, replicas=1):
    container = {"name": "server", "command": ["sh", "-c", command], "ports": [{"name": "http", "containerPort": 30000}],
                 "resources": {"limits": {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 2000}}}
    pod = {"metadata": {"labels": {"app": name}},
           "spec": {"containers": [{"name": "proxy", "command": ["sleep", "600"]}, container]}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": pod}}


def address(name, app, target=None):
    port = {"port": 8000, **({"targetPort": target} if target else {})}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"selector": {"app": app}, "ports": [port]}}


def texts(*documents):
    return "\n---\n".join(map(json.dumps, documents))


def answer(services, name):
    with urllib.request.urlopen(services.service(name)["status"]["endpoint"], timeout=10) as response:
        return response.read().decode().strip()


@with_proxy
def test_a_program_with_a_fixed_port_answers_before_and_after_an_update(services):
    """The Service precedes the Deployment and has another name; the program does not read PORT."""
    for text in ("one", "two"):
        services.apply(texts(address("llm-service", "llm", "http"), deployment("llm", SERVE.format(text, 30000))), "--wait")
        assert answer(services, "llm") == text
    other = texts(address("b", "b", 30000), deployment("b", SERVE.format("b", 30000)))
    assert "spec.targetPort: 30000: the program of service llm already listens on this port" in services.apply(other, "--dry-run", status=1)
    assert "30000: only one of 2 replicas can listen on this port" in services.carve("scale", "service/llm", "--replicas", "2", status=1)


@with_proxy
def test_each_replica_of_a_program_that_reads_port_has_its_own_port(services):
    services.apply(texts(deployment("llm", SERVE.format("many", "${PORT:-30000}"), replicas=2), address("a", "llm", 30000)), "--wait")
    assert answer(services, "llm") == "many"


def test_a_kubernetes_service_that_cannot_be_served_is_rejected_before_anything_runs(services):
    fixed = texts(deployment("llm", SERVE.format("x", 30000), replicas=2), address("a", "llm", 30000))
    for verb in (("apply",), ("apply", "--dry-run"), ("render",)):
        path = services.folder / "document"
        path.write_text(fixed)
        assert "document 2: spec.ports[0].targetPort: 30000" in services.carve(*verb, "-f", path, status=1)
    assert services.items() == []


def test_the_replicas_of_a_stateful_set_are_named_like_its_pods(world, services):
    document = deployment("binpack", "echo I am $HOSTNAME; exec sleep 600", replicas=2)
    document.update(kind="StatefulSet")
    document["spec"]["podManagementPolicy"] = "Parallel"
    assert "podManagementPolicy" not in services.apply(document, "--wait")
    assert sorted(world.slices()) == ["binpack-0", "binpack-1"]
    assert until(lambda: "I am binpack-0" in services.carve("logs", "binpack"), 30)
    document["spec"]["template"]["spec"]["containers"][1]["command"][2] = "exec sleep 601"
    services.apply(document, "--wait")
    assert sorted(world.slices()) == ["binpack-0", "binpack-1"]


@pytest.mark.parametrize("text, message", [
    ("services: {model: {image: x, deploy: {}}}\n", "services: this is a Compose file with the services model"),
    ("replicaCount: 1\nimage: {repository: x}\n", "replicaCount: these are the values of a Helm chart"),
    ("kind: Pod\nmetadata: {name: {{ .Release.Name }}}\n", "this is a template of a Helm chart"),
])
def test_a_file_of_another_tool_is_recognized(services, text, message):
    for verb in (("apply", "-f"), ("render", "-f"), ("explain", "-f"), ("eas", "create")):
        path = services.folder / "document"
        path.write_text(text)
        assert message in services.carve(*verb, path, status=1)


def test_an_unsupported_gpu_request_is_accepted_if_the_operator_allows_it(world):
    """The program then runs without a slice and sees no device."""
    services = Services({"n1": world}, "--allow-unknown-gpu-requests")
    services.agent = world
    say = "echo seen=[$CUDA_VISIBLE_DEVICES]; sleep 600"
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other"}, "spec": {"containers": [
        {"name": "main", "command": ["sh", "-c", say], "resources": {"limits": {"volcano.sh/vgpu-number": 1}}}]}}
    try:
        assert "service/other created" in services.apply(manifest, "--wait")
        assert until(lambda: "seen=[]\n" in services.carve("logs", "other"), 60)
        assert world.slices() == {}
    finally:
        services.end()

"""Tests rendering documents as Kubernetes manifests (carve render), and explaining which rule translated
which field (carve explain -f)."""
import json

import pytest

from conftest import HERE, GiB

pytestmark = pytest.mark.usefixtures("own_network")

EXAMPLES = HERE.parent / "examples"


@pytest.fixture
def services(services):
    services.node_becomes("n1", "reachable")
    return services


@pytest.mark.parametrize("example,memory,share", [("service.yaml", 5 * GiB, 2000), ("application.yaml", 4 * GiB, 3000),
                                                  ("ack-deployment.yaml", 4 * GiB, 0)])
def test_a_rendered_manifest_gives_the_same_slices_when_applied(world, services, example, memory, share):
    rendered = services.carve("render", "-f", EXAMPLES / example)
    manifests = "".join(line + "\n" for line in rendered.splitlines() if not line.startswith("carve: warning: "))
    assert "carve: warning: spec.run.image is missing" in rendered
    assert services.items() == [], "nothing is kept"
    services.apply(manifests, "--wait")
    parts = [one["parts"][0] for one in world.slices().values()]
    assert [(p["quota_bytes"], p["share_bp"]) for p in parts] == [(memory, share)] * 2
    if example != "ack-deployment.yaml":
        assert services.service(services.items()[0][1])["spec"]["port"] == 8000


def test_documents_that_kubernetes_cannot_count_are_rejected(services):
    path = services.folder / "odd"
    path.write_text('{"apiVersion":"carve.dev/v1","kind":"Service","metadata":{"name":"a"},'
                    '"spec":{"gpu":{"memory":"1GiB","share":"12.5%"},"run":{"command":["x"]}}}')
    assert "'12.5%' is not a whole percentage, which carve.dev/compute requires" in services.carve("render", "-f", path, status=1)


def test_explain_shows_the_rules_and_the_placement(services):
    shown = services.carve("explain", "-f", EXAMPLES / "application.yaml")
    assert "application/chat" in shown
    assert "spec.gpu.compute 0.30 -> spec.gpu.share 30%: of one device" in shown
    assert "spec.gpu.memory 4096MiB -> slice.memory_bytes 4294967296" in shown
    assert "replica 0: node n1, device 0" in shown and "replica 1: node n1" in shown
    assert services.items() == []
    path = services.folder / "large"
    path.write_text('{"apiVersion":"carve.dev/v1","kind":"Service","metadata":{"name":"a"},'
                    '"spec":{"replicas":3,"gpu":{"memory":"20GiB"},"run":{"command":["x"]}}}')
    shown = services.carve("explain", "-f", path, status=1)
    assert "replica 1: node n1, device 1" in shown and "replica 2: waits; node n1: " in shown
    translated = json.loads(services.carve("explain", "-f", EXAMPLES / "eas.json", "-o", "json"))["items"][0]["translation"]
    assert "metadata.gpu_memory" in [row["field"] for row in translated]

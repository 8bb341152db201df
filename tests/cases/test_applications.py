"""Applications and Kubernetes manifests run as services do, and images run as containers."""
import json
import os
import pathlib
import shutil
import subprocess
import urllib.request

import pytest

from conftest import GiB, HERE, LOAD, until
from support.image import carve_image

pytestmark = [
    pytest.mark.usefixtures("own_network"),
    pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed: apt-get install haproxy"),
]
EXAMPLES = HERE.parent / "examples"


@pytest.fixture
def services(services):
    assert until(lambda: services.nodes()["n1"]["devices"], 30)
    return services


def test_an_application_gets_exactly_the_share_in_its_document(world, services):
    shown = services.apply((EXAMPLES / "application.yaml").read_text(), "--wait")
    assert "application/chat created" in shown
    chat = services.service("chat", "application")
    assert chat["spec"]["gpu"]["compute"] == "0.30" and chat["status"]["gpu"] == "4 GiB, 30% of a device"
    slices = world.slices()
    assert sorted(slices) == ["chat-1-0", "chat-1-1"]
    for name, one in slices.items():
        assert one["parts"][0]["quota_bytes"] == 4 * GiB and one["parts"][0]["share_bp"] == 3000
        assert one["labels"]["carve.dev/kind"] == "application" and one["labels"]["carve.dev/name"] == "chat"
    with urllib.request.urlopen(chat["status"]["endpoint"], timeout=10) as response:
        assert response.status == 200


def test_an_earlier_revision_can_be_restored_and_a_restart_replaces_every_replica(world, services):
    services.apply((EXAMPLES / "application.yaml").read_text(), "--wait")
    services.carve("rollout", "restart", "application/chat")
    assert sorted(world.slices()) == ["chat-2-0", "chat-2-1"]
    changed = (EXAMPLES / "application.yaml").read_text().replace("/tmp", "/")
    services.apply(changed, "--wait")
    history = services.carve("rollout", "history", "app/chat")
    assert [line.split()[0] for line in history.splitlines()[1:]] == ["1", "2", "3"] and "3 (present)" in history
    services.carve("scale", "application/chat", "--replicas", "1", "--wait")
    services.carve("rollout", "undo", "application/chat", "--to-revision", "1")
    chat = services.service("chat", "application")
    assert chat["spec"]["run"]["workdir"] == "/tmp" and chat["status"]["revision"] == 4
    assert chat["spec"]["replicas"] == 1, "undo keeps the number of replicas"
    assert "no revision 99" in services.carve("rollout", "undo", "application/chat", "--to-revision", "99", status=1)


@pytest.mark.parametrize("gpu,message", [
    ("type: mGPU, memory: 4096, compute: 1.5", "gpu.compute: 1.5 is neither a positive whole number nor 0.01 to 0.99 with at most 2 decimals"),
    ("type: mGPU, memory: 256, compute: 0.5", "gpu.memory: 256 MiB is too little; single-device sharing needs more than 256 MiB"),
    ("type: mGPU, memory: 4096", "gpu.compute: is required unless the policy is native-burst-share"),
    ("type: mGPU, memory: 4096, compute: 0.5, devices: 2", "gpu.devices: 2 devices require multiDevice: true"),
    ("type: mGPU, memory: 1024, compute: 1, devices: 2, multiDevice: true", "multi-device sharing needs more than 1024 MiB"),
])
def test_each_rule_for_applications_has_its_message(services, gpu, message):
    document = f"apiVersion: carve.dev/v1\nkind: Application\nmetadata: {{name: a}}\nspec: {{gpu: {{{gpu}}}, run: {{command: [x]}}}}\n"
    assert message in services.apply(document, status=1)
    assert services.items() == []


def test_a_policy_that_no_node_has_is_rejected(services):
    document = (EXAMPLES / "application.yaml").read_text().replace("fixed-share", "native-burst-share")
    shown = services.apply(document, status=1)
    assert "gpu.policy: no node has the policy 'native-burst-share': node n1 has fixed-share" in shown
    assert services.items() == []


def test_the_mode_of_the_node_determines_the_isolation(world, services):
    services.carve("label", "node", "n1", "ack.node.gpu.schedule=share")
    assert until(lambda: services.nodes()["n1"]["mode"]["effective"] == "none", 30)
    services.apply((EXAMPLES / "ack-deployment.yaml").read_text(), "--wait")
    assert {one["isolation"] for one in world.slices().values()} == {"none"}
    services.apply((EXAMPLES / "application.yaml").read_text())
    def reasons():
        return [c["message"] for c in services.service("chat", "application")["status"]["conditions"] if c["reason"] == "SliceRefused"]
    assert until(reasons, 30) and "no node's mode provides a share of compute: node n1: the node's mode is none" in reasons()[0]


def test_a_manifest_in_the_nodes_units_runs_unchanged(world, services):
    shown = services.apply((EXAMPLES / "ack-deployment.yaml").read_text(), "--wait")
    assert "service/worker created" in shown
    worker = services.service("worker")
    assert worker["status"]["gpu"] == "4 x 1 GiB = 4 GiB, no compute limit"
    assert worker["spec"]["source"]["dialect"] == "ack" and worker["metadata"]["labels"] == {"app": "worker"}
    assert {one["parts"][0]["quota_bytes"] for one in world.slices().values()} == {4 * GiB}


@pytest.mark.skipif(shutil.which("podman") is None, reason="podman is not installed: apt-get install podman runc")
@pytest.mark.skipif(os.geteuid() != 0, reason="podman reads devices that root announced")
def test_an_image_runs_as_a_container_in_its_slice_and_leaves_nothing_behind(world, services, carve_image):
    container = {"name": "c", "image": carve_image, "env": [{"name": "SECRET", "value": "hidden-value"}],
                 "command": ["/bin/bash", "-c", "echo I have $SECRET; exec /bin/carve-load --allocate 1GiB --no-touch --seconds 600"],
                 "resources": {"limits": {"aliyun.com/gpu-mem": 2}}}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "boxed"}, "spec": {"containers": [container]}}
    services.apply(manifest, "--wait")
    shown = world.attached("boxed-1-0")
    assert shown["parts"][0]["charged_bytes"] >= GiB and shown["state"] == "running"
    assert until(lambda: "I have hidden-value" in services.carve("logs", "boxed"), 30)
    for command_line in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert b"hidden-value" not in command_line.read_bytes()
        except OSError:
            pass  # The process has ended.
    services.carve("rollout", "restart", "service/boxed")
    assert sorted(world.slices()) == ["boxed-2-0"]
    services.carve("delete", "service", "boxed")
    assert until(lambda: not world.slices() and services.items() == [], 60)
    left = subprocess.run(["podman", "ps", "--all", "--format", "{{.Names}}"], capture_output=True, text=True).stdout
    assert "boxed" not in left


@pytest.mark.skipif(shutil.which("podman") is None, reason="podman is not installed: apt-get install podman runc")
@pytest.mark.skipif(os.geteuid() != 0, reason="podman reads devices that root announced")
def test_an_image_that_cannot_be_pulled_is_reported_with_podmans_message(services):
    services.apply({"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": "boxed"},
                    "spec": {"gpu": {"memory": "2GiB"}, "run": {"image": "127.0.0.1:9/nothing:none"}}})
    status = lambda: services.service("boxed")["status"]
    assert until(lambda: status()["phase"] == "ImagePullFailed", 60), status()
    assert "ImagePullFailed" in services.carve("get", "services")
    assert "127.0.0.1:9" in services.carve("describe", "service/boxed"), "what podman said"
    message = lambda: next(c["message"] for c in status()["conditions"] if c["type"] == "Progressing")
    start = "cannot pull image '127.0.0.1:9/nothing:none'; the pull will be retried: "
    assert until(lambda: message().startswith(start), 60), message()
    assert "127.0.0.1:9" in message().removeprefix(start), "what podman said"
    (services.folder / "damaged").write_text("no archive")
    missing = [f"{transport}:/nowhere/image" for transport in ("oci-archive", "docker-archive", "oci", "dir")]
    for number, image in enumerate(["localhost/No:1", *missing, f"oci-archive:{services.folder}/damaged"]):
        services.apply({"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": f"bad-{number}"},
                        "spec": {"gpu": {"memory": "1GiB"}, "run": {"image": image}}})
        status = lambda: services.service(f"bad-{number}")["status"]
        assert until(lambda: status()["phase"] == "ImagePullFailed", 60), (image, status())


@pytest.mark.parametrize("policy, script, phase, ended", [
    ("Never", "exit 0", "Succeeded", "exit status 0"), ("Never", "exit 3", "Failed", "exit status 3"),
    ("OnFailure", "test -e {folder}/again || {{ touch {folder}/again; exit 1; }}", "Succeeded", "exit status 0")])
def test_a_pod_that_runs_once_ends_with_its_exit_status_and_releases_its_slice(world, services, policy, script, phase, ended):
    command = ["sh", "-c", f"echo ran >> {services.folder}/runs; " + script.format(folder=services.folder)]
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "once"}, "spec": {
        "restartPolicy": policy, "containers": [{"name": "c", "command": command, "resources": {"limits": {"aliyun.com/gpu-mem": 1}}}]}}
    status = lambda: services.service("once")["status"]
    runs = lambda: len((services.folder / "runs").read_text().splitlines())
    services.apply(manifest)
    assert until(lambda: status()["phase"] == phase and not world.slices(), 60), status()
    assert status()["ended"] == ended and runs() == (2 if policy == "OnFailure" else 1)
    before = runs()
    services.apply(manifest)
    services.restart()
    assert until(lambda: status()["phase"] == phase, 30) and not world.slices() and runs() == before, "it has run"
    services.carve("eas", "start", "once")
    assert until(lambda: runs() > before and status()["phase"] == phase, 60), status()


def test_a_run_once_program_keeps_its_log_until_its_service_runs_again(world, services):
    command = ["sh", "-c", f"echo run >> {services.folder}/runs; echo this is run $(wc -l < {services.folder}/runs); exit 3"]
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "once"}, "spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "command": command, "resources": {"limits": {"aliyun.com/gpu-mem": 1}}}]}}
    status = lambda: services.service("once")["status"]
    ended = lambda: [(r["slice"], r["state"], r["lastExit"]) for r in status()["replicaList"]]
    shown = services.apply(manifest, "--wait", status=1)
    assert "failed: exit status 3" in shown and "carve logs service/once shows its output" in shown
    assert until(lambda: not world.slices() and ended() == [("once-1-0", "Failed", "exit status 3")], 60), status()
    assert "this is run 1\n" in services.carve("logs", "service/once")
    services.restart()
    assert until(lambda: status()["replicaList"], 30) and ended() == [("once-1-0", "Failed", "exit status 3")]
    assert "this is run 1\n" in services.carve("logs", "once")
    assert "exit status 3" in services.carve("describe", "service/once")
    services.carve("eas", "start", "once")
    assert until(lambda: "this is run 2\n" in services.carve("logs", "once"), 60)
    assert "this is run 1\n" not in services.carve("logs", "once")
    assert until(lambda: ended() == [("once-1-0", "Failed", "exit status 3")], 60), status()
    command[2] = "echo changed"
    assert "[OK] Succeeded" in services.apply(manifest, "--wait")
    assert until(lambda: ended() == [("once-2-0", "Succeeded", "exit status 0")], 60), status()
    assert "changed\n" in services.carve("logs", "once")
    services.carve("rollout", "restart", "service/once")
    assert until(lambda: ended() == [("once-3-0", "Succeeded", "exit status 0")], 60), status()
    services.carve("delete", "service/once")
    assert until(lambda: not list((services.state / "programs").glob("once*")), 30), "its files are removed with it"


def test_a_deployment_restarts_its_programs(services):
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "command": ["true"]}]}}
    refused = services.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": template}}, status=1)
    assert "'Never': the programs of a Deployment are always restarted; use a Pod" in refused


def test_a_program_that_does_not_exist_is_reported(services):
    services.apply({"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": "typo"},
                    "spec": {"gpu": {"memory": "2GiB"}, "run": {"command": ["/no/such/trian"]}}})
    status = lambda: services.service("typo")["status"]
    assert until(lambda: any("/no/such/trian" in replica["lastExit"] for replica in status()["replicaList"]), 60), status()


def test_a_program_over_its_quota_is_restarted_and_the_reason_shown(services):
    document = {"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": "greedy"},
                "spec": {"gpu": {"memory": "2GiB"}, "run": {"command": [str(LOAD), "--allocate", "3GiB", "--no-touch"]}}}
    services.apply(document)
    def status():
        return services.service("greedy")["status"]
    assert until(lambda: status()["restarts"] >= 2, 60), json.dumps(status())
    reason = "; an allocation was refused by its GPU memory quota of 2 GiB"
    assert until(lambda: [r["lastExit"][-len(reason):] for r in status()["replicaList"]] == [reason], 60), json.dumps(status())
    assert "refused      memory over the quota, last at" in services.carve("show", "greedy-1-0")

"""Tests `carve whoami` and `carve auth can-i`: they report the rules that decide the requests themselves."""
import json
import os

import pytest

from conftest import Agent
from support.controller import Controller

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="run as root these cases play other users")
USER = {"user": 65533, "group": 65533, "extra_groups": []}
MEMBER = {**USER, "extra_groups": [1]}


@pytest.fixture(scope="module")
def node():
    agent = Agent("a10x1", "--operators-group", "daemon")
    agent.socket.chmod(0o666)
    controller = Controller({"n": agent})
    controller.folder.chmod(0o755)
    controller.socket.chmod(0o666)
    agent.controller = controller
    agent.environment["CARVE_CONTROLLER"] = str(controller.socket)
    yield agent
    controller.end()
    agent.end()


def test_whoami_shows_the_rights_and_limits_of_the_caller(node):
    assert node.carve("limit", "set", "65533", "--slices", "2").returncode == 0
    user = node.carve("whoami", **USER)
    assert user.returncode == 0 and "(uid 65533)" in user.stdout and "operator     no" in user.stdout, user
    assert "role user" in user.stdout and "0 / 2" in user.stdout
    assert "operator     yes: a member of the group daemon" in node.carve("whoami", **MEMBER).stdout
    root = node.json("whoami")
    assert root["agent"]["reason"] == "root" and root["controller"]["role"] == "operator" and root["agent"]["limits"] == []


def test_whoami_works_without_a_controller_and_fails_without_both(node):
    nowhere = {"CARVE_CONTROLLER": "/nonexistent/c"}
    shown = node.carve("whoami", env=nowhere)
    assert shown.returncode == 0 and "operator     yes: root" in shown.stdout and "/nonexistent/c" in shown.stdout
    assert node.carve("whoami", env={**nowhere, "CARVE_SOCKET": "/nonexistent/s"}).returncode == 1


@pytest.mark.parametrize("words, who, status, text", [
    (("apply", "queues"), {}, 0, "yes\n"),
    (("apply", "services"), USER, 0, "yes, for your own objects\n"),
    (("apply", "queues"), USER, 1, "no\n"),
    (("get", "queue"), USER, 0, "yes\n"),
    (("fly", "queue"), USER, 1, ""),
    (("get", "queuess"), USER, 2, ""),
])
def test_can_i(node, words, who, status, text):
    done = node.carve("auth", "can-i", *words, **who)
    assert (done.returncode, done.stdout) == (status, text), done.stderr
    assert bool(done.stderr) == (status != 0)


def test_can_i_agrees_with_the_request(node):
    document = json.dumps({"apiVersion": "carve.dev/v1", "kind": "Queue", "metadata": {"name": "q"}, "spec": {}})
    file = node.folder / "q.json"
    file.write_text(document)
    refused = node.carve("apply", "-f", file, **USER)
    reason = node.carve("auth", "can-i", "apply", "queues", **USER).stderr
    assert refused.returncode == 1 and "only operators may change queues" in refused.stderr and "only operators may change queues" in reason
    assert node.carve("apply", "-f", file).returncode == 0

"""Tests the controller as its systemd unit starts it: as an ordinary user with only the capabilities of the
unit."""
import json
import os
import pwd
import re
import shutil
import signal

import pytest

from conftest import HERE, until
from support.agent import Agent
from support.services import Services

UNIT = (HERE.parent / "deploy/carve-controller.service.in").read_text()
CONTROLLERS_USER, USER = "daemon", "nobody"  # Both exist on every Debian.
SERVICE = {"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": "demo"},
           "spec": {"replicas": 1, "gpu": {"memory": "2GiB", "share": "20%"}, "port": 8000,
                    "run": {"command": ["python3", str(HERE / "support/http_server.py")]}}}
JOB = {"apiVersion": "carve.dev/v1", "kind": "Job", "metadata": {"name": "once"}, "spec": {"queue": "train", "engine": "custom", "run": {"command": ["true"]}}}
QUEUE = {"apiVersion": "carve.dev/v1", "kind": "Queue", "metadata": {"name": "train"}, "spec": {}}

pytestmark = [
    pytest.mark.usefixtures("own_network"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the controller and its callers are other users"),
    pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed: apt-get install util-linux"),
    pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed: apt-get install haproxy"),
]


def words_of_the_unit():
    """Returns the command that starts a program with the rights that the unit leaves to it."""
    (ambient,) = re.findall(r"^AmbientCapabilities=(.*)$", UNIT, re.M)
    (bounding,) = re.findall(r"^CapabilityBoundingSet=(.*)$", UNIT, re.M)
    named = lambda value: ",".join(["-all", *("+" + word.removeprefix("CAP_").lower() for word in value.split())])
    assert "NoNewPrivileges=yes" in UNIT
    return ["setpriv", f"--reuid={CONTROLLERS_USER}", f"--regid={CONTROLLERS_USER}", "--clear-groups", f"--bounding-set={named(bounding)}",
            f"--inh-caps={named(ambient)}", f"--ambient-caps={named(ambient)}", "--no-new-privs"]


class Packaged(Services):
    def start(self):
        uid = pwd.getpwnam(CONTROLLERS_USER).pw_uid
        os.chown(self.folder, uid, uid)
        self.folder.chmod(0o755)
        super().start()
        self.socket.chmod(0o666)  # As the group `carve` does.


@pytest.fixture
def controller():
    agent = Agent("a10x2", "--controller-user", CONTROLLERS_USER)
    agent.environment["CARVE_TRUSTED_UIDS"] = str(pwd.getpwnam(CONTROLLERS_USER).pw_uid)
    (agent.folder / "s").chmod(0o666)
    c = Packaged({"n1": agent}, before=words_of_the_unit())
    c.agent = agent
    c.node_becomes("n1", "reachable")
    yield c
    print("--- the controller's log:\n" + c.log())
    c.end()
    agent.end()


def apply(controller, document, user, status=0):
    """Runs `carve apply` as this user and returns its output."""
    file = controller.folder / "document"
    file.write_text(json.dumps(document))
    file.chmod(0o644)
    entry = pwd.getpwnam(user)
    done = controller.agent.carve("apply", "-f", file, user=entry.pw_uid, group=entry.pw_gid, extra_groups=[],
                                  env={"CARVE_CONTROLLER": str(controller.socket)})
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def capabilities_of(pid):
    with open(f"/proc/{pid}/status") as status:
        return {name: int(value, 16) for name, value in re.findall(r"^(Cap\w+):\t(\w+)$", status.read(), re.M) if name != "CapBnd"}


def test_a_service_of_an_ordinary_user_runs_as_this_user(controller):
    apply(controller, SERVICE, USER)
    controller.running()
    (slice_,) = controller.agent.json("ps")["slices"]
    assert slice_["owner_uid"] == pwd.getpwnam(USER).pw_uid
    pids = [p["pid"] for p in controller.agent.show(slice_["name"])["processes"]]
    assert pids and all(os.stat(f"/proc/{pid}").st_uid == slice_["owner_uid"] for pid in pids)
    for pid in [*pids, controller.process.pid]:
        assert not any(capabilities_of(pid).values()), "only the launcher keeps any"
    os.kill(pids[0], signal.SIGKILL)
    assert until(lambda: controller.service("demo")["status"]["restarts"] == 1, 60), "its files are read"
    controller.running()


def test_an_object_whose_programs_could_not_be_started_is_rejected_when_applied(controller):
    before = controller.agent.json("ps")["slices"]
    apply(controller, QUEUE, "root")
    for document in SERVICE, JOB:
        text = apply(controller, document, "root", status=1)
        assert f"starting a program as root requires a controller that runs as root, but this one runs as {CONTROLLERS_USER}" in text
    assert controller.items() == [] and controller.agent.json("ps")["slices"] == before

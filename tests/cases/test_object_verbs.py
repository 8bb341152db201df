"""Tests verbs for objects as users of kubectl type them: with several names, a file, a printed list or a
namespace."""
import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from conftest import until

pytestmark = [
    pytest.mark.usefixtures("own_network"),
    pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed: apt-get install haproxy"),
]


def document(name, replicas=0, **metadata):
    return {"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": name, **metadata},
            "spec": {"replicas": replicas, "run": {"command": ["sh", "-c", "echo begun; exec sleep 1000"]}}}


def several(*documents):
    return "\n---\n".join(json.dumps(d) for d in documents)


def test_each_named_object_is_deleted_and_an_extra_word_is_rejected(services):
    services.apply(several(*(document(name) for name in "abcd")))
    assert "unexpected argument 'b'" in services.carve("scale", "service", "a", "b", "--replicas", "1", status=2)
    assert "'b': write every object as KIND/NAME, or one KIND followed by names" in services.carve("delete", "service/a", "b", status=2)
    assert services.carve("delete", "service", "a", "b") == "service/a deleted\nservice/b deleted\n"
    assert services.carve("delete", "service/c", "service/nope", "service/d", status=1) == \
        "service/c deleted\nservice/d deleted\ncarve: there is no service nope\n"
    assert services.items() == [], "the verb waits until they are gone"
    assert "no object is given; add objects, such as service/NAME, or a file" in services.carve("delete", status=2)


def test_objects_can_be_deleted_by_a_file(services):
    text = several(document("a"), {"metadata": {"name": "My_Model"}, "containers": [{"command": "sleep 1000"}]})
    services.apply(text)
    path = services.folder / "document"
    path.write_text(text.replace("replicas", "replcas"))
    assert "unknown field" in services.carve("delete", "-f", path, status=1)
    path.write_text(text)
    assert services.carve("delete", "-f", path) == "service/my-model deleted\nservice/a deleted\n"


def test_delete_waits_until_the_programs_have_ended(services):
    """A program ignores SIGTERM for its grace period. However the wait is ended, the deletion continues."""
    pid = services.folder / "pid"
    stubborn = document("a", replicas=1)
    stubborn["spec"]["run"]["command"] = ["sh", "-c", f"trap '' TERM; echo $$ > {pid}; while :; do sleep 1; done"]
    services.apply(stubborn, "--wait")
    assert services.carve("delete", "service/a", "--wait=false") == "service/a deletion requested\n"
    assert services.carve("delete", "service/a", "--timeout", "1s", status=1) == \
        "carve: service/a: still being deleted after 1s; the deletion continues, and carve get service/a shows its state\n"
    assert "'soon' is not a duration such as" in services.carve("delete", "service/a", "--timeout", "soon", status=2)
    assert services.service("a")["status"]["phase"] == "Deleting"
    waiting = subprocess.Popen([str(services.agent.build / "bin/carve"), "delete", "service/a"], stderr=subprocess.PIPE, text=True,
                               env={**services.agent.environment, "CARVE_CONTROLLER": str(services.socket)})
    assert until(lambda: int(signal_mask(waiting.pid), 16) & 1 << signal.SIGINT - 1, 30), "it waits"
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(30) == 130 and waiting.stderr.read() == "carve: stopped waiting; the deletion continues\n"
    assert services.service("a")["status"]["phase"] == "Deleting"
    os.kill(int(pid.read_text()), signal.SIGKILL)
    assert until(lambda: services.items() == [], 60)


def signal_mask(pid):
    """Returns the signals that the process catches."""
    return pathlib.Path(f"/proc/{pid}/status").read_text().split("SigCgt:")[1].split()[0]


def test_a_printed_list_can_be_applied_again(services):
    services.apply(several(document("a"), document("b")))
    for form in ("yaml", "json"):
        printed = services.carve("get", "services", "-o", form)
        assert services.apply(printed) == "service/a unchanged\nservice/b unchanged\n"


def test_a_column_shows_namespaces_other_than_the_default(services):
    services.apply(document("a"))
    assert "NAMESPACE" not in services.carve("get", "services")
    services.apply(document("b", namespace="team"))
    heading, a, b = services.carve("get", "services").splitlines()
    assert heading.split()[-2:] == ["NAMESPACE", "AGE"] and a.split()[-2] == "default" and b.split()[-2] == "team"
    assert "NAMESPACE" not in services.carve("get", "services", "-n", "default")
    services.carve("delete", "service/b", "-n", "team")


def test_since_accepts_a_time_with_a_unit(services):
    services.apply(document("a", replicas=1), "--wait")
    assert "Z begun\n" in services.carve("logs", "a", "--timestamps")
    assert "begun" in services.carve("logs", "a", "--since", "10m") and "begun" in services.carve("logs", "a", "--since", "600")
    assert "'10x' is not a duration such as 90s, 10m, 2h or 30d" in services.carve("logs", "a", "--since", "10x", status=2)
    assert "--tail: 'x' is not a valid number, or is out of range" in services.carve("logs", "a", "--tail", "x", status=2)


def test_a_wrong_word_is_rejected_with_the_valid_ones(services):
    services.apply(document("a"))
    assert "--dry-run: 'server': the option takes no value" in services.apply(document("a"), "--dry-run=server", status=2)
    assert "rollout: 'statsu' is not one of" in services.carve("rollout", "statsu", "service/a", status=2)
    assert "a verb is required: " in services.carve("rollout", status=2)
    assert "carve: '--nonsuch' is not an option" in services.carve("--nonsuch", status=2)
    assert "rollout: '--nonsuch' is not an option" in services.carve("rollout", "--nonsuch", "service/a", status=2)
    assert "node: 'frob' is not one of set, " in services.carve("node", "frob", status=2)
    assert "set: unexpected argument 'frob'" in services.carve("node", "set", "--policy", "fixed-share", "frob", status=2)
    assert "delete: '--no-wait' is not an option" in services.carve("delete", "service/a", "--no-wait", status=2)
    assert "nodes are set by the controller's --node option" in services.carve("delete", "node/n1", status=1)


def test_the_doctor_checks_the_controller(services):
    def check():
        return next(c for c in json.loads(services.carve("doctor", "-o", "json"))["checks"] if c["name"] == "controller")
    assert check()["status"] == "ok"


def test_a_dry_run_is_rejected_like_the_change_itself(services):
    twice = several(document("a"), document("a"))
    assert services.apply(twice, "--dry-run", status=1) == services.apply(twice, status=1) == \
        "carve: two documents describe service a; remove one of them\n"
    assert services.items() == []


def test_a_number_instead_of_a_string_is_rejected_with_the_fix(services):
    limits = "apiVersion: carve.dev/v1\nkind: Service\nmetadata: {name: a}\nspec: {run: {command: [x]}, cpu: {limit: 2}}\n"
    assert services.apply(limits, status=1) == "carve: spec.cpu.limit: 2 is not a string; write it in quotes\n"


def test_objects_are_deleted_by_label_or_all_of_a_namespace(services):
    services.apply(several(document("a", labels={"app": "web"}), document("b"), document("c", labels={"app": "web"}),
                           document("d", namespace="team")))
    delete = lambda *words, **status: services.carve("delete", *words, **status)
    assert "leave out service/a" in delete("service/a", "--all", status=2) and "need a kind" in delete("--all", status=2)
    assert "use one" in delete("services", "--all", "-l", "app=web", status=2)
    assert "name the kinds" in delete("all", "--all", status=2)
    assert "did you mean 'services'?" in delete("servics", "--all", status=2)
    assert delete("services", "-l", "app=web") == "service/a deleted\nservice/c deleted\n"
    assert delete("services", "-l", "app=web") == "No objects match.\n"
    assert delete("services,jobs", "--all") == "service/b deleted\n"
    assert services.items() == [("services", "d")], "another namespace is kept"
    assert delete("services", "--all", "-n", "team") == "service/d deleted\n"


def test_wait_ends_when_objects_reach_a_state_or_are_gone(services):
    wait = lambda *words, **status: services.carve("wait", *words, **status)
    services.apply(several(document("a", replicas=1), document("b")))
    assert wait("--for=condition=Ready", "service/a", "--timeout", "60s") == "service/a condition met\n"
    assert wait("--for=jsonpath={.status.readyReplicas}=1", "service", "a") == "service/a condition met\n"
    assert wait("--for=jsonpath={.status.phase}=Stopped", "service/a", "service/b", "--timeout", "0s", status=1) == (
        "service/b condition met\n"
        "carve: service/a: jsonpath={.status.phase}=Stopped is not reached after 0s; carve describe service/a shows its state\n")
    assert wait("--for=condition=Ready", "service/nope", status=1) == "carve: there is no service nope\n"
    assert "did you mean 'services'?" in wait("--for=delete", "servics/a", status=2)
    assert "add what to wait for" in wait("service/a", status=2)
    assert "'gone' cannot be waited for; use condition=NAME" in wait("--for=gone", "service/a", status=2)
    assert services.carve("delete", "service/a", "--wait=false") == "service/a deletion requested\n"
    assert wait("--for=delete", "service/a", "service/nope", "--timeout", "60s") == "service/a deleted\nservice/nope deleted\n"

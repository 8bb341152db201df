"""Tests the output options of `carve get`, `ps` and `devices` as users of kubectl type them."""
import json
import re
import shutil

import pytest

pytestmark = [
    pytest.mark.usefixtures("own_network"),
    pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed: apt-get install haproxy"),
]


def document(name, replicas=0, **metadata):
    return {"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": name, **metadata},
            "spec": {"replicas": replicas, "run": {"command": ["sleep", "1000"]}}}


QUEUE = {"apiVersion": "carve.dev/v1", "kind": "Queue", "metadata": {"name": "train"}, "spec": {"gpu": "mgpu"}}


@pytest.fixture
def filled(services):
    services.apply("\n---\n".join(json.dumps(d) for d in (
        document("b", 0, labels={"app": "web"}), document("a", 0), document("c", 0, labels={"app": "web"}), QUEUE)))
    return services


def test_paths_and_columns_print_what_the_objects_have(filled):
    get = lambda *words, **status: filled.carve("get", *words, **status)
    assert get("services", "-o", "jsonpath={.items[*].metadata.name}") == "a b c"
    assert get("services", "-o=jsonpath={range .items[*]}{.metadata.name}={.spec.replicas}{\"\\n\"}{end}") == "a=0\nb=0\nc=0\n"
    assert get("service/a", "-o", "jsonpath={.metadata.name}") == "a" and get("service/a", "-o", "jsonpath={.nothing}") == ""
    assert get("services", "-l", "app=web", "-o", "jsonpath={.items[?(@.metadata.name!='b')].metadata.name}") == "c"
    assert get("services", "-o", "custom-columns=NAME:.metadata.name,APP:.metadata.labels.app") == \
        "NAME  APP\na     <none>\nb     web\nc     web\n"
    assert get("services", "-o", "custom-columns=N:.metadata.name", "--no-headers", "--sort-by", "{.metadata.labels.app}") == "b\nc\na\n"
    assert "'}' is missing, at character 4 of '{.a'" in get("services", "-o", "jsonpath={.a", status=2)
    assert "'NAME' is not a column; write HEADING:PATH" in get("services", "-o", "custom-columns=NAME", status=2)
    assert "'xml' is not an output format" in get("services", "-o", "xml", status=2)
    assert "--sort-by" in get("services", "--sort-by", ".a[", status=2)


def test_several_kinds_and_objects_are_listed_together(filled):
    both = filled.carve("get", "svc,queues")
    assert re.search(r"^service/a .*\nservice/b .*\nservice/c .*\n\nNAME .*\nqueue/train ", both, re.M), both
    assert filled.carve("get", "all", "-o", "name").split() == ["service/a", "service/b", "service/c", "node/n1", "queue/train"]
    assert filled.carve("get", "service", "c", "a", "-o", "name") == "service/c\nservice/a\n"
    found = filled.carve("get", "service/a", "queue/train", "service/nope", "-o", "jsonpath={.items[*].kind}", status=1)
    assert found == "Service Queuecarve: there is no service nope\n"
    listed = filled.carve("get", "services,queues", "-o", "yaml")
    assert filled.apply(listed).count("unchanged") == 4
    assert "did you mean 'services'?" in filled.carve("get", "servces", status=2)
    assert "did you mean 'queues'?" in filled.carve("get", "services,queus", status=2)
    assert "use carve get slices" in filled.carve("get", "slices,services", status=2)
    assert "No objects" in filled.carve("get", "jobs,tariffs")
    assert "-w watches one kind" in filled.carve("get", "all", "-w", status=2)


def test_every_table_shows_the_age(filled):
    for kind in ("services", "queues", "nodes"):
        heading, row = filled.carve("get", kind).splitlines()[:2]
        assert heading.split()[-1] == "AGE", heading
        assert kind == "nodes" or re.fullmatch(r"\d+s|\d+m\d\ds", row.split()[-1]), row
    wide = filled.carve("get", "services", "-o", "wide").splitlines()[0].split()
    assert wide[-4:] == ["NAMESPACE", "AGE", "ACCOUNT", "CREATED"]
    assert len(filled.carve("get", "services", "--no-headers").splitlines()) == 3


def test_slices_and_devices_have_the_same_options(world):
    printed = lambda *words: world.carve(*words).stdout
    assert printed("slice", "create", "--name", "x", "--memory", "1GiB") and printed("slice", "create", "--name", "y", "--memory", "2GiB")
    assert printed("ps", "-o", "name", "--sort-by", ".name") == "slice/x\nslice/y\n"
    assert [row.split()[0] for row in printed("ps", "--no-headers", "--sort-by", "parts[0].quota_bytes").splitlines()] == ["x", "y"]
    assert printed("ps", "-o", "jsonpath={.slices[?(@.name=='y')].parts[0].quota_bytes}") == str(2 << 30)
    assert printed("get", "slices", "-o", "custom-columns=N:.name,X:.nope").splitlines()[0].split() == ["N", "X"]
    assert printed("devices", "-o", "name").split()[0] == "device/0"
    assert printed("devices", "-o", "custom-columns=D:.index", "--no-headers").split()[0] == "0"

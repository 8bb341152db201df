"""`carve explain KIND.FIELD`, and the JSON Schemas with which editors check documents."""
import json
import os
import pathlib
import re
import subprocess

import pytest
import yaml

from conftest import BUILD

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema (tests/requirements.txt) is not installed")

ROOT = pathlib.Path(__file__).resolve().parents[2]
KINDS = ["service", "application", "node", "pool", "queue", "job", "tariff", "budget", "raycluster"]


def carve(*words, status=0):
    """Neither an agent nor a controller is needed."""
    done = subprocess.run([BUILD / "bin/carve", *words], capture_output=True, text=True,
                          env={**os.environ, "CARVE_SOCKET": "/nowhere", "CARVE_CONTROLLER": "/nowhere"})
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def schema(kind):
    return json.loads(carve("explain", "--schema", kind))


def documents():
    """Yields each document of Carve's own form in the examples and in the documentation."""
    for path in sorted((ROOT / "examples").glob("*.yaml")):
        for number, document in enumerate(yaml.safe_load_all(path.read_text())):
            if str(document.get("apiVersion")) == "carve.dev/v1":
                yield pytest.param(document, id=f"{path.name}-{number}")
    for path in sorted((ROOT / "docs").glob("*.md")):
        for number, block in enumerate(re.findall(r"^```ya?ml\n(.*?)^```", path.read_text(), re.M | re.S)):
            for document in yaml.safe_load_all(block):
                if isinstance(document, dict) and document.get("apiVersion") == "carve.dev/v1" and "..." not in block:
                    yield pytest.param(document, id=f"{path.name}-{number}")


def test_a_field_is_explained_with_its_fields():
    text = carve("explain", "service.spec.gpu")
    assert text.startswith("KIND:     Service\nVERSION:  carve.dev/v1\nFIELD:    spec.gpu <Gpu>\n")
    assert "\n  memory <string>\n    Per device: " in text
    assert "DEFAULT:  1\n" in carve("explain", "svc.spec.replicas")
    tree = carve("explain", "job", "--recursive")
    assert "\n  spec <JobSpec>\n" in tree and "\n    queue <string>\n" in tree
    for kind in KINDS:
        assert all(len(line) <= 100 for line in carve("explain", kind).splitlines()), kind


def test_unknown_fields_and_the_other_forms_of_the_verb():
    assert "carve: service.spec: has no field 'gup'; did you mean 'gpu'? its fields are " in carve("explain", "service.spec.gup", status=2)
    assert "carve: 'servise' is not a kind; did you mean 'services'?" in carve("explain", "servise", status=2)
    assert "carve: 'x' is not a kind" in carve("explain", "--schema", "x", status=2)
    assert "no agent" in carve("explain", "--memory", "4GiB", status=1), "it is still about a request"
    assert "carve explain --memory 24GiB" in carve("explain", "--help") and "carve explain service.spec.gpu" in carve("explain", "--help")


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_valid_and_rejects_unknown_fields(kind):
    form = schema(kind)
    jsonschema.Draft202012Validator.check_schema(form)
    document = {"apiVersion": "carve.dev/v1", "kind": form["title"], "metadata": {"name": "a"}, "spec": {}}
    jsonschema.validate(document, form)
    for wrong in ({**document, "spce": {}}, {**document, "spec": {"nonsense": 1}}, {**document, "kind": "Other"},
                  {**document, "metadata": {"name": 5}}, {"kind": form["title"]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, form)
    installed = BUILD / f"share/carve/schemas/{kind}.json"
    assert json.loads(installed.read_text()) == form


@pytest.mark.parametrize("document", documents())
def test_documents_pass_the_schema_of_their_kind(document):
    jsonschema.validate(document, schema(document["kind"]))


def test_there_are_examples_of_most_kinds():
    kinds = {param.values[0]["kind"] for param in documents()}
    assert {"Service", "Application", "Pool", "Queue", "Tariff", "Budget", "RayCluster"} <= kinds

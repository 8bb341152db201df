"""The dashboards of deploy/grafana: they are what the generator writes, Grafana's schema accepts them, and each query returns
data from a Prometheus that scrapes a real agent and controller."""
import http.client
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from conftest import LOAD, until
from support.jobs import mgpu
from support.monitored import Monitored

pytestmark = pytest.mark.usefixtures("own_network")
ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy/grafana"
DASHBOARDS = sorted(FOLDER.glob("*.json"))
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "carve/grafana-schema"
PACKAGES = ("@grafana/schema@13.2.3", "typescript@5.9.3")


def panels(path):
    """Yields the title of each panel with its expressions."""
    for panel in json.loads(path.read_text())["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


def concrete(expression):
    """Replaces Grafana's variables by what they stand for when everything is selected."""
    for name, value in {"$__rate_interval": "30s", "$__range": "1m"}.items():
        expression = expression.replace(name, value)
    return re.sub(r"\$[a-z]+", ".*", expression)


def test_the_files_are_what_the_generator_writes():
    pytest.importorskip("grafana_foundation_sdk", reason="grafana-foundation-sdk (tests/requirements.txt) is not installed")
    done = subprocess.run([sys.executable, FOLDER / "generate", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [path.stem for path in DASHBOARDS] == ["device", "fleet", "invoice", "queue", "slice"]


@pytest.fixture(scope="module")
def schema():
    """A folder with Grafana's schema and the TypeScript compiler."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    if not (CACHE / "made").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        words = ["timeout", "90", "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--legacy-peer-deps", *PACKAGES]
        done = subprocess.run(words, cwd=CACHE, capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"Grafana's schema cannot be installed from npm within 90 s (status {done.returncode}): {done.stderr[-300:]}")
        (CACHE / "made").touch()
    return CACHE


def compiled(folder, documents):
    """Returns the compiler's messages about dashboards, {name: JSON}."""
    for name, text in documents.items():
        (folder / f"{name}.ts").write_text('import type { Dashboard } from "@grafana/schema";\n'
                                           f"export const dashboard = {text.strip()} satisfies Dashboard;\n")
    words = [folder / "node_modules/.bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--moduleResolution",
             "nodenext", *(f"{name}.ts" for name in documents)]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120).stdout


def test_grafanas_schema_accepts_the_dashboards_and_rejects_an_unknown_field(schema):
    documents = {path.stem: path.read_text() for path in DASHBOARDS}
    wrong = json.dumps({**json.loads(documents["fleet"]), "refrsh": "30s"})
    messages = compiled(schema, {**documents, "wrong": wrong}).splitlines()
    assert len(messages) == 1 and messages[0].startswith("wrong.ts") and "refrsh" in messages[0], messages


@pytest.fixture(scope="module")
def busy(own_network):
    """Causes all figures that the dashboards show: two slices that wait for each other, a service with requests, jobs, a
    budget, an Xid."""
    w = Monitored()
    w.controller.apply({"apiVersion": "carve.dev/v1", "kind": "Budget", "metadata": {"name": "b"},
                        "spec": {"account": "root", "gpuHours": "1"}})
    for name in "a", "b":
        w.load(name, "--device", 0, "--compute", "40%")
    w.controller.apply({"apiVersion": "carve.dev/v1", "kind": "Service", "metadata": {"name": "web"},
                        "spec": {"port": 8000, "gpu": {"memory": "1GiB"},
                                 "run": {"command": ["sh", "-c", "exec python3 -m http.server --bind 127.0.0.1 $PORT"]}}})
    endpoint = w.controller.running("web")["endpoint"].removeprefix("http://")
    w.controller.queue("short")
    w.controller.queue("train", maxRunning=1)
    jobs = [w.controller.submit(*mgpu(), "--", "sleep", "600") for _ in range(2)]
    w.fault(w.n1, "xid", 31, "--device", 1)
    yield w, endpoint
    for name in jobs:
        w.controller.carve("cancel", name)
    w.controller.carve("delete", "service", "web")
    w.stop("a", "b")
    w.end()


def request(endpoint):
    connection = http.client.HTTPConnection(endpoint, timeout=10)
    connection.request("GET", "/")
    assert connection.getresponse().status == 200
    connection.close()


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_each_query_returns_data(busy, path):
    w, endpoint = busy
    for title, expression in panels(path):
        def answered():
            request(endpoint)
            w.controller.submit("--", "true", queue="short")
            return [value for _, value in w.monitoring.query(concrete(expression)) if value == value]  # NaN is no data.
        assert until(answered, 30, 0.2), (title, concrete(expression))


def test_promtool_and_prometheus_accept_what_the_programs_serve(busy):
    w, _ = busy
    for job, (health, error) in w.monitoring.targets().items():
        assert health == "up", (job, error)
    for text in w.n1.get("/metrics")[2], w.controller.text("/metrics"):
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
        # DCGM's names are NVIDIA's, and GPU-hours are the unit of invoices.
        complaints = [line for line in (done.stdout + done.stderr).splitlines()
                      if line.strip() and not line.startswith(("DCGM_", "carve_gpu_hours_total use base unit"))]
        assert complaints == [], complaints


def test_prometheus_reads_openmetrics_with_units(busy):
    w, _ = busy
    metadata = w.monitoring.get("targets/metadata", match_target='{job="carve-agent"}', metric="carve_slice_compute_busy_seconds")
    assert metadata and all(one["unit"] == "seconds" and one["type"] == "counter" for one in metadata), metadata

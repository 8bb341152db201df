"""Tests the metrics, as read by Prometheus' own client, on the API's socket and, if requested, on a loopback
address; also the trace."""
import json
import os
import re
import subprocess
import urllib.error
import urllib.request

import pytest

from conftest import BUILD, GiB, LOAD, until

parser = pytest.importorskip("prometheus_client.parser", reason="prometheus_client (tests/requirements.txt) is not installed")


def families(text):
    """Returns the metric families by name. The parser rejects text that is not an exposition."""
    return {f.name: f for f in parser.text_string_to_metric_families(text)}


def value(found, name, **labels):
    (one,) = [s.value for s in found[name].samples if all(s.labels[k] == v for k, v in labels.items())]
    return one


def begin(world, name, *options):
    world.begin("run", "--memory", "4GiB", "--device", 0, "--name", name, *options, "--", LOAD, "--allocate", "1GiB", "--kernels", "200us",
                "--seconds", 600)
    assert until(lambda: world.slices().get(name, {"parts": [{"charged_bytes": 0}]})["parts"][0]["charged_bytes"] > GiB, 30)


def test_prometheus_reads_the_same_values_as_the_api(world):
    begin(world, "a", "--compute", "30%")
    status, kind, text = world.get("/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    found = families(text)
    device = world.json("devices")["devices"][0]
    place = {"device": "0", "uuid": device["uuid"]}
    assert value(found, "carve_device_memory_usable_bytes", **place) == device["usable_bytes"]
    assert value(found, "carve_slice_memory_quota_bytes", slice="a", **place) == 4 * GiB
    charged = lambda: value(families(world.get("/metrics")[2]), "carve_slice_memory_charged_bytes", slice="a", **place)
    assert until(lambda: charged() == world.show("a")["parts"][0]["charged_bytes"]), "it may grow between two looks"
    assert value(found, "carve_slice_compute_share_ratio", slice="a", **place) == 0.3
    info = found["carve_slice_info"].samples[0].labels
    assert info["policy"] == "fixed-share" and info["isolation"] == "memory+compute" and info["class"] == "batch"
    for family in found.values():
        assert family.documentation and family.type in ("gauge", "counter"), family
        assert all(s.name.endswith("_total") for s in family.samples) == (family.type == "counter"), family.name


def test_compute_counters_never_decrease(world):
    begin(world, "a", "--compute", "30%")
    busy = lambda: value(families(world.get("/metrics")[2]), "carve_slice_compute_busy_seconds", slice="a")
    assert until(lambda: busy() > 0)
    before = busy()
    assert until(lambda: busy() > before)


@pytest.mark.skipif(os.geteuid() != 0, reason="run as root this case also plays an ordinary user")
def test_other_users_see_only_their_own_slices(world):
    os.chmod(world.socket, 0o666)
    begin(world, "secret")
    ask = "import http.client, socket\nc = http.client.HTTPConnection('x'); c.sock = socket.socket(socket.AF_UNIX)\n" \
          f"c.sock.connect({str(world.socket)!r})\nc.request('GET', '/metrics'); print(c.getresponse().read().decode())"
    seen = subprocess.run(["/usr/bin/python3", "-c", ask], capture_output=True, text=True, user=65534, group=65534, extra_groups=[],
                          timeout=30)
    assert "carve_device_memory_usable_bytes" in seen.stdout and "secret" not in seen.stdout


@pytest.mark.devices("a10x1", "--metrics-listen", "127.0.0.1:0")
def test_only_metrics_are_served_over_tcp(world):
    begin(world, "a")
    (url,) = re.findall(r"metrics served at (http://127\.0\.0\.1:\d+/metrics)", (world.folder / "log").read_text())
    found = families(urllib.request.urlopen(url, timeout=10).read().decode())
    assert value(found, "carve_slice_memory_quota_bytes", slice="a") == 4 * GiB
    for path, method, status in ("/v1/slices", "GET", 404), ("/v1/slices/a", "DELETE", 404), ("/metrics", "POST", 405):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(url.replace("/metrics", path), method=method), timeout=10)
        assert refused.value.code == status
    assert "a" in world.slices()


def test_an_address_that_others_can_reach_is_opened_only_on_request(world):
    done = subprocess.run([BUILD / "bin/carved", "--sim", "a10x1", "--state", world.folder / "other", "--socket", world.folder / "o",
                           "--metrics-listen", "0.0.0.0:0"],
                          capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and "--metrics-listen-any" in done.stderr


def test_a_trace_shows_which_slice_ran_when(world):
    for name in "a", "b":
        begin(world, name, "--compute", "40%")
    path = world.folder / "trace.json"

    def traced():
        done = world.carve("trace", "--seconds", 2, "-o", path)
        assert done.returncode == 0, done.stderr
        events = json.loads(path.read_text())["traceEvents"]
        names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
        leases = [e for e in events if e.get("cat") == "lease"]
        return events, names, leases
    assert until(lambda: {traced()[1].get((e["pid"], e["tid"])) for e in traced()[2]} == {"a", "b"}, 20)
    events, names, leases = traced()
    assert json.loads(world.carve("trace", "-o", "json").stdout)["traceEvents"], "the form that other verbs have"
    assert any(e["name"] == "process_name" and e["args"]["name"].startswith("device 0: NVIDIA A10") for e in events)
    assert all(0 <= e["ts"] and e["ts"] + e["dur"] <= 2.5e6 for e in events if e["ph"] == "X")
    # Viewers can draw the spans of one track only if each is inside or after another one.
    for track in names:
        ends = []
        for e in sorted((e for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) == track), key=lambda e: (e["ts"], -e["dur"])):
            while ends and ends[-1] <= e["ts"] + 0.002:
                ends.pop()
            assert not ends or e["ts"] + e["dur"] <= ends[-1] + 0.002, e
            ends.append(e["ts"] + e["dur"])
